"""Operations that work element by element: arithmetic, comparisons, choices.

What each computes, in numpy, is in `meaning.py` under the same name. They work in f32, i32 or i1.
"""

from __future__ import annotations

from abc import ABC
from typing import ClassVar

from xdsl.ir import Attribute, Operation, SSAValue
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

from pkc.dialect.attributes import Predicate, PredicateAttr
from pkc.dialect.tile import expect, tile_type
from pkc.dialect.types import TileType, f32, i1, i32


class Unary(IRDLOperation, ABC):
    """Each element by itself."""

    T: ClassVar = VarConstraint("T", BaseAttr(TileType))
    ALLOWED: ClassVar[frozenset[Attribute]] = frozenset((f32,))
    tile = operand_def(T)
    result = result_def(T)
    traits = traits_def(NoMemoryEffect())
    assembly_format = "$tile attr-dict `:` type($result)"

    def __init__(self, tile: SSAValue | Operation) -> None:
        super().__init__(operands=[tile], result_types=[SSAValue.get(tile).type])

    def verify_(self) -> None:
        expect(tile_type(self.result), self.ALLOWED)


class Binary(IRDLOperation, ABC):
    """Two tiles of one type, element by element."""

    T: ClassVar = VarConstraint("T", BaseAttr(TileType))
    ALLOWED: ClassVar[frozenset[Attribute]] = frozenset((f32, i32))
    lhs = operand_def(T)
    rhs = operand_def(T)
    result = result_def(T)
    traits = traits_def(NoMemoryEffect())
    assembly_format = "$lhs `,` $rhs attr-dict `:` type($result)"

    def __init__(self, lhs: SSAValue | Operation, rhs: SSAValue | Operation) -> None:
        super().__init__(operands=[lhs, rhs], result_types=[SSAValue.get(lhs).type])

    def verify_(self) -> None:
        expect(tile_type(self.result), self.ALLOWED)


@irdl_op_definition
class NegOp(Unary):
    """-a"""

    name = "pk.neg"
    ALLOWED: ClassVar[frozenset[Attribute]] = frozenset((f32, i32))


@irdl_op_definition
class AbsOp(Unary):
    """|a|"""

    name = "pk.abs"
    ALLOWED: ClassVar[frozenset[Attribute]] = frozenset((f32, i32))


@irdl_op_definition
class ExpOp(Unary):
    """e to the power a"""

    name = "pk.exp"


@irdl_op_definition
class Exp2Op(Unary):
    """2 to the power a"""

    name = "pk.exp2"


@irdl_op_definition
class Log2Op(Unary):
    """Logarithm to base 2"""

    name = "pk.log2"


@irdl_op_definition
class SqrtOp(Unary):
    """Square root"""

    name = "pk.sqrt"


@irdl_op_definition
class NotOp(Unary):
    """Logical negation"""

    name = "pk.not"
    ALLOWED: ClassVar[frozenset[Attribute]] = frozenset((i1,))


@irdl_op_definition
class AddOp(Binary):
    """a + b; i32 wraps"""

    name = "pk.add"


@irdl_op_definition
class SubOp(Binary):
    """a - b; i32 wraps"""

    name = "pk.sub"


@irdl_op_definition
class MulOp(Binary):
    """a * b; i32 wraps"""

    name = "pk.mul"


@irdl_op_definition
class DivOp(Binary):
    """a / b"""

    name = "pk.div"
    ALLOWED: ClassVar[frozenset[Attribute]] = frozenset((f32,))


@irdl_op_definition
class FloorDivOp(Binary):
    """a / b rounded down; 0 where b is 0"""

    name = "pk.floordiv"
    ALLOWED: ClassVar[frozenset[Attribute]] = frozenset((i32,))


@irdl_op_definition
class ModOp(Binary):
    """a - b * floordiv(a, b)"""

    name = "pk.mod"
    ALLOWED: ClassVar[frozenset[Attribute]] = frozenset((i32,))


@irdl_op_definition
class MaxOp(Binary):
    """The greater; NaN if one is NaN"""

    name = "pk.max"


@irdl_op_definition
class MinOp(Binary):
    """The smaller; NaN if one is NaN"""

    name = "pk.min"


@irdl_op_definition
class AndOp(Binary):
    """Logical and"""

    name = "pk.and"
    ALLOWED: ClassVar[frozenset[Attribute]] = frozenset((i1,))


@irdl_op_definition
class OrOp(Binary):
    """Logical or"""

    name = "pk.or"
    ALLOWED: ClassVar[frozenset[Attribute]] = frozenset((i1,))


@irdl_op_definition
class CompareOp(IRDLOperation):
    """Two tiles compared, element by element."""

    T: ClassVar = VarConstraint("T", BaseAttr(TileType))
    name = "pk.compare"
    predicate = prop_def(PredicateAttr)
    lhs = operand_def(T)
    rhs = operand_def(T)
    result = result_def(TileType)
    traits = traits_def(NoMemoryEffect())
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


@irdl_op_definition
class SelectOp(IRDLOperation):
    """`lhs` where the condition holds, `rhs` elsewhere."""

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
        if self.condition.type != TileType(tile_type(self.result).shape, i1):
            raise VerifyException(f"expected a condition of i1 in the shape of {self.result.type}")
