"""Workers without a warpgroup: they go over a tile in chunks of neighbouring elements, each through all operations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from xdsl.dialects import scf
from xdsl.ir import Block, Operation, SSAValue

from pkc.dialect import access
from pkc.dialect.types import ArrayType, TileType
from pkc.passes.lowering.context import Worker
from pkc.passes.lowering.fragments import FLAT
from pkc.passes.lowering.missing import CannotLowerError
from pkc.passes.pointwise import WHOLE

_AT_ONCE = (4, 2, 1)
"""Chunks that a thread works on at once, if they come out even: so many loads are on their way."""

_ORDERING = (access.SignalOp, access.SignalAllOp, access.RaiseOp, access.WaitOp)


def chunked(block: Block) -> tuple[list[Operation], list[Operation], list[Operation]]:
    """The operations of a block before, from and after those that compute with tiles."""
    ops = list(block.ops)
    on_tiles = [number for number, op in enumerate(ops) if _on_tiles(op)]
    if not on_tiles:
        return ops, [], []
    first, last = on_tiles[0], on_tiles[-1] + 1
    inside = ops[first:last]
    # A loop or branch around such operations that also orders memory is gone through turn by turn.
    if any(isinstance(inner, _ORDERING) for op in inside for inner in op.walk()):
        return ops, [], []
    return ops[:first], inside, ops[last:]


def _on_tiles(op: Operation) -> bool:
    values: list[SSAValue] = [*op.operands, *op.results]
    if any(isinstance(value.type, TileType) for value in values):
        return True
    return isinstance(op, scf.ForOp | scf.IfOp) and any(_on_tiles(inner) for inner in op.walk() if inner is not op)


def lower(worker: Worker, ops: Sequence[Operation], lower_ops: Callable[[Worker, Sequence[Operation]], None]) -> None:
    """Loops over the chunks: without conditions on elements where the whole tile exists, with them elsewhere."""
    emit = worker.emit
    shape = _shape(ops)
    inside = _all_exist(worker, ops)
    for exact, condition in ((True, inside), (False, emit.negated(inside))):
        worker.exact = exact
        with emit.when(condition):
            start = emit.minus(worker.threads.thread, 32 * worker.threads.first)
            total, threads = prod(shape) // FLAT, worker.threads.count
            worker.chunks = next(n for n in _AT_ONCE if (exact and total % (n * threads) == 0) or n == 1)
            with emit.loop(start, total, worker.chunks * threads) as chunk:
                worker.chunk = chunk
                lower_ops(worker, ops)
        worker.chunk = None
    worker.exact = False


def _shape(ops: Sequence[Operation]) -> list[int]:
    """The shape of all tiles; scalars aside."""
    shapes: list[list[int]] = []
    for op in ops:
        for inner in op.walk():
            if isinstance(inner, WHOLE):
                raise CannotLowerError(inner, "a product, a reduction of rows or `.T` in a part without a warpgroup")
            for result in inner.results:
                if isinstance(result.type, TileType) and result.type.rank:
                    shapes.append(list(result.type.shape))
    if not shapes or any(shape != shapes[0] or len(shape) != 2 or shape[-1] % FLAT for shape in shapes):
        what = "computing with tiles other than of one shape of two dimensions in a part without a warpgroup"
        raise CannotLowerError(ops[0], what, f"rows of a multiple of {FLAT} elements, without reductions of rows")
    return shapes[0]


def _all_exist(worker: Worker, ops: Sequence[Operation]) -> SSAValue:
    """Whether every block that the operations access is complete, and rows begin at multiples of 16 bytes."""
    emit = worker.emit
    condition = emit.compare("eq", emit.const(0), 0)
    seen: set[SSAValue] = set()
    for op in ops:
        for inner in op.walk():
            if not isinstance(inner, access.LoadOp | access.StoreOp):
                continue
            kind = inner.array.type
            for index in inner.indices:
                if index in worker.blocks and index not in seen:
                    seen.add(index)
                    block = worker.blocks[index]
                    condition = emit.both(condition, emit.compare("sge", worker.dims.valid(block), block.extent))
            assert isinstance(kind, ArrayType)
            columns = worker.dims.extent(kind.dimensions[-1])
            condition = emit.both(condition, emit.compare("eq", emit.bit_and(columns, FLAT - 1), 0))
    return condition
