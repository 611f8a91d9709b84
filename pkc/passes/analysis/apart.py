"""Accesses that surely meet no element in common."""

from __future__ import annotations

from xdsl.ir import Operation

from pkc.dialect.access import LoadOp, ReadOp, StoreAddOp, StoreOp
from pkc.dialect.scalars import constant_of


def are_apart(read: Operation, write: Operation) -> bool:
    """Whether what one reads of an array is none of what the other writes there, whichever tasks they are of: along a
    dimension they have different constants."""
    if not isinstance(read, ReadOp | LoadOp) or not isinstance(write, StoreOp | StoreAddOp):
        return False
    pairs = ((constant_of(a), constant_of(b)) for a, b in zip(read.indices, write.indices, strict=True))
    return any(a is not None and b is not None and a != b for a, b in pairs)
