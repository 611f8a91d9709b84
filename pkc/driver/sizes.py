"""Sizes of blocks that the autoschedule tries where a kernel is no single matmul: several, or none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum
from itertools import count, islice, product, takewhile

from xdsl.dialects import scf
from xdsl.dialects.arith import MaxSIOp
from xdsl.ir import Operation, OpResult, SSAValue

from pkc.cost.operations import is_dependent
from pkc.dialect.access import AccumulateOp, LoadOp, StoreOp
from pkc.dialect.coordinates import BlockCountOp, FirstVisitedOp, VisitedOp, written_type
from pkc.dialect.counters import CounterOp
from pkc.dialect.elementwise import AddOp
from pkc.dialect.program import KernelOp, RoleOp, TasksOp
from pkc.dialect.reductions import RowReduction
from pkc.dialect.scans import CumSumOp
from pkc.dialect.tile import MmaOp, TransposeOp, tile_type
from pkc.dialect.types import BlockType, Dim
from pkc.frontend.schedule import TILE
from pkc.passes.analysis.axes import written_axis
from pkc.targets.target import Target


class _Is(Enum):
    """What a dimension is to the tiles of a kernel; the first that it is anywhere counts."""

    ROWS = 0
    COLUMNS = 1
    INNER = 2


def settings(sizes: Mapping[Dim, int]) -> dict[str, str]:
    """Sizes of blocks as a schedule."""
    return {f"{TILE}{dim}": str(size) for dim, size in sizes.items()}


def other_sizes(kernel: KernelOp, target: Target) -> list[Mapping[str, str]]:
    """Each combination of sizes for the dimensions of run-time length whose blocks may have others; the largest tile is
    one that accumulators can have."""
    counted = counted_dimensions(kernel)
    if counted is None:
        return []
    mmas = [op for op in kernel.walk() if isinstance(op, MmaOp)]
    if any(map(is_dependent, mmas)):
        return []
    dims = dict(_of_matmuls(mmas) if mmas else _of_accesses(kernel))
    for fixed in reduced_alone(kernel) | counted:
        dims.pop(fixed, None)
    written = {kind.of: kind.extent for kind in _kinds(kernel) if kind.of in dims}
    each = {tuple(sizes.items()): sizes for sizes in _combined(dims, bool(mmas), target) if sizes and sizes != written}
    return [settings(sizes) for sizes in each.values()]


def _kinds(kernel: KernelOp) -> Iterator[BlockType]:
    for op in kernel.walk():
        yield from (kind for value in op.results if (kind := written_type(value)) is not None)


def counts_blocks(op: Operation) -> bool:
    """Whether a number of blocks is part of what is computed or signalled, and not only of how often."""
    if isinstance(op, CounterOp):
        return True
    users = [use.operation for use in op.results[0].uses] if isinstance(op, BlockCountOp) else []
    users += [use.operation for user in users if isinstance(user, MaxSIOp) for use in user.result.uses]
    return not all(isinstance(user, TasksOp | scf.ForOp | VisitedOp | FirstVisitedOp | MaxSIOp) for user in users)


def counted_dimensions(kernel: KernelOp) -> set[Dim] | None:
    """The dimensions whose number of blocks is part of what a kernel computes; None where it counts signals, or has
    roles, which may count on any."""
    if any(isinstance(op, RoleOp | CounterOp) for op in kernel.walk()):
        return None
    return {op.block.of for op in kernel.walk() if isinstance(op, BlockCountOp) and counts_blocks(op)}


def _combined(dims: Mapping[Dim, _Is], multiplies: bool, target: Target) -> Iterator[dict[Dim, int]]:
    tiles = target.tiles
    # Without MMAs a tile of one axis may be as long as another has elements.
    rows_too = _Is.ROWS in dims.values()
    doubled = takewhile(lambda size: size <= tiles.streamed, (tiles.columns[-1] << n for n in count(1)))
    longer = () if multiplies else islice(doubled, 2 if rows_too else None)
    sizes = {_Is.ROWS: tiles.rows, _Is.COLUMNS: (*tiles.columns, *longer), _Is.INNER: tiles.inner}
    for rows, columns, inner in product(*sizes.values()):
        if rows * columns <= (tiles.most if multiplies else tiles.streamed):
            chosen = {_Is.ROWS: rows, _Is.COLUMNS: columns, _Is.INNER: inner}
            yield {dim: chosen[kind] for dim, kind in dims.items()}


def _of_matmuls(mmas: list[MmaOp]) -> Iterator[tuple[Dim, _Is]]:
    """The dimensions of all matmuls. A dimension that one matmul sums over may be the columns of another."""
    blocks = [(axis_block(op.a, 1), axis_block(op.result, 1), axis_block(op.result, 0)) for op in mmas]
    for kind, each in zip((_Is.INNER, _Is.COLUMNS, _Is.ROWS), zip(*blocks, strict=True), strict=True):
        yield from ((block.of, kind) for block in each if block is not None and isinstance(block.of, str))


def _of_accesses(kernel: KernelOp) -> Iterator[tuple[Dim, _Is]]:
    """The last two dimensions of the tiles that are loaded and stored."""
    for op in kernel.walk():
        if isinstance(op, LoadOp | StoreOp | AccumulateOp):
            blocks = [kind for index in op.indices if (kind := written_type(index)) is not None]
            for kind, block in zip((_Is.COLUMNS, _Is.ROWS), reversed(blocks), strict=False):
                if isinstance(block.of, str):
                    yield block.of, kind


def axis_block(tile: SSAValue, axis: int) -> BlockType | None:
    """What an axis goes through, loops seen through; None if that is not known."""
    found = written_axis(tile, axis)
    if found is not None:
        return found
    if not isinstance(tile, OpResult):
        return None
    if isinstance(tile.op, TransposeOp):
        return axis_block(tile.op.tile, 1 - axis)
    if isinstance(tile.op, scf.ForOp):
        last = tile.op.body.block.last_op
        return axis_block(last.operands[tile.index], axis) if isinstance(last, scf.YieldOp) else None
    alike = (axis_block(value, axis) for value in tile.op.operands if value.type == tile.type)
    return next((block for block in alike if block is not None), None)


def reduced_alone(kernel: KernelOp) -> set[Dim]:
    """The dimensions of which some block is reduced by itself: other blocks would be another program."""
    found: set[Dim] = set()
    for op in kernel.walk():
        if isinstance(op, CumSumOp) or (isinstance(op, RowReduction | MmaOp) and not goes_on(op)):
            operand = op.operands[0]
            axis = tile_type(operand).rank - 1
            block = axis_block(operand, axis)
            length = tile_type(operand).shape[axis]
            found |= {block.of} if block is not None else {kind.of for kind in _kinds(kernel) if kind.extent == length}
    return found


def goes_on(op: RowReduction | MmaOp) -> bool:
    """Whether the reduction of a block only goes into that of all blocks, which nothing in the loop looks at."""
    loop = op.parent_op()
    if not isinstance(loop, scf.ForOp):
        return False
    combine = AddOp if isinstance(op, MmaOp) else op.COMBINE
    seen: set[SSAValue] = set()
    todo: list[SSAValue] = [op.results[0]]
    while todo:
        value = todo.pop()
        if value in seen:
            continue
        seen.add(value)
        for use in value.uses:
            user = use.operation
            if isinstance(user, scf.YieldOp) and user.parent_op() is loop:
                todo.append(loop.body.block.args[1 + use.index])
            elif isinstance(user, combine) or (isinstance(user, MmaOp) and value is user.acc):
                todo.append(user.results[0])
            else:
                return False
    return True
