"""Operations on tile values: making them, their shapes and types, MMAs. Reductions are in `reductions.py`.

All but `mma` work in f32, i32 or i1; a tile of a narrower type is widened by `pk.cast` first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import (
    AnyFloat,
    DenseArrayBase,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    StringAttr,
    i64,
)
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
    var_operand_def,
)
from xdsl.traits import NoMemoryEffect
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.hints import isa

from pkc.dialect.attributes import number_on
from pkc.dialect.types import EIGHT_BIT, FLOATS, INTEGERS, BlockType, TileType, f32, i1, i32


def tile_type(value: SSAValue | Operation) -> TileType:
    """The type of a value that is known to be a tile."""
    found = SSAValue.get(value).type
    assert isinstance(found, TileType)
    return found


def block_type(value: SSAValue | Operation) -> BlockType:
    """The type of a value that is known to be a block."""
    found = SSAValue.get(value).type
    assert isinstance(found, BlockType)
    return found


def constant(value: float, element_type: Attribute) -> FloatAttr | IntegerAttr:
    """The attribute of a constant element."""
    if isa(element_type, IntegerType):
        return IntegerAttr(int(value), element_type)
    assert isinstance(element_type, AnyFloat)
    return FloatAttr(float(value), element_type)


def expect(tile: TileType, allowed: frozenset[Attribute]) -> None:
    if tile.element_type in allowed:
        return
    names = " or ".join(sorted(map(str, allowed)))
    raise VerifyException(f"expected elements of type {names}, got {tile}; `pk.cast` converts")


class TileOp(IRDLOperation):
    """Gives a tile, and has no effects."""

    result = result_def(TileType)
    traits = traits_def(NoMemoryEffect())


# Making tiles


@irdl_op_definition
class FullOp(TileOp):
    """A tile of one constant."""

    name = "pk.full"
    value = prop_def(FloatAttr | IntegerAttr)
    assembly_format = "$value attr-dict `:` type($result)"

    def __init__(self, value: float, result: TileType) -> None:
        super().__init__(properties={"value": constant(value, result.element_type)}, result_types=[result])

    @property
    def constant(self) -> float:
        return self.value.value.data

    def verify_(self) -> None:
        if self.value.type != tile_type(self.result).element_type:
            raise VerifyException(f"a constant of type {self.value.type} in a tile of type {self.result.type}")


@irdl_op_definition
class SplatOp(TileOp):
    """A tile of one run-time scalar: `index` to i32, `i32`, `f32` and `i1` to themselves."""

    name = "pk.splat"
    scalar = operand_def()
    assembly_format = "$scalar attr-dict `:` type($scalar) `->` type($result)"

    def __init__(self, scalar: SSAValue | Operation, result: TileType) -> None:
        super().__init__(operands=[scalar], result_types=[result])

    def verify_(self) -> None:
        want = i32 if isinstance(self.scalar.type, IndexType) else self.scalar.type
        if want not in (i32, f32, i1) or tile_type(self.result).element_type != want:
            raise VerifyException(
                f"cannot splat {self.scalar.type} to {self.result.type}: index and i32 give i32, f32 and i1 themselves"
            )


@irdl_op_definition
class PositionsOp(TileOp):
    """The positions of a block along its dimension, as i32.

    For a dimension in zigzag order the first and last position are given, and how many elements come before the gap:
    the first ones ascend from the one, the others to the other.
    """

    name = "pk.positions"
    block = operand_def(BlockType)
    zigzag = var_operand_def(IndexType())
    assembly_format = "$block (`zigzag` $zigzag^)? attr-dict `:` type($block) `->` type($result)"

    def __init__(self, block: SSAValue | Operation, zigzag: Sequence[SSAValue] = ()) -> None:
        super().__init__(operands=[block, zigzag], result_types=[TileType([block_type(block).extent], i32)])

    def verify_(self) -> None:
        if len(self.zigzag) not in (0, 3):
            raise VerifyException("the first and last position and the elements before the gap are three numbers")
        want = TileType([block_type(self.block).extent], i32)
        if self.result.type != want:
            raise VerifyException(f"expected result {want}, got {self.result.type}")


# Shapes and types


@irdl_op_definition
class BroadcastOp(TileOp):
    """Axis i of the operand becomes axis `axes[i]` of the result; along the other axes it is repeated."""

    name = "pk.broadcast"
    tile = operand_def(TileType)
    axes = prop_def(DenseArrayBase.constr(i64))
    assembly_format = "$tile `axes` $axes attr-dict `:` type($tile) `->` type($result)"

    def __init__(self, tile: SSAValue | Operation, axes: Sequence[int], result: TileType) -> None:
        super().__init__(
            operands=[tile], properties={"axes": DenseArrayBase.from_list(i64, axes)}, result_types=[result]
        )

    @property
    def positions(self) -> tuple[int, ...]:
        return self.axes.get_values()

    def verify_(self) -> None:
        source, result, axes = tile_type(self.tile), tile_type(self.result), self.positions
        if source.element_type != result.element_type:
            raise VerifyException(f"a broadcast keeps the element type: {source} to {result}")
        if len(axes) != source.rank or len(set(axes)) != len(axes):
            raise VerifyException(f"expected {source.rank} distinct axes, one for each axis of {source}")
        for extent, axis in zip(source.shape, axes, strict=True):
            if not 0 <= axis < result.rank or result.shape[axis] != extent:
                raise VerifyException(f"an axis of {extent} cannot become axis {axis} of {result}")


@irdl_op_definition
class RepeatOp(TileOp):
    """Each row several times behind itself: element i of a row is element i mod n of one of n elements."""

    name = "pk.repeat"
    tile = operand_def(TileType)
    assembly_format = "$tile attr-dict `:` type($tile) `->` type($result)"

    def __init__(self, tile: SSAValue | Operation, count: int) -> None:
        source = tile_type(tile)
        super().__init__(operands=[tile], result_types=[TileType([*source.shape[:-1], count], source.element_type)])

    def verify_(self) -> None:
        source, result = tile_type(self.tile), tile_type(self.result)
        alike = source.element_type == result.element_type and source.shape[:-1] == result.shape[:-1]
        if source.rank == 0 or source.rank != result.rank or not alike or result.shape[-1] % source.shape[-1]:
            raise VerifyException(f"cannot repeat the rows of {source} to {result}")


@irdl_op_definition
class EnlargeOp(TileOp):
    """Each element several times, one behind the other along each axis: where an axis of m elements becomes one of n,
    element i is element i // (n / m) of them."""

    name = "pk.enlarge"
    tile = operand_def(TileType)
    assembly_format = "$tile attr-dict `:` type($tile) `->` type($result)"

    def __init__(self, tile: SSAValue | Operation, shape: Sequence[int]) -> None:
        super().__init__(operands=[tile], result_types=[TileType(shape, tile_type(tile).element_type)])

    @property
    def times(self) -> tuple[int, ...]:
        """How often each element is there, along each axis."""
        few, many = tile_type(self.tile).shape, tile_type(self.result).shape
        return tuple(after // before for before, after in zip(few, many, strict=True))

    def verify_(self) -> None:
        source, result = tile_type(self.tile), tile_type(self.result)
        alike = source.element_type == result.element_type and source.rank == result.rank
        if not alike or any(after % before for before, after in zip(source.shape, result.shape, strict=True)):
            raise VerifyException(f"cannot enlarge {source} to {result}")


@irdl_op_definition
class TransposeOp(TileOp):
    """The two axes exchanged."""

    name = "pk.transpose"
    tile = operand_def(TileType)
    assembly_format = "$tile attr-dict `:` type($tile) `->` type($result)"

    def __init__(self, tile: SSAValue | Operation) -> None:
        source = tile_type(tile)
        super().__init__(operands=[tile], result_types=[TileType(source.shape[::-1], source.element_type)])

    def verify_(self) -> None:
        source = tile_type(self.tile)
        if source.rank != 2 or self.result.type != TileType(source.shape[::-1], source.element_type):
            raise VerifyException(f"cannot transpose {source} to {self.result.type}")


@irdl_op_definition
class CastOp(TileOp):
    """Converted to another element type: to nearest, ties to even; floats to integers toward zero. What is
    beyond the range of integers becomes the nearest one."""

    name = "pk.cast"
    tile = operand_def(TileType)
    assembly_format = "$tile attr-dict `:` type($tile) `->` type($result)"

    def __init__(self, tile: SSAValue | Operation, element_type: Attribute) -> None:
        super().__init__(operands=[tile], result_types=[TileType(tile_type(tile).shape, element_type)])

    def verify_(self) -> None:
        source, result = tile_type(self.tile), tile_type(self.result)
        if source.shape != result.shape:
            raise VerifyException(f"a cast keeps the shape: {source} to {result}")
        expect(result, FLOATS | INTEGERS)


@irdl_op_definition
class ClipOp(TileOp):
    """Replaces what lies along `axis` past the last position of `block` by `fill`."""

    name = "pk.clip"
    tile = operand_def(TileType)
    block = operand_def(BlockType)
    axis = prop_def(IntegerAttr.constr(i64))
    fill = prop_def(FloatAttr | IntegerAttr)
    assembly_format = (
        "$tile `axis` $axis `to` $block `fill` $fill attr-dict `:` type($tile) `,` type($block) `->` type($result)"
    )

    def __init__(self, tile: SSAValue | Operation, block: SSAValue, axis: int, fill: float) -> None:
        source = tile_type(tile)
        super().__init__(
            operands=[tile, block],
            properties={"axis": IntegerAttr(axis, i64), "fill": constant(fill, source.element_type)},
            result_types=[source],
        )

    @property
    def constant(self) -> float:
        return self.fill.value.data

    def verify_(self) -> None:
        source = tile_type(self.tile)
        axis = self.axis.value.data
        if self.result.type != source:
            raise VerifyException(f"a clip keeps the type: expected {source}, got {self.result.type}")
        if self.fill.type != source.element_type:
            raise VerifyException(f"expected a fill of type {source.element_type}, got {self.fill.type}")
        if not 0 <= axis < source.rank or source.shape[axis] != block_type(self.block).extent:
            raise VerifyException(f"axis {axis} of {source} is not along {self.block.type}")


# MMA


IN_FLIGHT = "in_flight"
"""On `pk.mma` in a loop: how many MMAs may be in flight, and read their operands, when this one has been issued. After
the loop none is."""


PIECES = "pieces"
"""On `pk.mma` in front of a chain: how many pieces it is computed in, of its rows and then of their columns, each when
the chain needs it, so that only one of them has registers."""

CHAIN = "chain"
"""On an operation: the number of its chain among those of its block. A chain is computed element by element where it
ends; it may end with what takes its tiles."""

OPERANDS, REGISTERS = "operands", "registers"
"""On an MMA: ordinary instructions read its operands into registers. Otherwise the MMA reads them in shared memory,
through the async proxy."""


class AnyMmaOp(IRDLOperation):
    """acc + a @ b: operands of 8 or 16 bits, multiplied exactly, accumulated in f32 in no defined order. Operands
    of f32 are cut to tf32 first: 10 bits behind the leading one."""

    T: ClassVar = VarConstraint("T", BaseAttr(TileType))
    a = operand_def(TileType)
    b = operand_def(TileType)
    acc = operand_def(T)
    result = result_def(T)
    traits = traits_def(NoMemoryEffect())
    assembly_format = "$a `,` $b `,` $acc attr-dict `:` type($a) `,` type($b) `->` type($result)"

    def __init__(self, a: SSAValue | Operation, b: SSAValue | Operation, acc: SSAValue | Operation) -> None:
        super().__init__(operands=[a, b, acc], result_types=[SSAValue.get(acc).type])

    def verify_(self) -> None:
        a, b = tile_type(self.a), tile_type(self.b)
        if a.rank != 2 or b.rank != 2 or a.shape[1] != b.shape[0]:
            raise VerifyException(f"cannot multiply {a} and {b}: expected axes (m, k) and (k, n)")
        expect(a, FLOATS)
        both_eight_bit = a.element_type in EIGHT_BIT and b.element_type in EIGHT_BIT
        if a.element_type != b.element_type and not both_eight_bit:
            raise VerifyException(
                f"cannot multiply {a.element_type} and {b.element_type}: only 8-bit floats may be mixed"
            )
        want = TileType((a.shape[0], b.shape[1]), f32)
        if self.acc.type != want:
            raise VerifyException(f"expected an accumulator of type {want}, got {self.acc.type}")


@irdl_op_definition
class MmaOp(AnyMmaOp):
    """An MMA that is complete where its result is used."""

    name = "pk.mma"


@irdl_op_definition
class MmaIssueOp(AnyMmaOp):
    """An MMA that runs while its role goes on, until `pk.mma_wait`: only that may use its result. Until then the stages
    of its operands are read, and registers of its operands and its accumulator are not to be written."""

    name = "pk.mma_issue"

    def verify_(self) -> None:
        super().verify_()
        users = [use.operation for use in self.result.uses]
        if len(users) != 1 or not isinstance(users[0], MmaWaitOp) or users[0].parent is not self.parent:
            raise VerifyException("the result of an issued MMA is awaited once, by `pk.mma_wait` in the same block")


@irdl_op_definition
class MmaWaitOp(IRDLOperation):
    """The result of an issued MMA, when at most `left` MMAs that were issued later are in flight (PTX ISA:
    wgmma.wait_group). MMAs are complete in the order in which they are issued.

    The tiles `behind` are computed before: else the assembler, to which they have nothing to do with the wait, may move
    what could run beside the MMA behind it.
    """

    T: ClassVar = VarConstraint("T", BaseAttr(TileType))
    name = "pk.mma_wait"
    issued = operand_def(T)
    behind = var_operand_def(TileType)
    left = prop_def(IntegerAttr.constr(i64))
    result = result_def(T)
    traits = traits_def(NoMemoryEffect())
    assembly_format = "$issued `left` $left (`behind` $behind^ `:` type($behind))? attr-dict `:` type($result)"

    def __init__(self, issued: SSAValue, left: int, behind: Sequence[SSAValue] = ()) -> None:
        super().__init__(
            operands=[issued, behind], properties={"left": IntegerAttr(left, i64)}, result_types=[issued.type]
        )

    def verify_(self) -> None:
        if not isinstance(self.issued.owner, MmaIssueOp):
            raise VerifyException("expected the result of `pk.mma_issue`")


def reads_registers(op: AnyMmaOp) -> bool:
    """Whether the operands of an MMA come from registers."""
    return op.attributes.get(OPERANDS) == StringAttr(REGISTERS)


def pieces_of(op: Operation) -> int:
    """In how many pieces an MMA is computed with its chain; 0 if it is computed as a whole."""
    return number_on(op, PIECES) or 0


def chain_of(op: Operation) -> int | None:
    """The number of the chain that an operation is in."""
    return number_on(op, CHAIN)


def chain_with(op: Operation) -> list[Operation]:
    """The operations of the chain that one is in, in their order; the operation alone, if it is in none."""
    number, block = chain_of(op), op.parent
    if number is None or block is None:
        return [op]
    return [other for other in block.ops if chain_of(other) == number]


def in_flight(op: AnyMmaOp) -> int:
    """How many MMAs, including this one, may be in flight when it has been issued."""
    return number_on(op, IN_FLIGHT) or 0
