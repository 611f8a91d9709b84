"""How the mutants of `mutants.py` break the stages of channels: released too early, or too few."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import takewhile

from xdsl.dialects import scf
from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.ir import Block, Operation, SSAValue

from pkc.dialect import access, by_table, roles
from pkc.dialect.counters import SignalOp, WaitOp
from pkc.dialect.fences import FenceOp
from pkc.dialect.program import RoleOp, TasksOp
from pkc.dialect.tile import MmaIssueOp, MmaOp, MmaWaitOp, in_flight
from pkc.dialect.transfers import mma_operand_stage
from pkc.passes.analysis.dependence import ancestors, enclosing_tasks, role_around
from tools.mutant_changes import drop


def early(op: Operation) -> None:
    """Release the stage as soon as it is consumed."""
    assert isinstance(op, roles.ReleaseOp)
    consume = next(use.operation for use in op.channel.uses if isinstance(use.operation, roles.ConsumeOp))
    op.detach()
    block = consume.parent
    assert block is not None
    block.insert_op_after(op, consume)


def is_shared(op: Operation) -> bool:
    """Whether a release is of stages in which something else leaves."""
    assert isinstance(op, roles.ReleaseOp)
    return roles.channel_of(op.channel).guest is not None


def by_first_reader(op: Operation) -> None:
    """Release a shared stage where what came in it is not read any more, before the store of what leaves in it."""
    assert isinstance(op, roles.ReleaseOp)
    guest = roles.channel_of(op.channel).guest
    assert guest is not None
    (acquire,) = _on(guest.result, roles.AcquireOp)
    op.detach()
    _block(acquire).insert_op_before(op, acquire)


def before_guest(op: Operation) -> None:
    """Release a shared stage before what leaves in it is read."""
    assert isinstance(op, roles.ReleaseOp)
    guest = roles.channel_of(op.channel).guest
    assert guest is not None
    consume = next(other for other in _on(guest.result, roles.ConsumeOp) if other.parent is op.parent)
    op.detach()
    _block(consume).insert_op_after(op, consume)


def one_stage_less(op: Operation) -> None:
    """Release each stage an iteration earlier."""
    assert isinstance(op, roles.ReleaseOp)
    op.deferred = IntegerAttr(op.kept - 1, i64) if op.kept > 1 else None


def keeps_stages(op: Operation) -> bool:
    assert isinstance(op, roles.ReleaseOp)
    return op.kept > 0


def released_at_once(op: Operation) -> None:
    """Release the stages that an MMA in flight reads as if it were complete."""
    block = op.parent
    assert block is not None
    for release in [other for other in block.ops if isinstance(other, roles.ReleaseOp)]:
        release.deferred = None
        for user in [use.operation for use in release.channel.uses]:
            if isinstance(user, roles.ReleaseDeferredOp):
                drop(user)


def is_in_flight(op: Operation) -> bool:
    assert isinstance(op, MmaOp)
    return in_flight(op) > 0


def one_stage(op: Operation) -> None:
    """Leave a channel one stage, whose release is deferred."""
    op.properties["stages"] = IntegerAttr(1, i64)


def is_kept(op: Operation) -> bool:
    """Whether the release of a channel's stages is deferred for an MMA."""
    assert isinstance(op, roles.ChannelOp)
    users = (use.operation for use in op.result.uses)
    bodies = (user.parent for user in users if isinstance(user, roles.ReleaseOp) and user.kept)
    return any(isinstance(inner, MmaOp) for body in bodies if body is not None for inner in body.ops)


def one_mma_more(op: Operation) -> None:
    """Let one MMA more be in flight behind a wait."""
    assert isinstance(op, MmaWaitOp)
    op.left = IntegerAttr(op.left.value.data + 1, i64)


def awaited_last(op: Operation) -> None:
    """Release the stages of an MMA in front of the wait for it."""
    block = op.parent
    assert isinstance(op, MmaWaitOp) and block is not None
    for release in _released(op):
        release.detach()
        block.insert_op_before(release, op)


def releases(op: Operation) -> bool:
    """Whether stages that an MMA reads are released behind the wait for it, in the same block."""
    assert isinstance(op, MmaWaitOp)
    return bool(_released(op))


def _released(op: MmaWaitOp) -> list[roles.ReleaseOp]:
    issue = op.issued.owner
    assert isinstance(issue, MmaIssueOp)
    stages = [stage for value in (issue.a, issue.b) if (stage := mma_operand_stage(value)) is not None]
    channels = {stage.channel for stage in stages if stage.parent is op.parent}
    return [other for other in _block(op).ops if isinstance(other, roles.ReleaseOp) and other.channel in channels]


def is_awaited_first(op: Operation) -> bool:
    """Whether the late half of a pipelined loop reads the stages of a channel that is filled before another one, which
    the early half reads: with one stage each would wait for the other."""
    assert isinstance(op, roles.ChannelOp)
    commits = _on(op.result, roles.CommitOp)  # several, if phases share the channel
    filled = [
        (commit, other) for commit in commits for other in _block(commit).ops if isinstance(other, roles.CommitOp)
    ]
    behind = [other.channel for commit, other in filled if commit.is_before_in_block(other)]
    return _is_late(op.result) and any(_on(channel, roles.ConsumeOp) and not _is_late(channel) for channel in behind)


def _is_late(channel: SSAValue) -> bool:
    """Whether stages are consumed behind a pipelined loop, as those of its last late half are."""
    loops = [op for consume in _on(channel, roles.ConsumeOp) for op in _block(consume).ops if isinstance(op, scf.ForOp)]
    loops = [loop for loop in loops if any(isinstance(op, MmaIssueOp) for op in loop.body.block.ops)]
    return any(
        loop.is_before_in_block(c) for c in _on(channel, roles.ConsumeOp) for loop in loops if _block(c) is loop.parent
    )


def _on(channel: SSAValue, kind: type[Operation]) -> list[Operation]:
    return [use.operation for use in channel.uses if isinstance(use.operation, kind)]


def _block(op: Operation) -> Block:
    assert op.parent is not None
    return op.parent


def is_told_by_another(op: Operation) -> bool:
    """Whether a signal at the end of tasks says nothing that another role's of the same CTA does not say as well: in
    each task its role gives back its last stage before it passes that one its last tile, and it touches no array."""
    role = op.parent_op()
    if not isinstance(op, SignalOp) or not isinstance(role, RoleOp):
        return False
    earlier = list(takewhile(lambda other: other is not op, role.walk()))
    telling = {role_around(other) for other in _on(op.signal, SignalOp)} - {role}
    tasks = [task for task in earlier if isinstance(task, TasksOp)]
    innermost = [task for task in tasks if all(other is task for other in task.walk() if isinstance(other, TasksOp))]
    touched = any(isinstance(other, _ARRAYS) for other in earlier)
    return bool(telling) and not touched and all(_passes_on(task.body.block, telling) for task in innermost)


def about_time(kernel: Operation) -> set[Operation]:
    """All that is there for waits that decide about time alone, in which a break changes no result: those in front of
    tasks which wait for the same counters themselves, each in its list (`pk-begin-together`), with the fences behind
    them and what is computed for them."""
    found: set[Operation] = set()
    for wait in kernel.walk():
        if not isinstance(wait, WaitOp) or _decides(wait):
            continue
        found |= {*_within_role(wait), *takewhile(lambda op: isinstance(op, FenceOp), _behind(wait))}
    for op in reversed(list(kernel.walk())) if found else ():
        uses = [use.operation for result in op.results for use in result.uses]
        if uses and found.issuperset(uses):
            found |= {*op.walk()}
    return found


def _decides(wait: WaitOp) -> bool:
    *_, first = _within_role(wait)
    tasks = next((op for op in (first, *_behind(first)) if isinstance(op, TasksOp)), None)
    around = map(enclosing_tasks, _on(wait.signal, WaitOp))
    return tasks is first or not any(len(outer) > 1 and outer[-1] is tasks for outer in around)


def _within_role(op: Operation) -> list[Operation]:
    """An operation and those around it, innermost first, up to its role."""
    return [op, *takewhile(lambda parent: not isinstance(parent, RoleOp), ancestors(op))]


def _behind(op: Operation) -> Iterator[Operation]:
    while op.next_op is not None:
        op = op.next_op
        yield op


_ARRAYS = (
    access.LoadOp,
    by_table.GatherOp,
    access.ReduceOp,
    access.StoreOp,
    access.AddToArrayOp,
    by_table.ScatterAddOp,
)


def _passes_on(block: Block, telling: Collection[RoleOp | None]) -> bool:
    """Whether all stages that a task gives back have been given back when it commits its last tile for some roles."""
    ops = list(block.walk())
    given = [op for op in ops if isinstance(op, roles.ReleaseOp | roles.ReleaseDeferredOp)]
    commits = [op for op in ops if isinstance(op, roles.CommitOp) and op.parent is block]
    commits = [op for op in commits if any(role_around(use) in telling for use in _on(op.channel, roles.ConsumeOp))]
    later = {op.channel for op in given if isinstance(op, roles.ReleaseOp) and op.kept}
    behind = {op.channel for op in given if isinstance(op, roles.ReleaseDeferredOp)}
    return not given or (bool(commits) and ops.index(given[-1]) < ops.index(commits[-1]) and later <= behind)
