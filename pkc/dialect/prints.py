"""What a program prints while it is simulated."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects.builtin import DenseArrayBase, IndexType, StringAttr, i64
from xdsl.ir import SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, prop_def, traits_def, var_operand_def
from xdsl.utils.exceptions import VerifyException

from pkc.dialect.effects import Prints
from pkc.dialect.types import BlockType, TileType, i1


@irdl_op_definition
class PrintOp(IRDLOperation):
    """Prints a tile, an index or a condition beside `text`, what the program calls it.

    Axis `axes[i]` of a tile is printed as far as the i-th block goes, the others whole.
    """

    name = "pk.print"
    value = operand_def()
    blocks = var_operand_def(BlockType)
    text = prop_def(StringAttr)
    axes = prop_def(DenseArrayBase.constr(i64))
    traits = traits_def(Prints())
    assembly_format = "$text $value `axes` $axes `to` $blocks `:` type($blocks) attr-dict `:` type($value)"

    def __init__(self, text: str, value: SSAValue, blocks: Mapping[int, SSAValue]) -> None:
        super().__init__(
            operands=[value, list(blocks.values())],
            properties={"text": StringAttr(text), "axes": DenseArrayBase.from_list(i64, list(blocks))},
        )

    @property
    def positions(self) -> tuple[int, ...]:
        return self.axes.get_values()

    def verify_(self) -> None:
        kind = self.value.type
        if not isinstance(kind, TileType | IndexType) and kind != i1:
            raise VerifyException(f"cannot print {kind}")
        shape = kind.shape if isinstance(kind, TileType) else ()
        extents = [block.type.extent for block in self.blocks if isinstance(block.type, BlockType)]
        if len(set(self.positions)) != len(extents) or any(not 0 <= axis < len(shape) for axis in self.positions):
            raise VerifyException(f"expected a distinct axis of {kind} for each block")
        if any(shape[axis] != extent for axis, extent in zip(self.positions, extents, strict=True)):
            raise VerifyException(f"the blocks are not those of the axes of {kind}")
