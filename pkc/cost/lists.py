"""How much lists of a table's entries look at, and how much sums of what they list add up."""

from __future__ import annotations

from collections.abc import Callable
from math import prod, sqrt

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from pkc.dialect.arrays import array_type
from pkc.dialect.inverse import InvertOp, SumRowsOp
from pkc.dialect.types import BlockType, Dim, dtype_bytes

Extent = Callable[[Dim], int]
"""How long a dimension is."""

Known = Callable[[SSAValue], int | None]
"""A number, if it is known before the kernel runs."""


def entries_seen(op: InvertOp, extent: Extent, warp: int) -> float:
    """Entries that a task looks at: all of the table, once to count and once to list, for as many rows at a time as a
    warp has threads."""
    assert isinstance(op.rows.type, BlockType)
    windows = -(-op.rows.type.extent // warp)
    return 2 * windows * prod(map(extent, array_type(op.table).dimensions))


def bytes_listed(op: SumRowsOp, extent: Extent) -> float:
    """Bytes of slots that a task adds up, if all entries of the table name a row, and rows as many as others."""
    kind = array_type(op.array)
    listed = prod(map(extent, array_type(op.order).dimensions)) / max(1, extent(kind.dimensions[0]))
    elements = prod(index.type.extent for index in op.indices if isinstance(index.type, BlockType))
    return listed * elements * dtype_bytes(kind.element_type)


def window(start: SSAValue, stop: SSAValue, known: Known) -> int | None:
    """The most positions from `start` to `stop` where both follow from one number that memory has, as of
    `start=max(n - 128, 0), stop=n`; nothing if that cannot be told."""
    if start is stop:
        return 0
    op = start.owner
    match op:
        case arith.MaxSIOp():
            found = [most for one in op.operands if (most := window(one, stop, known)) is not None]
            return min(found, default=None)
        case arith.SubiOp():
            before, most = known(op.rhs), window(op.lhs, stop, known)
            return None if before is None or most is None else most + before
        case arith.MuliOp() if isinstance(op.lhs.owner, arith.FloorDivSIOp):
            step, most = known(op.rhs), window(op.lhs.owner.lhs, stop, known)
            return None if step is None or most is None or known(op.lhs.owner.rhs) != step else most + step - 1
        case _:
            return None


def mean_count(most: int, size: int) -> float:
    """How many blocks a list has on average whose length may be any up to `most`: each last one may be short."""
    whole, rest = divmod(most, size)
    return (size * whole * (whole + 1) / 2 + rest * (whole + 1)) / (most + 1)


def spread_of_count(most: int, size: int) -> float:
    """The standard deviation of the same, as a share of the mean: none if a block is as long as the longest list, which
    is one block unless it is empty."""
    whole, rest = divmod(most, size)
    squares = size * whole * (whole + 1) * (2 * whole + 1) / 6 + rest * (whole + 1) ** 2
    mean = mean_count(most, size)
    return sqrt(max(0.0, squares / (most + 1) - mean**2)) / mean if mean else 0.0
