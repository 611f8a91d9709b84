"""Sums along rows: an element for each, of all up to it."""

from __future__ import annotations

from typing import ClassVar

from xdsl.ir import Operation, SSAValue
from xdsl.irdl import BaseAttr, VarConstraint, irdl_op_definition, operand_def, result_def
from xdsl.utils.exceptions import VerifyException

from pkc.dialect.tile import TileOp, expect, tile_type
from pkc.dialect.types import TileType, f32, i32


@irdl_op_definition
class CumSumOp(TileOp):
    """Along the last axis: element i is the sum of elements 0 to i, added up in no defined order; i32 wraps."""

    T: ClassVar = VarConstraint("T", BaseAttr(TileType))
    name = "pk.cum_sum"
    tile = operand_def(T)
    result = result_def(T)
    assembly_format = "$tile attr-dict `:` type($result)"

    def __init__(self, tile: SSAValue | Operation) -> None:
        super().__init__(operands=[tile], result_types=[tile_type(tile)])

    def verify_(self) -> None:
        source = tile_type(self.tile)
        expect(source, frozenset((f32, i32)))
        if source.rank == 0 or self.result.type != source:
            raise VerifyException(f"cannot add up the rows of {source} to {self.result.type}")
