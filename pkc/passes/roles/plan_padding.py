"""The pass `pk-plan-padding`: tiles of which nothing reads what lies past the end of a block."""

from __future__ import annotations

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import DenseArrayBase, i64
from xdsl.ir import Operation, SSAValue, Use

from pkc.dialect.access import AccumulateOp, AtomicAddOp, LoadOp, Scatter, StoreAddOp, StoreOp
from pkc.dialect.arrays import array_type
from pkc.dialect.by_table import GatherOp, ScatterAccumulateOp
from pkc.dialect.coordinates import BlockOp, IsWholeOp
from pkc.dialect.elementwise import Binary, CompareOp, SelectOp, Unary
from pkc.dialect.program import KernelOp
from pkc.dialect.reductions import RowReduction
from pkc.dialect.tile import BroadcastOp, CastOp, ClipOp, MmaOp, TransposeOp, tile_type
from pkc.dialect.transfers import NEVER_READ, UNREAD, boxes
from pkc.dialect.types import BlockType, PGLType
from pkc.passes.analysis.boxed_rows import boxes_of
from pkc.passes.analysis.list_ends import ends_after
from pkc.passes.analysis.multiples import ends_with_whole_block
from pkc.passes.kernel_pass import KernelPass
from pkc.passes.roles.around import rows_begin_anywhere, surely_whole

_STORES = (StoreOp, StoreAddOp, AtomicAddOp, AccumulateOp)
_SCATTERS = ScatterAccumulateOp | Scatter
_BY_ELEMENT = (Unary, Binary, CompareOp, SelectOp, CastOp, ClipOp)


class PlanPadding(KernelPass):
    """Write on each load along which axes nothing reads what its tile has past the end of the block; and on each gather
    by boxes.

    A block that ends inside of its array, `blocks(P, 128, stop=count[e])`, ends where TMA does not stop: it goes on to
    read what the array has there. So does one that ends with a shard of another array. That is no harm where it goes
    nowhere: row i of a matmul depends on row i of its left operand alone, and a store leaves out what lies past the
    end.

    Of a kernel with rows that begin anywhere it writes, too, along which axes nothing reads what lies past the end of
    the array (`never_read`): where a copy brings each row, nothing writes zeros there (`pkc/passes/roles/around.py`).

    Before:

        %p = pk.block[%i] to %count : !pk.block<P by 128>
        scf.for ... iter_args(%sum = %acc) -> (...) {
          %x = pk.load %X[%e, %p, %k : ...] : ... -> !pk.tile<128x64xbf16>
          %acc_1 = pk.mma %x, %w, %sum : ...
        pk.store %acc_2, %Y[%e, %p, %n : ...] : ...

    After:

          %x = pk.load %X[%e, %p, %k : ...] {unread = array<i64: 0>} : ... -> !pk.tile<128x64xbf16>
    """

    name = "pk-plan-padding"

    def run(self, kernel: KernelOp) -> None:
        ops = list(kernel.walk())
        around = any(isinstance(op, LoadOp | StoreOp) and rows_begin_anywhere(op) for op in ops)
        for op in ops:
            if isinstance(op, LoadOp):
                _plan(op)
                if around:
                    _plan_rows(op)
            if isinstance(op, GatherOp) and boxes(op) is not None:
                _plan_boxes(op)


def _plan(op: LoadOp) -> None:
    axes = [
        axis
        for axis, block in _blocks(op)
        if (not ends_with_whole_block(block) or _ends_with_other_shard(op, block))
        and _Padding(block.result).is_unread(op.result, axis)
    ]
    if axes:
        op.attributes[UNREAD] = DenseArrayBase.from_list(i64, axes)


def _plan_boxes(op: GatherOp) -> None:
    found = boxes_of(op)
    block = None if found is None else found.block
    if block is not None and _Padding(block).is_unread(op.result, 0):
        op.attributes[UNREAD] = DenseArrayBase.from_list(i64, [0])


def _plan_rows(op: LoadOp) -> None:
    axes = [
        axis
        for axis, block in _blocks(op)
        if not surely_whole(block.result) and _Padding(block.result, zeros=False).is_unread(op.result, axis)
    ]
    if axes:
        op.attributes[NEVER_READ] = DenseArrayBase.from_list(i64, axes)


def _blocks(op: LoadOp) -> list[tuple[int, BlockOp]]:
    """The blocks of a load, each with the axis of its tile."""
    blocks = [index.owner for index in op.indices if isinstance(index.type, BlockType)]
    return [(axis, block) for axis, block in enumerate(blocks) if isinstance(block, BlockOp)]


def _ends_with_other_shard(op: LoadOp, block: BlockOp) -> bool:
    """Whether a block ends where a shard does, but along another dimension than the one whose shards a tensor map has:
    that of the array's shards, or the first of which a block lies in a shard."""
    arrays = [array_type(array) for array in (op.array, op.local) if array is not None]
    dims = [kind.shard_dim for kind in arrays if isinstance(kind, PGLType) and kind.shard_dim is not None]
    owners = [index.owner for index in op.indices]
    dims += [dim for dim, owner in enumerate(owners) if isinstance(owner, BlockOp) and owner.in_shard]
    return block.in_shard and owners.index(block) != dims[0]


class _Padding:
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
