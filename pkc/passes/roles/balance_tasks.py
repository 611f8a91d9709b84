"""The pass `pk-balance-tasks`: tasks of uneven length come longest first."""

from __future__ import annotations

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IntegerAttr, UnitAttr, i64
from xdsl.ir import BlockArgument

from pkc.dialect.program import IN_ORDER, LONGEST_FIRST, RASTER, KernelOp, TasksOp
from pkc.passes.analysis.direction import Direction, direction
from pkc.passes.build import before, computes, constant
from pkc.passes.kernel_pass import KernelPass
from pkc.remarks import missed
from pkc.targets.target import target_of


class BalanceTasks(KernelPass):
    """Let tasks whose loops grow longer with the last index begin with the longest ones.

    CTA c of n takes tasks c, c + n, ... A long task at the end keeps one SM busy while the others are done. So where
    the length of a task's loops grows with its last index (causal attention), that index goes downwards, and tasks are
    numbered by bands of rows (`raster`), the row fastest: tasks of one length come together, and the short ones of a
    band last. Where the length falls with the index, the bands are enough. CTAs take `longest_first` tasks back and
    forth, and change places after two bands, so that none has the longest of every round. Tasks in tasks do so for each
    of those around them.

    Before:

        pk.tasks (%h, %i) in (%heads, %blocks) {
          %q = pk.block[%i] : !pk.block<S by 128>
          %end = pk.block_position %q : !pk.block<S by 128>
          scf.for %kv = %zero to %end step %one { ... }
        }

    After:

        pk.tasks (%h, %i) in (%heads, %blocks) attributes {raster = 8 : i64, longest_first} {
          %last = arith.subi %blocks, %one : index
          %0 = arith.subi %last, %i : index
          %q = pk.block[%0] : !pk.block<S by 128>
          %end = pk.block_position %q : !pk.block<S by 128>
          scf.for %kv = %zero to %end step %one { ... }
        }
    """

    name = "pk-balance-tasks"

    def run(self, kernel: KernelOp) -> None:
        for tasks in list(kernel.walk()):
            if isinstance(tasks, TasksOp) and not tasks.encloses_tasks and computes(tasks.outermost, kernel):
                _balance(tasks)


def _balance(tasks: TasksOp) -> None:
    *outer, index = tasks.body.block.args
    loops = [op for op in tasks.walk() if isinstance(op, scf.ForOp)]
    length = {argument: _length(loops, argument) for argument in (*outer, index)}
    uneven = [argument for argument in length if length[argument] is not Direction.SAME]
    if not uneven:
        return
    reason = ""
    if uneven != [index] or length[index] is Direction.UNKNOWN:
        reason = "it is not known to grow or to fall with the last index alone"
    if RASTER in tasks.attributes or IN_ORDER in tasks.attributes:
        reason = "an earlier pass has numbered them"
    if reason:
        missed(BalanceTasks.name, tasks, f"tasks of uneven length do not come longest first: {reason}")
        return
    if outer:
        tasks.attributes[RASTER] = IntegerAttr(target_of(tasks).tuning.band, i64)
    if length[index] is Direction.UP:
        _reverse(tasks, index)
    tasks.attributes[LONGEST_FIRST] = UnitAttr()


def _length(loops: list[scf.ForOp], index: BlockArgument) -> Direction:
    """How the number of iterations of loops changes with an index of their tasks."""
    total = Direction.SAME
    for loop in loops:
        total += direction(loop.ub, index) + -direction(loop.lb, index)
    return total


def _reverse(tasks: TasksOp, index: BlockArgument) -> None:
    first = tasks.body.block.first_op
    assert first is not None
    uses = list(index.uses)
    one = constant(1)
    last = arith.SubiOp(tasks.counts[index.index], one.result)
    reverse = arith.SubiOp(last.result, index)
    before(first, [one, last, reverse])
    for use in uses:
        use.operation.operands[use.index] = reverse.result
