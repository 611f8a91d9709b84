"""Channels that a role goes through in step, and so is always at the same stage of."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import takewhile

from xdsl.ir import Block, Operation, SSAValue

from pkc.dialect.fences import Drain, DrainOp
from pkc.dialect.roles import AHEAD, CommitOp, ConsumeOp, ReleaseOp, channel_of
from pkc.passes.analysis.dependence import role_around, roles_around

Users = Mapping[SSAValue, Collection[Operation]]
"""The operations of a role on each of its channels."""

Steps = Mapping[Operation, SSAValue]
"""Operations of one block behind which a role is at the next stage of a channel, and the channel of each."""


def takes_it_itself(op: CommitOp) -> bool:
    """Whether the role consumes the stage too, and releases it before it acquires the next one: it goes on then."""
    consumes = (use.operation for use in op.channel.uses if isinstance(use.operation, ConsumeOp))
    return role_around(op) in roles_around(consumes)


def in_step(users: Users) -> list[list[SSAValue]]:
    """Groups of channels of which a role is always at the same stage: they have as many, it goes on to the next one of
    all in the same blocks, and uses none of them between the first and the last that goes on. What it is at is then
    one number, which the last of each block counts."""
    groups: list[list[SSAValue]] = []
    for channel, ops in users.items():
        together = (group for group in groups if _go_together([*group, channel], users))
        group = None if any(AHEAD in op.attributes for op in ops) else next(together, None)
        if group is None:
            groups.append([channel])
        else:
            group.append(channel)
    return groups


def counted_later(groups: Sequence[Sequence[SSAValue]], users: Users) -> set[Operation]:
    """The operations behind which another one of their block counts, for all channels of a group."""
    several = (group for group in groups if len(group) > 1)
    blocks = [steps for group in several for steps in _steps(group, users).values()]
    return {op for steps in blocks for op in steps} - {_last(steps) for steps in blocks}


def _go_together(channels: Sequence[SSAValue], users: Users) -> bool:
    """Whether channels are in step, all but the last of which are."""
    first, *_, new = channels
    if channel_of(first).depth != channel_of(new).depth or any(AHEAD in op.attributes for op in users[first]):
        return False
    steps = _steps(channels, users).values()
    # Each goes on once in a block, so that all are at the same stage where it begins.
    return all(len(each) == len(channels) == len(set(each.values())) and _unused(each) for each in steps)


def _steps(channels: Sequence[SSAValue], users: Users) -> dict[Block, Steps]:
    """By the block."""
    found: dict[Block, dict[Operation, SSAValue]] = {}
    for channel in channels:
        for op in filter(_goes_on, users[channel]):
            assert op.parent is not None
            found.setdefault(op.parent, {})[op] = channel
    return dict(found)


def _goes_on(op: Operation) -> bool:
    """Whether a role is at the next stage of a channel behind one of its operations on it."""
    if isinstance(op, CommitOp):
        return not takes_it_itself(op)
    if isinstance(op, ConsumeOp):  # where the stage has a guest, another role releases it
        return channel_of(op.channel).guest is not None
    return isinstance(op, ReleaseOp)


def _unused(steps: Steps) -> bool:
    """Whether nothing up to the last of these operations uses a channel behind the one that goes on."""
    last, passed = _last(steps), set[SSAValue]()
    assert last.parent is not None
    for op in takewhile(lambda op: op is not last, last.parent.ops):
        if passed and any(channel in passed for inner in op.walk() for channel in _used(inner, steps.values())):
            return False
        if op in steps:
            passed.add(steps[op])
    return True


def _used(op: Operation, channels: Collection[SSAValue]) -> Iterator[SSAValue]:
    """The channels whose stage an operation needs to know."""
    if isinstance(op, DrainOp) and op.kind.data is Drain.Loads:
        yield from channels
    users = (use.operation for result in op.results for use in result.uses)
    yield from (user.channel for user in users if isinstance(user, CommitOp))
    yield from (operand for operand in op.operands if operand in channels)


def _last(steps: Steps) -> Operation:
    block = next(iter(steps)).parent
    assert block is not None
    return next(op for op in reversed(list(block.ops)) if op in steps)
