"""Accesses that surely meet no element in common."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import BlockArgument, Operation, SSAValue

from pkc.dialect.access import AccumulateOp, LoadOp, ReadOp, StoreAddOp, StoreOp
from pkc.dialect.arrays import array_type
from pkc.dialect.program import KernelOp
from pkc.dialect.scalars import constant_of


def are_apart(read: Operation, write: Operation) -> bool:
    """Whether what one reads of an array is none of what the other writes there, whichever tasks they are of: along a
    dimension they have different constants."""
    if not isinstance(read, ReadOp | LoadOp) or not isinstance(write, StoreOp | StoreAddOp):
        return False
    return have_other_constants(read.indices, write.indices)


def have_other_constants(one: Sequence[SSAValue], other: Sequence[SSAValue]) -> bool:
    """Whether two places of an array have different constants along a dimension."""
    pairs = ((constant_of(a), constant_of(b)) for a, b in zip(one, other, strict=True))
    return any(a is not None and b is not None and a != b for a, b in pairs)


def are_all_summed(kernel: KernelOp, op: AccumulateOp, place: int) -> bool:
    """Whether constants index a dimension, one in each sum, and all that it has, or all that are read of scratch memory
    that nobody else sees."""
    dim, users = array_type(op.array).dimensions[place], [use.operation for use in op.array.uses]
    summed = {constant_of(user.indices[place]) for user in users if isinstance(user, AccumulateOp)}
    if not isinstance(dim, int) or None in summed:
        return False
    if len(summed) == dim:
        return True
    read = [user for user in users if not isinstance(user, AccumulateOp)]
    known = all(isinstance(user, ReadOp | LoadOp) and constant_of(user.indices[place]) in summed for user in read)
    assert isinstance(op.array, BlockArgument)
    return known and kernel.is_scratch(op.array)
