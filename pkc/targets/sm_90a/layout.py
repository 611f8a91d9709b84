"""How tiles lie in shared memory: in panels of at most 128 bytes, swizzled (PTX ISA: wgmma, shared memory layout)."""

from __future__ import annotations

from math import prod

from pkc.dialect.machine import MAX_BOX
from pkc.dialect.types import TileType, dtype_bytes
from pkc.targets.layout import AROUND, BOX, CHUNK, SharedLayout

ALIGNMENT = 1024
"""Bytes at which a swizzled tile begins: the pattern of 128 bytes repeats after 8 rows."""


_LONG, _FEW = 1024, 8
"""Bytes of a row that no MMA goes through at once, and the rows of the pattern of a swizzle."""

_PADDED = 32
"""A row is at least this many times as long as the padding of its last panel, if panels are not the narrowest."""


def shared_layout(tile: TileType) -> SharedLayout:
    """The layout of a tile in a stage. One whose rows fill no panel of 32 bytes has no swizzle; nor have a few long
    rows, each panel of which would take the room of eight. Where panels that divide the rows have no more than a chunk,
    the last of wider ones ends behind the tile."""
    size, columns, rows = dtype_bytes(tile.element_type), _columns(tile), prod(tile.shape[:-1])
    width = next((w for w in (128, 64, 32) if columns * size % w == 0), None)
    if width is None or tile.rank < 2 or (rows < _FEW and columns * size > _LONG):
        return flat_layout(tile)
    return SharedLayout(rows, width // size, columns * size // width, width, width)


def flat_layout(tile: TileType) -> SharedLayout:
    """The layout without a swizzle, in panels as wide as a box of TMA, for tiles that threads go through row by row."""
    size, columns = dtype_bytes(tile.element_type), _columns(tile)
    if tile.rank == 0:
        return SharedLayout(1, 1, 1, CHUNK, 0)
    each = columns if is_one_piece(tile) else _panel(columns, size)
    return SharedLayout(prod(tile.shape[:-1]), each, -(-columns // each), -(-each * size // CHUNK) * CHUNK, 0)


def around_layout(tile: TileType) -> SharedLayout:
    """The layout of rows that come with what lies around them: in one piece each, with room for that, and a chunk that
    says where they begin. As `flat_layout` of short rows."""
    size, columns = dtype_bytes(tile.element_type), _columns(tile)
    if tile.rank == 0 or columns * size < AROUND:
        return flat_layout(tile)
    return SharedLayout(prod(tile.shape[:-1]), columns, 1, -(-columns * size // CHUNK) * CHUNK + CHUNK, 0, CHUNK)


def _columns(tile: TileType) -> int:
    return tile.shape[-1] if tile.rank else 1


def is_one_piece(tile: TileType) -> bool:
    """Whether a tile is one long row that divides into no panels worth the name: it moves as it lies in memory, without
    a tensor map, and so has no panels."""
    columns, size = tile.shape[-1], dtype_bytes(tile.element_type)
    if prod(tile.shape[:-1]) != 1 or columns <= MAX_BOX or columns * size % CHUNK:
        return False
    return _dividing(columns, size) < MAX_BOX // 4


def _panel(columns: int, size: int) -> int:
    """Columns of a panel without swizzle. Where those that divide a row have one chunk, which take TMA as long as wider
    ones, the last panel is padded: they have a power of two, the most that pads a row by a 32nd, at least a line."""
    each = _dividing(columns, size)
    if columns <= MAX_BOX or each * size > CHUNK:
        return each
    widths = [n for n in (MAX_BOX, MAX_BOX // 2, MAX_BOX // 4, MAX_BOX // 8) if n * size >= BOX]
    return next((n for n in widths if -columns % n * _PADDED <= columns), widths[-1])


def _dividing(columns: int, size: int) -> int:
    """Columns of panels that divide a row: all, or as many as a box can have, in whole chunks. A power of two, if it is
    not too small: then the panel of an element is a shift."""
    if columns <= MAX_BOX:
        return columns
    fitting = [n for n in range(MAX_BOX, 0, -1) if columns % n == 0 and n * size % CHUNK == 0]
    shifts = (n for n in fitting if n & (n - 1) == 0 and n >= MAX_BOX // 4)
    return next(shifts, fitting[0] if fitting else columns)
