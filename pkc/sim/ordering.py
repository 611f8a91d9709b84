"""Reports each access of a run to the check of its order (`order.py`); the functions of fences and drains."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, TypeAlias

from xdsl.ir import Operation, SSAValue

from pkc.dialect.access import AddToArrayOp, StoreOp
from pkc.dialect.engines import engines
from pkc.dialect.fences import DrainOp, FenceOp
from pkc.dialect.program import KernelOp, TasksOp, packed
from pkc.dialect.roles import ChannelOp, CommitOp
from pkc.dialect.transfers import FENCED, moves_async, moves_by_tma, stage_of
from pkc.semantics.evaluate import Call
from pkc.sim.array import Where
from pkc.sim.channels import ring_of
from pkc.sim.machine import Calls, Frame, Machine
from pkc.sim.memory_model import Attempt, Kind, RingClocks, WarpRole
from pkc.sim.order import MemoryOrder

Note: TypeAlias = Callable[[Frame, Where], None]
"""Reports an access and its place, before it happens."""

NoteStore: TypeAlias = Callable[[Frame, Where, Any], None]
"""The same, with the tile that is stored."""


def memory_order(kernel: KernelOp, machine: Machine, written: Collection[str], *, guarded: bool) -> MemoryOrder:
    """The check of a run of a kernel with roles, which writes to the arrays `written`.

    If `guarded`, arrays belong to the caller before and after each launch of their rank.
    """
    roles = len(kernel.roles)
    channels = sum(isinstance(op, ChannelOp) for op in kernel.body.block.ops)
    lanes = machine.lanes * sum(isinstance(op, TasksOp) for role in engines(kernel) for op in role.walk())
    ctas = machine.ctas + machine.comm_ctas if machine.per_cta else 1
    components = machine.ranks * (2 + ctas * (2 * roles + channels) + 2 * lanes)
    explicit = FENCED in kernel.attributes
    return MemoryOrder(machine.memory.arrays, written, machine.ranks, components, explicit=explicit, guarded=guarded)


def note_read(op: Operation, array: SSAValue, machine: Machine) -> Note:
    """For an operation that reads from an array."""
    order, memory, by_tma = machine.order, machine.array(array), moves_by_tma(op)
    if order is None or memory.name not in order.arrays:
        return _nothing
    commits = [use.operation for result in op.results for use in result.uses if isinstance(use.operation, CommitOp)]
    arrives = by_tma or moves_async(op)
    find = ring_of(commits[0].channel, machine) if arrives and commits else None

    read = order.read if memory.name in order.written else order.read_constant

    def note(frame: Frame, where: Where) -> None:
        ring = None if find is None else find(frame).clocks
        read(Attempt(frame.warp_role, op, Kind.Read, by_tma), memory, where, ring)

    return note


def note_store(op: Operation, array: SSAValue, machine: Machine) -> NoteStore:
    """For an operation that stores to an array."""
    order, memory, by_tma = machine.order, machine.array(array), moves_by_tma(op)
    if order is None or memory.name not in order.arrays:
        return _nothing
    in_packets, find = packed(op), _stage_read(op, machine)

    def note(frame: Frame, where: Where, tile: Any) -> None:
        warp_role: WarpRole = frame.warp_role
        order.store(Attempt(warp_role, op, Kind.Store, by_tma, in_packets), memory, where, tile)
        if by_tma:
            warp_role.end_group(op, find(frame))

    return note


def note_addition(op: Operation, array: SSAValue, machine: Machine) -> Note:
    """For an operation that adds to elements of an array."""
    order, memory, by_tma = machine.order, machine.array(array), moves_by_tma(op)
    if order is None or memory.name not in order.arrays:
        return _nothing
    find = _stage_read(op, machine)

    def note(frame: Frame, where: Where) -> None:
        warp_role: WarpRole = frame.warp_role
        order.add(Attempt(warp_role, op, Kind.Add, by_tma), memory, where)
        if by_tma:
            warp_role.end_group(op, find(frame))

    return note


def _stage_read(op: Operation, machine: Machine) -> Callable[[Frame], tuple[RingClocks, int] | None]:
    """Which stage an asynchronous store reads from: that of its tile, if order is checked there."""
    stage = stage_of(op.tile) if isinstance(op, StoreOp | AddToArrayOp) and moves_by_tma(op) else None
    if stage is None:
        return lambda _: None
    find = ring_of(stage.channel, machine)

    def read(frame: Frame) -> tuple[RingClocks, int] | None:
        ring = find(frame)
        return None if ring.clocks is None else (ring.clocks, ring.consumed)

    return read


def _nothing(frame: Frame, where: Where, tile: Any = None) -> None:
    """Only one rank reaches the array, or nothing is checked."""


def _order(op: FenceOp | DrainOp, machine: Machine) -> Call:
    def order(frame: Frame) -> None:
        warp_role: WarpRole | None = frame.warp_role
        if warp_role is None:
            return
        if isinstance(op, FenceOp):
            warp_role.fence(op.kind.data)
        else:
            warp_role.drain(op.kind.data, op.may_remain)

    return Call(order)


FENCES: Calls = {FenceOp: _order, DrainOp: _order}
