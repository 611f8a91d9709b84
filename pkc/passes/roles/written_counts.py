"""How many signals the counters of an author's protocol get in a launch, for all sizes.

Such counters begin each launch at zero. A wait for all signals of its counter is right for all sizes; one for fewer may
be for the first of several rounds, of which this says nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects import arith, scf
from xdsl.ir import BlockArgument, Operation, SSAValue

from pkc.dialect.coordinates import DimOp, RankOp, RingPeerOp
from pkc.dialect.counters import ResetOp, SignalAllOp, SignalOp, WaitOp
from pkc.dialect.program import PER_CTA, RoleOp, TasksOp
from pkc.dialect.scalars import constant_of
from pkc.dialect.types import RANKS
from pkc.passes.analysis.dependence import ancestors, role_around, same_value
from pkc.passes.analysis.polynomials import Polynomial, polynomial
from pkc.passes.build import is_constant


def sent_to(wait: WaitOp) -> tuple[Polynomial | None, Polynomial | None]:
    """What a wait is for, and what its counter gets in a launch from all ranks; None where that is not known.

    A counter is one of a constant number, or of the number of a rank. Into the latter that rank alone signals; what it
    has is then what a polynomial calls "of this rank".
    """
    users = [use.operation for use in wait.signal.uses]
    if not all(isinstance(op, SignalOp | SignalAllOp | WaitOp | ResetOp) for op in users):
        return None, None
    senders = [place for place in wait.indices if _is_a_rank(place)]
    if len(senders) > 1 or any(place not in senders and constant_of(place) is None for place in wait.indices):
        return None, None
    total = Polynomial.constant(0)
    for op in users:
        if isinstance(op, SignalOp | SignalAllOp) and _may_be_for(op, wait):
            each = _from_all(op, by_sender=bool(senders)) if _is_for(op, wait, senders) else None
            if each is None or each.has_negative_terms:
                return None, None
            total += each
    return polynomial(wait.count, senders[0] if senders else None), total


def _may_be_for(op: SignalOp | SignalAllOp, wait: WaitOp) -> bool:
    """Whether a signal is not for counters of other numbers alone."""
    numbers = ((constant_of(one), constant_of(other)) for one, other in zip(op.indices, wait.indices, strict=True))
    return all(one is None or other is None or one == other for one, other in numbers)


def _is_for(op: SignalOp | SignalAllOp, wait: WaitOp, senders: list[SSAValue]) -> bool:
    """Whether a signal is for the very counter that a wait is for, from the rank that the wait names if it does."""
    return all(
        isinstance(one.owner, RankOp) if other in senders else constant_of(one) is not None
        for one, other in zip(op.indices, wait.indices, strict=True)
    )


def _from_all(op: SignalOp | SignalAllOp, *, by_sender: bool) -> Polynomial | None:
    """What a counter of one rank gets by a signal, from all senders, or from one if each sender has a counter."""
    loop = _loop_over_ranks(op) if isinstance(op, SignalOp) else None
    each = _from_one(op, loop)
    if each is None:
        return None
    if isinstance(op, SignalAllOp) or loop is not None:
        if by_sender:
            return each
        return None if each.differs_by_rank else each * Polynomial.of(RANKS)
    if by_sender:
        return None  # from some of the ranks
    if isinstance(op.rank.owner, RankOp):
        return each
    return each if _is_next(op.rank) and not each.differs_by_rank else None


def _loop_over_ranks(op: SignalOp) -> scf.ForOp | None:
    """The loop that goes through all ranks, each of which gets the signal once."""
    step = op.rank.owner.step if isinstance(op.rank.owner, RingPeerOp) else op.rank
    loop = step.owner.parent_op() if isinstance(step, BlockArgument) else None
    if not isinstance(loop, scf.ForOp) or step is not loop.body.block.args[0] or not _from_zero(loop):
        return None
    return loop if _is_ranks(loop.ub) else None


def _from_one(op: SignalOp | SignalAllOp, over_ranks: scf.ForOp | None) -> Polynomial | None:
    """What one rank sends by a signal to one counter."""
    total = polynomial(op.amount)
    for count in _counts(op, over_ranks):
        if total is None or count is None:
            return None
        total *= count
    shared_out = any(isinstance(around, TasksOp) for around in ancestors(op))
    role = role_around(op)
    if total is None or role is None:
        return None
    return total if shared_out else total * Polynomial.of(f"ctas of {role.role.data}")


def _counts(op: Operation, over_ranks: scf.ForOp | None) -> Iterator[Polynomial | None]:
    """How often the loops and tasks around a signal run it; None of what is not known."""
    for around in ancestors(op):
        if isinstance(around, RoleOp):
            return
        if isinstance(around, TasksOp):
            yield from (polynomial(count) for count in around.counts)
            yield None if PER_CTA not in around.attributes else Polynomial.constant(1)
        elif isinstance(around, scf.ForOp):
            if around is not over_ranks:
                yield polynomial(around.ub) if _from_zero(around) else None
        else:
            yield None


def _from_zero(loop: scf.ForOp) -> bool:
    return is_constant(loop.lb, 0) and is_constant(loop.step, 1)


def _is_a_rank(value: SSAValue) -> bool:
    """Whether a value is the number of a rank: this one, one of a ring, or another by its distance."""
    return isinstance(value.owner, RankOp | RingPeerOp) or _is_next(value)


def _is_next(value: SSAValue) -> bool:
    """Whether a value is (rank + x) mod ranks with the same x on all ranks, so that each rank is the next of one."""
    op = value.owner
    if isinstance(op, arith.RemSIOp):
        return _is_ranks(op.rhs) and _ranks_in(op.lhs) == 1
    # As the language has it, what is left of a quotient that is rounded down.
    whole = op.rhs.owner if isinstance(op, arith.SubiOp) else None
    quotient = whole.lhs.owner if isinstance(whole, arith.MuliOp) else None
    if not isinstance(op, arith.SubiOp) or not isinstance(whole, arith.MuliOp):
        return False
    if not isinstance(quotient, arith.FloorDivSIOp) or not same_value(quotient.lhs, op.lhs):
        return False
    return _is_ranks(whole.rhs) and _is_ranks(quotient.rhs) and _ranks_in(op.lhs) == 1


def _is_ranks(value: SSAValue) -> bool:
    return isinstance(value.owner, DimOp) and value.owner.dim.data == RANKS


def _ranks_in(value: SSAValue) -> int | None:
    """How often this rank's number is added in a sum; None if it is not known."""
    op = value.owner
    match op:
        case RankOp():
            return 1
        case arith.AddiOp() | arith.SubiOp():
            left, right = _ranks_in(op.lhs), _ranks_in(op.rhs)
            if left is None or right is None:
                return None
            return left + right if isinstance(op, arith.AddiOp) else left - right
        case _:
            found = polynomial(value)
            return None if found is None or found.differs_by_rank else 0
