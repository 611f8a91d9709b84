"""The operations on channels, as functions: rings of stages between the roles of one CTA."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from xdsl.ir import Operation, SSAValue

from pkc.diagnostics import Label, PkcError
from pkc.dialect import roles
from pkc.dialect.numeric import Values
from pkc.dialect.program import PHASE, KernelOp, RoleOp
from pkc.dialect.ranges import Bounded
from pkc.dialect.transfers import crosses_proxies, is_fenced, is_read_fenced, read_by_threads
from pkc.location import span_of
from pkc.semantics.evaluate import Call
from pkc.sim import errors, order_errors
from pkc.sim.array import poison
from pkc.sim.machine import Calls, Frame, Machine
from pkc.sim.memory_model import RingClocks, WarpRole
from pkc.sim.schedule import Counter
from pkc.sim.terms import Term


class Ring:
    """The stages of one channel of one CTA. Tiles live in their stage, where later ones overwrite them."""

    def __init__(self, rank: int, cta: int, label: str, depth: int, clocks: RingClocks | None) -> None:
        self.depth = depth
        self.clocks = clocks
        self.stages: list[list[Any]] = [[] for _ in range(depth)]
        self.acquired = self.committed = self.consumed = self.released = 0
        self.kept = 0
        """Stages whose release is deferred."""
        self.free = Counter(rank, f"free stages of {label}, CTA", (cta,))
        self.full = Counter(rank, f"full stages of {label}, CTA", (cta,))


def _own_label(channel: roles.ChannelOp) -> str:
    """The label of a channel, and its number if others before it are labelled alike: no two share their counters."""
    alike, label = 0, channel.label.data
    before = channel.prev_op
    while before is not None:
        alike += isinstance(before, roles.ChannelOp) and before.label.data == label
        before = before.prev_op
    return f"{label} ({alike + 1})" if alike else label


def ring_of(value: SSAValue, machine: Machine) -> Callable[[Frame], Ring]:
    """What finds the ring of a channel."""
    channel = roles.channel_of(value)
    label, depth = _own_label(channel), channel.depth

    def find(frame: Frame) -> Ring:
        key = (frame.rank, frame.cta, channel)
        ring = machine.rings.get(key)
        if ring is None:
            clocks = None if machine.order is None else machine.order.ring(key, depth)
            ring = machine.rings[key] = Ring(frame.rank, frame.cta, label, depth, clocks)
        assert isinstance(ring, Ring)
        return ring

    return find


def _acquire(op: roles.AcquireOp, machine: Machine) -> Call:
    find, others = ring_of(op.channel, machine), _in_same_memory(roles.channel_of(op.channel))

    def acquire(frame: Frame) -> None:
        ring = find(frame)
        ring.acquired += 1
        number = ring.acquired
        machine.scheduler.wait(op, ring.free, number, lambda: ring.depth + ring.released)
        if ring.clocks is not None:
            ring.clocks.acquire(frame.warp_role, number)
        for channel in others:
            other = machine.rings.get((frame.rank, frame.cta, channel))
            if isinstance(other, Ring) and not _is_over(other, frame.warp_role):
                raise PkcError(_memory_in_use(op, channel, frame.warp_role))

    return Call(acquire)


def _in_same_memory(channel: roles.ChannelOp) -> list[roles.ChannelOp]:
    """The channels of other phases that lie where a channel does."""
    phase, kernel = channel.attributes.get(PHASE), channel.parent_op()
    if phase is None or not isinstance(kernel, KernelOp):
        return []
    channels = (op for op in kernel.body.block.ops if isinstance(op, roles.ChannelOp))
    return [other for other in channels if other.attributes.get(PHASE) not in (None, phase)]


def _is_over(ring: Ring, warp_role: WarpRole) -> bool:
    return ring.acquired == ring.released and (ring.clocks is None or ring.clocks.is_over_for(warp_role))


def _memory_in_use(op: roles.AcquireOp, other: roles.ChannelOp, warp_role: WarpRole) -> errors.MemoryInUse:
    label, also = roles.channel_of(op.channel).label.data, (Label(span_of(other.location), "the other one"),)
    return errors.MemoryInUse(span_of(op.location), label, other.label.data, warp_role.name, also=also)


def _commit(op: roles.CommitOp, machine: Machine) -> Call:
    find = ring_of(op.channel, machine)
    host = roles.channel_of(op.channel).host
    find_host = ring_of(host, machine) if host is not None else None
    unfenced = _unfenced(op, machine)

    def commit(frame: Frame, tiles: Sequence[Any]) -> None:
        if unfenced is not None:
            raise PkcError(_stage_not_fenced(op, unfenced, frame.warp_role))
        ring = find(frame)
        if find_host is not None and (clocks := find_host(frame).clocks) is not None:
            _check_read(op, clocks, ring.committed + 1, frame.warp_role)
        stage = ring.stages[ring.committed % ring.depth]
        if stage:
            for position, (before, tile) in enumerate(zip(stage, tiles, strict=True)):
                stage[position] = _overwrite(before, tile)
        else:
            stage += [_overwrite(None, tile) for tile in tiles]
        if ring.clocks is not None:
            ring.clocks.commit(frame.warp_role)
        ring.committed += 1
        machine.scheduler.wake(ring.full)

    return Call(commit, op.tiles)


def _overwrite(before: Any, tile: Any) -> Any:
    """Copy a tile into the memory of a stage: whoever still uses the old tile sees the new one."""
    if isinstance(tile, Bounded | Term):
        return tile
    values: Values = tile
    if before is None:
        return np.array(values)  # of no axes too, for a scalar
    np.copyto(before, values)
    return before


def _consume(op: roles.ConsumeOp, machine: Machine) -> Call:
    find = ring_of(op.channel, machine)

    def consume(frame: Frame) -> Any:
        ring = find(frame)
        ring.consumed += 1
        number = ring.consumed
        machine.scheduler.wait(op, ring.full, number, lambda: ring.committed)
        if ring.clocks is not None:
            ring.clocks.consume(frame.warp_role, number)
        stage = ring.stages[(number - 1) % ring.depth]
        return stage[0] if len(stage) == 1 else stage

    return Call(consume)


def _release(op: roles.ReleaseOp, machine: Machine) -> Call:
    find, kept, free = ring_of(op.channel, machine), op.kept, _freeing(op, machine)

    def release(frame: Frame) -> None:
        ring = find(frame)
        if ring.kept < kept:
            ring.kept += 1
        else:
            free(ring, frame)

    return Call(release)


def _release_deferred(op: roles.ReleaseDeferredOp, machine: Machine) -> Call:
    find, free = ring_of(op.channel, machine), _freeing(op, machine)

    def release_deferred(frame: Frame) -> None:
        ring = find(frame)
        while ring.kept:
            ring.kept -= 1
            free(ring, frame)

    return Call(release_deferred)


def _freeing(op: roles.ReleaseOp | roles.ReleaseDeferredOp, machine: Machine) -> Callable[[Ring, Frame], None]:
    """A function after which the oldest stage that is not free may be filled again."""
    guest = roles.channel_of(op.channel).guest
    find_guest = ring_of(guest.result, machine) if guest is not None else None
    unfenced = _reads_unfenced(op, machine)

    def free(ring: Ring, frame: Frame) -> None:
        warp_role, number = frame.warp_role, ring.released + 1
        if unfenced:
            label = roles.channel_of(op.channel).label.data
            raise PkcError(order_errors.ReadNotFenced(span_of(op.location), label, warp_role.name))
        for each in (ring,) if find_guest is None else (ring, find_guest(frame)):
            if each.clocks is not None:
                _check_read(op, each.clocks, number, warp_role)
            for tile in each.stages[ring.released % ring.depth]:
                if not isinstance(tile, Bounded | Term):
                    values: Values = tile
                    values[...] = poison(values.shape, values.dtype)
        if ring.clocks is not None:
            ring.clocks.release(warp_role, number)
        ring.released = number
        machine.scheduler.wake(ring.free)

    return free


def _reads_unfenced(op: roles.ReleaseOp | roles.ReleaseDeferredOp, machine: Machine) -> bool:
    """Whether a role gives back a stage that it has read, and that TMA fills again, without a fence for that."""
    around = op.parent_op()
    while around is not None and not isinstance(around, RoleOp):
        around = around.parent_op()
    explicit = machine.order is not None and machine.order.explicit
    return explicit and around is not None and read_by_threads(op.channel, around) and not is_read_fenced(op)


def _unfenced(op: roles.CommitOp, machine: Machine) -> Operation | None:
    """The operation that reads this stage through the async proxy, if the commit has no fence for it."""
    explicit = machine.order is not None and machine.order.explicit
    return crosses_proxies(op) if explicit and not is_fenced(op) else None


def _stage_not_fenced(op: roles.CommitOp, reader: Operation, warp_role: WarpRole) -> order_errors.StageNotFenced:
    also, label = (Label(span_of(reader.location), "read from it here"),), roles.channel_of(op.channel).label.data
    return order_errors.StageNotFenced(span_of(op.location), label, warp_role.name, also=also)


def _check_read(
    op: roles.ReleaseOp | roles.ReleaseDeferredOp | roles.CommitOp, clocks: RingClocks, number: int, warp_role: WarpRole
) -> None:
    """Refuse to release or to overwrite a stage that a store, or an MMA in flight, may still read."""
    stage, label = (clocks, number), roles.channel_of(op.channel).label.data
    store = warp_role.store_reading(stage)
    if store is not None:
        also = (Label(span_of(store.location), "stored from it here"),)
        raise PkcError(order_errors.StageStillRead(span_of(op.location), label, warp_role.name, also=also))
    mma = warp_role.mma_reading(stage)
    if mma is not None:
        also = (Label(span_of(mma.location), "MMA issued here"),)
        raise PkcError(order_errors.StageStillMultiplied(span_of(op.location), label, warp_role.name, also=also))


CHANNELS: Calls = {
    roles.AcquireOp: _acquire,
    roles.CommitOp: _commit,
    roles.ConsumeOp: _consume,
    roles.ReleaseOp: _release,
    roles.ReleaseDeferredOp: _release_deferred,
}
