"""The pass `pk-restart-counters`: what copy engines raise and await is counted from zero in each launch."""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, UnitAttr
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.traits import Pure

from pkc.diagnostics import PkcError
from pkc.dialect.coordinates import CtasOp, EpochOp, RankOp
from pkc.dialect.counters import RaiseOp, ResetOp, SignalAllOp, SignalOp, WaitOp
from pkc.dialect.engines import RESTARTS, engines, is_engine
from pkc.dialect.program import KernelOp
from pkc.location import span_of
from pkc.passes.analysis.dependence import ancestors, sources
from pkc.passes.build import before, constant, is_constant
from pkc.passes.kernel_pass import KernelPass
from pkc.passes.machine import machine_errors as errors
from pkc.targets.target import target_of


class RestartCounters(KernelPass):
    """Count what copy engines raise and await from zero in each launch, not in epochs.

    A stream waits for a number, and writes one, that was given when it was enqueued. In a graph it stays the same from
    replay to replay, and the host does not know how many launches there were. So no number may depend on the launch:

    - Counters that only SMs of the same rank, or copy engines, raise are zero when a launch begins on their rank
      (`pk.restarts`): the runtime clears them in front of the kernel. A copy engine of another rank raises one only
      after this rank has signalled that it has begun, which it does after clearing.
    - Counters by which copy engines of all ranks meet are cleared by the copy engine that has waited for them. That is
      safe: after the ranks have met at their ends, another rank raises them again only in the next launch, when this
      rank has signalled that it has begun it.

    Before:

        pk.role copy_engine {
          ... pk.wait %began[%r] for %epoch ...
          ... pk.raise %ready at %rank[%row] to %epoch ...
        }
        pk.role loader { ... pk.wait %ready[%row] for %epoch ... }

    After, with `pk.restarts` on `%ready`:

        pk.role copy_engine {
          ... pk.wait %began[%r] for %one ...
          pk.reset %began
          ... pk.raise %ready at %rank[%row] to %one ...
        }
        pk.role loader { ... pk.wait %ready[%row] for %one ... }
    """

    name = "pk-restart-counters"
    ONLY_DERIVED = True

    def run(self, kernel: KernelOp) -> None:
        inside = [op for engine in engines(kernel) for op in engine.body.walk()]
        touched = {op.signal: None for op in inside if isinstance(op, WaitOp | RaiseOp)}
        for signal in touched:
            assert isinstance(signal, BlockArgument)
            users = [use.operation for use in signal.uses]
            _check(kernel, signal, users)
            for op in users:
                _from_zero(op)
            if all(map(_on_engine, users)) and not all(map(_is_local, users)):
                _clear(users)
            else:
                _mark(kernel, signal)
        for op in reversed(inside):
            if op.results and op.has_trait(Pure) and not any(result.uses for result in op.results):
                op.detach()
                op.erase()
            elif isinstance(op, EpochOp | CtasOp):
                raise _refused(op, "a copy engine that counts launches or CTAs")


def _check(kernel: KernelOp, signal: BlockArgument, users: list[Operation]) -> None:
    """Refuse a counter that SMs of other ranks may signal before this rank has cleared it."""
    for op in users:
        if not _is_local(op) and not _on_engine(op):
            name = kernel.argument_name(signal)
            raise _refused(op, f"a signal of SMs to other ranks by `{name}`, which copy engines touch")


def _refused(op: Operation, what: str) -> PkcError:
    hint = "`overlap=inter_sm` moves the same tiles by SMs"
    return PkcError(errors.NotLowered(span_of(op.location), target_of(op).name, what, hint))


def _on_engine(op: Operation) -> bool:
    return any(map(is_engine, ancestors(op)))


def _is_local(op: Operation) -> bool:
    """Whether an operation touches counters of this rank alone."""
    if isinstance(op, SignalOp | RaiseOp):
        return isinstance(op.rank.owner, RankOp)
    return not isinstance(op, SignalAllOp)


def _from_zero(op: Operation) -> None:
    """Replace the number that a wait is for, or a counter is raised to, by that of a first launch."""
    if not isinstance(op, WaitOp | RaiseOp):
        return
    number = op.count if isinstance(op, WaitOp) else op.value
    made: list[Operation] = []
    first = _in_first_launch(number, made)
    before(op, made)
    op.operands = [first if operand is number else operand for operand in op.operands]


def _in_first_launch(value: SSAValue, made: list[Operation]) -> SSAValue:
    if not any(isinstance(source.owner, EpochOp) for source in sources([value])):
        return value
    owner = value.owner
    if isinstance(owner, EpochOp):
        made.append(constant(1))
        return made[-1].results[0]
    assert isinstance(owner, Operation)
    if not owner.has_trait(Pure) or owner.regions:
        raise _refused(owner, "a count of signals that a loop adds up")
    operands = [_in_first_launch(operand, made) for operand in owner.operands]
    if isinstance(owner, arith.MuliOp):
        for number, one in (operands, operands[::-1]):
            if is_constant(one, 1):
                return number
    copy = owner.clone(value_mapper=dict(zip(owner.operands, operands, strict=True)))
    made.append(copy)
    return copy.results[0]


def _clear(users: list[Operation]) -> None:
    """Clear counters behind the loop in which they are awaited."""
    for op in users:
        if isinstance(op, WaitOp):
            around: Operation = op
            for parent in ancestors(op):
                if is_engine(parent):
                    break
                around = parent
            reset = ResetOp(op.signal)
            reset.location = op.location
            block = around.parent
            assert block is not None
            block.insert_op_after(reset, around)


def _mark(kernel: KernelOp, signal: BlockArgument) -> None:
    entries = list(kernel.arg_attrs)
    entries[signal.index] = DictionaryAttr({**entries[signal.index].data, RESTARTS: UnitAttr()})
    kernel.arg_attrs = ArrayAttr(entries)
