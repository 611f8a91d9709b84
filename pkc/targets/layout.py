"""How tiles lie in shared memory and in registers (PTX ISA: matrix fragments and shared memory layout)."""

from __future__ import annotations

from dataclasses import dataclass

CHUNK = 16
"""Bytes that stay together in a swizzle, that rows of boxes are multiples of, and that a thread moves at once."""

NEIGHBOURS = CHUNK // 2
"""Elements of 16 bits in a chunk: as many neighbours a thread works on at once where no MMA says which it has."""

BOX = 128
"""Bytes that a box of TMA begins at a multiple of in shared memory (PTX ISA: cp.async.bulk.tensor)."""

AROUND = 256
"""Bytes of a row from which on it is worth a copy of its own, with what lies around it up to multiples of a chunk."""

_PATTERN = 8
"""Rows after which the pattern of a swizzle of 128 bytes repeats, and more often that of a narrower one."""


@dataclass(frozen=True)
class SharedLayout:
    """Rows of `width` bytes in panels side by side, in chunks of 16 bytes.

    With a swizzle, chunk c of row r lies where chunk c ^ (r / lines mod (width / 16)) would: `lines` rows share 128
    bytes (PTX ISA: swizzling modes). A panel has all rows and `columns` columns, the last one perhaps more than are
    left of the tile: nothing reads that padding. A tile without a second axis is one row without swizzle.
    """

    rows: int
    columns: int
    panels: int
    width: int
    swizzle: int
    spare: int = 0
    """Bytes behind all rows, for where rows begin that came with what lies around them. Each such row has room for
    that, too."""

    @property
    def lines(self) -> int:
        return 128 // self.width if self.swizzle else 1

    @property
    def panel_bytes(self) -> int:
        """From one panel to the next: the pattern of a swizzle begins anew in each, and a box at a multiple of 128."""
        if self.panels == 1:
            return self.rows * self.width
        if self.swizzle:
            return -(-self.rows // _PATTERN) * _PATTERN * self.width
        return -(-self.rows * self.width // BOX) * BOX

    @property
    def bytes(self) -> int:
        return self.panels * self.panel_bytes + self.spare

    @property
    def moved_bytes(self) -> int:
        """What a copy of the tile moves, padding included: TMA counts whole boxes."""
        return self.panels * self.rows * self.width


WARP_ROWS = 16
"""Rows of an accumulator in one warp: lane l has rows l / 4 and l / 4 + 8 of them."""

ROW_STEP = 8
"""Rows that one register of each thread of a warp covers."""

COLUMN_STEP = 8
"""Columns that four threads share: two each."""


@dataclass(frozen=True)
class Fragment:
    """How the elements of a tile are spread over the registers of `warpgroups` warpgroups, each of which has `rows`.

    Without `lanes`, with `axes` (0, 1) as the accumulators of MMA: register ((i * C / 8 + j) * 2 + h) * 2 + c of a
    thread has row rows * (w + i * warpgroups) + 16 warp + lane / 4 + 8 h and column 8 j + 2 (lane mod 4) + c. With one
    axis, the registers that differ in the other one are the same; with none there is one register.

    With `lanes`, of which each row has so many, as tiles that meet no MMA: `rows` at a time, thread t of the role has
    row t / lanes of them. Register (i * R + n j) + c, R being `per_row` and n `together`, has row rows * i + t / lanes
    and column n (lanes * j + t mod lanes) + c, which is behind the last one for some threads if these are no multiple
    of n lanes.

    With `side` s, of tiles that are read across a stage, a thread has as many rows at each place, and n is 1: register
    (s i + r) R + j has row rows * i + s (t / lanes) + r and column lanes * j + t mod lanes.
    """

    shape: tuple[int, ...]
    axes: tuple[int, ...]
    warpgroups: int
    rows: int
    lanes: int = 0
    together: int = 2
    """With `lanes`: how many neighbours of a row a thread has at each place, an even number."""
    side: int = 1
    """With `lanes`: how many rows side by side a thread has at each place."""
    flat: int = 0
    """If not 0: that many neighbours of the innermost axis, wherever a thread is in the tile at the time."""

    @property
    def repeats(self) -> int:
        """Blocks of `rows` rows that each warpgroup has."""
        return -(-self.shape[0] // (self.rows * self.warpgroups)) if 0 in self.axes else 1

    @property
    def cut(self) -> bool:
        """Whether the tile has fewer rows than there are registers for: those of the other rows are never stored."""
        return 0 in self.axes and not self.flat and self.shape[0] % (self.rows * self.warpgroups) != 0

    @property
    def columns(self) -> int:
        return self.shape[-1] if 1 in self.axes else 0

    @property
    def paired(self) -> bool:
        """Whether a thread's elements are pairs of neighbours, so that those of 16 bits share registers."""
        return self.side == 1 and (self.axes == (0, 1) or (self.axes == (1,) and bool(self.lanes or self.flat)))

    @property
    def per_row(self) -> int:
        """With `lanes`: elements that each thread has of a row, `together` for each of several lanes at a time."""
        return -(-self.columns // (self.together * self.lanes)) * self.together if self.columns else 1

    @property
    def ends_early(self) -> bool:
        """Whether some threads have elements behind the last column, which are in no tile."""
        return bool(self.lanes and self.columns % (self.together * self.lanes))

    @property
    def surely(self) -> int:
        """With `lanes`: how many of the elements that each thread has of a row are in the tile for every thread."""
        return self.columns // (self.together * self.lanes) * self.together if self.columns else 1

    @property
    def count(self) -> int:
        """Elements that each thread has."""
        if self.flat:
            return self.flat if self.axes else 1
        if self.lanes:
            return self.repeats * self.side * self.per_row
        return self.repeats * (2 if 0 in self.axes else 1) * (self.columns // 4 if self.columns else 1)
