"""What of a tile nothing reads that leaves the kernel: what lies past the end of a block."""

from __future__ import annotations

from xdsl.dialects import arith, scf
from xdsl.ir import Operation, SSAValue, Use

from pkc.dialect.access import AccumulateOp, AtomicAddOp, Scatter, StoreAddOp, StoreOp
from pkc.dialect.by_table import ScatterAccumulateOp
from pkc.dialect.coordinates import BlockOp, IsWholeOp
from pkc.dialect.elementwise import Binary, CompareOp, SelectOp, Unary
from pkc.dialect.reductions import RowReduction
from pkc.dialect.tile import BroadcastOp, CastOp, ClipOp, MmaOp, TransposeOp, tile_type
from pkc.dialect.types import BlockType
from pkc.passes.analysis.list_ends import ends_after

_STORES = (StoreOp, StoreAddOp, AtomicAddOp, AccumulateOp)
_SCATTERS = ScatterAccumulateOp | Scatter
_BY_ELEMENT = (Unary, Binary, CompareOp, SelectOp, CastOp, ClipOp)


class Padding:
    """What tiles have past the end of one block; where that is the end of the array, `zeros`, which may be read."""

    def __init__(self, block: SSAValue, *, zeros: bool = True) -> None:
        self._block = block
        self._zeros = zeros
        self._seen: set[tuple[SSAValue, int]] = set()

    def is_unread(self, tile: SSAValue, axis: int) -> bool:
        """Whether nothing that leaves the kernel depends on what a tile has there; a loop is assumed to be fine until
        one of its uses is not."""
        if (tile, axis) in self._seen:
            return True
        self._seen.add((tile, axis))
        return all(self._is_unread_by(use, axis) for use in tile.uses)

    def _is_unread_by(self, use: Use, axis: int) -> bool:
        op, operand = use.operation, use.index
        if self._is_whole_at(op):
            return True
        if isinstance(op, _STORES):
            return self._is_left_out(op, axis)
        if isinstance(op, _SCATTERS):
            return op.operands[operand] is op.tile and self._is_dropped(op, axis)
        if isinstance(op, ClipOp) and self._ends_there(op.block) and op.axis.value.data == axis:
            return True
        found = _goes_to(op, operand, axis)
        return found is not None and all(self.is_unread(value, there) for value, there in found)

    def _ends_there(self, other: SSAValue) -> bool:
        """Whether what lies past the end of the block also lies past the end of another one, of as many positions of
        which some more are there; or past the end of the array, where TMA gives zeros."""
        if other is self._block:
            return True
        one, two = self._block.owner, other.owner
        return isinstance(one, BlockOp) and isinstance(two, BlockOp) and ends_after(one, two, but_at_end=self._zeros)

    def _is_whole_at(self, op: Operation) -> bool:
        """Whether an operation stands in a branch that is taken only where the block is whole."""
        branch, around = op.parent, op.parent_op()
        while around is not None:
            if isinstance(around, scf.IfOp) and branch is around.true_region.block and self._needs_whole(around.cond):
                return True
            branch, around = around.parent, around.parent_op()
        return False

    def _needs_whole(self, condition: SSAValue) -> bool:
        op = condition.owner
        if isinstance(op, arith.AndIOp):
            return self._needs_whole(op.lhs) or self._needs_whole(op.rhs)
        return isinstance(op, IsWholeOp) and self._ends_there(op.block)

    def _is_left_out(self, op: StoreOp | StoreAddOp | AtomicAddOp | AccumulateOp, axis: int) -> bool:
        """Whether a store leaves out what its tile has past the end of the block."""
        return self._ends_there([index for index in op.indices if isinstance(index.type, BlockType)][axis])

    def _is_dropped(self, op: _SCATTERS, axis: int) -> bool:
        """The same of what goes where tables say: past the end these name nothing, or a block that goes along ends."""
        along = [(place, at.index(axis)) for place, at in zip(op.places, op.axes_of_places, strict=True) if axis in at]
        return any(self._ends_there(place) or self._is_negative(place, at) for place, at in along)

    def _is_negative(self, table: SSAValue, axis: int) -> bool:
        clip = table.owner
        if not isinstance(clip, ClipOp):
            return False
        found = self._ends_there(clip.block) and clip.axis.value.data == axis and clip.constant < 0
        return found or self._is_negative(clip.tile, axis)


def _goes_to(op: Operation, operand: int, axis: int) -> list[tuple[SSAValue, int]] | None:
    """The results to which an axis of an operand becomes an axis, element by element; None if it is used otherwise."""
    if isinstance(op, _BY_ELEMENT):
        return [(op.results[0], axis)]
    if isinstance(op, TransposeOp):
        return [(op.result, 1 - axis)]
    if isinstance(op, BroadcastOp):
        return [(op.result, op.positions[axis])]
    if isinstance(op, RowReduction):
        return [(op.result, axis)] if axis < tile_type(op.tile).rank - 1 else None
    if isinstance(op, MmaOp):
        return [(op.result, axis)] if op.operands[operand] is op.acc or axis == operand else None
    if isinstance(op, scf.ForOp):
        place = operand - 3
        found: list[tuple[SSAValue, int]] = [(op.body.block.args[1 + place], axis), (op.results[place], axis)]
        return found
    if isinstance(op, scf.YieldOp):
        around = op.parent_op()
        goes: list[tuple[SSAValue, int]] = [] if around is None else [(around.results[operand], axis)]
        if isinstance(around, scf.ForOp):
            goes.append((around.body.block.args[1 + operand], axis))
        return goes
    return None
