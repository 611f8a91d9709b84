"""What the lengths of rows of arrays are surely multiples of."""

from __future__ import annotations

from xdsl.dialects.builtin import DictionaryAttr, IntegerAttr
from xdsl.ir import Operation

from pkc.dialect.access import AddToArrayOp, LoadOp, StoreOp
from pkc.dialect.arrays import array_type
from pkc.dialect.by_table import GatherOp
from pkc.dialect.program import DIVISORS, kernel_of
from pkc.dialect.types import PrivateType, dtype_bytes, row_of
from pkc.targets.layout import CHUNK

_ROWS = 2
"""Axes of an array that has more than one row."""


def between_rows(op: LoadOp | GatherOp | StoreOp | AddToArrayOp) -> int:
    """What bytes from one row of an array to the next are surely a multiple of; lengths of rows of which the launch
    says nothing are taken to suit TMA, and so is a single row."""
    array = array_type(op.array)
    if array.rank < _ROWS:
        return CHUNK
    last, size = array.dimensions[-1], dtype_bytes(array.element_type)
    if isinstance(array, PrivateType) and array.padded:
        return CHUNK
    if isinstance(last, int):
        return last * size
    known = divisor(op, row_of(array))
    return known * size if known is not None else CHUNK


def divisor(op: Operation, length: str) -> int | None:
    """What a length is a multiple of, if the launch says it."""
    kernel = kernel_of(op)
    divisors = kernel.attributes.get(DIVISORS) if kernel is not None else None
    known = divisors.data.get(length) if isinstance(divisors, DictionaryAttr) else None
    return known.value.data if isinstance(known, IntegerAttr) else None
