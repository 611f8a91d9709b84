"""Changes that break the protocol of a kernel at the roles level, and the operations where each does."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IntegerAttr, StringAttr, i64
from xdsl.ir import Block, Operation
from xdsl.traits import is_side_effect_free

from pkc.dialect import access, coordinates, counters, program, roles
from pkc.dialect.attributes import Role
from pkc.dialect.deferred import SendDeferredOp
from pkc.dialect.fences import Drain, DrainAttr, DrainOp, Fence, FenceOp
from pkc.dialect.program import KernelOp
from pkc.dialect.types import PGLType
from pkc.passes.analysis.dependence import sources, written_arrays
from pkc.passes.build import constant
from pkc.passes.roles.budgets import shared_memory
from pkc.targets.target import target_of

RANKS = 3


def first_only(op: Operation) -> None:
    """The first block, or owner, in place of the last."""
    assert isinstance(op, coordinates.BlockIndexOp | coordinates.OwnerOp)
    op.last = None


def is_last(op: Operation) -> bool:
    assert isinstance(op, coordinates.BlockIndexOp | coordinates.OwnerOp)
    return op.last is not None


def drop(op: Operation) -> None:
    op.detach()
    op.erase()


def number(op: Operation, place: int, offset: int) -> None:
    """Change an integer operand by a constant."""
    block = op.parent
    assert block is not None
    added = constant(offset)
    total = arith.AddiOp(op.operands[place], added.result)
    for made in (added, total):
        made.location = op.location
        block.insert_op_before(made, op)
    op.operands[place] = total.result


def wrong_rank(op: Operation) -> None:
    """Signal the rank after the right one."""
    assert isinstance(op, counters.SignalOp | counters.RaiseOp)
    block = op.parent
    assert block is not None
    one, ranks = constant(1), coordinates.DimOp("ranks")
    following = arith.AddiOp(op.rank, one.result)
    rank = arith.RemSIOp(following.result, ranks.result)
    for made in (one, ranks, following, rank):
        made.location = op.location
        block.insert_op_before(made, op)
    op.operands[list(op.operands).index(op.rank)] = rank.result


def without_epoch(op: Operation) -> None:
    """Count as in the first launch."""
    op.results[0].replace_all_uses_with(constant_before(op))


def constant_before(op: Operation) -> object:
    block = op.parent
    assert block is not None
    one = constant(1)
    one.location = op.location
    block.insert_op_before(one, op)
    return one.result


def twice(op: Operation) -> None:
    copy = op.clone()
    copy.location = op.location
    block = op.parent
    assert block is not None
    block.insert_op_after(copy, op)


def all_tasks(op: Operation) -> None:
    """Every CTA takes every task."""
    assert isinstance(op, program.TasksOp)
    op.attributes.pop(program.PER_CTA)


def among_others(op: Operation) -> bool:
    """Whether several task sets are shared out: a single one that is not is the legal form of an unsplit kernel."""
    kernel = kernel_around(op)
    return sum(program.PER_CTA in other.attributes for other in kernel.walk()) > 1


def kernel_around(op: Operation) -> KernelOp:
    return next(around for around in _around(op) if isinstance(around, KernelOp))


def _around(op: Operation) -> Iterator[Operation]:
    parent = op.parent_op()
    while parent is not None:
        yield parent
        parent = parent.parent_op()


def to_one_rank(op: Operation) -> bool:
    """Whether a signal goes to one rank; in a loop over all ranks without stores, the next rank gets it anyway."""
    assert isinstance(op, counters.SignalOp | counters.RaiseOp)
    loop = op.parent_op()
    in_turn = isinstance(op.rank.owner, Block | coordinates.RingPeerOp) and isinstance(loop, scf.ForOp)
    return not in_turn or any(isinstance(inner, access.StoreOp) for inner in loop.walk())


def another_count(op: Operation) -> None:
    """Rotate tasks by one more than there are."""
    assert isinstance(op, coordinates.RotateOp)
    number(op, _ROTATED_BELOW, 1)


def every_second(op: Operation) -> None:
    """Pick every second block twice and leave out the others."""
    assert isinstance(op, coordinates.RotateOp | coordinates.InterleaveOp)
    block = op.parent
    assert block is not None
    two = constant(2)
    half = arith.FloorDivSIOp(op.index, two.result)
    doubled = arith.MuliOp(half.result, two.result)
    for made in (two, half, doubled):
        made.location = op.location
        block.insert_op_before(made, op)
    op.operands = [doubled.result, *op.operands[1:]]


def one_stage_more(op: Operation) -> None:
    assert isinstance(op, roles.ChannelOp)
    op.stages = IntegerAttr(op.depth + 1, i64)


def fills_shared_memory(op: Operation) -> bool:
    """Whether one stage more of a channel is one too many."""
    kernel = op.parent_op()
    assert isinstance(op, roles.ChannelOp) and isinstance(kernel, KernelOp)
    stages = op.stages
    one_stage_more(op)
    needed = shared_memory(kernel)
    op.stages = stages
    return needed > target_of(kernel).arch.shared_memory


def all_sms(op: Operation) -> None:
    """Let all SMs communicate, and none compute."""
    op.attributes[program.COMM_SMS] = IntegerAttr(target_of(op).arch.sms, i64)


def computes(op: Operation) -> bool:
    assert isinstance(op, KernelOp)
    role_ops = [role for role in op.body.block.ops if isinstance(role, program.RoleOp)]
    return any(role.attributes.get(program.GROUP) == StringAttr("compute") for role in role_ops)


def fixed_ranks(op: Operation) -> None:
    """Take the number of ranks that is simulated for that of any run."""
    assert isinstance(op, coordinates.DimOp)
    block = op.parent
    assert block is not None
    ranks = constant(RANKS)
    ranks.location = op.location
    block.insert_op_before(ranks, op)
    op.result.replace_all_uses_with(ranks.result)


def counts_ranks(op: Operation) -> bool:
    """Whether an operation gives the number of ranks to a wait of signals that are not reset."""
    assert isinstance(op, coordinates.DimOp)
    kernel = kernel_around(op)
    waits = [wait for wait in kernel.walk() if isinstance(wait, counters.WaitOp) and op.result in sources([wait.count])]
    reset = {other.signal for other in kernel.walk() if isinstance(other, counters.ResetOp)}
    return op.dim.data == "ranks" and any(wait.signal not in reset for wait in waits)


def is_awaited(op: Operation) -> bool:
    """Whether a wait counts the signals of these counters; a barrier does not depend on their value."""
    assert isinstance(op, counters.ResetOp)
    return any(isinstance(use.operation, counters.WaitOp) for use in op.signal.uses)


_ROTATED_BELOW = 2
"""The place of the count among the operands of a rotation; see `pk.rotate`."""


def behind_what_it_orders(op: Operation) -> None:
    """Move a fence or a drain behind the next operation that it orders."""
    following = _ordered(op)
    block = op.parent
    assert following is not None and block is not None
    op.detach()
    block.insert_op_after(op, following)


def _ordered(op: Operation) -> Operation | None:
    """The operation before which a fence or a drain stands; None where it orders nothing."""
    acquired = isinstance(op, FenceOp) and op.kind.data is not Fence.AsyncShared
    following = op.next_op
    while following is not None and (
        is_side_effect_free(following)
        or isinstance(following, roles.AcquireOp)
        or (acquired and _loads_what_nobody_writes(following))
    ):
        following = following.next_op
    return None if isinstance(following, FenceOp | DrainOp) else following


def _loads_what_nobody_writes(op: Operation) -> bool:
    """Whether an operation loads what only the caller writes, so that no wait is for it, or passes that on."""
    if isinstance(op, roles.CommitOp):
        return all(isinstance(tile.owner, Operation) and _loads_what_nobody_writes(tile.owner) for tile in op.tiles)
    if not isinstance(op, access.LoadOp) or isinstance(op.array.type, PGLType):
        return False
    return op.array not in written_arrays(kernel_around(op))


def as_read(op: Operation) -> None:
    """Wait only until the stages have been read."""
    op.properties["kind"] = DrainAttr(Drain.Read)


def is_full(op: Operation) -> bool:
    return isinstance(op, DrainOp) and op.kind.data is Drain.Full


def one_store_more(op: Operation) -> None:
    """Let one store more be in flight."""
    assert isinstance(op, DrainOp)
    op.left = IntegerAttr(op.may_remain + 1, i64)


def leaves_some(op: Operation) -> bool:
    assert isinstance(op, DrainOp)
    return op.may_remain > 0


def one_signal_more(op: Operation) -> None:
    """Defer one signal less, and send it before its store is complete."""
    assert isinstance(op, SendDeferredOp)
    op.left = IntegerAttr(op.left.value.data - 1, i64)


def keeps_signals(op: Operation) -> bool:
    assert isinstance(op, SendDeferredOp)
    return op.left.value.data > 0


def relaxed(op: Operation) -> None:
    op.attributes[counters.ORDER] = StringAttr(counters.Order.Relaxed_Sys)


def orders(op: Operation) -> bool:
    """Whether a kernel needs what a signal, a fence or a drain orders.

    A copy engine's signals cannot be relaxed. Nor need a role's loads be complete, or released, when it signals its
    exit, if a role that its tiles go to signals the same.
    """
    role = _role_of(op)
    if isinstance(op, DrainOp) and op.kind.data is Drain.Loads:
        following = _ordered(op)
        return following is not None and orders(following)
    if isinstance(op, FenceOp | DrainOp):
        return True
    if counters.order_of(op) is None or role.role.data is Role.CopyEngine:
        return False
    if not isinstance(op, counters.SignalAllOp):
        return True
    others = {_role_of(use.operation) for use in op.signal.uses if isinstance(use.operation, counters.SignalAllOp)}
    return not any(role in _fed_by(other) for other in others - {role})


def _fed_by(role: program.RoleOp) -> set[program.RoleOp]:
    """The roles of this rank from which the tiles come that a role sends, through channels and counters.

    Waits count also where they may be for 0: then nothing was fetched for the tile.
    """
    found: set[program.RoleOp] = set()
    todo = [role]
    while todo:
        current = todo.pop()
        makers = {_role_of(maker) for op in current.walk() for maker in _makers(op, waits=current is not role)} - found
        found |= makers
        todo += makers
    return found


def _makers(op: Operation, *, waits: bool) -> Iterator[Operation]:
    if isinstance(op, roles.ConsumeOp):
        yield from (use.operation for use in op.channel.uses if isinstance(use.operation, roles.CommitOp))
    if isinstance(op, counters.WaitOp) and waits:
        sent = (
            use.operation for use in op.signal.uses if isinstance(use.operation, counters.SignalOp | counters.RaiseOp)
        )
        yield from (signal for signal in sent if isinstance(signal.rank.owner, coordinates.RankOp))


def stands_before(op: Operation) -> bool:
    return orders(op) and _ordered(op) is not None


def _role_of(op: Operation) -> program.RoleOp:
    return next(around for around in _around(op) if isinstance(around, program.RoleOp))


def announced_first(op: Operation) -> None:
    """Signal before the store that the signal announces."""
    store = _announced(op)
    block = op.parent
    assert store is not None and block is not None
    op.detach()
    block.insert_op_before(op, store)


def _announced(op: Operation) -> Operation | None:
    """The last store before a signal, if the signal can be moved in front of it."""
    before = op.prev_op
    while before is not None and not isinstance(before, access.StoreOp):
        before = before.prev_op
    found, following = before, before
    while following is not None and following is not op:
        if any(result in op.operands for result in following.results):
            return None
        following = following.next_op
    return found


def is_behind_a_store(op: Operation) -> bool:
    return _announced(op) is not None


def launch_before(op: Operation) -> None:
    """Wait for the signals of the previous launch, as if there were one buffer more than there is."""
    assert isinstance(op, counters.WaitOp)
    block = op.parent
    assert block is not None
    total = op.count.owner
    assert isinstance(total, arith.MuliOp)
    copy = total.clone()
    copy.location = op.location
    block.insert_op_before(copy, op)
    epoch = next(place for place, operand in enumerate(copy.operands) if isinstance(operand.owner, coordinates.EpochOp))
    number(copy, epoch, -1)
    op.operands[COUNT] = copy.results[0]


def for_several(op: Operation) -> bool:
    """Whether several CTAs wait here, of which all but the first may miss the value before the counter is reset.

    A single one does not: nobody signals again before its wait has ended, as the other ranks wait for it to enter and
    leave.
    """
    role = _role_of(op)
    return counts_epochs(op) and any(program.PER_CTA in inner.attributes for inner in role.walk())


def counts_epochs(op: Operation) -> bool:
    assert isinstance(op, counters.WaitOp)
    return isinstance(op.count.owner, arith.MuliOp) and any(
        isinstance(operand.owner, coordinates.EpochOp) for operand in op.count.owner.operands
    )


def reset_barrier(op: Operation) -> None:
    """Wait for the signals of one launch, then reset them, as the barrier of ParallelKittens does."""
    assert isinstance(op, counters.WaitOp) and isinstance(op.count.owner, arith.MuliOp)
    block = op.parent
    assert block is not None
    once = next(operand for operand in op.count.owner.operands if not isinstance(operand.owner, coordinates.EpochOp))
    reset = counters.ResetOp(op.signal)
    reset.location = op.location
    block.insert_op_after(reset, op)
    op.operands[COUNT] = once


def no_exit(op: Operation) -> None:
    """A kernel in which no role signals its exit, and none waits for it."""
    assert isinstance(op, KernelOp)
    left = op.arguments[_LEFT]
    for use in list(left.uses):
        drop(use.operation)


def has_exit(op: Operation) -> bool:
    """Whether roles must signal their exit; an author's protocol may end with such a wait already."""
    assert isinstance(op, KernelOp)
    return _LEFT in op.arguments and program.WRITTEN not in op.attributes


_LEFT = "left"
"""The counter of the roles that have exited, in kernels that need it."""

COUNT = 0
"""The place of the number among the operands of a wait; see `pk.wait`."""
