"""Operations on tiles whose rows have the elements of several tiles, one of each in turn."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.ir import Operation, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, prop_def, var_operand_def
from xdsl.utils.exceptions import VerifyException

from pkc.dialect.tile import TileOp, tile_type
from pkc.dialect.types import TileType


@irdl_op_definition
class PickOp(TileOp):
    """Every so many elements of each row: element i is element `every` * i + `place` of the row."""

    name = "pk.pick"
    tile = operand_def(TileType)
    place = prop_def(IntegerAttr.constr(i64))
    every = prop_def(IntegerAttr.constr(i64))
    assembly_format = "$tile `at` $place `of` $every attr-dict `:` type($tile) `->` type($result)"

    def __init__(self, tile: SSAValue | Operation, place: int, every: int) -> None:
        source = tile_type(tile)
        shape = [*source.shape[:-1], source.shape[-1] // every]
        super().__init__(
            operands=[tile],
            properties={"place": IntegerAttr(place, i64), "every": IntegerAttr(every, i64)},
            result_types=[TileType(shape, source.element_type)],
        )

    @property
    def which(self) -> int:
        """`place` as a number."""
        return self.place.value.data

    @property
    def step(self) -> int:
        """`every` as a number."""
        return self.every.value.data

    def verify_(self) -> None:
        source, result = tile_type(self.tile), tile_type(self.result)
        if not 0 <= self.which < self.step:
            raise VerifyException(f"there is no element {self.which} of {self.step}")
        if not source.rank or result != _resized(source, source.shape[-1] // self.step) or source.shape[-1] % self.step:
            raise VerifyException(f"every {self.step} elements of {source} are no {result}")


@irdl_op_definition
class ZipOp(TileOp):
    """Rows with the elements of several tiles in turn: of n tiles, element n * i + k is element i of tile k."""

    name = "pk.zip"
    tiles = var_operand_def(TileType)
    assembly_format = "$tiles attr-dict `:` type($tiles) `->` type($result)"

    def __init__(self, tiles: Sequence[SSAValue]) -> None:
        kind = tile_type(tiles[0])
        super().__init__(operands=[tiles], result_types=[_resized(kind, kind.shape[-1] * len(tiles))])

    def verify_(self) -> None:
        kinds = {tile_type(tile) for tile in self.tiles}
        kind = next(iter(kinds), None)
        if kind is None or len(kinds) > 1 or not kind.rank:
            raise VerifyException("expected tiles of one type, with at least one axis")
        if self.result.type != _resized(kind, kind.shape[-1] * len(self.tiles)):
            raise VerifyException(f"{len(self.tiles)} tiles of {kind} in turn are no {self.result.type}")


def _resized(kind: TileType, columns: int) -> TileType:
    """The type of tiles with rows of another length."""
    return TileType([*kind.shape[:-1], columns], kind.element_type)
