"""The pass `pk-expand-barriers`: a barrier becomes a signal to all ranks and a wait."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from xdsl.dialects import arith, scf
from xdsl.ir import Operation, SSAValue

from pkc.diagnostics import PkcError
from pkc.dialect.coordinates import BlockOp, BlockPositionOp, DimOp
from pkc.dialect.counters import BarrierOp, CounterOp, SignalAllOp, WaitOp
from pkc.dialect.program import KernelOp
from pkc.dialect.scalars import constant_of
from pkc.dialect.tile import block_type
from pkc.dialect.types import RANKS
from pkc.location import span_of
from pkc.passes import plan_errors as errors
from pkc.passes.analysis.dependence import ancestors, enclosing_tasks
from pkc.passes.build import before, constant
from pkc.passes.kernel_pass import KernelPass
from pkc.passes.roles.remote_accesses import array_name
from pkc.passes.roles.repeats import UnknownRepeatsError, runs_so_far


class ExpandBarriers(KernelPass):
    """Write a barrier as a signal to all ranks by one, and a wait for as many as all ranks have sent up to it.

    The n-th barrier by a counter waits for n times the ranks. So it must be known how many there were before: a
    counter is used by barriers alone, at places in the role that loops around them count, or once by each task.

    Before:

        pk.barrier %ready[%0] : !pk.signal<[1]>

    After:

        pk.signal_all %ready[%0] by %one : !pk.signal<[1]>
        pk.wait %ready[%0] for %ranks : !pk.signal<[1]>
    """

    name = "pk-expand-barriers"

    def run(self, kernel: KernelOp) -> None:
        barriers = [op for op in kernel.walk() if isinstance(op, BarrierOp)]
        for signal in dict.fromkeys(op.signal for op in barriers):
            using = [op for op in barriers if op.signal is signal]
            other = next((u.operation for u in signal.uses if not isinstance(u.operation, BarrierOp)), None)
            if isinstance(other, CounterOp):
                raise _refused(using[0], "another signal or wait uses the counter too")
            for same in _by_counter(using):
                counts = [_ops(same, number) for number in range(len(same))]
                for op, (made, times) in zip(same, counts, strict=True):
                    _expand(op, made, times)


def _by_counter(using: Sequence[BarrierOp]) -> Iterable[list[BarrierOp]]:
    """Barriers by the counters of one array: those of each counter if constants say which one each uses, else all."""
    found: dict[tuple[int | None, ...], list[BarrierOp]] = {}
    for op in using:
        found.setdefault(tuple(map(constant_of, op.indices)), []).append(op)
    return [list(using)] if any(None in place for place in found) else found.values()


def _refused(op: BarrierOp, reason: str) -> PkcError:
    return PkcError(errors.UncountedBarrier(span_of(op.location), array_name(op.signal), reason))


def _ops(using: Sequence[BarrierOp], number: int) -> tuple[list[Operation], SSAValue]:
    """Operations for the place of a barrier, and their result: how many by its counter there were, itself included."""
    op = using[number]
    if enclosing_tasks(op):
        _check_in_tasks(using, op)
        one = constant(1)
        return [one], one.result
    try:
        made, times = runs_so_far(op)
    except UnknownRepeatsError as error:
        raise _refused(op, str(error)) from None
    places = [[constant_of(index) for index in each.indices] for each in using]
    if len(using) == 1 and len(made) > 1:
        if any(place is None for place in places[0]):
            raise _refused(op, "the iterations of the loop around it use several counters")
        return made, times
    branches = any(isinstance(around, scf.IfOp) for around in ancestors(op))
    if len(using) > 1 and (branches or len(made) > 1 or any(None in place for place in places)):
        raise _refused(op, "there are several, and not all of them at constant counters outside of loops and branches")
    one = constant(1 + places[:number].count(places[number]))
    return [one], one.result


def _check_in_tasks(using: Sequence[BarrierOp], op: BarrierOp) -> None:
    indices = [index for tasks in enclosing_tasks(op) for index in tasks.body.block.args]
    if len(using) > 1 or not all(any(_tells(named, index) for named in op.indices) for index in indices):
        raise _refused(op, "several tasks, or statements, may use one counter")


def _tells(named: SSAValue, index: SSAValue) -> bool:
    """Whether a number is another one for each index: the index, where its block begins, or a part of that which is no
    longer than the block."""
    by, made = 1, named.owner
    if isinstance(made, arith.FloorDivSIOp):
        by, made = constant_of(made.rhs) or 0, made.lhs.owner
    if not isinstance(made, BlockPositionOp) or not isinstance(made.block.owner, BlockOp):
        return named is index
    return made.block.owner.index is index and 0 < by <= block_type(made.block).extent


def _expand(op: BarrierOp, made: list[Operation], times: SSAValue) -> None:
    one, ranks = constant(1), DimOp(RANKS)
    wanted = arith.MuliOp(times, ranks.result)
    signal = SignalAllOp(op.signal, list(op.indices), one)
    before(op, [*made, one, ranks, wanted, signal, WaitOp(op.signal, list(op.indices), wanted.result)])
    op.detach()
    op.erase()
