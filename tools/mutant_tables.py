"""How the mutants of `mutants.py` break what comes from memory: counts and tables of rows."""

from __future__ import annotations

from xdsl.dialects.builtin import IndexType
from xdsl.ir import Operation, SSAValue

from pkc.dialect import access, arrays, coordinates
from pkc.dialect.attributes import Role
from pkc.dialect.scalars import constant_of
from pkc.dialect.types import i32
from pkc.passes.analysis.dependence import role_around
from pkc.passes.build import before, constant


def first_entry(op: Operation) -> None:
    """The first along a dimension that is indexed by a number."""
    assert isinstance(op, access.ReadOp | access.LoadOp)
    zero = constant(0)
    before(op, [zero])
    op.operands[list(op.operands).index(_numbers(op)[0])] = zero.result


def is_one_of_several(op: Operation) -> bool:
    """Whether an integer, or a table of them, is one of several."""
    assert isinstance(op, access.ReadOp | access.LoadOp)
    return arrays.array_type(op.array).element_type == i32 and bool(_numbers(op))


def _numbers(op: access.ReadOp | access.LoadOp) -> list[SSAValue]:
    return [index for index in op.indices if isinstance(index.type, IndexType) and constant_of(index) is None]


def whole_list(op: Operation) -> None:
    """Count the blocks of a whole dimension in place of those up to a number."""
    assert isinstance(op, coordinates.BlockCountOp)
    assert op.stop is not None
    assert isinstance(op.block.of, str)
    size = coordinates.DimOp(op.block.of)
    before(op, [size])
    op.operands[list(op.operands).index(op.stop)] = size.result


def ends_at_a_number(op: Operation) -> bool:
    """Whether a list of blocks ends at a number, but for those of communicators: what they bring, and nobody reads,
    does no harm."""
    assert isinstance(op, coordinates.BlockCountOp)
    role = role_around(op)
    brings = role is not None and role.role.data is Role.Communicator
    return op.stop is not None and isinstance(op.block.of, str) and not brings
