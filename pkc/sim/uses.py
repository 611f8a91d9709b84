"""The ranges that the uses of an integer need: positions of what it indexes, ranks, numbers of blocks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from xdsl.dialects import arith, scf
from xdsl.ir import BlockArgument, Operation, SSAValue, Use

from pkc.dialect import access, by_table, coordinates, elementwise, tile
from pkc.dialect.by_table import ByTable
from pkc.dialect.inverse import InvertOp
from pkc.dialect.program import TasksOp
from pkc.dialect.scalars import constant_of
from pkc.dialect.tile import block_type
from pkc.dialect.types import RANKS, PGLType, PrivateType
from pkc.sim.numbers import end_of, number_in

_INDEXED = (access.ReadOp, access.LoadOp, access.StoreOp, access.StoreAddOp, access.AccumulateOp)

_ANY = -(1 << 31)
"""The low end of a range that has none."""

_FIRST_ORDER = 2
"""The number of the first predicate of integers that is not `eq` or `ne`."""


@dataclass(frozen=True)
class Range:
    """The integers from `low` to below `high`; `absent` if -1 may stand for none; `pairs` of (rank, row).

    `moved` is what the program subtracts before the use; `low` and `high` include it.
    """

    low: int
    high: int
    absent: bool = False
    pairs: bool = False
    moved: int = 0
    of: Operation | None = None
    """What uses the integer, if it is one operation."""
    given: SSAValue | None = None
    """The scalar, or the element that is read, which is used."""

    def __and__(self, other: Range) -> Range:
        low = max(self.low, other.low)
        high = min(self.high, other.high)
        high = high if low == _ANY else max(low + 1, high)
        absent = self.absent and other.absent and self.moved == other.moved
        return Range(low, high, absent, self.pairs or other.pairs, self.moved)

    def __contains__(self, number: int) -> bool:
        return self.low <= number < self.high

    def move(self, by: int) -> Range:
        low = self.low if self.low == _ANY else self.low + by
        return replace(self, low=low, high=self.high + by, moved=self.moved + by)

    def below(self, most: int) -> Range:
        """Of what the program adds up to `most` to before the use."""
        return Range(self.low, max(self.low + 1, self.high - most), of=self.of)

    def at_least_clamped(self) -> Range:
        """Of what the program raises to a number before the use: it may be below."""
        return replace(self, low=_ANY)

    def before_division(self, by: int) -> Range:
        """Of what the program divides before the use."""
        return Range(self.low * by, self.high * by, self.absent and not self.moved, of=self.of)

    def before_product(self, by: int) -> Range:
        """Of what the program multiplies before the use; the first multiple, where none is inside."""
        low = -(-self.low // by)
        return Range(low, max(low, (self.high - 1) // by) + 1, of=self.of)


def common(ranges: list[Range]) -> Range:
    """The range that fits all uses."""
    if not ranges:
        return Range(0, 100)
    every = ranges[0]
    for other in ranges[1:]:
        every &= other
    return replace(every, low=min(0, every.high - 1)) if every.low == _ANY else every


def uses_of_array(array: SSAValue, sizes: Mapping[str, int]) -> Iterator[Range]:
    """The ranges that the uses of an array's elements need."""
    for use in array.uses:
        if isinstance(use.operation, access.ReadOp):
            read = use.operation.result
            yield from (replace(wanted, given=read) for wanted in uses_of_index(read, sizes))
        elif isinstance(use.operation, access.LoadOp | by_table.GatherOp) and use.operation.array is array:
            yield from _uses_of_tile(use.operation.result, sizes)


def _uses_of_tile(table: SSAValue, sizes: Mapping[str, int]) -> Iterator[Range]:
    for use in table.uses:
        op = use.operation
        if isinstance(op, elementwise.SelectOp) and op.condition is table:
            continue
        if isinstance(op, tile.ClipOp | tile.BroadcastOp | elementwise.SelectOp):
            yield from _uses_of_tile(op.result, sizes)
        elif isinstance(op, elementwise.FloorDivOp | elementwise.MulOp):
            yield from _scaled(op, use, _uses_of_tile(op.result, sizes))
        elif isinstance(op, access.StoreOp):
            inverted = (other.operation for other in op.array.uses)
            named = [found.array for found in inverted if isinstance(found, InvertOp) and found.table is op.array]
            yield from (replace(_positions_of(array, 0, sizes), absent=True) for array in named)
        elif isinstance(op, elementwise.AddOp | elementwise.SubOp):
            by, most = taken_off(op, use), _last_added(op, use, sizes)
            yield from (wanted.move(by) for wanted in _uses_of_tile(op.result, sizes) if by is not None)
            yield from (wanted.below(most) for wanted in _uses_of_tile(op.result, sizes) if most is not None)
            if by is most is None and isinstance(op, elementwise.AddOp):
                yield from _of_sum(op, use, _uses_of_tile(op.result, sizes))
        elif isinstance(op, ByTable):
            dims = (dim for dim, place in enumerate(op.places) if place is table)
            yield from (replace(_positions_of(op.array, dim, sizes), absent=True, pairs=op.names_ranks) for dim in dims)


def _of_sum(op: elementwise.AddOp, use: Use, after: Iterator[Range]) -> Iterator[Range]:
    """The ranges of one of two tables that are added: 0 of one that another table picks, as the first place of each
    list, so that the other one has them all; half of two alike."""
    picked, other = (_is_picked(op.operands[number]) for number in (use.index, 1 - use.index))
    for wanted in after:
        if picked == other:
            yield replace(wanted, high=wanted.low + (wanted.high - wanted.low + 1) // 2)
        else:
            yield Range(wanted.low, wanted.low + 1) if picked else wanted


def _is_picked(table: SSAValue) -> bool:
    made = table.owner
    if isinstance(made, tile.ClipOp | tile.BroadcastOp):
        return _is_picked(made.tile)
    return isinstance(made, by_table.GatherOp)


def uses_of_index(value: SSAValue, sizes: Mapping[str, int]) -> Iterator[Range]:
    """The ranges that the uses of an integer need."""
    for use in value.uses:
        op = use.operation
        if isinstance(op, arith.IndexCastOp | arith.MinSIOp):
            yield from uses_of_index(op.result, sizes)
        elif isinstance(op, arith.MaxSIOp):
            yield from (wanted.at_least_clamped() for wanted in uses_of_index(op.result, sizes))
        elif isinstance(op, arith.AddiOp | arith.SubiOp):
            by = taken_off(op, use)
            if by is not None:
                moved = (wanted.move(by) for wanted in uses_of_index(op.result, sizes))
                yield from (replace(one, low=max(one.low, 0)) if _rounds_up(op, -by) else one for one in moved)
            yield from _use_as_length(op, op.operands[1 - use.index], sizes)
        elif isinstance(op, arith.FloorDivSIOp | arith.MuliOp):
            yield from _scaled(op, use, uses_of_index(op.result, sizes))
        elif isinstance(op, scf.ForOp | TasksOp):
            yield from _use_as_bound(op, use, sizes)
        elif isinstance(op, tile.SplatOp):
            yield from _uses_of_tile(op.result, sizes)
        elif isinstance(op, coordinates.BlockCountOp | coordinates.BlockOp):
            yield from (replace(wanted, of=op) for wanted in _use_in_block_list(op, value, sizes))
        elif isinstance(op, _INDEXED):
            yield from (replace(wanted, of=op) for wanted in _use_as_index(op, use, sizes))
        elif isinstance(op, arith.CmpiOp) and op.predicate.value.data < _FIRST_ORDER:
            yield from _use_as_rank(op.operands[1 - use.index], sizes)


def _use_as_rank(equal: SSAValue, sizes: Mapping[str, int]) -> Iterator[Range]:
    """Of what a rank is or is not."""
    end = end_of(equal) if isinstance(equal, BlockArgument) else None
    of_loop = end is not None and isinstance(end.owner, coordinates.DimOp) and end.owner.dim.data == RANKS
    if of_loop or isinstance(equal.owner, coordinates.RankOp | coordinates.RingPeerOp):
        yield Range(0, sizes[RANKS])


def _scaled(op: Operation, use: Use, after: Iterator[Range]) -> Iterator[Range]:
    """The ranges of what is divided by a constant, or multiplied by one, from those of the result."""
    by = number_in(op.operands[1 - use.index]) or 0
    divides = isinstance(op, arith.FloorDivSIOp | elementwise.FloorDivOp)
    if by > 0 and not (divides and use.index == 1):
        yield from (wanted.before_division(by) if divides else wanted.before_product(by) for wanted in after)


def _rounds_up(op: Operation, added: int) -> bool:
    """Whether what is added makes a division round up, of a number of elements for one."""
    users = [use.operation for use in op.results[0].uses]
    return added > 0 and all(isinstance(by, arith.FloorDivSIOp) and constant_of(by.rhs) == added + 1 for by in users)


def _use_as_bound(op: scf.ForOp | TasksOp, use: Use, sizes: Mapping[str, int]) -> Iterator[Range]:
    """Of an end of a loop, or a number of tasks: what the integers below it are used for."""
    if isinstance(op, scf.ForOp) and use.index > 1:
        return
    number = op.body.block.args[0 if isinstance(op, scf.ForOp) else use.index]
    found = list(uses_of_index(number, sizes))
    if found:
        within = common(found)
        yield Range(within.low, within.high + 1)


def _use_as_length(end: Operation, start: SSAValue, sizes: Mapping[str, int]) -> Iterator[Range]:
    """Of what is added to the start of a list of blocks: at most as much as lies between two such starts."""
    factors = start.owner.operands if isinstance(start.owner, arith.MuliOp) else ()
    apart = next((number for factor in factors if (number := constant_of(factor)) is not None), None)
    for use in end.results[0].uses:
        op = use.operation
        if apart is not None and isinstance(op, coordinates.BlockCountOp | coordinates.BlockOp) and op.start is start:
            ranges = _use_in_block_list(op, end.results[0], sizes)
            yield from (Range(0, min(apart + 1, wanted.high)) for wanted in ranges)


def taken_off(op: Operation, use: Use) -> int | None:
    """The constant that an operation subtracts from its other operand; None where there is none."""
    constant = number_in(op.operands[1 - use.index])
    if constant is None:
        return None
    adds = isinstance(op, elementwise.AddOp | arith.AddiOp)
    if adds:
        return -constant
    return constant if use.index == 0 else None


def _last_added(op: Operation, use: Use, sizes: Mapping[str, int]) -> int | None:
    """The last of the positions that a tile is added to; None if it is added to something else, or subtracted."""
    other = op.operands[1 - use.index].owner
    while isinstance(other, tile.BroadcastOp):
        other = other.tile.owner
    if not isinstance(op, elementwise.AddOp) or not isinstance(other, tile.PositionsOp):
        return None
    dim = block_type(other.block).of
    return max(0, (dim if isinstance(dim, int) else sizes[dim]) - 1)


def _use_in_block_list(
    op: coordinates.BlockCountOp | coordinates.BlockOp, value: SSAValue, sizes: Mapping[str, int]
) -> Iterator[Range]:
    kind = op.block if isinstance(op, coordinates.BlockCountOp) else block_type(op.result)
    if value is op.shard:
        yield Range(0, sizes[RANKS])
    elif value is op.start or value is op.stop:
        yield Range(0, (kind.of if isinstance(kind.of, int) else sizes[kind.of]) + 1)


def _use_as_index(op: Any, use: Use, sizes: Mapping[str, int]) -> Iterator[Range]:
    value = op.operands[use.index]
    if value is op.rank:
        yield Range(0, sizes[RANKS])
    for axis, index in enumerate(op.indices):
        if value is index:
            yield _positions_of(op.array, axis, sizes)


def _positions_of(array: SSAValue, axis: int, sizes: Mapping[str, int]) -> Range:
    assert isinstance(array.type, PrivateType | PGLType)
    dim = array.type.dimensions[axis]
    return Range(0, dim if isinstance(dim, int) else sizes[dim])
