"""Products that stay in flight: how long they read the stages that their operands lie in."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects import scf
from xdsl.ir import Operation, SSAValue

from pkc.dialect.roles import ConsumeOp
from pkc.dialect.tile import MmaOp, TransposeOp, in_flight
from pkc.sim.channels import Ring, ring_of
from pkc.sim.machine import WORKER, Machine, Registers, Step
from pkc.sim.workers import Worker


def with_products(op: Operation, machine: Machine, step: Step) -> Step:
    """The step of an operation, after which products may read their stages, or are complete: behind their loop."""
    if machine.order is None:
        return step
    if isinstance(op, MmaOp):
        return _issued(op, machine, step)
    if isinstance(op, scf.ForOp) and any(isinstance(inner, MmaOp) and in_flight(inner) for inner in op.body.ops):
        return _complete(step)
    return step


def _issued(op: MmaOp, machine: Machine, step: Step) -> Step:
    left = in_flight(op)
    rings = [find for value in (op.a, op.b) if (find := _ring(value, machine)) is not None]

    def issue(registers: Registers) -> None:
        step(registers)
        used = [find(registers) for find in rings]
        worker: Worker = registers[WORKER]
        worker.multiply(op, {(ring.clocks, ring.consumed) for ring in used if ring.clocks is not None}, left)

    return issue


def _complete(step: Step) -> Step:
    def complete(registers: Registers) -> None:
        step(registers)
        worker: Worker = registers[WORKER]
        worker.finish_products()

    return complete


def _ring(value: SSAValue, machine: Machine) -> Callable[[Registers], Ring] | None:
    """What finds the ring in a stage of which an operand lies."""
    owner = value.owner
    if isinstance(owner, TransposeOp):
        return _ring(owner.tile, machine)
    return ring_of(owner.channel, machine) if isinstance(owner, ConsumeOp) else None
