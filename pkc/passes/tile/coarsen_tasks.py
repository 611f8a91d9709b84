"""The pass `pk-coarsen-tasks`: many tasks that have shares of the same tiles become few, each of which adds up several
shares."""

from __future__ import annotations

import math
from collections.abc import Sequence

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue
from xdsl.traits import Pure

from pkc.dialect.access import READING, AccumulateOp, LoadOp
from pkc.dialect.by_table import ScatterAccumulateOp
from pkc.dialect.elementwise import AddOp
from pkc.dialect.program import CONSUMERS, KernelOp, TasksOp
from pkc.dialect.scalars import constant_of
from pkc.dialect.tile import AnyMmaOp, CastOp, FullOp, tile_type
from pkc.dialect.types import PGLType, TileType
from pkc.passes.analysis.dependence import enclosing_tasks, sources, writes
from pkc.passes.analysis.live_tiles import registers_of
from pkc.passes.build import append, constant
from pkc.passes.integers import Integers
from pkc.passes.kernel_pass import KernelPass
from pkc.passes.tile.lift_sums import lift
from pkc.remarks import missed

_NUMBERS = 1 << 22
"""How many elements all shares of a tile may have: few, beside what so many tasks read."""

_FEWEST, _MOST = 256, 1024
"""Tasks that share the values of indices: some for each CTA of any GPU, about as many for all."""

_ROOM, _WIDE, _GROUPS = 24832, 4096, 2
"""Registers for tiles that a warpgroup has, and the elements of a tile for each of which there is one, up to so many:
the same for every target, as tile IR is."""

_FEW = 1024
"""Elements of shares for which there is always room."""

_BY_TASKS = ("order", "transfer")
"""Keys of the schedule that speak of tasks and what each of them reads."""


class CoarsenTasks(KernelPass):
    """Let few tasks, a constant number, take turns with the values of all indices that say nothing of the tiles of sums
    to which they contribute. Each adds up its shares before it contributes, so that as many shares have memory, and are
    added up, as there are tasks left.

    What a loop in a task adds up of a share begins at the sum of the shares before.

    Tasks stay as they are that have MMAs, whose accumulators need the registers, those whose tiles and shares together
    do not fit into registers, those that write what they read, and those whose indices have another meaning: for places
    of contributions, or for what the schedule says of shards.

    Before:

        pk.tasks (%h, %i, %j) in (%heads, %rows, %columns) {
          ... pk.accumulate %t, %S[%n : !pk.block<N by 64>] : !pk.tile<64xf32>, !pk.pgl<[N], f32, replicate>
        }

    After:

        %all = %heads * %rows
        %few = arith.minsi %all, %1024
        pk.tasks (%p, %j) in (%few, %columns) {
          %turns = (%all - %p + 1023) / 1024
          %sum = scf.for %k = %zero to %turns step %one iter_args(%total = %zeros) -> (!pk.tile<64xf32>) {
            %at = %p + %k * 1024
            %h = %at / %rows
            %i = %at % %rows
            ... %next = pk.add %total, %t : !pk.tile<64xf32>
            scf.yield %next : !pk.tile<64xf32>
          }
          pk.accumulate %sum, %S[%n : ...] : ...
        }
    """

    name = "pk-coarsen-tasks"

    def run(self, kernel: KernelOp) -> None:
        if kernel.roles:
            return
        for tasks in [op for op in kernel.walk() if isinstance(op, TasksOp)]:
            sums = [op for op in tasks.walk() if isinstance(op, AccumulateOp)]
            if not sums or enclosing_tasks(tasks):
                continue
            known = sources([index for op in sums for index in op.indices])
            keys = [index for index in tasks.body.block.args if index not in known]
            if not _may_be_many([tasks.counts[index.index] for index in keys]):
                continue
            reason = _obstacle(kernel, tasks, sums, keys)
            if reason:
                missed(self.name, tasks, f"each task contributes by itself: {reason}")
            else:
                _coarsen(tasks, keys, sums)


def _may_be_many(counts: Sequence[SSAValue]) -> bool:
    """Whether indices may have too many values for as many tasks."""
    known = [constant_of(count) for count in counts]
    return None in known or math.prod(number for number in known if number is not None) > _MOST


def _obstacle(kernel: KernelOp, tasks: TasksOp, sums: Sequence[AccumulateOp], keys: Sequence[BlockArgument]) -> str:
    """Why tasks stay as they are; empty if they need not."""
    if any(isinstance(op, AnyMmaOp) for op in tasks.walk()):
        return "it has an MMA"
    if any(isinstance(op, ScatterAccumulateOp) for op in tasks.walk()):
        return "rows that a table names have places by its indices"
    if any(op.parent_op() is not tasks for op in sums):
        return "to other tiles as it goes on, or in some cases only"
    if not all(_is_pure(index, tasks) for op in sums for index in op.indices):
        return "to a tile that memory names"
    said = next((key for key in _BY_TASKS if key in kernel.schedule), None)
    if said is not None and any(_goes_through_shards(op, keys) for op in tasks.walk()):
        return f"`{said}` of the schedule is for tasks that go through shards"
    if any(_is_written(op, tasks) for op in tasks.walk()):
        return "it writes what it reads, in an order that tasks keep"
    shares = sum(_elements(op) for op in sums if _summing(_unrounded(op)) is None)
    return "registers have no room for sums of its shares" if _are_many(kernel, tasks, shares) else ""


def _is_pure(value: SSAValue, tasks: TasksOp) -> bool:
    """Whether a value can be computed in front of all else that tasks do."""
    made = value.owner
    if isinstance(made, Block) or not tasks.is_ancestor(made):
        return True
    return not made.regions and made.has_trait(Pure) and all(_is_pure(operand, tasks) for operand in made.operands)


def _goes_through_shards(op: Operation, keys: Sequence[BlockArgument]) -> bool:
    """Whether indices of tasks say which shard of an array is read."""
    kind = op.array.type if isinstance(op, LoadOp) else None
    shard = kind.shard_dim if isinstance(kind, PGLType) else None
    return isinstance(op, LoadOp) and shard is not None and not sources([op.indices[shard]]).isdisjoint(keys)


def _is_written(op: Operation, tasks: TasksOp) -> bool:
    """Whether an operation reads an array that tasks write, too."""
    return isinstance(op, READING) and any(writes(use) and tasks.is_ancestor(use.operation) for use in op.array.uses)


def _elements(op: AccumulateOp) -> int:
    return math.prod(tile_type(op.tile).shape)


def _are_many(kernel: KernelOp, tasks: TasksOp, shares: int) -> bool:
    """Whether registers have no room for sums of so many elements beside the tiles of a task."""
    kinds = [result.type for op in tasks.walk() for result in op.results]
    widest = max((math.prod(kind.shape) for kind in kinds if isinstance(kind, TileType)), default=1)
    groups = kernel.scheduled_number(CONSUMERS) or min(-(-widest // _WIDE), _GROUPS)
    return shares > _FEW and registers_of(tasks.body.block) + shares > groups * _ROOM


def _most(sums: Sequence[AccumulateOp]) -> int:
    """The most tasks whose shares have memory: a power of two."""
    shares = _NUMBERS // max(map(_elements, sums))
    return max(_FEWEST, min(_MOST, 1 << max(shares, 1).bit_length() - 1))


def _coarsen(tasks: TasksOp, keys: Sequence[BlockArgument], sums: Sequence[AccumulateOp]) -> None:
    outside, body, most = Integers(tasks), tasks.body.block, _most(sums)
    counts = [tasks.counts[index.index] for index in keys]
    every = counts[0]
    for count in counts[1:]:
        every = outside.times(every, count)
    few = outside.least(every, outside.number(most))
    inner = Block(arg_types=[IndexType()])
    for op in list(body.ops):
        op.detach()
        inner.add_op(op)
    task = body.insert_arg(IndexType(), keys[0].index)
    _number(inner, task, keys, counts, most)
    tasks.operands = [
        few if index is keys[0] else count
        for index, count in zip([arg for arg in body.args if arg is not task], tasks.counts, strict=True)
        if index is keys[0] or index not in keys
    ]
    for index in keys:
        body.erase_arg(index)
    _turns(body, inner, task, every, most, tasks)
    for op in reversed(sums):
        _lift(op)


def _number(inner: Block, task: SSAValue, keys: Sequence[BlockArgument], counts: Sequence[SSAValue], most: int) -> None:
    """Let the values of indices follow from a turn's number: the first argument of a block."""
    first = inner.first_op
    assert first is not None
    numbers = Integers(first)
    rest = numbers.plus(numbers.times(inner.args[0], numbers.number(most)), task)
    for index, count in reversed(list(zip(keys[1:], counts[1:], strict=True))):
        index.replace_all_uses_with(numbers.made(arith.RemSIOp(rest, count)))
        rest = numbers.over(rest, count)
    keys[0].replace_all_uses_with(rest)


def _turns(body: Block, inner: Block, task: SSAValue, every: SSAValue, most: int, origin: Operation) -> None:
    """Append a loop that runs a block for each `most`-th value, from that of the task on."""
    append(inner, scf.YieldOp(), origin.location)

    def made(op: Operation) -> SSAValue:
        return append(body, op, origin.location).results[0]

    zero, one, limit, others = (made(constant(value)) for value in (0, 1, most, most - 1))
    left = made(arith.AddiOp(made(arith.SubiOp(every, task)), others))
    turns = made(arith.DivSIOp(left, limit))
    append(body, scf.ForOp(zero, turns, one, [], inner), origin.location)


def _lift(op: AccumulateOp) -> None:
    """Contribute behind a loop, in which sums that loops in it make begin at what was added up before."""
    loop = op.parent_op()
    assert isinstance(loop, scf.ForOp)
    lift(op, loop)
    total: SSAValue | None = _unrounded(op)
    while isinstance(total, OpResult) and isinstance(total.owner, scf.ForOp):
        added = _addition(total.owner, total.index)
        total = None if added is None else _begun_at(added)


def _unrounded(op: AccumulateOp) -> SSAValue:
    value = op.tile
    while isinstance(value.owner, CastOp):
        value = value.owner.tile
    return value


def _addition(loop: scf.ForOp, number: int) -> AddOp | None:
    """What a loop does with a tile that it carries, if it does nothing but add to it once."""
    carried, end = loop.body.block.args[1 + number], loop.body.block.last_op
    assert end is not None
    added = end.operands[number].owner
    if not isinstance(added, AddOp) or not carried.has_one_use() or not added.result.has_one_use():
        return None
    return added if carried in added.operands else None


def _summing(value: SSAValue) -> scf.ForOp | None:
    """The loop that makes a value, if it begins at zero and only adds, and nothing else uses the value."""
    loop = value.owner
    if not isinstance(value, OpResult) or not isinstance(loop, scf.ForOp) or not value.has_one_use():
        return None
    start = loop.iter_args[value.index].owner
    if not isinstance(start, FullOp) or start.constant != 0:
        return None
    return None if _addition(loop, value.index) is None else loop


def _begun_at(added: AddOp) -> SSAValue | None:
    """Let a sum that is added to another one begin there, if a loop makes it."""
    total, part = added.operands
    loop = _summing(part)
    if loop is None or not isinstance(part, OpResult) or loop.parent is not added.parent:
        return None
    loop.operands[3 + part.index] = total
    added.result.replace_all_uses_with(part)
    added.detach()
    added.erase()
    return part
