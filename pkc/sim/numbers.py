"""Sizes at which the numbers that a program names make a difference.

What holds for blocks before number 6 may not hold behind it, and a division by 64 gives 0 for all smaller positions. So
an integer that is compared with a number, or divided by one, has to come above it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from xdsl.dialects import arith, scf
from xdsl.ir import BlockArgument, Operation, SSAValue

from pkc.dialect.coordinates import BlockCountOp, BlockOp, BlockPositionOp, DimOp, RankOp, RingPeerOp
from pkc.dialect.program import KernelOp, TasksOp
from pkc.dialect.scalars import constant_of
from pkc.dialect.tile import block_type
from pkc.dialect.types import RANKS, BlockType

_COMPARING = (arith.CmpiOp, arith.FloorDivSIOp, arith.MinSIOp, arith.MaxSIOp)
_COMBINING = (arith.AddiOp, arith.SubiOp, arith.MinSIOp, arith.MaxSIOp, arith.MuliOp, arith.IndexCastOp)

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
    if not isinstance(op, _COMPARING):
        return []
    pairs = ((op.lhs, constant_of(op.rhs)), (op.rhs, constant_of(op.lhs)))
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
    if isinstance(op, DimOp):
        return {} if op.dim.data == RANKS else {op.dim.data: 1}
    if isinstance(op, BlockCountOp):
        return _steps_of_block(op.block, op.block.extent * (1 if op.shard is None else ranks))
    if isinstance(op, BlockPositionOp):
        return _steps_of_block(block_type(op.block), 1)
    if isinstance(op, arith.FloorDivSIOp):
        by = most(op.rhs, ranks) or 1
        return {dim: step * by for dim, step in _steps(op.lhs, ranks).items()}
    if not isinstance(op, _COMBINING):
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
