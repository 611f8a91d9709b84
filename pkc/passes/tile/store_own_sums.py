"""The pass `pk-store-own-sums`: sums to which each rank adds the tiles of its own shard alone are stores."""

from __future__ import annotations

from xdsl.ir import Block, Operation

from pkc.dialect.access import LOADS, AccumulateOp, StoreOp
from pkc.dialect.arrays import array_type, is_pgl
from pkc.dialect.coordinates import BlockCountOp, BlockOp, RankOp
from pkc.dialect.program import KernelOp, TasksOp
from pkc.dialect.tile import block_type
from pkc.dialect.types import Layout
from pkc.passes.analysis.covering import covers
from pkc.passes.analysis.dependence import enclosing_tasks, is_one, sources, task_count
from pkc.passes.analysis.local_shards import is_local
from pkc.passes.build import mark_fresh
from pkc.passes.kernel_pass import KernelPass


class StoreOwnSums(KernelPass):
    """Store what a rank adds to its own shard, where nobody else adds to it: there is nothing to sum over ranks. Each
    element gets one contribution, since tasks go through all of the shard, and whatever several tasks add to a tile has
    been collected.

    Before:

        pk.tasks (%i) in (%own) {
          %m = pk.block[%i] of shard %rank : !pk.block<M by 32>
          pk.accumulate %total, %R[%m : ...] : !pk.tile<32xf32>, !pk.pgl<[M], f32, shard 0>

    After:

          pk.store %total, %R[%m : ...] : !pk.tile<32xf32>, !pk.pgl<[M], f32, shard 0>
    """

    name = "pk-store-own-sums"

    def run(self, kernel: KernelOp) -> None:
        if kernel.in_any_order or kernel.roles:
            return
        for op in [op for op in kernel.walk() if isinstance(op, AccumulateOp)]:
            if _is_own(op) and _is_first(op):
                store = StoreOp(op.tile, op.array, list(op.indices))
                store.location = op.location
                assert op.parent is not None
                op.parent.insert_op_before(store, op)
                mark_fresh(kernel, op.array)
                op.detach()
                op.erase()


def _is_own(op: AccumulateOp) -> bool:
    """Whether each element of the array gets one contribution, of its owner."""
    tasks = enclosing_tasks(op)
    if not is_pgl(op.array, Layout.Shard) or not is_local(op.array, op.indices) or op.parent_op() is not tasks[0]:
        return False
    indices = {index for around in tasks for index in around.body.block.args}
    known = sources(op.indices)
    counts = (task_count(index) for index in indices if index not in known)
    if any(count is None or not is_one(count) for count in counts):
        return False
    reached = [index for at in op.indices for index in sources([at]) & indices]
    if len(set(reached)) < len(reached):
        return False
    dims = array_type(op.array).dimensions
    return all(covers(at, dim) or _is_all_of_shard(at.owner) for at, dim in zip(op.indices, dims, strict=True))


def _is_all_of_shard(block: Operation | Block) -> bool:
    """Whether a block goes through all of this rank's shard, one for each task."""
    if not isinstance(block, BlockOp) or block.shard is None or block.start is not None or block.stop is not None:
        return False
    count = task_count(block.index)
    made = None if count is None else count.owner
    if not isinstance(made, BlockCountOp) or made.block != block_type(block.result):
        return False
    own = made.shard is not None and isinstance(made.shard.owner, RankOp)
    return own and made.start is None and made.stop is None


def _is_first(op: AccumulateOp) -> bool:
    """Whether nothing else writes the array, and nothing reads it before: an array that is summed begins at zero."""
    top = enclosing_tasks(op)[-1]
    block = top.parent
    assert isinstance(top, TasksOp)
    others = [use.operation for use in op.array.uses if use.operation is not op]
    if block is None or not all(isinstance(other, LOADS) for other in others):
        return False
    users = [block.find_ancestor_op_in_block(other) for other in others]
    return all(user is not None and block.get_operation_index(user) > block.get_operation_index(top) for user in users)
