"""What lies in a loaded tile past the end of a block."""

from __future__ import annotations

from xdsl.ir import SSAValue

from pkc.dialect.access import LoadOp
from pkc.dialect.by_table import GatherOp
from pkc.dialect.coordinates import SHIFTED, BlockOp
from pkc.dialect.tile import ClipOp, TransposeOp
from pkc.dialect.types import BlockType
from pkc.passes.analysis.list_ends import ends_after


def is_zero_past_end(tile: SSAValue, axis: int, block: SSAValue) -> bool:
    """Whether a tile is surely zero past the end of a block along an axis."""
    owner = tile.owner
    if isinstance(owner, TransposeOp):
        return is_zero_past_end(owner.tile, 1 - axis, block)
    if not isinstance(owner, LoadOp | GatherOp):
        return False
    if isinstance(owner, GatherOp):
        return any(
            along == (axis,) if place is block else axis in along and _names_none(place, along.index(axis), block)
            for place, along in zip(owner.places, owner.axes_of_places, strict=True)
        )
    index = [index for index in owner.indices if isinstance(index.type, BlockType)][axis]
    one, shifted = block.owner, index.owner
    if not isinstance(one, BlockOp) or not isinstance(shifted, BlockOp) or SHIFTED not in shifted.attributes:
        return index is block
    return ends_after(one, shifted)


def _names_none(table: SSAValue, axis: int, block: SSAValue) -> bool:
    """Whether the entries of a table past the end of a block are negative: they name nothing."""
    clip = table.owner
    if not isinstance(clip, ClipOp) or clip.constant >= 0:
        return False
    return (clip.block is block and clip.axis.value.data == axis) or _names_none(clip.tile, axis, block)
