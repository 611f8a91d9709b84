"""Division of integers that rounds down, as the language has it; that of the target rounds towards zero."""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerAttr, i32
from xdsl.ir import SSAValue

from pkc.dialect.scalars import constant_of
from pkc.passes.machine.emit import Emitter


def divide_down(emit: Emitter, a: SSAValue, b: SSAValue) -> SSAValue:
    """a // b, for `index` or `i32`; 0 where b is 0."""
    zero, one = _number(emit, 0, b), _number(emit, 1, b)
    divides = None if constant_of(b) else emit.compare("ne", b, zero)
    divisor = b if divides is None else emit.select(divides, b, one)
    quotient, rest = emit.over(a, divisor), emit.modulo(a, divisor)
    rounded_up = emit.both(emit.compare("ne", rest, zero), emit.compare("slt", emit.bit_xor(rest, divisor), zero))
    result = emit.select(rounded_up, emit.minus(quotient, one), quotient)
    return result if divides is None else emit.select(divides, result, zero)


def remainder_down(emit: Emitter, a: SSAValue, b: SSAValue) -> SSAValue:
    """a - a // b * b; a where b is 0."""
    return emit.minus(a, emit.times(divide_down(emit, a, b), b))


def _number(emit: Emitter, number: int, like: SSAValue) -> SSAValue:
    kind = IndexType() if isinstance(like.type, IndexType) else i32
    op = arith.ConstantOp(IntegerAttr(number, kind))
    emit.add(op)
    return op.result
