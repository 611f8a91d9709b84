"""The pass `pk-plan-padding`: tiles of which nothing reads what lies past the end of a block."""

from __future__ import annotations

from xdsl.dialects.builtin import DenseArrayBase, i64

from pkc.dialect.access import LoadOp, StoreOp
from pkc.dialect.arrays import array_type
from pkc.dialect.by_table import GatherOp
from pkc.dialect.coordinates import BlockOp
from pkc.dialect.program import KernelOp
from pkc.dialect.transfers import NEVER_READ, UNREAD, boxes
from pkc.dialect.types import BlockType, PGLType
from pkc.passes.analysis.boxed_rows import boxes_of
from pkc.passes.analysis.multiples import ends_with_whole_block
from pkc.passes.analysis.unread import Padding
from pkc.passes.kernel_pass import KernelPass
from pkc.passes.roles.around import rows_begin_anywhere, surely_whole


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
        and Padding(block.result).is_unread(op.result, axis)
    ]
    if axes:
        op.attributes[UNREAD] = DenseArrayBase.from_list(i64, axes)


def _plan_boxes(op: GatherOp) -> None:
    found = boxes_of(op)
    block = None if found is None else found.block
    if block is not None and Padding(block).is_unread(op.result, 0):
        op.attributes[UNREAD] = DenseArrayBase.from_list(i64, [0])


def _plan_rows(op: LoadOp) -> None:
    axes = [
        axis
        for axis, block in _blocks(op)
        if not surely_whole(block.result) and Padding(block.result, zeros=False).is_unread(op.result, axis)
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
