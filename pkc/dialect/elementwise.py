"""Operations that work element by element: arithmetic, comparisons, `where`. One declaration each."""

from __future__ import annotations

import math
from abc import ABC
from collections.abc import Callable
from typing import ClassVar

import numpy as np
from xdsl.ir import Operation, SSAValue
from xdsl.irdl import (
    BaseAttr,
    IRDLOperation,
    VarConstraint,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import NoMemoryEffect
from xdsl.utils.exceptions import VerifyException

from pkc.dialect import error_bounds, uncertain
from pkc.dialect.attributes import Predicate, PredicateAttr
from pkc.dialect.declaration import OPERATIONS, ULPS, function, in_f64, operation
from pkc.dialect.error_bounds import SAME_SIZE, exponential, logarithm, root
from pkc.dialect.numeric import Values
from pkc.dialect.tile import TileOp, expect, tile_type
from pkc.dialect.types import TileType, f32, i1, i32


class Unary(IRDLOperation, ABC):
    """One tile, element by element."""

    T: ClassVar = VarConstraint("T", BaseAttr(TileType))
    tile = operand_def(T)
    result = result_def(T)
    traits = traits_def(NoMemoryEffect())
    assembly_format = "$tile attr-dict `:` type($result)"

    def __init__(self, tile: SSAValue | Operation) -> None:
        super().__init__(operands=[tile], result_types=[SSAValue.get(tile).type])

    def verify_(self) -> None:
        expect(tile_type(self.result), OPERATIONS[type(self)].types)


class Binary(IRDLOperation, ABC):
    """Two tiles of one type, element by element."""

    T: ClassVar = VarConstraint("T", BaseAttr(TileType))
    lhs = operand_def(T)
    rhs = operand_def(T)
    result = result_def(T)
    traits = traits_def(NoMemoryEffect())
    assembly_format = "$lhs `,` $rhs attr-dict `:` type($result)"

    def __init__(self, lhs: SSAValue | Operation, rhs: SSAValue | Operation) -> None:
        super().__init__(operands=[lhs, rhs], result_types=[SSAValue.get(lhs).type])

    def verify_(self) -> None:
        expect(tile_type(self.result), OPERATIONS[type(self)].types)


@operation("-", f32, i32, value=np.negative, real=SAME_SIZE, other=uncertain.KEPT)
class NegOp(Unary):
    """-a"""

    name = "pk.neg"


@operation("abs", f32, i32, value=np.abs, real=SAME_SIZE, other=uncertain.KEPT)
class AbsOp(Unary):
    """|a|"""

    name = "pk.abs"


@function("exp", np.exp, exponential(1.0))
class ExpOp(Unary):
    """e to the power a"""

    name = "pk.exp"


@function("1.0 * exp", np.exp, exponential(1.0), flushes=True, steep=True)
class SteepExpOp(Unary):
    """e to the power a, off by as many ulps more as a is large"""

    name = "pk.steep_exp"


@function("exp2", np.exp2, exponential(float(np.log(2.0))), flushes=True)
class Exp2Op(Unary):
    """2 to the power a"""

    name = "pk.exp2"


@function("log2", np.log2, logarithm(2.0))
class Log2Op(Unary):
    """Logarithm to base 2"""

    name = "pk.log2"


@function("sqrt", np.sqrt, root)
class SqrtOp(Unary):
    """Square root"""

    name = "pk.sqrt"


@function("tanh", np.tanh)
class TanhOp(Unary):
    """Hyperbolic tangent"""

    name = "pk.tanh"


@function("log", np.log, logarithm(math.e))
class LogOp(Unary):
    """Natural logarithm"""

    name = "pk.log"


@function("erf", in_f64(np.vectorize(math.erf, otypes=[np.float64])))
class ErfOp(Unary):
    """Error function"""

    name = "pk.erf"


@function("round", np.rint, ulps=0)
class RoundOp(Unary):
    """The nearest whole number, of two the even one"""

    name = "pk.round"


@function("floor", np.floor, ulps=0)
class FloorOp(Unary):
    """The greatest whole number that is not above a"""

    name = "pk.floor"


def _up_to_2_51(wave: Callable[[Values], Values]) -> Callable[[Values], Values]:
    return in_f64(lambda a: np.where(np.abs(a) < error_bounds.WAVE, wave(a), np.nan))


_sine, _cosine = _up_to_2_51(np.sin), _up_to_2_51(np.cos)


@operation("sin", f32, value=_sine, real=error_bounds.wave_bound(_sine, ULPS), ulps=ULPS)
class SinOp(Unary):
    """Sine, of radians; NaN from 2^51 on"""

    name = "pk.sin"


@operation("cos", f32, value=_cosine, real=error_bounds.wave_bound(_cosine, ULPS), ulps=ULPS)
class CosOp(Unary):
    """Cosine, of radians; NaN from 2^51 on"""

    name = "pk.cos"


@function("rsqrt", in_f64(lambda a: 1.0 / np.sqrt(a)), falls=True)
class RsqrtOp(Unary):
    """1 / sqrt(a)"""

    name = "pk.rsqrt"


def _sigmoid(a: Values) -> Values:
    power = np.exp(-np.abs(a))
    return np.where(a < 0, power, 1.0) / (1.0 + power)


@function("sigmoid", in_f64(_sigmoid), flushes=True)
class SigmoidOp(Unary):
    """1 / (1 + exp(-a))"""

    name = "pk.sigmoid"


@function("0.5 + 0.5 * tanh", in_f64(lambda a: 0.5 + 0.5 * np.tanh(a)), centred=True)
class StepTanhOp(Unary):
    """(1 + tanh(a)) / 2"""

    name = "pk.step_tanh"


_erfc = np.vectorize(math.erfc, otypes=[np.float64])


@function("0.5 + 0.5 * erf", in_f64(lambda a: 0.5 * _erfc(-a)), centred=True)
class StepErfOp(Unary):
    """(1 + erf(a)) / 2"""

    name = "pk.step_erf"


@operation("not", i1, value=np.logical_not, other=uncertain.KEPT)
class NotOp(Unary):
    """Logical negation"""

    name = "pk.not"


@operation("+", f32, i32, value=np.add, real=error_bounds.added, other=uncertain.SUM)
class AddOp(Binary):
    """a + b; i32 wraps"""

    name = "pk.add"


@operation("-", f32, i32, value=np.subtract, real=error_bounds.DIFFERENCE, other=uncertain.SUM)
class SubOp(Binary):
    """a - b; i32 wraps"""

    name = "pk.sub"


@operation("*", f32, i32, value=np.multiply, real=error_bounds.PRODUCT, other=uncertain.PRODUCT)
class MulOp(Binary):
    """a * b; i32 wraps"""

    name = "pk.mul"


@operation("/", f32, value=np.divide, real=error_bounds.quotient(ULPS), ulps=ULPS)
class DivOp(Binary):
    """a / b"""

    name = "pk.div"


@operation("//", i32, value=np.floor_divide, other=uncertain.ANYTHING)
class FloorDivOp(Binary):
    """a / b rounded down; 0 where b is 0"""

    name = "pk.floordiv"


def _floor_mod(a: Values, b: Values) -> Values:
    return a - b * np.floor_divide(a, b)


@operation("%", i32, value=_floor_mod, other=uncertain.ANYTHING)
class ModOp(Binary):
    """a - b * floordiv(a, b)"""

    name = "pk.mod"


@operation("&", i32, value=np.bitwise_and, other=uncertain.ANYTHING)
class BitAndOp(Binary):
    """The bits that both have"""

    name = "pk.bit_and"


@operation("|", i32, value=np.bitwise_or, other=uncertain.ANYTHING)
class BitOrOp(Binary):
    """The bits that one has"""

    name = "pk.bit_or"


@operation("^", i32, value=np.bitwise_xor, other=uncertain.ANYTHING)
class BitXorOp(Binary):
    """The bits that one alone has"""

    name = "pk.bit_xor"


def _shift(shifted: Callable[[Values, Values], Values]) -> Callable[[Values, Values], Values]:
    return lambda a, b: shifted(a, b & 31)


@operation("<<", i32, value=_shift(np.left_shift), other=uncertain.ANYTHING)
class ShiftLeftOp(Binary):
    """a * 2**b, which wraps; b modulo 32"""

    name = "pk.shift_left"


@operation(">>", i32, value=_shift(np.right_shift), other=uncertain.ANYTHING)
class ShiftRightOp(Binary):
    """a / 2**b rounded down; b modulo 32"""

    name = "pk.shift_right"


@operation("max", f32, i32, value=np.maximum, real=error_bounds.greatest(np.maximum), other=uncertain.GREATEST)
class MaxOp(Binary):
    """The greater; NaN if one is NaN"""

    name = "pk.max"


@operation("min", f32, i32, value=np.minimum, real=error_bounds.greatest(np.minimum), other=uncertain.GREATEST)
class MinOp(Binary):
    """The smaller; NaN if one is NaN"""

    name = "pk.min"


@operation("and", i1, value=np.logical_and, other=uncertain.BOTH)
class AndOp(Binary):
    """Logical and"""

    name = "pk.and"


@operation("or", i1, value=np.logical_or, other=uncertain.EITHER)
class OrOp(Binary):
    """Logical or"""

    name = "pk.or"


@irdl_op_definition
class CompareOp(TileOp):
    """Two tiles compared, element by element."""

    T: ClassVar = VarConstraint("T", BaseAttr(TileType))
    name = "pk.compare"
    predicate = prop_def(PredicateAttr)
    lhs = operand_def(T)
    rhs = operand_def(T)
    assembly_format = "$predicate `,` $lhs `,` $rhs attr-dict `:` type($lhs) `->` type($result)"

    def __init__(self, predicate: Predicate, lhs: SSAValue | Operation, rhs: SSAValue | Operation) -> None:
        super().__init__(
            operands=[lhs, rhs],
            properties={"predicate": PredicateAttr(predicate)},
            result_types=[TileType(tile_type(lhs).shape, i1)],
        )

    def verify_(self) -> None:
        expect(tile_type(self.lhs), frozenset((f32, i32, i1)))
        if self.result.type != TileType(tile_type(self.lhs).shape, i1):
            raise VerifyException(f"cannot compare {self.lhs.type} to give {self.result.type}")


@operation("where", f32, i32, i1, value=np.where, real=uncertain.chosen, other=uncertain.chosen)
class SelectOp(IRDLOperation):
    """The second operand where the first holds, the third elsewhere"""

    T: ClassVar = VarConstraint("T", BaseAttr(TileType))
    name = "pk.select"
    condition = operand_def(TileType)
    lhs = operand_def(T)
    rhs = operand_def(T)
    result = result_def(T)
    traits = traits_def(NoMemoryEffect())
    assembly_format = "$condition `,` $lhs `,` $rhs attr-dict `:` type($condition) `,` type($result)"

    def __init__(self, condition: SSAValue | Operation, lhs: SSAValue | Operation, rhs: SSAValue | Operation) -> None:
        super().__init__(operands=[condition, lhs, rhs], result_types=[SSAValue.get(lhs).type])

    def verify_(self) -> None:
        expect(tile_type(self.result), OPERATIONS[SelectOp].types)
        if self.condition.type != TileType(tile_type(self.result).shape, i1):
            raise VerifyException(f"expected a condition of i1 in the shape of {self.result.type}")
