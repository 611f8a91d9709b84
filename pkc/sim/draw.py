"""Random inputs: normal floats, and integers in the range that their uses need."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, ModuleOp
from xdsl.ir import Operation, SSAValue, Use

from pkc.dialect import access, coordinates, elementwise, tile
from pkc.dialect.inverse import InvertOp
from pkc.dialect.numeric import Values, numpy_dtype
from pkc.dialect.scalars import constant_of
from pkc.dialect.tile import block_type
from pkc.dialect.types import FLOATS, RANKS, Layout, PGLType, PrivateType, i8
from pkc.sim.inputs import check_memory, has_leading_ranks, resolve_dims
from pkc.sim.program import Program, find_kernel

_ABSENT = 1 / 8
"""The share of the entries of a table of rows that name no row."""

_INDEXED = (access.ReadOp, access.LoadOp, access.StoreOp, access.StoreAddOp, access.AccumulateOp)
_BY_TABLE = (access.GatherOp, access.ScatterAccumulateOp)


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
        high = max(low + 1, min(self.high, other.high))
        absent = self.absent and other.absent and self.moved == other.moved
        return _Range(low, high, absent, self.pairs or other.pairs, self.moved)

    def move(self, by: int) -> _Range:
        return replace(self, low=self.low + by, high=self.high + by, moved=self.moved + by)


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
    drawn = _integers(_common(list(_uses_of_array(argument, sizes))), shape, sizes, rng)
    return np.sort(drawn, axis=-1) if _are_offsets(argument) else drawn


def _are_offsets(array: SSAValue) -> bool:
    """Whether lists of blocks go from one element of an array to another: ascending ones do not overlap."""
    reads = [use.operation.results[0] for use in array.uses if isinstance(use.operation, access.ReadOp)]
    lists = [use.operation for read in reads for use in read.uses]
    return any(isinstance(op, coordinates.BlockCountOp) and op.start in reads and op.stop in reads for op in lists)


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
    return common


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
        elif isinstance(use.operation, access.LoadOp):
            yield from _uses_of_tile(use.operation.result, sizes)


def _uses_of_tile(table: SSAValue, sizes: Mapping[str, int]) -> Iterator[_Range]:
    for use in table.uses:
        op = use.operation
        if isinstance(op, elementwise.SelectOp) and op.condition is table:
            continue
        if isinstance(op, tile.ClipOp | tile.BroadcastOp | elementwise.SelectOp):
            yield from _uses_of_tile(op.result, sizes)
        elif isinstance(op, access.StoreOp):
            inverted = (other.operation for other in op.array.uses)
            named = [found.array for found in inverted if isinstance(found, InvertOp) and found.table is op.array]
            yield from (replace(_positions_of(array, 0, sizes), absent=True) for array in named)
        elif isinstance(op, elementwise.AddOp | elementwise.SubOp):
            by = _taken_off(op, use)
            yield from (wanted.move(by) for wanted in _uses_of_tile(op.result, sizes) if by is not None)
        elif isinstance(op, access.GatherOp) and not op.of_rows:
            dims = (dim for dim, place in enumerate(op.places) if place is table)
            yield from (replace(_positions_of(op.array, dim, sizes), absent=True) for dim in dims)
        elif isinstance(op, _BY_TABLE) and op.rows is table:
            pairs = isinstance(op.array.type, PGLType) and op.array.type.layout is Layout.Symmetric
            yield replace(_positions_of(op.array, 0, sizes), absent=True, pairs=pairs)


def _uses_of_index(value: SSAValue, sizes: Mapping[str, int]) -> Iterator[_Range]:
    for use in value.uses:
        op = use.operation
        if isinstance(op, arith.IndexCastOp | arith.MinSIOp | arith.MaxSIOp):
            yield from _uses_of_index(op.result, sizes)
        elif isinstance(op, arith.AddiOp | arith.SubiOp):
            by = _taken_off(op, use)
            yield from (wanted.move(by) for wanted in _uses_of_index(op.result, sizes) if by is not None)
            yield from _use_as_length(op, op.operands[1 - use.index], sizes)
        elif isinstance(op, coordinates.BlockCountOp | coordinates.BlockOp):
            yield from _use_in_block_list(op, value, sizes)
        elif isinstance(op, _INDEXED):
            yield from _use_as_index(op, use, sizes)


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
    other = op.operands[1 - use.index].owner
    adds = isinstance(op, elementwise.AddOp | arith.AddiOp)
    if isinstance(other, tile.FullOp):
        constant = int(other.constant)
    elif isinstance(other, arith.ConstantOp) and isinstance(other.value, IntegerAttr):
        constant = other.value.value.data
    else:
        return None
    if adds:
        return -constant
    return constant if use.index == 0 else None


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
