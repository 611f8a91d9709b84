"""Products that stay in flight: how long they read the stages that their operands lie in."""

from __future__ import annotations

from xdsl.dialects import scf
from xdsl.ir import Operation

from pkc.dialect.tile import MmaOp, in_flight
from pkc.dialect.transfers import multiplied_from
from pkc.sim.channels import ring_of
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
    stages = [stage for value in (op.a, op.b) if (stage := multiplied_from(value)) is not None]
    rings = [ring_of(stage.channel, machine) for stage in stages]

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
