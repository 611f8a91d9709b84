"""Random inputs: normal floats, and integers in the range that their uses need."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue, Use

from pkc.dialect import access, coordinates, elementwise, tile
from pkc.dialect.by_table import ByTable
from pkc.dialect.inverse import InvertOp
from pkc.dialect.numeric import Values, numpy_dtype
from pkc.dialect.program import TasksOp
from pkc.dialect.scalars import constant_of
from pkc.dialect.tile import block_type
from pkc.dialect.types import FLOATS, RANKS, PGLType, PrivateType, i8
from pkc.sim.inputs import check_memory, has_leading_ranks, resolve_dims
from pkc.sim.program import Program, find_kernel

_ABSENT = 1 / 8
"""The share of the entries of a table of rows that name no row."""

_INDEXED = (access.ReadOp, access.LoadOp, access.StoreOp, access.StoreAddOp, access.AccumulateOp)

_OF_TABLES = (
    access.GatherOp,
    tile.SplatOp,
    tile.ClipOp,
    tile.BroadcastOp,
    elementwise.SelectOp,
    elementwise.AddOp,
    elementwise.SubOp,
    elementwise.MulOp,
    elementwise.FloorDivOp,
    elementwise.ModOp,
)
"""What makes a table of another one, whose entries stay apart."""


_ANY = -(1 << 31)
"""The low end of a range that has none."""


@dataclass(frozen=True)
class _Range:
    """The integers from `low` to below `high`; `absent` if -1 may stand for none; `pairs` of (rank, row).

    `moved` is what the program subtracts before the use; `low` and `high` include it.
    """

    low: int
    high: int
    absent: bool = False
    pairs: bool = False
    moved: int = 0

    def __and__(self, other: _Range) -> _Range:
        low = max(self.low, other.low)
        high = min(self.high, other.high)
        high = high if low == _ANY else max(low + 1, high)
        absent = self.absent and other.absent and self.moved == other.moved
        return _Range(low, high, absent, self.pairs or other.pairs, self.moved)

    def move(self, by: int) -> _Range:
        low = self.low if self.low == _ANY else self.low + by
        return replace(self, low=low, high=self.high + by, moved=self.moved + by)

    def below(self, most: int) -> _Range:
        """Of what the program adds up to `most` to before the use."""
        return _Range(self.low, max(self.low + 1, self.high - most))

    def at_least_clamped(self) -> _Range:
        """Of what the program raises to a number before the use: it may be below."""
        return replace(self, low=_ANY)

    def before_division(self, by: int) -> _Range:
        """Of what the program divides before the use."""
        return _Range(self.low * by, self.high * by, self.absent and not self.moved)

    def before_product(self, by: int) -> _Range:
        """Of what the program multiplies before the use; the first multiple, where none is inside."""
        low = -(-self.low // by)
        return _Range(low, max(low, (self.high - 1) // by) + 1)


def draw_inputs(
    module: ModuleOp,
    *,
    ranks: int,
    dims: Mapping[str, int],
    seed: int,
    kernel: str | None = None,
    only: Collection[str] | None = None,
    period: int | None = None,
) -> dict[str, Any]:
    """Content for every array that a kernel reads, and a value for every scalar; or for `only` some of them. With
    `period` so many floats are drawn for an array, and repeated: enough for times, not for results."""
    called = Program(find_kernel(module, kernel))
    sizes = resolve_dims(called.kernel, dims, {}, ranks) | {RANKS: ranks}
    check_memory(called, sizes)
    rng = np.random.default_rng(seed)
    wanted = (*called.inputs, *called.scalars) if only is None else only
    drawn: dict[str, Any] = {name: _array(called, name, sizes, rng, period) for name in called.inputs if name in wanted}
    return drawn | {name: _scalar(called, name, sizes, rng) for name in called.scalars if name in wanted}


def _array(
    called: Program, name: str, sizes: Mapping[str, int], rng: np.random.Generator, period: int | None
) -> Values:
    kind = called.arrays[name]
    shape = [dim if isinstance(dim, int) else sizes[dim] for dim in kind.dimensions]
    shape = [sizes[RANKS], *shape] if has_leading_ranks(kind) else shape
    if kind.element_type in FLOATS and period is not None and period < prod(shape):
        return np.resize(rng.standard_normal(period, dtype=np.float32).astype(numpy_dtype(kind.element_type)), shape)
    if kind.element_type in FLOATS:
        return rng.standard_normal(shape, dtype=np.float32).astype(numpy_dtype(kind.element_type))
    if kind.element_type == i8:
        return rng.integers(-128, 128, shape, np.int8)
    argument = called.kernel.arguments[name]
    wanted, reads = _common(list(_uses_of_array(argument, sizes))), _reads(argument)
    offsets = _are_offsets([read for read in reads if isinstance(read.owner, access.ReadOp)])
    stored = [] if offsets else [op for read in reads for op in _named_stores(read)]
    if stored:
        shared = any(isinstance(op, access.ScatterStoreOp) and access.is_shared(op.array) for op in stored)
        return _distinct(wanted, shape, rng, whole=shared)
    drawn = _integers(wanted, shape, sizes, rng)
    return np.sort(drawn, axis=-1) if offsets else drawn


def _reads(array: SSAValue) -> list[SSAValue]:
    return [use.operation.results[0] for use in array.uses if isinstance(use.operation, access.LOADS)]


def _are_offsets(reads: Collection[SSAValue]) -> bool:
    """Whether lists of blocks, or loops, go from one element of an array to another, or are as long as these are apart:
    ascending ones do not overlap."""
    ends = set(reads)
    ends |= {moved for read in reads for moved in _moved(read)}
    users = [use.operation for end in ends for use in end.uses]
    lists = any(isinstance(op, coordinates.BlockCountOp) and op.start in ends and op.stop in ends for op in users)
    apart = any(isinstance(op, arith.SubiOp) and op.lhs in reads and op.rhs in reads for op in users)
    return lists or apart or any(isinstance(op, scf.ForOp) and op.lb in ends and op.ub in ends for op in users)


def _moved(end: SSAValue) -> Iterator[SSAValue]:
    """What is computed of an end of a list by a sum with a number, or a limit."""
    for use in end.uses:
        op = use.operation
        if isinstance(op, arith.AddiOp | arith.SubiOp | arith.MinSIOp | arith.MaxSIOp):
            other = op.operands[1 - use.index]
            if constant_of(other) is not None or isinstance(other.owner, coordinates.DimOp):
                yield op.result
                yield from _moved(op.result)


def _named_stores(value: SSAValue) -> Iterator[access.Store]:
    """The stores that go where an element says: no two tasks store to one place."""
    for use in value.uses:
        op = use.operation
        if isinstance(op, access.Store) and value in access.places_of(op):
            yield op
        moved = isinstance(op, arith.AddiOp | arith.SubiOp) and _taken_off(op, use) is not None
        if moved or isinstance(op, _OF_TABLES):
            yield from _named_stores(op.results[0])


def _distinct(wanted: _Range, shape: list[int], rng: np.random.Generator, *, whole: bool) -> Values:
    """Integers of which none comes twice: in the whole array, on each rank, or along the last axis, as far as there are
    enough of them. Of a table some name nothing, and those for which there are not enough on a rank, or in the `whole`.
    """
    numbers, none = np.arange(wanted.low, wanted.high, dtype=np.int32), np.int32(wanted.moved - 1)
    ends = [0, 1] if wanted.absent else range(len(shape))
    for together in ends[:1] if whole else ends[: len(shape)]:
        apart, size = prod(shape[:together]), prod(shape[together:])
        if size > len(numbers) and wanted.absent and (whole or together):
            numbers = np.concatenate([numbers, np.full(size - len(numbers), none)])
        if size <= len(numbers):
            drawn = np.stack([rng.permutation(numbers)[:size] for _ in range(apart)]).reshape(shape)
            return np.where(wanted.absent & (rng.random(shape) < _ABSENT), none, drawn)
    return rng.choice(numbers, shape)


def _scalar(called: Program, name: str, sizes: Mapping[str, int], rng: np.random.Generator) -> float | int:
    if called.scalars[name] == "f32":
        # Like the scale of a softmax, so that scores stay small.
        return float(np.float32(rng.uniform(0.05, 0.25)))
    wanted = _common(list(_uses_of_index(called.kernel.arguments[name], sizes)))
    return int(rng.integers(wanted.low, wanted.high))


def _common(ranges: list[_Range]) -> _Range:
    if not ranges:
        return _Range(0, 100)
    common = ranges[0]
    for other in ranges[1:]:
        common &= other
    return replace(common, low=min(0, common.high - 1)) if common.low == _ANY else common


def _integers(wanted: _Range, shape: list[int], sizes: Mapping[str, int], rng: np.random.Generator) -> Values:
    drawn = rng.integers(wanted.low, wanted.high, shape).astype(np.int32)
    if wanted.absent:
        drawn = _of_a_half(drawn, wanted, rng)
        drawn[rng.random(shape) < _ABSENT] = wanted.moved - 1
    if wanted.pairs:
        drawn[..., 0] = rng.integers(0, sizes[RANKS], shape[:-1]) + wanted.moved
    return drawn


def _of_a_half(rows: Values, drawn: _Range, rng: np.random.Generator) -> Values:
    """Rows of a table, some ranks' of one half of the positions alone: nobody asks for the blocks of the other half."""
    halves = rng.integers(0, 3, (len(rows), *[1] * (rows.ndim - 1)))
    lower, upper = drawn.low + (rows - drawn.low) // 2, drawn.high - 1 - (drawn.high - 1 - rows) // 2
    return np.where(halves == 0, lower, np.where(halves == 1, upper, rows))


def _uses_of_array(array: SSAValue, sizes: Mapping[str, int]) -> Iterator[_Range]:
    """The ranges that the uses of an array's elements need."""
    for use in array.uses:
        if isinstance(use.operation, access.ReadOp):
            yield from _uses_of_index(use.operation.result, sizes)
        elif isinstance(use.operation, access.LoadOp | access.GatherOp) and use.operation.array is array:
            yield from _uses_of_tile(use.operation.result, sizes)


def _uses_of_tile(table: SSAValue, sizes: Mapping[str, int]) -> Iterator[_Range]:
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
            by, most = _taken_off(op, use), _last_added(op, use, sizes)
            yield from (wanted.move(by) for wanted in _uses_of_tile(op.result, sizes) if by is not None)
            yield from (wanted.below(most) for wanted in _uses_of_tile(op.result, sizes) if most is not None)
            if by is most is None and isinstance(op, elementwise.AddOp):
                yield from _of_sum(op, use, _uses_of_tile(op.result, sizes))
        elif isinstance(op, ByTable):
            dims = (dim for dim, place in enumerate(op.places) if place is table)
            yield from (replace(_positions_of(op.array, dim, sizes), absent=True, pairs=op.names_ranks) for dim in dims)


def _of_sum(op: elementwise.AddOp, use: Use, after: Iterator[_Range]) -> Iterator[_Range]:
    """The ranges of one of two tables that are added: 0 of one that another table picks, as the first place of each
    list, so that the other one has them all; half of two alike."""
    picked, other = (_is_picked(op.operands[number]) for number in (use.index, 1 - use.index))
    for wanted in after:
        if picked == other:
            yield replace(wanted, high=wanted.low + (wanted.high - wanted.low + 1) // 2)
        else:
            yield _Range(wanted.low, wanted.low + 1) if picked else wanted


def _is_picked(table: SSAValue) -> bool:
    made = table.owner
    if isinstance(made, tile.ClipOp | tile.BroadcastOp):
        return _is_picked(made.tile)
    return isinstance(made, access.GatherOp)


def _uses_of_index(value: SSAValue, sizes: Mapping[str, int]) -> Iterator[_Range]:
    for use in value.uses:
        op = use.operation
        if isinstance(op, arith.IndexCastOp | arith.MinSIOp):
            yield from _uses_of_index(op.result, sizes)
        elif isinstance(op, arith.MaxSIOp):
            yield from (wanted.at_least_clamped() for wanted in _uses_of_index(op.result, sizes))
        elif isinstance(op, arith.AddiOp | arith.SubiOp):
            by = _taken_off(op, use)
            if by is not None:
                moved = (wanted.move(by) for wanted in _uses_of_index(op.result, sizes))
                yield from (replace(one, low=max(one.low, 0)) if _rounds_up(op, -by) else one for one in moved)
            yield from _use_as_length(op, op.operands[1 - use.index], sizes)
        elif isinstance(op, arith.FloorDivSIOp | arith.MuliOp):
            yield from _scaled(op, use, _uses_of_index(op.result, sizes))
        elif isinstance(op, scf.ForOp | TasksOp):
            yield from _use_as_bound(op, use, sizes)
        elif isinstance(op, tile.SplatOp):
            yield from _uses_of_tile(op.result, sizes)
        elif isinstance(op, coordinates.BlockCountOp | coordinates.BlockOp):
            yield from _use_in_block_list(op, value, sizes)
        elif isinstance(op, _INDEXED):
            yield from _use_as_index(op, use, sizes)


def _scaled(op: Operation, use: Use, after: Iterator[_Range]) -> Iterator[_Range]:
    """The ranges of what is divided by a constant, or multiplied by one, from those of the result."""
    by = _constant(op.operands[1 - use.index]) or 0
    divides = isinstance(op, arith.FloorDivSIOp | elementwise.FloorDivOp)
    if by > 0 and not (divides and use.index == 1):
        yield from (wanted.before_division(by) if divides else wanted.before_product(by) for wanted in after)


def _constant(value: SSAValue) -> int | None:
    """The constant that an integer is, or each element of a tile."""
    if isinstance(value.owner, tile.FullOp):
        return int(value.owner.constant)
    return constant_of(value)


def _rounds_up(op: Operation, added: int) -> bool:
    """Whether what is added makes a division round up, of a number of elements for one."""
    users = [use.operation for use in op.results[0].uses]
    return added > 0 and all(isinstance(by, arith.FloorDivSIOp) and constant_of(by.rhs) == added + 1 for by in users)


def _use_as_bound(op: scf.ForOp | TasksOp, use: Use, sizes: Mapping[str, int]) -> Iterator[_Range]:
    """Of an end of a loop, or a number of tasks: what the integers below it are used for."""
    if isinstance(op, scf.ForOp) and use.index > 1:
        return
    number = op.body.block.args[0 if isinstance(op, scf.ForOp) else use.index]
    found = list(_uses_of_index(number, sizes))
    if found:
        within = _common(found)
        yield _Range(within.low, within.high + 1)


def _use_as_length(end: Operation, start: SSAValue, sizes: Mapping[str, int]) -> Iterator[_Range]:
    """Of what is added to the start of a list of blocks: at most as much as lies between two such starts."""
    factors = start.owner.operands if isinstance(start.owner, arith.MuliOp) else ()
    apart = next((number for factor in factors if (number := constant_of(factor)) is not None), None)
    for use in end.results[0].uses:
        op = use.operation
        if apart is not None and isinstance(op, coordinates.BlockCountOp | coordinates.BlockOp) and op.start is start:
            ranges = _use_in_block_list(op, end.results[0], sizes)
            yield from (_Range(0, min(apart + 1, wanted.high)) for wanted in ranges)


def _taken_off(op: Operation, use: Use) -> int | None:
    """The constant that an operation subtracts from its other operand; None where there is none."""
    constant = _constant(op.operands[1 - use.index])
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
) -> Iterator[_Range]:
    kind = op.block if isinstance(op, coordinates.BlockCountOp) else block_type(op.result)
    if value is op.shard:
        yield _Range(0, sizes[RANKS])
    elif value is op.start or value is op.stop:
        yield _Range(0, (kind.of if isinstance(kind.of, int) else sizes[kind.of]) + 1)


def _use_as_index(op: Any, use: Use, sizes: Mapping[str, int]) -> Iterator[_Range]:
    value = op.operands[use.index]
    if value is op.rank:
        yield _Range(0, sizes[RANKS])
    for axis, index in enumerate(op.indices):
        if value is index:
            yield _positions_of(op.array, axis, sizes)


def _positions_of(array: SSAValue, axis: int, sizes: Mapping[str, int]) -> _Range:
    assert isinstance(array.type, PrivateType | PGLType)
    dim = array.type.dimensions[axis]
    return _Range(0, dim if isinstance(dim, int) else sizes[dim])
