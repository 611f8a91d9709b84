"""MMAs in flight: how long they read the stages of their operands."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects import scf
from xdsl.ir import Operation

from pkc.dialect.tile import MmaOp, in_flight
from pkc.dialect.transfers import mma_operand_stage
from pkc.sim.channels import ring_of
from pkc.sim.machine import Frame, Machine


def after(op: Operation, machine: Machine) -> Callable[[Frame], None] | None:
    """What to run after an MMA, which may still read its stages, and after a loop of MMAs, when they are complete."""
    if machine.order is None:
        return None
    if isinstance(op, MmaOp):
        return _issued(op, machine)
    if isinstance(op, scf.ForOp) and any(isinstance(inner, MmaOp) and in_flight(inner) for inner in op.body.ops):
        return lambda frame: frame.warp_role.finish_mmas()
    return None


def _issued(op: MmaOp, machine: Machine) -> Callable[[Frame], None]:
    left = in_flight(op)
    stages = [stage for value in (op.a, op.b) if (stage := mma_operand_stage(value)) is not None]
    rings = [ring_of(stage.channel, machine) for stage in stages]

    def issue(frame: Frame) -> None:
        used = [find(frame) for find in rings]
        frame.warp_role.issue_mma(op, {(ring.clocks, ring.consumed) for ring in used if ring.clocks is not None}, left)

    return issue
