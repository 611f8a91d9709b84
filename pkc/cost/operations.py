"""What single operations on tiles take, whatever loops they are in."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

from xdsl.dialects import scf
from xdsl.ir import Block, Operation, SSAValue

from pkc.cost.records import Iteration
from pkc.dialect.elementwise import AddOp, MulOp, SubOp
from pkc.dialect.interleaved import PickOp, ZipOp
from pkc.dialect.prints import PrintOp
from pkc.dialect.program import KernelOp, TasksOp
from pkc.dialect.reductions import FoldOp, RowReduction
from pkc.dialect.scans import CumSumOp
from pkc.dialect.tile import (
    BroadcastOp,
    CastOp,
    ClipOp,
    EnlargeOp,
    FullOp,
    MmaOp,
    PositionsOp,
    RepeatOp,
    SplatOp,
    TransposeOp,
    tile_type,
)
from pkc.dialect.types import TileType
from pkc.dialect.windows import WindowOp
from pkc.passes.analysis.dependence import sources
from pkc.passes.turned import is_loaded
from pkc.targets.arch import Rate
from pkc.targets.target import Target


def rate_of(op: Operation, target: Target, *, looped: bool) -> Rate:
    """Instructions for each element that an operation on tiles computes, in a loop or outside of loops."""
    if is_free(op) and not (isinstance(op, CastOp) and looped):
        return _NOTHING
    if isinstance(op, MulOp) and all(_adds_only(use.operation) for use in op.result.uses):
        return _NOTHING  # multiplied and added at once
    reduction = type(op) if isinstance(op, RowReduction) else op.reduction if isinstance(op, FoldOp) else None
    return target.per_element(op.name if reduction is None else reduction.COMBINE.name)


def elements_of(op: Operation) -> int:
    """The elements of the largest tile of an operation."""
    return prod(_largest(op))


def note_tiles(op: Operation, iteration: Iteration) -> None:
    """Note what an iteration without MMAs does with tiles: the largest, and who needs elements of other threads."""
    *outer, columns = _largest(op) or (1,)
    if prod(outer) * columns > iteration.rows * iteration.columns:
        iteration.rows, iteration.columns = prod(outer), columns
    iteration.reduces |= isinstance(op, RowReduction)
    iteration.across |= isinstance(op, FoldOp | CumSumOp | RepeatOp | TransposeOp)


def _largest(op: Operation) -> tuple[int, ...]:
    return max(map(_shape, _tiles_of(op)), key=prod, default=(0,))


_NOTHING = Rate(0.0)


def of_integers(op: Operation) -> bool:
    """Whether an operation gives integers or blocks."""
    return bool(op.results) and not any(isinstance(value.type, TileType) for value in op.results)


def is_free(op: Operation) -> bool:
    """Whether an operation takes no extra time: it belongs to an MMA, or is done while others load."""
    if isinstance(op, AddOp):
        return any(isinstance(value.owner, MmaOp) for value in op.operands)
    return isinstance(op, (CastOp, ClipOp, scf.YieldOp, PrintOp, *_UNMADE))


_UNMADE = (FullOp, SplatOp, BroadcastOp, RepeatOp, EnlargeOp, PickOp, ZipOp, WindowOp, PositionsOp, TransposeOp)
"""Operations on tiles that are made where they are used."""


def _adds_only(op: Operation) -> bool:
    """Whether an operation adds or subtracts, and not to an MMA, which does so by itself."""
    return isinstance(op, AddOp | SubOp) and not is_free(op)


def _shape(value: SSAValue) -> tuple[int, ...]:
    return tile_type(value).shape


def _tiles_of(op: Operation) -> list[SSAValue]:
    return [value for value in (*op.operands, *op.results) if isinstance(value.type, TileType)]


def depends_on_task(values: Iterable[SSAValue]) -> bool:
    """Whether values are other ones for other tasks."""
    owners = (value.owner for value in sources(values))
    return any(isinstance(owner, Block) and isinstance(owner.parent_op(), TasksOp) for owner in owners)


def is_dependent(mma: MmaOp) -> bool:
    """Whether an operand is computed from the result of another MMA of the same block."""
    found = sources((mma.a, mma.b))
    return any(other is not mma and other.result in found for other in _mmas(mma.parent))


def converted(mma: MmaOp) -> list[SSAValue]:
    """The operands of an MMA that threads compute from what is loaded."""
    if is_dependent(mma):
        return []
    return [one for one in (mma.a, mma.b) if not is_loaded(one) and not isinstance(one.owner, Block)]


def makers_of_operands(kernel: KernelOp) -> set[Operation]:
    """The operations on tiles that compute operands of MMAs from what is loaded."""
    found = set[Operation]()
    for mma in kernel.walk():
        if isinstance(mma, MmaOp):
            owners = {value.owner for value in sources(converted(mma))}
            found |= {op for op in owners if isinstance(op, Operation) and op.parent is mma.parent}
    return found


def is_awaited(mma: MmaOp) -> bool:
    """Whether the same block computes with its result: beside other MMAs, and sums that belong to it."""
    uses = (use.operation for use in mma.result.uses if use.operation.parent is mma.parent)
    return any(not isinstance(use, MmaOp | AddOp | scf.YieldOp) for use in uses)


def _mmas(block: Block | None) -> list[MmaOp]:
    return [op for op in (block.ops if block is not None else ()) if isinstance(op, MmaOp)]
