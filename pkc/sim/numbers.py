"""Sizes at which the numbers that a program names make a difference.

What holds for blocks before number 6 may not hold behind it, and a division by 64 gives 0 for all smaller positions. So
an integer that is compared with a number, or divided by one, has to come above it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import lcm

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IndexType
from xdsl.ir import BlockArgument, Operation, SSAValue

from pkc.dialect import elementwise
from pkc.dialect.access import LoadOp, ReadOp, StoreAddOp, StoreOp
from pkc.dialect.arrays import array_type
from pkc.dialect.coordinates import BlockCountOp, BlockOp, BlockPositionOp, DimOp, RankOp, RingPeerOp
from pkc.dialect.counters import CounterOp, WaitOp
from pkc.dialect.program import KernelOp, TasksOp
from pkc.dialect.scalars import constant_of
from pkc.dialect.tile import BroadcastOp, CastOp, ClipOp, FullOp, PositionsOp, SplatOp, block_type, tile_type
from pkc.dialect.types import FLOATS, RANKS, BlockType, SignalType, i8

_COMPARING = (arith.CmpiOp, arith.FloorDivSIOp, arith.MinSIOp, arith.MaxSIOp)
_COMPARING_TILES = (elementwise.ModOp, elementwise.FloorDivOp, elementwise.BitAndOp, elementwise.CompareOp)
_ORDERING = (arith.CmpiOp, arith.MinSIOp, arith.MaxSIOp, elementwise.CompareOp)
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


def met_by(kernel: KernelOp, ranks: int, most: int) -> dict[str, int]:
    """How long dimensions must be for an integer to have the last rest of each of several numbers at once that it is
    divided by, as far as that is no more than `most` steps."""
    found: dict[str, tuple[int, int]] = {}
    for op in kernel.walk():
        number = number_in(op.rhs) if isinstance(op, arith.FloorDivSIOp) else None
        for dim, step in _steps(op.operands[0], ranks).items() if number is not None and number > 1 else ():
            together, longest = found.get(dim, (1, 1))
            if lcm(together, number or 1) <= most:
                found[dim] = lcm(together, number or 1), max(step, longest)
    return {dim: together * step + 1 for dim, (together, step) in found.items()}


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
    if isinstance(op, arith.SubiOp) and (less := constant_of(op.rhs)) is not None:
        left = most(op.lhs, ranks)
        return None if left is None else left - less
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
    return [
        (dim, step * (number + 1) + 1)
        for value, number in _compared(op, ranks)
        if number is not None and number > 0
        for dim, step in _steps(value, ranks).items()
    ]


def _compared(op: Operation, ranks: int) -> Sequence[tuple[SSAValue, int | None]]:
    """The integers that an operation compares with numbers, and these."""
    if isinstance(op, WaitOp) and isinstance(made := op.count.owner, arith.SubiOp):  # no wait for the first ones
        return [(made.lhs, most(made.rhs, ranks)), *_flags(op)]
    if isinstance(op, CounterOp):
        return _flags(op)
    if isinstance(op, CastOp) and tile_type(op.result).element_type == i8:
        return [(op.tile, _LAST_I8)]
    if isinstance(op, scf.ForOp):
        return [(op.ub, most(op.lb, ranks))]
    if not isinstance(op, (*_COMPARING, *_COMPARING_TILES)):
        return []
    left, right = _number(op.lhs, ranks), _number(op.rhs, ranks)
    if left is None and right is None and isinstance(op, _ORDERING):
        left = right = _added(op.lhs) + _added(op.rhs)
    return [(op.lhs, right), (op.rhs, left)]


def _flags(op: CounterOp) -> list[tuple[SSAValue, int | None]]:
    """The indices of a counter, and how many flags there are."""
    assert isinstance(op.signal.type, SignalType)
    fixed = zip(op.indices, op.signal.type.extents, strict=False)
    return [(index, n) for index, n in fixed if isinstance(n, int) and n > 1]


def _number(value: SSAValue, ranks: int) -> int | None:
    """The number that an integer is, or is at most."""
    number = number_in(value)
    return most(value, ranks) if number is None and isinstance(value.type, IndexType) else number


def _added(value: SSAValue) -> int:
    """How far an integer is from one that is no sum with a number."""
    op = value.owner
    if not isinstance(op, arith.AddiOp | arith.SubiOp | elementwise.AddOp | elementwise.SubOp):
        return 0
    return next((abs(number) for side in op.operands if (number := number_in(side)) is not None), 0)


def _steps(value: SSAValue, ranks: int) -> Steps:
    if isinstance(value, BlockArgument):
        return _steps_of_argument(value, ranks)
    op = value.owner
    if isinstance(op, PositionsOp):
        return _steps_of_block(block_type(op.block), 1)
    if isinstance(op, DimOp):
        return {} if op.dim.data == RANKS else {op.dim.data: 1}
    if isinstance(op, BlockCountOp):
        return _steps_of_block(op.block, op.block.extent * (1 if op.shard is None else ranks))
    if isinstance(op, BlockPositionOp):
        return _steps_of_block(block_type(op.block), 1)
    if isinstance(op, ReadOp):
        return _steps_of_given(op.array)
    if isinstance(op, scf.ForOp):
        return _carried(op, op.results.index(value), ranks)
    if isinstance(op, scf.IfOp):
        number = op.results.index(value)
        return _together((end.operands[number] for region in op.regions if (end := region.block.last_op)), ranks)
    if isinstance(op, arith.FloorDivSIOp):
        by = most(op.rhs, ranks) or 1
        return {dim: step * by for dim, step in _steps(op.lhs, ranks).items()}
    if not isinstance(op, (*_COMBINING, *_COMBINING_TILES)):
        return {}
    factor = (
        next(filter(None, (_number(side, ranks) for side in op.operands)), 1) if isinstance(op, arith.MuliOp) else 1
    )
    steps = _together(op.operands, ranks, slowest=isinstance(op, arith.SubiOp))
    return {dim: max(1, step // max(factor, 1)) for dim, step in steps.items()}


def _together(values: Iterable[SSAValue], ranks: int, *, slowest: bool = False) -> Steps:
    """The steps of one of some integers, whichever grows; of a difference those of the one that grows less."""
    found: dict[str, int] = {}
    for value in values:
        for dim, step in _steps(value, ranks).items():
            found[dim] = (max if slowest else min)(found.get(dim, step), step)
    return found


def _steps_of_argument(value: BlockArgument, ranks: int) -> Steps:
    around = value.owner.parent_op()
    if isinstance(around, KernelOp):
        return _steps_of_given(value)
    if isinstance(around, scf.ForOp) and value.index > 0:
        return _carried(around, value.index - 1, ranks)
    end = end_of(value)
    return {} if end is None else _steps(end, ranks)


def _carried(loop: scf.ForOp, number: int, ranks: int) -> Steps:
    """Of what a loop hands on from iteration to iteration, as the number of a slot: it grows with the iterations, or
    with those of a loop around that hand it to this one."""
    return _steps(loop.ub, ranks) or _steps(loop.iter_args[number], ranks)


def _steps_of_given(value: SSAValue) -> Steps:
    return {dim: 1 for dim in _bounds(value) if dim != RANKS}


def _bounds(given: SSAValue) -> Iterator[str]:
    """The dimensions that an integer of the caller, or one below it, is a position of."""
    for use in given.uses:
        op = use.operation
        if isinstance(op, ReadOp) and op.array is given:
            yield from _bounds(op.result)
        elif isinstance(op, scf.ForOp) and use.index == 1:
            yield from _bounds(op.body.block.args[0])
        elif isinstance(op, BlockCountOp) and isinstance(op.block.of, str) and given is not op.shard:
            yield op.block.of
        elif isinstance(op, LoadOp | ReadOp | StoreOp | StoreAddOp):
            dims = zip(array_type(op.array).dimensions, op.indices, strict=True)
            yield from (dim for dim, index in dims if index is given and isinstance(dim, str))
        elif isinstance(op, _COMBINING) and not isinstance(op, arith.MuliOp):
            yield from _bounds(op.result)


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
