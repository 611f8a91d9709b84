"""The operations on channels, as steps: rings of stages between the roles of one CTA."""

from __future__ import annotations

from typing import Any

import numpy as np
from xdsl.ir import Operation

from pkc.dialect import roles
from pkc.dialect.numeric import Values
from pkc.dialect.ranges import Bounded
from pkc.sim.array import poison
from pkc.sim.machine import CTA, RANK, Machine, Registers, Step
from pkc.sim.schedule import Counter


class Ring:
    """The stages of one channel of one CTA. Tiles live in their stage: what comes later overwrites them."""

    def __init__(self, rank: int, cta: int, label: str, depth: int) -> None:
        self.depth = depth
        self.stages: list[list[Any]] = [[] for _ in range(depth)]
        self.acquired = self.committed = self.consumed = self.released = 0
        self.free = Counter(rank, f"free stages of {label}, CTA", (cta,))
        self.full = Counter(rank, f"full stages of {label}, CTA", (cta,))


def channel_step(op: Operation, machine: Machine) -> Step | None:
    """The step of an operation on a channel; None for any other."""
    match op:
        case roles.ChannelOp():
            return _declare
        case roles.AcquireOp():
            return _acquire(op, machine)
        case roles.CommitOp():
            return _commit(op, machine)
        case roles.ConsumeOp():
            return _consume(op, machine)
        case roles.ReleaseOp():
            return _release(op, machine)
        case _:
            return None


def _declare(registers: Registers) -> None:
    """Rings are made when they are first used."""


def _ring(op: roles.AcquireOp | roles.CommitOp | roles.ConsumeOp | roles.ReleaseOp, machine: Machine):
    channel = roles.channel_of(op.channel)
    label, depth = channel.label.data, channel.depth

    def find(registers: Registers) -> Ring:
        key = (registers[RANK], registers[CTA], channel)
        ring = machine.rings.get(key)
        if ring is None:
            ring = machine.rings[key] = Ring(registers[RANK], registers[CTA], label, depth)
        assert isinstance(ring, Ring)
        return ring

    return find


def _acquire(op: roles.AcquireOp, machine: Machine) -> Step:
    find = _ring(op, machine)

    def acquire(registers: Registers) -> None:
        ring = find(registers)
        ring.acquired += 1
        machine.pause()
        machine.scheduler.wait(op, ring.free, ring.acquired, lambda: ring.depth + ring.released)

    return acquire


def _commit(op: roles.CommitOp, machine: Machine) -> Step:
    find = _ring(op, machine)
    slots = [machine.slots[tile] for tile in op.tiles]

    def commit(registers: Registers) -> None:
        ring = find(registers)
        stage = ring.stages[ring.committed % ring.depth]
        tiles = [registers[slot] for slot in slots]
        if stage:
            for position, (held, tile) in enumerate(zip(stage, tiles, strict=True)):
                stage[position] = _overwrite(held, tile)
        else:
            stage += [_overwrite(None, tile) for tile in tiles]
        ring.committed += 1
        machine.scheduler.wake(ring.full)

    return commit


def _overwrite(held: Any, tile: Any) -> Any:
    """Put a tile into the memory of a stage, where whoever still uses the old one sees the new one."""
    if isinstance(tile, Bounded):
        return tile
    values: Values = tile
    if held is None:
        return np.array(values)  # of no axes too, for a scalar
    np.copyto(held, values)
    return held


def _consume(op: roles.ConsumeOp, machine: Machine) -> Step:
    find = _ring(op, machine)
    results = [machine.slots[tile] for tile in op.tiles]

    def consume(registers: Registers) -> None:
        ring = find(registers)
        ring.consumed += 1
        number = ring.consumed
        machine.pause()
        machine.scheduler.wait(op, ring.full, number, lambda: ring.committed)
        for slot, tile in zip(results, ring.stages[(number - 1) % ring.depth], strict=True):
            registers[slot] = tile

    return consume


def _release(op: roles.ReleaseOp, machine: Machine) -> Step:
    find = _ring(op, machine)

    def release(registers: Registers) -> None:
        ring = find(registers)
        stage = ring.stages[ring.released % ring.depth]
        for held in stage:
            if not isinstance(held, Bounded):
                values: Values = held
                values[...] = poison(values.shape, values.dtype)
        ring.released += 1
        machine.scheduler.wake(ring.free)

    return release
