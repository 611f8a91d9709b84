"""The pass `pk-coarsen-tasks`: many tasks that have shares of the same tiles become few, each of which adds up several
shares."""

from __future__ import annotations

import math

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from pkc.dialect.access import AccumulateOp
from pkc.dialect.program import KernelOp, TasksOp
from pkc.dialect.scalars import constant_of
from pkc.dialect.tile import AnyMmaOp, tile_type
from pkc.passes.analysis.dependence import enclosing_tasks, sources, task_count
from pkc.passes.build import append, constant
from pkc.passes.integers import Integers
from pkc.passes.kernel_pass import KernelPass
from pkc.remarks import missed

_NUMBERS = 1 << 22
"""How many elements all shares of a tile may have: few, beside what so many tasks read."""

_MOST = 1024
"""The most tasks that share the values of one index: some for each CTA of any GPU, about as many for all."""

_LARGEST = 8192
"""The most elements of a share that a task keeps in registers beside what it computes it from."""


class CoarsenTasks(KernelPass):
    """Let few tasks, a constant number for each index, take turns with the values of an index that says nothing of the
    tiles of sums to which they contribute. Each then adds up its shares before it contributes (`pk-lift-sums`), so that
    as many shares have memory, and are added up, as there are tasks left.

    Tasks with MMAs stay as they are, whose accumulators need the registers, and those of large shares.

    Before:

        pk.tasks (%i, %j) in (%rows, %columns) {
          ... pk.accumulate %t, %S[%n : !pk.block<N by 64>] : !pk.tile<64xf32>, !pk.pgl<[N], f32, replicate>
        }

    After:

        %few = arith.minsi %rows, %1024
        pk.tasks (%p, %j) in (%few, %columns) {
          %turns = (%rows - %p + 1023) / 1024
          scf.for %k = %zero to %turns step %one {
            %i = %p + %k * 1024
            ... pk.accumulate %t, %S[%n : ...] : ...
          }
        }
    """

    name = "pk-coarsen-tasks"

    def run(self, kernel: KernelOp) -> None:
        if kernel.roles:
            return
        for tasks in [op for op in kernel.walk() if isinstance(op, TasksOp)]:
            sums = [op for op in tasks.walk() if isinstance(op, AccumulateOp)]
            if not sums or enclosing_tasks(tasks) or any(len(enclosing_tasks(op)) > 1 for op in sums):
                continue
            known = sources([index for op in sums for index in op.indices])
            keys = [index for index in tasks.body.block.args if index not in known and _may_be_many(task_count(index))]
            if not keys:
                continue
            if any(isinstance(op, AnyMmaOp) for op in tasks.walk()):
                missed(self.name, tasks, "each task contributes by itself: it has an MMA")
            elif max(map(_elements, sums)) > _LARGEST:
                missed(self.name, tasks, "each task contributes by itself: registers have no room for its shares' sum")
            else:
                _coarsen(tasks, keys, _most(sums, len(keys)))


def _may_be_many(count: SSAValue | None) -> bool:
    """Whether an index may have too many values for as many tasks."""
    known = None if count is None else constant_of(count)
    return known is None or known > _MOST


def _elements(op: AccumulateOp) -> int:
    return math.prod(tile_type(op.tile).shape)


def _most(sums: list[AccumulateOp], keys: int) -> int:
    """The most tasks for each of some indices, whose shares then have memory: a power of two."""
    shares = _NUMBERS // max(map(_elements, sums))
    return min(_MOST, 1 << int(math.log2(shares) / keys))


def _coarsen(tasks: TasksOp, keys: list[BlockArgument], most: int) -> None:
    outside, body = Integers(tasks), tasks.body.block
    counts = {index: tasks.counts[index.index] for index in keys}
    limit = outside.number(most)
    inner = Block()
    for op in list(body.ops):
        op.detach()
        inner.add_op(op)
    for index in reversed(keys):
        tasks.operands[index.index] = outside.least(counts[index], limit)
        inner = _turns(inner, index, counts[index], most, tasks)
    for op in list(inner.ops):
        op.detach()
        body.add_op(op)


def _turns(inner: Block, index: BlockArgument, count: SSAValue, most: int, origin: Operation) -> Block:
    """A block with a loop that runs another one for each `most`-th value of an index, from that of the task on."""
    around, turn = Block(), inner.insert_arg(IndexType(), 0)
    first = inner.first_op
    assert first is not None
    numbers = Integers(first)
    step = numbers.number(most)
    value = numbers.times(turn, step)
    at = numbers.plus(value, index)
    for use in [use for use in index.uses if use.operation is not at.owner]:
        use.operation.operands[use.index] = at
    append(inner, scf.YieldOp(), origin.location)

    def made(op: Operation) -> SSAValue:
        return append(around, op, origin.location).results[0]

    zero, one, limit, others = (made(constant(value)) for value in (0, 1, most, most - 1))
    left = made(arith.AddiOp(made(arith.SubiOp(count, index)), others))
    turns = made(arith.DivSIOp(left, limit))
    append(around, scf.ForOp(zero, turns, one, [], inner), origin.location)
    return around
