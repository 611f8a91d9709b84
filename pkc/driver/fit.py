"""Other tiles for a kernel whose own do not fit into a CTA, or have no instructions, as settings of the schedule."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from math import log2, prod

from xdsl.ir import SSAValue

from pkc.diagnostics import Diagnostic, PkcError
from pkc.dialect.access import StoreOp
from pkc.dialect.coordinates import BlockCountOp, BlockOp, written_type
from pkc.dialect.counters import CounterOp, SignalAllOp, SignalOp, WaitOp
from pkc.dialect.program import CLUSTER, CONSUMERS, STAGES, KernelOp
from pkc.dialect.reductions import RowReduction
from pkc.dialect.scans import CumSumOp
from pkc.dialect.tile import AnyMmaOp, tile_type
from pkc.dialect.types import Dim
from pkc.driver.candidates import carries_numbers, followed
from pkc.driver.sizes import axis_block, counted_dimensions, reduced_alone
from pkc.frontend.schedule import TILE
from pkc.passes.analysis.axes import written_axis
from pkc.passes.analysis.budget_errors import RowsNotShared, TooManyRegisters, TooWideMma
from pkc.passes.analysis.dependence import enclosing_tasks, sources
from pkc.passes.machine.machine_errors import NotLowered
from pkc.passes.plan_errors import SharedMemory
from pkc.passes.tile.split_rows import ROW, lengths
from pkc.targets.target import Target, target_of

STEP = "fit"
"""What remarks name as their pass."""

_BUDGETS = (SharedMemory, TooManyRegisters, TooWideMma)
"""What smaller tiles help against."""

TAKES_ROOM = frozenset({STAGES, CONSUMERS, "separate_loader"})
"""Keys of a schedule beside tiles for which an author has to find room."""

_ROWS, _COLUMNS, _LEAST = 64, 32, 2
"""The fewest positions of a block of the rows and of the columns of MMAs, and of any other."""

_TRIED = 24
"""How many sizes are tried; each takes as long as the passes to the roles level."""


def is_too_large(error: PkcError) -> bool:
    """Whether a kernel was refused only because its tiles do not fit into a CTA."""
    return all(isinstance(found, _BUDGETS) for found in error.diagnostics)


def has_other_sizes(error: PkcError) -> bool:
    """Whether other tiles, or fewer stages or warpgroups, may help against an error."""
    return is_too_large(error) or any(map(_other_blocks, error.diagnostics))


def _other_blocks(found: Diagnostic) -> bool:
    return isinstance(found, RowsNotShared) or (isinstance(found, NotLowered) and bool(found.sizes))


def suited(kernel: KernelOp, error: PkcError) -> Iterator[Mapping[str, str]]:
    """What all findings of an error ask for: warpgroups, or tiles if the result cannot depend on them."""
    rows = [found.rows // found.step for found in error.diagnostics if isinstance(found, RowsNotShared)]
    if rows and len(rows) == len(error.diagnostics):
        yield from ({CONSUMERS: str(number)} for number in dict.fromkeys((*rows, 1)) if number in _CONSUMERS)
    wanted = _wanted(error)
    counted = counted_dimensions(kernel)
    if not wanted or counted is None or carries_numbers(kernel):
        return
    if (counted | reduced_alone(kernel) | set(followed(kernel))).isdisjoint(wanted):
        yield {f"{TILE}{dim}": str(size) for dim, size in wanted.items()}


def _wanted(error: PkcError) -> dict[str, int]:
    """Sizes of blocks by dimension; nothing if some finding has no such help."""
    every: list[tuple[str, int]] = []
    for found in error.diagnostics:
        if not isinstance(found, NotLowered) or not found.sizes:
            return {}
        every += found.sizes
    return {dim: max(size for other, size in every if other == dim) for dim, _ in every}


def proposed(kernel: KernelOp, error: PkcError) -> Iterator[Mapping[str, str]]:
    """Settings that may help against an error, which it is left to the author to take."""
    wanted, schedule = _wanted(error), kernel.schedule
    if wanted:
        yield {f"{TILE}{dim}": str(size) for dim, size in wanted.items()}
    stages = kernel.scheduled_number(STAGES)
    yield from ({STAGES: str(number)} for number in _FEWER_STAGES if stages is not None and number < stages)
    if "consumers" in schedule or any(isinstance(found, RowsNotShared) for found in error.diagnostics):
        yield from ({CONSUMERS: str(number)} for number in _CONSUMERS)
    if is_too_large(error):
        yield from itertools.islice(smaller(kernel, summed=True), _PROPOSED)


def _awaits_blocks(kernel: KernelOp) -> bool:
    """Whether roles await as many signals of tasks as there are blocks, or multiples of that, and nothing else."""
    counters = [op for op in kernel.walk() if isinstance(op, CounterOp)]
    if not kernel.roles or not all(isinstance(op, WaitOp | SignalOp | SignalAllOp) for op in counters):
        return False
    each = {op.signal for op in counters if not isinstance(op, WaitOp) and enclosing_tasks(op)}
    waits = [op for op in counters if isinstance(op, WaitOp) and op.signal in each]
    return all(any(isinstance(value.owner, BlockCountOp) for value in sources([op.count])) for op in waits)


_FEWER_STAGES, _CONSUMERS, _PROPOSED = (4, 3, 2, 1), (1, 2, 3), 8


def _is_needed_again(kernel: KernelOp, length: int) -> bool:
    """Whether rows are stored that are reduced too: in pieces they would be read at least twice."""
    ops = list(kernel.walk())
    reduced = any(isinstance(op, RowReduction) and length == tile_type(op.tile).shape[-1] for op in ops)
    return reduced and any(isinstance(op, StoreOp) and length in tile_type(op.tile).shape for op in ops)


def _clusters(longest: int, target: Target) -> Iterator[int]:
    """How many CTAs may share a row of so many elements, the fewest first, each of which then has registers for it."""
    count = 2
    while count <= target.arch.cluster:
        if longest // count <= target.registers.row:
            yield count
        count *= 2


def smaller(kernel: KernelOp, *, summed: bool = False) -> Iterator[Mapping[str, str]]:
    """Tiles for a kernel at the tile level, the largest first, the squarest of these first: each block has a half, a
    quarter, ... of its positions; then long rows of whole dimensions in clusters of CTAs, then these in pieces; rows of
    blocks first in pieces.

    No tiles if the result could depend on the size of all blocks. A dimension of which blocks are reduced, or that MMAs
    sum over, or where the beginnings or the number of blocks matter, keeps its blocks; the former two not with
    `summed`. What an author wrote as roles has other tiles only with `summed`, which proposes them.
    """
    counted = counted_dimensions(kernel)
    if carries_numbers(kernel) or (counted is None and not (summed and _awaits_blocks(kernel))):
        return
    sizes = _sizes(kernel)
    fewest, kept = _multiplied(kernel), {*followed(kernel), *(counted or ())}
    kept |= set[Dim]() if summed else _summed(kernel, sizes)
    dims = {dim: size for dim, size in sizes.items() if dim not in kept}
    choices = [list(_halves(size, fewest.get(dim, _LEAST))) for dim, size in dims.items()]
    found = [chosen for chosen in product(*choices) if chosen != tuple(dims.values())]
    found.sort(key=lambda chosen: (-prod(chosen), sum(log2(size) ** 2 for size in chosen)))
    for chosen in found[:_TRIED]:
        yield _settings(dims, chosen)
    target, fewest_of_each = target_of(kernel), [sizes[-1] for sizes in choices]
    pieces = target.tiles.pieces
    longest = max(lengths(kernel.walk(), pieces[-1]), default=0)
    if not dims and _is_needed_again(kernel, longest):
        yield from ({CLUSTER: str(count)} for count in _clusters(longest, target))
    for row in (size for size in pieces if size < longest):
        fitting = (chosen for chosen in ([*dims.values()], *found) if prod(chosen) * row <= pieces[0])
        yield {**_settings(dims, next(fitting, fewest_of_each)), ROW: str(row)}
    if dims and _is_needed_again(kernel, longest):
        several = _clusters(longest * prod(fewest_of_each), target)
        yield from ({**_settings(dims, fewest_of_each), CLUSTER: str(count)} for count in several)


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
        kind = written_type(op.result) if isinstance(op, BlockOp) else None
        if kind is not None and isinstance(kind.of, str):
            found.setdefault(kind.of, set()).add(kind.extent)
    return {dim: sizes.pop() for dim, sizes in found.items() if len(sizes) == 1}


def _summed(kernel: KernelOp, sizes: Mapping[str, int]) -> set[str]:
    """The dimensions that rows are reduced along, or that MMAs sum over; each that could be, where it is not known."""
    found: set[str] = set()
    for op in kernel.walk():
        if isinstance(op, RowReduction | CumSumOp):
            axis, kind = tile_type(op.tile).rank - 1, tile_type(op.tile)
            block, length = axis_block(op.tile, axis), kind.shape[axis]
            found |= {name for name, size in sizes.items() if (size == length if block is None else name == block.of)}
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
    kind = written_axis(tile, axis)
    return kind.of if kind is not None and isinstance(kind.of, str) else None
