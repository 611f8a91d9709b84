"""The pass `pk-order-tasks`: tasks begin where the data already is, or end there."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, StringAttr, UnitAttr, i64
from xdsl.ir import BlockArgument, Operation, SSAValue

from pkc.dialect.access import LoadOp
from pkc.dialect.attributes import number_on
from pkc.dialect.by_table import GatherOp
from pkc.dialect.coordinates import BlockCountOp, BlockOp, InterleaveOp, RankOp, RotateOp
from pkc.dialect.program import IN_ORDER, LONGEST_FIRST, RASTER, WIDE, KernelOp, TasksOp
from pkc.dialect.tile import block_type
from pkc.location import describe
from pkc.passes.analysis.dependence import sources
from pkc.passes.build import before, computes, constant
from pkc.passes.kernel_pass import KernelPass
from pkc.passes.roles.plan_overlap import ORDER
from pkc.remarks import missed
from pkc.targets.target import target_of


class OrderTasks(KernelPass):
    """Rotate the blocks of sharded dimensions by the rank, as the kernel's `order` says.

    With `local_first` a rank begins with the local shard of the dimension and goes on with the next rank's, so that
    what comes from others has time to arrive. With `local_last` it goes round the shards, one block of each at a time,
    the next rank's first and the local one last. So no two ranks send to the same owner at once, and of a sum an owner
    has all contributions to its first blocks early and adds them while the rest is computed. Both are bijections of
    the tasks, whatever the sizes. The last indices of tasks that are `in_order` stay as they are.

    Tasks with two indices are numbered by bands of rows (`raster`), so that CTAs that work at the same time share what
    they read; so are tasks with more, if what they read is shared along both of the last two. Tasks in tasks have bands
    of their own for each of those around them, of the rows of an expert as many as it gets; where tables name the rows,
    only if there are many columns (`wide`).

    Before:

        pk.tasks (%i, %j) in (%rows, %columns) {
          %m = pk.block[%i] sharded : !pk.block<M by 128>

    After:

        %each = pk.block_count <M by 128> of %zero sharded
        %shift = arith.muli %rank, %each : index
        pk.tasks (%i, %j) in (%rows, %columns) {
          %0 = pk.rotate %i by %shift of %rows
          %m = pk.block[%0] sharded : !pk.block<M by 128>
    """

    name = "pk-order-tasks"

    def run(self, kernel: KernelOp) -> None:
        _band(kernel)
        order = kernel.attributes.get(ORDER)
        if not isinstance(order, StringAttr) or order.data == "natural":
            return
        found = [inner for inner in kernel.walk() if isinstance(inner, TasksOp)]
        rotated = [_rotate(tasks, local_last=order.data == "local_last") for tasks in found]
        if not any(rotated):
            reason = "none of their indices goes through all shards of a dimension, one after the other"
            missed(
                OrderTasks.name,
                kernel,
                f"tasks come in their natural order, not `{order.data}`: {reason}",
                of_ranks=True,
            )
            kernel.attributes[ORDER] = StringAttr("natural")


@dataclass(frozen=True)
class OrderExplanation:
    """Why the tasks of a kernel come in their order."""

    place: str
    order: str
    why: str

    def __str__(self) -> str:
        return f"{self.place}: order of tasks: {self.order} ({self.why})"


_ORDERS = {
    "local_first": "the local shard is there, what comes from other ranks has time to arrive",
    "local_last": "one block of each owner at a time: no two ranks send to the same one at once",
    "natural": "in no other order would anything come earlier",
}


def explain_order(module: ModuleOp) -> list[OrderExplanation]:
    """The order that the pass has given the tasks of each kernel."""
    found: list[OrderExplanation] = []
    for op in module.walk():
        order = op.attributes.get(ORDER)
        if isinstance(op, KernelOp) and isinstance(order, StringAttr):
            said = op.schedule.get("order") == order
            why = "the schedule says so" if said else _ORDERS[order.data]
            found.append(OrderExplanation(describe(op.location), order.data, why))
        if LONGEST_FIRST in op.attributes:
            why = "their loops differ in length, and no SM is left with a long one"
            found.append(OrderExplanation(describe(op.location), LONGEST_FIRST, why))
    return found


def _band(kernel: KernelOp) -> None:
    """Number the tasks of what pkc derived by bands, unless an earlier pass has said how."""
    for tasks in kernel.walk():
        if not isinstance(tasks, TasksOp) or tasks.encloses_tasks or RASTER in tasks.attributes:
            continue
        if not computes(tasks.outermost, kernel):
            continue
        if len(tasks.counts) == 2 or (len(tasks.counts) > 2 and _share_both_ways(tasks)):
            tasks.attributes[RASTER] = IntegerAttr(target_of(kernel).tuning.band, i64)
            if tasks.outermost is not tasks and any(isinstance(op, GatherOp) for op in tasks.walk()):
                tasks.attributes[WIDE] = UnitAttr()


def _share_both_ways(tasks: TasksOp) -> bool:
    """Whether some tiles are the same for all values of the last index, and others for all of the one before it."""
    *_, row, column = tasks.body.block.args
    loads = [sources(op.indices) for op in tasks.walk() if isinstance(op, LoadOp)]
    return any(column not in found for found in loads) and any(row not in found for found in loads)


def _rotate(tasks: TasksOp, *, local_last: bool) -> bool:
    """Reorder the blocks of sharded dimensions; whether there are any."""
    rotated = False
    kept = len(tasks.counts) - (number_on(tasks, IN_ORDER) or 0)
    for index, count in list(zip(tasks.body.block.args, tasks.counts, strict=True))[:kept]:
        blocks = [use.operation for use in index.uses if _follows_shards(use.operation, index)]
        if not blocks:
            continue
        rotated = True
        ordered = (
            _interleaved(tasks, index, blocks[0]) if local_last else RotateOp(index, _shift(tasks, blocks[0]), count)
        )
        first = tasks.body.block.first_op
        assert first is not None
        before(first, [ordered])
        for op in [use.operation for use in index.uses if use.operation is not ordered]:
            op.operands = [ordered.result if operand is index else operand for operand in op.operands]
    return rotated


def _follows_shards(op: Operation, index: BlockArgument) -> bool:
    """Whether an operation picks a block by `index` from all of a dimension, shard after shard."""
    return isinstance(op, BlockOp) and op.index is index and op.of_all_shards


def _shift(tasks: TasksOp, block: Operation) -> SSAValue:
    """How many blocks lie before the local shard: all shards but the last have one length."""
    assert isinstance(block, BlockOp)
    zero, rank = constant(0), RankOp()
    each = BlockCountOp(block_type(block.result), shard=zero.result, sharded=True)
    shift = arith.MuliOp(rank.result, each.result)
    before(tasks, [zero, rank, each, shift])
    return shift.result


def _interleaved(tasks: TasksOp, index: BlockArgument, block: Operation) -> InterleaveOp:
    """One block of each shard at a time, the next rank's first."""
    assert isinstance(block, BlockOp)
    rank, one = RankOp(), constant(1)
    following = arith.AddiOp(rank.result, one.result)
    before(tasks, [rank, one, following])
    return InterleaveOp(index, block_type(block.result), following.result)
