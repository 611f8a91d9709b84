"""Sizes at which the numbers that a program names make a difference.

What holds for blocks before number 6 may not hold behind it, and a division by 64 gives 0 for all smaller positions. So
an integer that is compared with a number, or divided by one, has to come above it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from xdsl.dialects import arith, scf
from xdsl.ir import BlockArgument, Operation, SSAValue

from pkc.dialect import elementwise
from pkc.dialect.coordinates import BlockCountOp, BlockOp, BlockPositionOp, DimOp, RankOp, RingPeerOp
from pkc.dialect.counters import CounterOp
from pkc.dialect.program import KernelOp, TasksOp
from pkc.dialect.scalars import constant_of
from pkc.dialect.tile import BroadcastOp, CastOp, ClipOp, FullOp, PositionsOp, SplatOp, block_type, tile_type
from pkc.dialect.types import FLOATS, RANKS, BlockType, SignalType, i8

_COMPARING = (arith.CmpiOp, arith.FloorDivSIOp, arith.MinSIOp, arith.MaxSIOp)
_COMPARING_TILES = (elementwise.ModOp, elementwise.FloorDivOp, elementwise.BitAndOp, elementwise.CompareOp)
_COMBINING = (arith.AddiOp, arith.SubiOp, arith.MinSIOp, arith.MaxSIOp, arith.MuliOp, arith.IndexCastOp)
_COMBINING_TILES = (elementwise.AddOp, elementwise.SubOp, BroadcastOp, ClipOp, SplatOp)

_LAST_I8 = 127
"""What 8 bits hold: greater integers become this one."""

Steps = Mapping[str, int]
"""By how many positions each dimension that an integer grows with must grow for it to grow by one."""


def passed_by(kernel: KernelOp, ranks: int) -> dict[str, int]:
    """How long dimensions must be for integers to pass the numbers that they are compared with, divided by, or that
    lists of blocks begin and end at."""
    found: dict[str, int] = {}
    for op in kernel.walk():
        for dim, size in _passed(op, ranks):
            found[dim] = max(found.get(dim, 0), size)
    return found


def number_in(value: SSAValue) -> int | None:
    """The constant that an integer is, or each element of a tile of integers."""
    made = value.owner
    if isinstance(made, FullOp):
        return None if tile_type(made.result).element_type in FLOATS else int(made.constant)
    return constant_of(value)


def most(value: SSAValue, ranks: int) -> int | None:
    """The greatest that an integer can be which depends on nothing but numbers, loops over them and ranks."""
    constant = constant_of(value)
    if constant is not None:
        return constant
    if isinstance(value, BlockArgument):
        end = end_of(value)
        last = None if end is None else most(end, ranks)
        return None if last is None else last - 1
    op = value.owner
    if isinstance(op, RankOp | RingPeerOp):
        return ranks - 1
    if isinstance(op, DimOp):
        return ranks if op.dim.data == RANKS else None
    if not isinstance(op, arith.AddiOp | arith.MuliOp):
        return None
    sides = [most(side, ranks) for side in op.operands]
    if sides[0] is None or sides[1] is None:
        return None
    return sides[0] + sides[1] if isinstance(op, arith.AddiOp) else sides[0] * sides[1]


def _passed(op: Operation, ranks: int) -> Iterable[tuple[str, int]]:
    if isinstance(op, BlockCountOp | BlockOp):
        kind = op.block if isinstance(op, BlockCountOp) else block_type(op.result)
        ends = [end for bound in (op.start, op.stop) if bound and (end := most(bound, ranks)) is not None]
        return [(kind.of, max(ends) + kind.extent + 1)] if ends and isinstance(kind.of, str) else []
    if isinstance(op, CounterOp):
        assert isinstance(op.signal.type, SignalType)
        fixed = zip(op.indices, op.signal.type.extents, strict=False)
        pairs: list[tuple[SSAValue, int | None]] = [(index, n) for index, n in fixed if isinstance(n, int) and n > 1]
    elif isinstance(op, CastOp) and tile_type(op.result).element_type == i8:
        pairs = [(op.tile, _LAST_I8)]
    elif isinstance(op, (*_COMPARING, *_COMPARING_TILES)):
        pairs = [(op.lhs, number_in(op.rhs)), (op.rhs, number_in(op.lhs))]
    else:
        return []
    return [
        (dim, step * (number + 1) + 1)
        for value, number in pairs
        if number is not None and number > 0
        for dim, step in _steps(value, ranks).items()
    ]


def _steps(value: SSAValue, ranks: int) -> Steps:
    if isinstance(value, BlockArgument):
        end = end_of(value)
        return {} if end is None else _steps(end, ranks)
    op = value.owner
    if isinstance(op, PositionsOp):
        return _steps_of_block(block_type(op.block), 1)
    if isinstance(op, DimOp):
        return {} if op.dim.data == RANKS else {op.dim.data: 1}
    if isinstance(op, BlockCountOp):
        return _steps_of_block(op.block, op.block.extent * (1 if op.shard is None else ranks))
    if isinstance(op, BlockPositionOp):
        return _steps_of_block(block_type(op.block), 1)
    if isinstance(op, arith.FloorDivSIOp):
        by = most(op.rhs, ranks) or 1
        return {dim: step * by for dim, step in _steps(op.lhs, ranks).items()}
    if not isinstance(op, (*_COMBINING, *_COMBINING_TILES)):
        return {}
    factor = next(filter(None, map(constant_of, op.operands)), 1) if isinstance(op, arith.MuliOp) else 1
    found: dict[str, int] = {}
    for side in op.operands:
        for dim, step in _steps(side, ranks).items():
            found[dim] = min(found.get(dim, step), max(1, step // max(factor, 1)))
    return found


def _steps_of_block(block: BlockType, step: int) -> Steps:
    return {block.of: step} if isinstance(block.of, str) else {}


def end_of(variable: BlockArgument) -> SSAValue | None:
    """The number below which a loop variable, or the number of a task, stays."""
    loop = variable.owner.parent_op()
    if isinstance(loop, TasksOp):
        return loop.counts[variable.index]
    return loop.ub if isinstance(loop, scf.ForOp) and variable.index == 0 else None


def grows_with(value: SSAValue) -> set[str] | None:
    """The dimensions that bound an integer made of numbers and of loops over dimensions; None if anything else does."""
    if constant_of(value) is not None:
        return set()
    op = end_of(value) if isinstance(value, BlockArgument) else value
    made = None if op is None else op.owner
    if isinstance(made, DimOp):
        return None if made.dim.data == RANKS else {made.dim.data}
    if isinstance(value, BlockArgument) or not isinstance(made, (*_COMBINING, arith.FloorDivSIOp)):
        return None
    together: set[str] = set()
    for operand in made.operands:
        found = grows_with(operand)
        if found is None:
            return None
        together |= found
    return together
