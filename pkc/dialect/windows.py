"""Parts of larger tiles: what several loads at shifted places would each have brought."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import DenseArrayBase, i64
from xdsl.ir import Operation, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, opt_prop_def, prop_def
from xdsl.utils.exceptions import VerifyException

from pkc.dialect.tile import TileOp, tile_type
from pkc.dialect.types import TileType


@irdl_op_definition
class WindowOp(TileOp):
    """A part of a tile: along each axis from an offset on, every element, or every so many with `step`. With step 0 it
    is one place of the axis, and the result has no such axis."""

    name = "pk.window"
    tile = operand_def(TileType)
    offsets = prop_def(DenseArrayBase.constr(i64))
    steps = opt_prop_def(DenseArrayBase.constr(i64))
    assembly_format = "$tile `at` $offsets (`step` $steps^)? attr-dict `:` type($tile) `->` type($result)"

    def __init__(
        self, tile: SSAValue | Operation, offsets: Sequence[int], shape: Sequence[int], steps: Sequence[int] = ()
    ) -> None:
        said = DenseArrayBase.from_list(i64, list(steps)) if any(step != 1 for step in steps) else None
        super().__init__(
            operands=[tile],
            properties={"offsets": DenseArrayBase.from_list(i64, list(offsets)), "steps": said},
            result_types=[TileType(shape, tile_type(tile).element_type)],
        )

    @property
    def begins(self) -> tuple[int, ...]:
        """`offsets` as numbers."""
        return tuple(int(number) for number in self.offsets.get_values())

    @property
    def every(self) -> tuple[int, ...]:
        """`steps` as numbers."""
        if self.steps is None:
            return (1,) * len(self.begins)
        return tuple(int(number) for number in self.steps.get_values())

    @property
    def axes(self) -> tuple[int, ...]:
        """The axis of the tile that each axis of the result is a part of."""
        return tuple(axis for axis, step in enumerate(self.every) if step)

    @property
    def part(self) -> tuple[slice | int, ...]:
        """What the result has of the tile, as an index."""
        lengths = iter(tile_type(self.result).shape)
        return tuple(
            slice(begin, begin + step * (next(lengths) - 1) + 1, step) if step else begin
            for begin, step in zip(self.begins, self.every, strict=True)
        )

    def verify_(self) -> None:
        source, result = tile_type(self.tile), tile_type(self.result)
        if len(self.begins) != source.rank or len(self.every) != source.rank:
            raise VerifyException(f"expected an offset and a step for each axis of {source}")
        if min((*self.begins, *self.every)) < 0:
            raise VerifyException("offsets and steps are not negative")
        if result.element_type != source.element_type or result.rank != len(self.axes) or not result.rank:
            raise VerifyException(f"a window of {source} with axes {list(self.axes)} is no {result}")
        for there, place in zip(source.shape, self.part, strict=True):
            if (place if isinstance(place, int) else place.stop - 1) >= there:
                raise VerifyException(f"the window ends behind the {there} elements of an axis of {source}")
