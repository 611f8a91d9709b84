"""Copies from memory to memory without a tile in between: what a copy engine can do."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import DenseArrayBase, i64
from xdsl.ir import SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    prop_def,
    traits_def,
    var_operand_def,
)
from xdsl.utils.exceptions import VerifyException

from pkc.dialect.access import INDEX
from pkc.dialect.arrays import ARRAY, array_type, is_pgl
from pkc.dialect.effects import UpdatesArray
from pkc.dialect.types import BlockType, Dim, Layout, PGLType


@irdl_op_definition
class CopyOp(IRDLOperation):
    """Copies a box of one array to a box of another: to the owner if that is sharded, to all copies if replicated.

    A box is what the indices pick in the dimensions `along`, and all of the others.

    pk.copy %A[%m : !pk.block<M by 128>] along [0] to %B[%m : !pk.block<M by 128>] along [0] : <A's type> to <B's>
    """

    name = "pk.copy"
    source = operand_def(ARRAY)
    target = operand_def(ARRAY)
    source_indices = var_operand_def(INDEX)
    target_indices = var_operand_def(INDEX)
    source_dims = prop_def(DenseArrayBase.constr(i64))
    target_dims = prop_def(DenseArrayBase.constr(i64))
    traits = traits_def(UpdatesArray())
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    assembly_format = (
        "$source `[` $source_indices `:` type($source_indices) `]` `along` $source_dims `to`"
        " $target `[` $target_indices `:` type($target_indices) `]` `along` $target_dims attr-dict"
        " `:` type($source) `to` type($target)"
    )

    def __init__(
        self, source: SSAValue, source_box: dict[int, SSAValue], target: SSAValue, target_box: dict[int, SSAValue]
    ) -> None:
        """A box has the index of each dimension that is not taken whole, in ascending order."""
        super().__init__(
            operands=[source, target, list(source_box.values()), list(target_box.values())],
            properties={
                "source_dims": DenseArrayBase.from_list(i64, list(source_box)),
                "target_dims": DenseArrayBase.from_list(i64, list(target_box)),
            },
        )

    @property
    def source_box(self) -> dict[int, SSAValue]:
        """The index of each dimension of the source that has one."""
        return dict(zip(self.source_dims.get_values(), self.source_indices, strict=True))

    @property
    def target_box(self) -> dict[int, SSAValue]:
        """The index of each dimension of the target that has one."""
        return dict(zip(self.target_dims.get_values(), self.target_indices, strict=True))

    def verify_(self) -> None:
        sides = (
            (self.source, self.source_dims.get_values(), self.source_indices),
            (self.target, self.target_dims.get_values(), self.target_indices),
        )
        shapes = [_box(*side) for side in sides]
        if shapes[0] != shapes[1]:
            raise VerifyException("the boxes of a copy have the same axes, in the same order")
        if array_type(self.source).element_type != array_type(self.target).element_type:
            raise VerifyException("a copy keeps the element type")


def _box(array: SSAValue, dims: Sequence[int], indices: Sequence[SSAValue]) -> list[Dim | BlockType]:
    """The axes of a box: blocks, and dimensions that are taken whole."""
    kind = array_type(array)
    if len(dims) != len(indices) or list(dims) != sorted(set(dims)) or not set(dims) <= set(range(kind.rank)):
        raise VerifyException("each index of a box has its dimension, in ascending order")
    if is_pgl(array, Layout.Shard) and isinstance(kind, PGLType) and kind.shard_dim not in dims:
        raise VerifyException("a box lies on one rank: it has an index for the sharded dimension")
    picked = dict(zip(dims, indices, strict=True))
    axes: list[Dim | BlockType] = []
    for number, dim in enumerate(kind.dimensions):
        index = picked.get(number)
        if index is None:
            axes.append(dim)
        elif isinstance(index.type, BlockType):
            if index.type.of != dim:
                raise VerifyException(f"a block of dimension {index.type.of} cannot index dimension {dim}")
            axes.append(index.type)
    return axes
