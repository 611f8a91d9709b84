"""MMAs in flight, or in pieces: how long they read the stages of their operands."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects import scf
from xdsl.ir import Operation

from pkc.diagnostics import Label, PkcError
from pkc.dialect.tile import AnyMmaOp, MmaIssueOp, MmaOp, MmaWaitOp, chain_of, chain_with, in_flight, pieces_of
from pkc.dialect.transfers import mma_operand_stage
from pkc.location import span_of
from pkc.sim import order_errors as errors
from pkc.sim.channels import ring_of
from pkc.sim.machine import Frame, Machine


def after(op: Operation, machine: Machine) -> Callable[[Frame], None] | None:
    """What to run after an MMA, which may still read its stages, and after a wait or a loop, when it is complete."""
    if machine.order is None:
        return None
    if isinstance(op, MmaOp):
        return _issued(op, machine, in_flight(op), later=_comes_later(op))
    if isinstance(op, MmaIssueOp):
        return _issued(op, machine, None)
    if isinstance(op, MmaWaitOp):
        return _awaited(op)
    if isinstance(op, scf.ForOp) and any(isinstance(inner, MmaOp) and in_flight(inner) for inner in op.body.ops):
        return lambda frame: frame.warp_role.finish_mmas(0)
    ended = _ended_with(op)
    return (lambda frame: frame.warp_role.finish_pieces(ended)) if ended else None


def _comes_later(mma: MmaOp) -> bool:
    """Whether an MMA is computed piece by piece where a chain needs it."""
    return bool(pieces_of(mma)) and any(mma.result.uses)


def _ended_with(op: Operation) -> list[MmaOp]:
    """The MMAs in pieces that a chain needs which ends here."""
    number = chain_of(op)
    if number is not None and op.next_op is not None and chain_of(op.next_op) == number:
        return []
    chain = chain_with(op)
    needed = (value.owner for one in chain for value in one.operands)
    mmas = [made for made in needed if isinstance(made, MmaOp) and _comes_later(made)]
    return mmas if chain[-1] is op else []


def _issued(op: AnyMmaOp, machine: Machine, left: int | None, *, later: bool = False) -> Callable[[Frame], None]:
    """`left` of the MMAs stay in flight, or all of them; of one in pieces some are issued `later`."""
    read = [stage for value in (op.a, op.b) if (stage := mma_operand_stage(value)) is not None]
    rings = [ring_of(stage.channel, machine) for stage in read]

    def issue(frame: Frame) -> None:
        used = [find(frame) for find in rings]
        stages = {(ring.clocks, ring.consumed) for ring in used if ring.clocks is not None}
        if later:
            frame.warp_role.pieces[op] = stages
            return
        frame.warp_role.issue_mma(op, stages)
        if left is not None:
            frame.warp_role.finish_mmas(left)

    return issue


def _awaited(op: MmaWaitOp) -> Callable[[Frame], None]:
    issue, left = op.issued.owner, op.left.value.data

    def wait(frame: Frame) -> None:
        warp_role = frame.warp_role
        warp_role.finish_mmas(left)
        if any(mma is issue for mma, _ in warp_role.mmas):
            also = (Label(span_of(issue.location), "MMA issued here"),) if isinstance(issue, Operation) else ()
            raise PkcError(errors.MmaNotAwaited(span_of(op.location), len(warp_role.mmas), warp_role.name, also=also))

    return wait
