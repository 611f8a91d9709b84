"""Where lists of blocks begin and end, as sums and products of sizes and of other integers."""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from pkc.dialect.coordinates import BlockOp
from pkc.dialect.tile import block_type
from pkc.dialect.types import Dim
from pkc.passes.analysis.polynomials import Polynomial, polynomial


def ends_after(one: BlockOp, other: BlockOp, *, but_at_end: bool = False) -> bool:
    """Whether what lies past the end of one block, counted from where it begins, also lies past the end of another.
    With `but_at_end`, the end of the dimension aside."""
    kind = block_type(one.result)
    if one.in_shard or other.in_shard or one.index is not other.index:
        return False
    if kind.extent != block_type(other.result).extent:
        return False
    by, others = _begin(one) - _begin(other), _ends(other)
    ends = [end for end in _ends(one) if not but_at_end or not (end - _length(kind.of)).is_zero]
    return all(any(_is_at_least(end - by, other_end) for other_end in others) for end in ends)


def ends_with_array(block: BlockOp) -> bool:
    """Whether what lies past the end of a block also lies past the end of its dimension."""
    length = _length(block_type(block.result).of)
    return not block.in_shard and all(_is_at_least(end, length) for end in _ends(block))


def _is_at_least(one: Polynomial, other: Polynomial) -> bool:
    number = (one - other).number
    return number is not None and number >= 0


def _begin(block: BlockOp) -> Polynomial:
    return Polynomial.constant(0) if block.start is None else _number(block.start)


def _ends(block: BlockOp) -> list[Polynomial]:
    """Numbers of which the least is where the list of a block ends."""
    return [_length(block_type(block.result).of)] if block.stop is None else _least(block.stop)


def _least(value: SSAValue) -> list[Polynomial]:
    op = value.owner
    if isinstance(op, arith.MinSIOp):
        return [*_least(op.lhs), *_least(op.rhs)]
    if isinstance(op, arith.AddiOp):
        return [left + right for left in _least(op.lhs) for right in _least(op.rhs)]
    return [_number(value)]


def _length(dim: Dim) -> Polynomial:
    return Polynomial.constant(dim) if isinstance(dim, int) else Polynomial.of(dim)


def _number(value: SSAValue) -> Polynomial:
    """An integer; what is no sum or product stands for itself."""
    op = value.owner
    match op:
        case arith.AddiOp():
            return _number(op.lhs) + _number(op.rhs)
        case arith.MuliOp():
            return _number(op.lhs) * _number(op.rhs)
        case _:
            found = polynomial(value)
            return Polynomial.of(f"value {id(value)}") if found is None else found
