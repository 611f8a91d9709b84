"""Smaller tiles for a kernel whose own do not fit into a CTA, as settings of the schedule."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from math import log2, prod

from xdsl.ir import SSAValue

from pkc.diagnostics import PkcError
from pkc.dialect.coordinates import BlockOp
from pkc.dialect.program import KernelOp, RoleOp
from pkc.dialect.reductions import RowReduction
from pkc.dialect.tile import AnyMmaOp, tile_type
from pkc.driver.candidates import carries_numbers, followed
from pkc.driver.sizes import counts_blocks
from pkc.frontend.schedule import TILE
from pkc.passes.analysis.axes import block_of_axis
from pkc.passes.analysis.budget_errors import TooManyRegisters, TooWideMma
from pkc.passes.plan_errors import SharedMemory
from pkc.passes.tile.split_rows import ROW, lengths

STEP = "fit"
"""What remarks name as their pass."""

_BUDGETS = (SharedMemory, TooManyRegisters, TooWideMma)
"""What smaller tiles help against."""

TAKES_ROOM = frozenset({"stages", "consumers", "separate_loader"})
"""Keys of a schedule beside tiles for which an author has to find room."""

_ROWS, _COLUMNS, _LEAST = 64, 32, 2
"""The fewest positions of a block of the rows and of the columns of MMAs, and of any other."""

_PIECES = (16384, 8192, 4096, 2048, 1024)
"""Elements of a piece of a row that does not fit, the best first: as many as are on their way to an SM at a time."""

_TRIED = 24
"""How many sizes are tried; each takes as long as the passes to the roles level."""


def is_too_large(error: PkcError) -> bool:
    """Whether a kernel was refused only because its tiles do not fit into a CTA."""
    return all(isinstance(found, _BUDGETS) for found in error.diagnostics)


def smaller(kernel: KernelOp) -> Iterator[Mapping[str, str]]:
    """Tiles for a kernel at the tile level, the largest first, the squarest of these first: each block has a half, a
    quarter, ... of its positions; then long rows of whole dimensions in pieces.

    No tiles if the result could depend on the size of all blocks. A dimension of which blocks are reduced, or that MMAs
    sum over, or where the beginnings of blocks matter, keeps its blocks.
    """
    if carries_numbers(kernel) or any(isinstance(op, RoleOp) or counts_blocks(op) for op in kernel.walk()):
        return
    sizes = _sizes(kernel)
    fewest, kept = _multiplied(kernel), _summed(kernel, sizes) | set(followed(kernel))
    dims = {dim: size for dim, size in sizes.items() if dim not in kept}
    choices = [list(_halves(size, fewest.get(dim, _LEAST))) for dim, size in dims.items()]
    found = [chosen for chosen in product(*choices) if chosen != tuple(dims.values())]
    found.sort(key=lambda chosen: (-prod(chosen), sum(log2(size) ** 2 for size in chosen)))
    for chosen in found[:_TRIED]:
        yield _settings(dims, chosen)
    longest = max(lengths(kernel.walk(), _PIECES[-1]), default=0)
    for row in (size for size in _PIECES if size < longest):
        fitting = (chosen for chosen in ([*dims.values()], *found) if prod(chosen) * row <= _PIECES[0])
        yield {**_settings(dims, next(fitting, [*(sizes[-1] for sizes in choices)])), ROW: str(row)}


def _settings(dims: Mapping[str, int], chosen: Iterable[int]) -> dict[str, str]:
    pairs = zip(dims.items(), chosen, strict=True)
    return {f"{TILE}{dim}": str(size) for (dim, before), size in pairs if size != before}


def _halves(size: int, least: int) -> Iterator[int]:
    yield size
    while size % 2 == 0 and size // 2 >= least:
        size //= 2
        yield size


def _sizes(kernel: KernelOp) -> dict[str, int]:
    """The positions of the blocks of each run-time dimension that has blocks of one size."""
    found: dict[str, set[int]] = {}
    for op in kernel.walk():
        if isinstance(op, BlockOp) and isinstance(op.result.type.of, str):
            found.setdefault(op.result.type.of, set()).add(op.result.type.extent)
    return {dim: sizes.pop() for dim, sizes in found.items() if len(sizes) == 1}


def _summed(kernel: KernelOp, sizes: Mapping[str, int]) -> set[str]:
    """The dimensions that rows are reduced along, or that MMAs sum over; each that could be, where it is not known."""
    found: set[str] = set()
    for op in kernel.walk():
        if isinstance(op, RowReduction):
            axis, kind = tile_type(op.tile).rank - 1, tile_type(op.tile)
            dim = _dim(op.tile, axis)
            found |= {dim} if dim is not None else {name for name, size in sizes.items() if size == kind.shape[axis]}
        if isinstance(op, AnyMmaOp):
            found |= {dim for dim in (_dim(op.a, 1), _dim(op.b, 0)) if dim is not None}
    return found


def _multiplied(kernel: KernelOp) -> dict[str, int]:
    """The fewest positions of the blocks of the rows and columns of MMAs, by dimension."""
    mmas = [op for op in kernel.walk() if isinstance(op, AnyMmaOp)]
    columns = {dim: _COLUMNS for op in mmas if (dim := _dim(op.b, 1)) is not None}
    return columns | {dim: _ROWS for op in mmas if (dim := _dim(op.a, 0)) is not None}


def _dim(tile: SSAValue, axis: int) -> str | None:
    """The run-time dimension that an axis of a tile goes through, if that is known."""
    block = block_of_axis(tile, axis)
    found = block.owner.result.type.of if block is not None and isinstance(block.owner, BlockOp) else None
    return found if isinstance(found, str) else None
