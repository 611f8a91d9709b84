"""Element-wise operations on single elements: by an instruction of the target, or by arithmetic."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects import arith
from xdsl.dialects.builtin import FloatAttr, IntegerAttr
from xdsl.ir import Attribute, Operation, SSAValue

from pkc.dialect import elementwise as ew
from pkc.dialect.declaration import OPERATIONS
from pkc.dialect.types import FLOATS, f32, i1, i32
from pkc.passes.machine.emit import Emitter
from pkc.passes.machine.lowering import rounding
from pkc.passes.machine.lowering.missing import CannotLowerError

_Make = Callable[[Emitter, Operation, list[SSAValue]], SSAValue]


def apply(emit: Emitter, op: Operation, kind: type[Operation], values: list[SSAValue]) -> SSAValue:
    """One element of `op`, or of an operation that it is made of: by an instruction for it, or by arithmetic."""
    found = emit.target.computing(kind.name, str(values[0].type))
    if found is not None:
        return emit.value(found.name, *values)
    if kind not in _ARITHMETIC:
        raise CannotLowerError(op, f"`{OPERATIONS[kind].word}` of {values[0].type}")
    return _ARITHMETIC[kind](emit, op, values)


def constant(emit: Emitter, value: float, kind: Attribute) -> SSAValue:
    """A constant element of a type, as it is computed: of f32, i32 or i1."""
    if kind not in FLOATS:
        op = arith.ConstantOp(IntegerAttr(int(value), i1 if kind == i1 else i32))
    else:
        op = arith.ConstantOp(FloatAttr(value, f32))
    emit.add(op)
    return op.result


def _by(real: type[Operation] | None, integer: type[Operation]) -> _Make:
    """An operation of `arith` on f32, and one on i32 and i1."""

    def make(emit: Emitter, _: Operation, values: list[SSAValue]) -> SSAValue:
        kind = real if values[0].type == f32 else integer
        assert kind is not None
        op = kind(*values)
        emit.add(op)
        return op.results[0]

    return make


def _negate(emit: Emitter, _: Operation, values: list[SSAValue]) -> SSAValue:
    zero = constant(emit, -0.0 if values[0].type == f32 else 0, values[0].type)
    return emit.binary(arith.SubfOp if values[0].type == f32 else arith.SubiOp, zero, values[0])


def _absolute(emit: Emitter, op: Operation, values: list[SSAValue]) -> SSAValue:
    return emit.binary(arith.MaxSIOp, values[0], _negate(emit, op, values))


def _not(emit: Emitter, _: Operation, values: list[SSAValue]) -> SSAValue:
    return emit.binary(arith.XOrIOp, values[0], constant(emit, 1, i1))


def _shift(kind: type[arith.ShLIOp | arith.ShRSIOp]) -> _Make:
    def make(emit: Emitter, _: Operation, values: list[SSAValue]) -> SSAValue:
        by = emit.binary(arith.AndIOp, values[1], constant(emit, 31, i32))
        op = kind(values[0], by)
        emit.add(op)
        return op.result

    return make


def _compare(emit: Emitter, op: Operation, values: list[SSAValue]) -> SSAValue:
    assert isinstance(op, ew.CompareOp)
    name = str(op.predicate.data)
    if values[0].type == f32:
        ordered = ("u" if name == "ne" else "o") + name
        found: Operation = arith.CmpfOp(values[0], values[1], ordered)
    else:
        found = arith.CmpiOp(values[0], values[1], name if name in ("eq", "ne") else f"s{name}")
    emit.add(found)
    return found.results[0]


def _select(emit: Emitter, _: Operation, values: list[SSAValue]) -> SSAValue:
    return emit.select(values[0], values[1], values[2])


_ARITHMETIC: dict[type[Operation], _Make] = {
    ew.NegOp: _negate,
    ew.AbsOp: _absolute,
    ew.NotOp: _not,
    ew.AddOp: _by(arith.AddfOp, arith.AddiOp),
    ew.SubOp: _by(arith.SubfOp, arith.SubiOp),
    ew.MulOp: _by(arith.MulfOp, arith.MuliOp),
    ew.FloorDivOp: lambda emit, _, values: rounding.divide_down(emit, *values),
    ew.ModOp: lambda emit, _, values: rounding.remainder_down(emit, *values),
    ew.MaxOp: _by(None, arith.MaxSIOp),
    ew.MinOp: _by(None, arith.MinSIOp),
    ew.AndOp: _by(None, arith.AndIOp),
    ew.OrOp: _by(None, arith.OrIOp),
    ew.BitAndOp: _by(None, arith.AndIOp),
    ew.BitOrOp: _by(None, arith.OrIOp),
    ew.BitXorOp: _by(None, arith.XOrIOp),
    ew.ShiftLeftOp: _shift(arith.ShLIOp),
    ew.ShiftRightOp: _shift(arith.ShRSIOp),
    ew.CompareOp: _compare,
    ew.SelectOp: _select,
}
"""Operations by arithmetic, where the target has no instruction for them."""
