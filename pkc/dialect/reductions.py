"""Reductions of rows: many elements make one. One declaration each (`declaration.py`)."""

from __future__ import annotations

from abc import ABC
from collections.abc import Mapping
from functools import partial
from typing import ClassVar

import numpy as np
from xdsl.dialects.builtin import StringAttr, UnitAttr
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, opt_prop_def, prop_def
from xdsl.utils.exceptions import VerifyException

from pkc.dialect import uncertain
from pkc.dialect.declaration import OPERATIONS, operation
from pkc.dialect.elementwise import AddOp, Binary, MaxOp, MinOp
from pkc.dialect.numeric import Values
from pkc.dialect.reduction_bounds import greatest_of_row, sum_of_row
from pkc.dialect.tile import TileOp, expect, tile_type
from pkc.dialect.types import TileType, f32, i32

ACROSS = "across"
"""On a reduction of rows: of how many CTAs of a cluster, each of which has a part of every row."""


class RowReduction(TileOp, ABC):
    """Over the last axis, which disappears: `COMBINE` of all elements, beginning with `NEUTRAL`."""

    COMBINE: ClassVar[type[Binary]]
    NEUTRAL: ClassVar[Mapping[Attribute, float]]
    tile = operand_def(TileType)
    assembly_format = "$tile attr-dict `:` type($tile) `->` type($result)"

    def __init__(self, tile: SSAValue | Operation) -> None:
        source = tile_type(tile)
        super().__init__(operands=[tile], result_types=[TileType(source.shape[:-1], source.element_type)])

    def verify_(self) -> None:
        source = tile_type(self.tile)
        expect(source, OPERATIONS[type(self)].types)
        if source.rank == 0 or self.result.type != TileType(source.shape[:-1], source.element_type):
            raise VerifyException(f"cannot reduce the rows of {source} to {self.result.type}")


@operation(
    "rowmax", f32, i32, value=partial(np.max, axis=-1), real=greatest_of_row(np.max), other=uncertain.GREATEST_OF_ROW
)
class RowMaxOp(RowReduction):
    """The greatest element of each row; NaN if one is NaN"""

    name = "pk.row_max"
    COMBINE: ClassVar = MaxOp
    NEUTRAL: ClassVar = {f32: -np.inf, i32: -(2**31)}


@operation(
    "rowmin", f32, i32, value=partial(np.min, axis=-1), real=greatest_of_row(np.min), other=uncertain.GREATEST_OF_ROW
)
class RowMinOp(RowReduction):
    """The smallest element of each row; NaN if one is NaN"""

    name = "pk.row_min"
    COMBINE: ClassVar = MinOp
    NEUTRAL: ClassVar = {f32: np.inf, i32: 2**31 - 1}


def _sum(a: Values) -> Values:
    """In one order for each length: numpy's own depends on how an array lies in memory."""
    return np.asarray(np.ascontiguousarray(a).sum(axis=-1, dtype=a.dtype))


@operation("rowsum", f32, i32, value=_sum, real=sum_of_row, other=uncertain.SUM_OF_ROW)
class RowSumOp(RowReduction):
    """The sum of each row, in no defined order; i32 wraps"""

    name = "pk.row_sum"
    COMBINE: ClassVar = AddOp
    NEUTRAL: ClassVar = {f32: 0, i32: 0}


@irdl_op_definition
class FoldOp(TileOp):
    """Rows reduced to some elements each: element i of a result of n is the reduction `by` of those whose position has
    the remainder i by n. Threads fold what they have by themselves. Rows that go `across` are columns of a tile in its
    stage, of which each thread has neighbours."""

    name = "pk.fold"
    tile = operand_def(TileType)
    by = prop_def(StringAttr)
    across = opt_prop_def(UnitAttr)
    assembly_format = "$by $tile (`across` $across^)? attr-dict `:` type($tile) `->` type($result)"

    def __init__(self, by: type[RowReduction], tile: SSAValue | Operation, count: int, *, across: bool = False) -> None:
        source = tile_type(tile)
        super().__init__(
            operands=[tile],
            properties={"by": StringAttr(by.name), "across": UnitAttr() if across else None},
            result_types=[TileType([*source.shape[:-1], count], source.element_type)],
        )

    @property
    def reduction(self) -> type[RowReduction]:
        return FOLDS[self.by.data]

    def verify_(self) -> None:
        source, result = tile_type(self.tile), tile_type(self.result)
        if self.by.data not in FOLDS:
            raise VerifyException(f"{self.by.data} is no reduction of rows")
        expect(source, OPERATIONS[self.reduction].types)
        folded = source.rank > 0 and source.shape[:-1] == result.shape[:-1] and source.rank == result.rank
        if not folded or source.element_type != result.element_type or source.shape[-1] % result.shape[-1]:
            raise VerifyException(f"cannot fold the rows of {source} to {result}")


FOLDS: dict[str, type[RowReduction]] = {op.name: op for op in (RowMaxOp, RowMinOp, RowSumOp)}
"""Reductions of rows by their names."""
