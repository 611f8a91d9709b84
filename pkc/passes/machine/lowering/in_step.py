"""Channels that a role goes through in step, and so is always at the same stage of."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import takewhile

from xdsl.ir import Block, Operation, SSAValue

from pkc.dialect.fences import Drain, DrainOp
from pkc.dialect.roles import AHEAD, CommitOp, ConsumeOp, ReleaseOp, channel_of
from pkc.passes.analysis.dependence import role_around, roles_around

Users = Mapping[SSAValue, Collection[Operation]]
"""The operations of a role on each of its channels, in the order of the program."""


def takes_it_itself(op: CommitOp) -> bool:
    """Whether the role consumes the stage too, and releases it before it acquires the next one: it goes on then."""
    consumes = (use.operation for use in op.channel.uses if isinstance(use.operation, ConsumeOp))
    return role_around(op) in roles_around(consumes)


def goes_on(op: Operation) -> bool:
    """Whether a role is at the next stage of a channel behind one of its operations on it."""
    if isinstance(op, CommitOp):
        return not takes_it_itself(op)
    if isinstance(op, ConsumeOp):  # where the stage has a guest, another role releases it
        return channel_of(op.channel).guest is not None
    return isinstance(op, ReleaseOp)


def in_step(users: Users) -> list[list[SSAValue]]:
    """Groups of channels of which a role is always at the same stage: they have as many, it goes on to the next one of
    all in the same blocks, and uses none of them between the first and the last that goes on. What it is at is then
    one number, which the last of each block counts."""
    groups: list[list[SSAValue]] = []
    alike: dict[tuple[object, ...], list[list[SSAValue]]] = {}
    for channel, ops in users.items():
        steps = list(filter(goes_on, ops))
        blocks = [op.parent for op in steps]
        looks = any(AHEAD in op.attributes for op in ops)
        if looks or len(set(blocks)) < len(blocks):
            groups.append([channel])
            continue
        same = alike.setdefault((channel_of(channel).depth, *blocks), [])
        group = next((one for one in same if _go_together([*one, channel], users)), None)
        if group is not None:
            group.append(channel)
            continue
        same.append([channel])
        groups.append(same[-1])
    return groups


def _go_together(channels: Sequence[SSAValue], users: Users) -> bool:
    steps = {channel: {op.parent: op for op in users[channel] if goes_on(op)} for channel in channels}
    return all(_unused([found[block] for found in steps.values()], channels) for block in steps[channels[0]])


def _unused(steps: Sequence[Operation], channels: Sequence[SSAValue]) -> bool:
    """Whether nothing between operations of one block uses a channel behind the one that goes on to its next stage."""
    block, last = steps[0].parent, last_of(steps)
    assert block is not None
    passed = set[SSAValue]()
    for op in takewhile(lambda op: op is not last, block.ops):
        if passed and any(channel in passed for inner in op.walk() for channel in _used(inner, channels)):
            return False
        if op in steps:
            passed.update(channel for channel in channels if channel in op.operands)
    return True


def _used(op: Operation, channels: Sequence[SSAValue]) -> Iterator[SSAValue]:
    """The channels whose stage an operation needs to know."""
    if isinstance(op, DrainOp) and op.kind.data is Drain.Loads:
        yield from channels
    users = (use.operation for result in op.results for use in result.uses)
    yield from (user.channel for user in users if isinstance(user, CommitOp))
    yield from (operand for operand in op.operands if operand in channels)


def last_of(steps: Collection[Operation]) -> Operation:
    """The last of operations of one block."""
    block = next(iter(steps)).parent
    assert block is not None
    return next(op for op in reversed(list(block.ops)) if op in steps)


def counted_later(groups: Sequence[Sequence[SSAValue]], users: Users) -> set[Operation]:
    """The operations behind which another one of their block counts."""
    found: set[Operation] = set()
    for group in (one for one in groups if len(one) > 1):
        steps: dict[Block | None, set[Operation]] = {}
        for op in (op for channel in group for op in users[channel] if goes_on(op)):
            steps.setdefault(op.parent, set()).add(op)
        for same in steps.values():
            found |= same - {last_of(same)}
    return found
