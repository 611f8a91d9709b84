"""Random inputs: normal floats, and integers in the range that their uses need."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import partial
from math import prod
from typing import Any, cast

import numpy as np
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    DictionaryAttr,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    ModuleOp,
    TensorType,
    f64,
    i64,
)
from xdsl.ir import Attribute, SSAValue

from pkc.dialect import access, arrays, by_table, coordinates, elementwise, tile
from pkc.dialect.numeric import Values, numpy_dtype
from pkc.dialect.program import KernelOp
from pkc.dialect.scalars import constant_of
from pkc.dialect.types import FLOATS, RANKS, i8, i32
from pkc.sim.compared import Cases, sides, spread_out
from pkc.sim.domains import without_sign
from pkc.sim.guarded import is_kept_from
from pkc.sim.inputs import check_memory, has_leading_ranks, resolve_dims
from pkc.sim.program import Program, find_kernel
from pkc.sim.uses import Range, common, taken_off, uses_of_array, uses_of_index

GIVEN = "given"
"""On a kernel: the numbers and tables that a caller says, in place of those that are drawn."""

_NUMBERS = (IntegerAttr, FloatAttr)

_ABSENT = 1 / 8
"""The share of the entries of a table of rows that name no row."""

_STRAY = 1 / 64
"""The share of the entries of a table in order that are not."""

_OF_TABLES = (
    by_table.GatherOp,
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


def draw_inputs(
    module: ModuleOp,
    *,
    ranks: int,
    dims: Mapping[str, int],
    seed: int,
    kernel: str | None = None,
    only: Collection[str] | None = None,
    period: int | None = None,
    both_sides: bool = False,
) -> dict[str, Any]:
    """Content for every array that a kernel reads, and a value for every scalar; or for `only` some of them. With
    `period` so many floats are drawn for an array, and repeated: enough for times, not for results. With `both_sides`
    integers come near the numbers that they are compared with, and scalars from the upper half of their range if the
    seed is odd, else from the lower one: enough for branches and loops, not for times."""
    called = Program(find_kernel(module, kernel))
    sizes = resolve_dims(called.kernel, dims, {}, ranks) | {RANKS: ranks}
    check_memory(called, sizes, only)
    rng = np.random.default_rng(seed)
    wanted = (*called.inputs, *called.scalars) if only is None else only
    drawn: dict[str, Any] = {name: _array(called, name, sizes, rng, period) for name in called.inputs if name in wanted}
    half = seed % 2 if both_sides else None
    drawn |= {name: _scalar(called, name, sizes, rng, half) for name in called.scalars if name in wanted}
    for name, cases in _compared(called, sizes).items() if both_sides else ():
        if name in drawn:
            ranks = name in called.arrays and has_leading_ranks(called.arrays[name])
            values = spread_out(np.atleast_1d(drawn[name]), cases, name=name, seed=seed, on_ranks=ranks)
            drawn[name] = values if name in called.arrays else int(values[0])
    told = given_to(called.kernel) | tables_given_to(called.kernel)
    return drawn | {name: content for name, content in told.items() if name in wanted}


def say_given(kernel: KernelOp, numbers: Mapping[str, int | float], tables: Mapping[str, Values] | None = None) -> None:
    """Let a kernel have these numbers and arrays of integers of its caller in all launches, whose sizes are those of
    these arrays."""
    made: dict[str, Attribute] = {
        name: IntegerAttr(n, i64) if isinstance(n, int) else FloatAttr(n, f64) for name, n in numbers.items()
    }
    for name, table in (tables or {}).items():
        kind = TensorType(IntegerType(8 * table.itemsize), table.shape)
        made[name] = DenseIntOrFPElementsAttr.from_list(kind, table.ravel().tolist())
    kernel.attributes[GIVEN] = DictionaryAttr(made)


def given_to(kernel: KernelOp) -> dict[str, int | float]:
    """The numbers that a caller says."""
    return {name: n.value.data for name, n in _given(kernel).items() if isinstance(n, _NUMBERS)}


def tables_given_to(kernel: KernelOp) -> dict[str, Values]:
    """The arrays that a caller says."""
    return {name: _content(given) for name, given in _given(kernel).items() if not isinstance(given, _NUMBERS)}


def _given(kernel: KernelOp) -> Mapping[str, Attribute]:
    found = kernel.attributes.get(GIVEN)
    return found.data if isinstance(found, DictionaryAttr) else {}


def _content(given: Attribute) -> Values:
    assert isinstance(given, DenseIntOrFPElementsAttr)
    kind = cast("TensorType[IntegerType]", given.type)
    return np.array(given.get_values(), numpy_dtype(kind.element_type)).reshape(kind.get_shape())


def seeds_for(kernel: KernelOp, *, ranks: int, dims: Mapping[str, int]) -> int:
    """From how many seeds on inputs are drawn in which each integer comes on both sides of all that it is compared
    with; 0 if none is."""
    sizes = {**dims, RANKS: ranks}
    return max((cases.number for cases in _compared(Program(kernel), sizes).values()), default=0)


def seeds_together(kernel: KernelOp, *, ranks: int, dims: Mapping[str, int]) -> range:
    """The seeds of inputs in which all elements of an array, or of a row, are alike; none if no array is compared."""
    called, sizes = Program(kernel), {**dims, RANKS: ranks}
    found = _compared(called, sizes).items()
    numbers = [cases.number for name, cases in found if name in called.arrays and prod(_shape(called, name, sizes)) > 1]
    return range(max(numbers, default=0), 3 * max(numbers, default=0))


def _compared(called: Program, sizes: Mapping[str, int]) -> dict[str, Cases]:
    """What the integers that are compared are drawn from; not those that depend on each other, as offsets do."""
    found: dict[str, Cases] = {}
    for name in (*called.inputs, *(scalar for scalar in called.scalars if scalar not in given_to(called.kernel))):
        value, is_array = called.kernel.arguments[name], name in called.arrays
        if (called.arrays[name].element_type if is_array else value.type) != i32:
            continue
        reads = _reads(value)
        if _are_offsets(reads) or any(True for read in reads for _ in _named_stores(read)):
            continue
        ranges = list((uses_of_array if is_array else uses_of_index)(value, sizes))
        within = common(ranges)
        beyond = partial(_are_kept_from, ranges, value, sizes)
        chosen = tuple(number for number in sides(value, sizes) if not ranges or number in within or beyond(number))
        if chosen and not within.pairs:
            ends = (within.low, within.high - 1) if ranges else (0,)
            chosen = tuple(dict.fromkeys((*chosen, *ends))) if is_array else chosen
            found[name] = Cases(chosen, len(chosen) if ranges else 1)
    return found


def _are_kept_from(ranges: Iterable[Range], value: SSAValue, sizes: Mapping[str, int], number: int) -> bool:
    """Whether each use of an integer that could not be this number stands in a branch that asks."""
    return all(
        number in wanted or (wanted.of is not None and is_kept_from(wanted.of, wanted.given or value, number, sizes))
        for wanted in ranges
    )


def _array(
    called: Program, name: str, sizes: Mapping[str, int], rng: np.random.Generator, period: int | None
) -> Values:
    kind, shape = called.arrays[name], _shape(called, name, sizes)
    if kind.element_type in FLOATS:
        size = shape if period is None or period >= prod(shape) else period
        floats = rng.standard_normal(size, dtype=np.float32)
        floats = abs(floats) if called.kernel.arguments[name] in without_sign(called.kernel) else floats
        return np.resize(floats.astype(numpy_dtype(kind.element_type)), shape)
    if kind.element_type == i8:
        return rng.integers(-128, 128, shape, np.int8)
    argument = called.kernel.arguments[name]
    wanted, reads = common(list(uses_of_array(argument, sizes))), _reads(argument)
    offsets = _are_offsets(reads)
    stored = [] if offsets else [op for read in reads for op in _named_stores(read)]
    if stored:
        shared = any(isinstance(op, by_table.ScatterStoreOp) and arrays.is_shared(op.array) for op in stored)
        return _distinct(wanted, shape, rng, whole=shared)
    drawn = _integers(wanted, shape, sizes, rng)
    return np.sort(drawn, axis=-1) if offsets else drawn


def _shape(called: Program, name: str, sizes: Mapping[str, int]) -> list[int]:
    kind = called.arrays[name]
    shape = [dim if isinstance(dim, int) else sizes[dim] for dim in kind.dimensions]
    return [sizes[RANKS], *shape] if has_leading_ranks(kind) else shape


def _reads(array: SSAValue) -> list[SSAValue]:
    return [use.operation.results[0] for use in array.uses if isinstance(use.operation, access.LOADS)]


def _are_offsets(loads: Iterable[SSAValue]) -> bool:
    """Whether lists of blocks, or loops, go from one element of an array to another, or are as long as these are apart:
    ascending ones do not overlap."""
    reads = [read for read in loads if isinstance(read.owner, access.ReadOp)]
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
        moved = isinstance(op, arith.AddiOp | arith.SubiOp) and taken_off(op, use) is not None
        if moved or isinstance(op, _OF_TABLES):
            yield from _named_stores(op.results[0])


def _distinct(wanted: Range, shape: list[int], rng: np.random.Generator, *, whole: bool) -> Values:
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


def _scalar(
    called: Program, name: str, sizes: Mapping[str, int], rng: np.random.Generator, half: int | None
) -> float | int:
    if called.scalars[name] == "f32":
        # Like the scale of a softmax, so that scores stay small.
        return float(np.float32(rng.uniform(0.05, 0.25)))
    wanted = common(list(uses_of_index(called.kernel.arguments[name], sizes)))
    low, high = wanted.low, wanted.high
    middle = (low + high + 1) // 2
    if half is not None and low < middle < high:
        low, high = (middle, high) if half else (low, middle)
    return int(rng.integers(low, high))


def _integers(wanted: Range, shape: list[int], sizes: Mapping[str, int], rng: np.random.Generator) -> Values:
    drawn = rng.integers(wanted.low, wanted.high, shape).astype(np.int32)
    if wanted.absent:
        drawn = _as_routed(drawn, wanted, rng)
        drawn[rng.random(shape) < _ABSENT] = wanted.moved - 1
    if wanted.pairs:
        drawn[..., 0] = rng.integers(0, sizes[RANKS], shape[:-1]) + wanted.moved
    return drawn


def _as_routed(rows: Values, drawn: Range, rng: np.random.Generator) -> Values:
    """Rows of a table: some ranks' are of one half of the positions alone, so that nobody asks for the blocks of the
    other half, and some ascend but for a few, as tokens of an expert do."""
    kinds = rng.integers(0, 4, (len(rows), *[1] * (rows.ndim - 1)))
    lower, upper = drawn.low + (rows - drawn.low) // 2, drawn.high - 1 - (drawn.high - 1 - rows) // 2
    ascending = np.where(rng.random(rows.shape) < _STRAY, rows, np.sort(rows, axis=-1))
    return np.select([kinds == 0, kinds == 1, kinds == 2], [lower, upper, ascending], rows)
