"""The pass `pk-drop-clips`: values past the edge of a block that are what a clip would make them."""

from __future__ import annotations

import math
from dataclasses import dataclass

from xdsl.ir import Operation, SSAValue, Use

from pkc.dialect.access import AccumulateOp, AtomicAddOp, StoreAddOp, StoreOp
from pkc.dialect.elementwise import Binary, CompareOp, MaxOp, MulOp, SelectOp, SubOp, Unary
from pkc.dialect.program import KernelOp
from pkc.dialect.reductions import RowMaxOp, RowMinOp, RowSumOp
from pkc.dialect.tile import BroadcastOp, CastOp, ClipOp, FullOp, MmaOp, TransposeOp, tile_type
from pkc.dialect.types import FLOATS, BlockType
from pkc.passes.analysis.multiples import is_always_whole
from pkc.passes.analysis.past_end import is_zero_past_end
from pkc.passes.analysis.scaled import Scaled, is_positive, scaled_of
from pkc.passes.kernel_pass import KernelPass
from pkc.semantics.tile_ops import of_numbers


class DropClips(KernelPass):
    """Drop each clip whose operand has the fill value past the edge already, and those of blocks that have no edge.

    What lies past the edge is followed through operations on elements: of `pk.clip` it is the fill, of what is loaded
    zero, of a function that gives floats the function of that, where this is exact (zero or an infinity). Past the edge
    nothing is specified, so that operations behind a clip of a tile may use the clipped tile in place of it; they do
    where this lets another clip go, and where all that they lead to ends in clips and stores, which never see the
    difference.

    Let r be a row of numbers, each at least the greatest of its line of s, as `max(top, rowmax(s))` is. Past the edge
    s - r is -inf minus a number: -inf again, unless that number is -inf or NaN. If it is, all elements of the line are
    -inf or one is NaN, and s - r is NaN in a valid element too. So in such a line the padding is NaN where it would
    have been zero: the clip goes only if its users are row reductions and MMAs over that axis, to which one NaN in a
    line is as good as many. The same holds of s * k and `max(top, rowmax(s) * k)` with a scalar k that is certain to
    be positive or NaN, as `max(scale, 1e-30)` is. Nothing is assumed of the values; blocks have at least one position.

    Of clips of one tile along both its axes, each for other MMAs, the second one clips what the first one gives, and
    serves its MMAs too: one tile in registers, not two.

    Before:

        %c = pk.clip %s axis 1 to %kv fill 0xff800000 : f32 : ...
        %m = pk.row_max %c : ...
        %r = pk.broadcast %m axes [0] : ...
        %d = pk.sub %s, %r : ...
        %p = pk.exp2 %d : ...
        %e = pk.clip %p axis 1 to %kv fill 0.0 : f32 : ...
        %t = pk.row_sum %e : ...

    After:

        %c = pk.clip %s axis 1 to %kv fill 0xff800000 : f32 : ...
        %m = pk.row_max %c : ...
        %r = pk.broadcast %m axes [0] : ...
        %d = pk.sub %c, %r : ...
        %p = pk.exp2 %d : ...
        %t = pk.row_sum %p : ...
    """

    name = "pk-drop-clips"

    def run(self, kernel: KernelOp) -> None:
        for op in list(kernel.walk()):
            if isinstance(op, ClipOp):
                _drop(op)
        for op in list(kernel.walk()):
            if isinstance(op, ClipOp):
                _join(op)


_STORES = (StoreOp, StoreAddOp, AtomicAddOp, AccumulateOp)


@dataclass(frozen=True)
class _Padding:
    """What lies past the edge: `number`, or with `or_nan` NaN in lines that have a NaN inside of the edge.

    So it is if the clips `instead` take the places of their operands, at the uses behind them.
    """

    number: float
    or_nan: bool = False
    instead: tuple[ClipOp, ...] = ()


def _drop(clip: ClipOp) -> None:
    if is_always_whole(clip.block):
        _erase(clip)
    elif not _is_dropped(clip, _Edge(clip.block)):
        _is_dropped(clip, _Edge(clip.block, loaded=True))


def _is_dropped(clip: ClipOp, edge: _Edge) -> bool:
    """Drop a clip if what is known of an edge allows it."""
    found = edge.padding(clip.tile, clip.axis.value.data, clip)
    if found is None or not _same(found.number, clip.constant):
        return False
    if found.or_nan and not all(_meets_nan(use, clip.axis.value.data) for use in clip.result.uses):
        return False
    for other in found.instead:
        for use in edge.behind(other):
            use.operation.operands[use.index] = other.result
    _erase(clip)
    return True


def _erase(clip: ClipOp) -> None:
    clip.result.replace_all_uses_with(clip.tile)
    clip.detach()
    clip.erase()


def _join(first: ClipOp) -> None:
    """Let the clip of the same tile along its other axis clip what the first one gives, for the MMAs of both."""
    others = [use.operation for use in first.tile.uses if use.operation is not first]
    other = next((op for op in others if isinstance(op, ClipOp) and _is_other_edge(first, op)), None)
    if other is None or not all(map(_is_multiplied, (first, other))):
        return
    block, around = other.block.owner, first.parent
    assert around is not None
    if isinstance(block, Operation) and block.parent is around and not block.is_before_in_block(first):
        return
    other.detach()
    around.insert_op_after(other, first)
    first.result.replace_all_uses_with(other.result)
    other.operands[0] = first.result


def _is_other_edge(first: ClipOp, clip: ClipOp) -> bool:
    """Whether a clip behind the first one puts the same along the other axis, past which nothing is known of the tile:
    no other clip rests on it."""
    if (
        clip.parent is not first.parent
        or not first.is_before_in_block(clip)
        or not _same(first.constant, clip.constant)
    ):
        return False
    axis = clip.axis.value.data
    return axis != first.axis.value.data and _Edge(clip.block).padding(clip.tile, axis, clip) is None


def _is_multiplied(clip: ClipOp) -> bool:
    """Whether MMAs alone use what a clip gives, as it is or transposed."""
    todo = list(clip.result.uses)
    while todo:
        use = todo.pop()
        if isinstance(use.operation, TransposeOp):
            todo += use.operation.result.uses
        elif not isinstance(use.operation, MmaOp) or use.operation.operands[use.index] is use.operation.acc:
            return False
    return True


def _same(a: float, b: float) -> bool:
    return a == b and math.copysign(1.0, a) == math.copysign(1.0, b)


def _meets_nan(use: Use, axis: int) -> bool:
    """Whether a NaN anywhere in a line along `axis` makes NaN of all results that the line goes into."""
    op = use.operation
    if isinstance(op, RowMaxOp | RowMinOp | RowSumOp):
        return axis == tile_type(op.tile).rank - 1
    return isinstance(op, MmaOp) and use.index == 1 - axis


class _Edge:
    """What tiles have past the edge of one block; with `loaded` it counts that loads have zero there, where else
    another clip could take the place of one."""

    def __init__(self, block: SSAValue, *, loaded: bool = False) -> None:
        self._block, self._loaded = block, loaded
        self._found: dict[tuple[SSAValue, int, Operation], _Padding | None] = {}
        self._seen: dict[tuple[Use, int], bool] = {}

    def padding(self, tile: SSAValue, axis: int, user: Operation) -> _Padding | None:
        """What `tile`, which `user` uses, has past the edge along an axis; None if that is not known."""
        key = (tile, axis, user)
        if key not in self._found:
            self._found[key] = self._padding(tile, axis, user)
        return self._found[key]

    def _padding(self, tile: SSAValue, axis: int, user: Operation) -> _Padding | None:
        op = tile.owner
        if self._loaded and is_zero_past_end(tile, axis, self._block):
            return _Padding(0.0)
        if not isinstance(op, Operation) or tile_type(tile).element_type not in FLOATS:
            return None
        if (made := self._made(op, axis)) is not None:
            return made
        for use in tile.uses:
            clip = use.operation
            if self._clips(clip, axis) and isinstance(clip, ClipOp) and clip is not user and self._may_be(clip, user):
                return _Padding(clip.constant, instead=(clip,))
        return None

    def _made(self, op: Operation, axis: int) -> _Padding | None:
        match op:
            case ClipOp():
                if self._clips(op, axis):
                    return _Padding(op.constant)
                found = self.padding(op.tile, axis, op)
                return found if found is not None and _same(found.number, op.constant) else None
            case FullOp():
                return _Padding(op.constant)
            case BroadcastOp():
                if axis in op.positions:
                    return self.padding(op.tile, op.positions.index(axis), op)
                return _Padding(op.tile.owner.constant) if isinstance(op.tile.owner, FullOp) else None
            case TransposeOp():
                return self.padding(op.tile, 1 - axis, op)
            case MulOp() if (scaled := scaled_of(op)) is not None and is_positive(scaled.factor):
                found = self.padding(scaled.tile, axis, op)
                endless = found is not None and math.isinf(found.number)
                return _Padding(found.number, True, found.instead) if found is not None and endless else None
            case SubOp() if self._below_its_row(op, axis):
                found = self.padding(op.lhs, axis, op)
                assert found is not None
                return _Padding(-math.inf, True, found.instead)
            case Unary() | Binary() | CastOp():
                return self._computed(op, [self.padding(operand, axis, op) for operand in op.operands])
            case _:
                return None

    def _computed(self, op: Operation, operands: list[_Padding | None]) -> _Padding | None:
        """Of an operation on floats, element by element: the semantics applied to the numbers, where this is exact."""
        known = [operand for operand in operands if operand is not None]
        if len(known) < len(operands) or tile_type(op.results[0]).element_type not in FLOATS:
            return None
        number = of_numbers(op, [operand.number for operand in known])
        if number != 0 and not math.isinf(number):
            return None
        instead = tuple(clip for operand in known for clip in operand.instead)
        return _Padding(number, any(operand.or_nan for operand in known), instead)

    def _below_its_row(self, op: SubOp, axis: int) -> bool:
        """Whether -inf is taken off a row that is at least the greatest element of each line along the last axis."""
        row, last = op.rhs.owner, tile_type(op.lhs).rank - 1
        if axis != last or not isinstance(row, BroadcastOp) or row.positions != tuple(range(last)):
            return False
        found = self.padding(op.lhs, axis, op)
        if found is None or found.number != -math.inf:
            return False
        scaled = scaled_of(op.lhs.owner) or Scaled(op.lhs, None)
        tile = found.instead[0].result if found.instead else scaled.tile
        return _at_least_its_greatest(row.tile, Scaled(tile, scaled.factor))

    # Clipped tiles in place of others

    def _clips(self, op: Operation, axis: int) -> bool:
        return isinstance(op, ClipOp) and op.block is self._block and op.axis.value.data == axis

    def _may_be(self, clip: ClipOp, user: Operation) -> bool:
        """Whether the clipped tile may take the place of its operand in `user`, and in all other uses behind it."""
        return _is_behind(user, clip) and all(self._unseen(use, clip.axis.value.data) for use in self.behind(clip))

    def behind(self, clip: ClipOp) -> list[Use]:
        """The uses of a clip's operand behind it, other clips of this edge aside."""
        axis = clip.axis.value.data
        return [
            use
            for use in clip.tile.uses
            if use.operation is not clip and not self._clips(use.operation, axis) and _is_behind(use.operation, clip)
        ]

    def _unseen(self, use: Use, axis: int) -> bool:
        """Whether nothing depends on what a used tile has past the edge."""
        if (use, axis) not in self._seen:
            self._seen[use, axis] = self._leads_to_clips(use.operation, use.index, axis)
        return self._seen[use, axis]

    def _leads_to_clips(self, op: Operation, operand: int, axis: int) -> bool:
        if self._clips(op, axis):
            return True
        if isinstance(op, _STORES) and op.operands[operand] is op.tile:
            blocks = [index for index in op.indices if isinstance(index.type, BlockType)]
            return blocks[axis] is self._block
        if isinstance(op, TransposeOp):
            axis = 1 - axis
        elif isinstance(op, BroadcastOp):
            axis = op.positions[axis]
        elif not isinstance(op, Unary | Binary | CompareOp | SelectOp | CastOp | ClipOp):
            return False
        return all(self._unseen(use, axis) for use in op.results[0].uses)


def _at_least_its_greatest(row: SSAValue, of: Scaled) -> bool:
    """Whether each number of `row` is NaN, or at least as great as the greatest element of that line of a tile. Where a
    positive factor multiplies both, rounding keeps their order."""
    op = row.owner
    if isinstance(op, MaxOp):
        return any(_at_least_its_greatest(operand, of) for operand in op.operands)
    found = scaled_of(op) or Scaled(row, None)
    greatest = found.tile.owner
    return found.factor is of.factor and isinstance(greatest, RowMaxOp) and greatest.tile is of.tile


def _is_behind(op: Operation, first: Operation) -> bool:
    """Whether `op` comes after an operation whenever it runs."""
    block = first.parent
    assert block is not None
    place = block.find_ancestor_op_in_block(op)
    return place is not None and place is not first and first.is_before_in_block(place)
