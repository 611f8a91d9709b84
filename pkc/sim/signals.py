"""The operations on counters, as steps."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.ir import Operation

from pkc.diagnostics import PkcError
from pkc.dialect import blocks, counters
from pkc.dialect.held import SendHeldOp, is_held
from pkc.dialect.types import BlockType, Dim, SignalType
from pkc.location import span_of
from pkc.sim import errors
from pkc.sim.machine import EPOCH, HOLDING, RANK, WORKER, Machine, Registers, Step
from pkc.sim.schedule import Counter
from pkc.sim.trace import Access


def signal_step(op: Operation, machine: Machine) -> Step | None:
    """The step of an operation on a counter; None for any other."""
    match op:
        case counters.SignalOp():
            return _at_once_or_held(op, _signal(op, machine))
        case counters.SignalAllOp():
            return _signal_all(op, machine)
        case counters.RaiseOp():
            return _at_once_or_held(op, _raise(op, machine))
        case SendHeldOp():
            return _send_held(op)
        case counters.WaitOp():
            return _wait(op, machine)
        case counters.BarrierOp():
            return _barrier(op, machine)
        case counters.ResetOp():
            return _reset(op, machine)
        case _:
            return None


def _at_once_or_held(op: Operation, send: Step) -> Step:
    """The step of a signal; if it is held, it will be sent with the operands that it has now."""
    if not is_held(op):
        return send

    def hold(registers: Registers) -> None:
        held = registers.copy()
        registers[HOLDING].append(lambda: send(held))

    return hold


def _send_held(op: SendHeldOp) -> Step:
    left, most = op.left.value.data, op.most

    def send_held(registers: Registers) -> None:
        holding: list[Callable[[], None]] = registers[HOLDING]
        if len(holding) < most:
            return
        while len(holding) > left:
            holding.pop(0)()

    return send_held


def _signal(op: counters.SignalOp, machine: Machine) -> Step:
    counter_of, rank, amount = _locator(op, machine), machine.slots[op.rank], machine.slots[op.amount]

    def signal(registers: Registers) -> None:
        machine.check_rank(op, registers[RANK], registers[rank])
        _add(machine, op, registers, counter_of(registers, registers[rank]), registers[amount])

    return signal


def _signal_all(op: counters.SignalAllOp, machine: Machine) -> Step:
    counter_of, amount = _locator(op, machine), machine.slots[op.amount]
    first, last = (None if rank is None else machine.slots[rank] for rank in (op.first, op.last))

    def signal_all(registers: Registers) -> None:
        begin = 0 if first is None else registers[first]
        end = machine.ranks - 1 if last is None else registers[last]
        for rank in range(begin, end + 1):
            machine.check_rank(op, registers[RANK], rank)
            _add(machine, op, registers, counter_of(registers, rank), registers[amount])

    return signal_all


def _raise(op: counters.RaiseOp, machine: Machine) -> Step:
    counter_of, rank, value = _locator(op, machine), machine.slots[op.rank], machine.slots[op.value]

    def raise_to(registers: Registers) -> None:
        machine.check_rank(op, registers[RANK], registers[rank])
        counter = counter_of(registers, registers[rank])
        if machine.world.ledger is not None:
            machine.world.ledger.sent(counter, registers[value], registers[EPOCH], op, raised=True)
        before = machine.world.counters.get(counter, 0)
        now = machine.world.counters[counter] = max(before, registers[value])
        if machine.scheduler.trace is not None:
            machine.scheduler.trace.set(op, counter, now - before, now)
        _announce(machine, op, registers, counter, now)

    return raise_to


def _wait(op: counters.WaitOp, machine: Machine) -> Step:
    counter_of, count = _locator(op, machine), machine.slots[op.count]

    def wait(registers: Registers) -> None:
        counter = counter_of(registers, registers[RANK])
        if machine.world.ledger is not None:
            machine.world.ledger.awaited(counter, registers[count], registers[EPOCH], op)
        _until(machine, op, registers, counter, registers[count])

    return wait


def _barrier(op: counters.BarrierOp, machine: Machine) -> Step:
    counter_of = _locator(op, machine)

    def barrier(registers: Registers) -> None:
        own = counter_of(registers, registers[RANK])
        arrived = machine.world.counters.get(own, 0)
        if machine.scheduler.trace is not None:
            machine.scheduler.trace.steps[-1].touch((own,), Access.Write)  # what it waits for depends on who came first
        for rank in range(machine.ranks):
            _add(machine, op, registers, own._replace(rank=rank), 1)
        # The next multiple above what was there before this rank came: right for every use of the counter in turn.
        _until(machine, op, registers, own, (arrived // machine.ranks + 1) * machine.ranks)

    return barrier


def _reset(op: counters.ResetOp, machine: Machine) -> Step:
    name = machine.names[op.signal]

    def reset(registers: Registers) -> None:
        machine.pause()
        for counter in machine.world.counters:
            if (counter.rank, counter.signal) == (registers[RANK], name):
                if machine.scheduler.trace is not None:
                    machine.scheduler.trace.set(op, counter, -machine.world.counters[counter], 0)
                machine.world.counters[counter] = 0
                if machine.order is not None:
                    machine.order.reset(counter)

    return reset


def _locator(
    op: counters.SignalOp | counters.SignalAllOp | counters.RaiseOp | counters.WaitOp | counters.BarrierOp,
    machine: Machine,
) -> Callable[[Registers, int], Counter]:
    """What finds a counter of a rank; others may run before it is changed, or when it is waited for."""
    assert isinstance(op.signal.type, SignalType)
    name = machine.names[op.signal]
    sizes = tuple(_size(extent, machine) for extent in op.signal.type.extents)
    slots = [machine.slots[index] for index in op.indices]
    pauses = not isinstance(op, counters.WaitOp)

    def locate(registers: Registers, rank: int) -> Counter:
        if pauses:
            machine.pause()
        indices = tuple(registers[slot] for slot in slots)
        for axis, (index, size) in enumerate(zip(indices, sizes, strict=True)):
            if not 0 <= index < size:
                span = span_of(op.location)
                raise PkcError(errors.IndexOutOfRange(span, index, axis, name, registers[RANK], size - 1))
        return Counter(rank, name, indices)

    return locate


def _size(extent: Dim | BlockType, machine: Machine) -> int:
    if not isinstance(extent, BlockType):
        return machine.size(extent)
    return blocks.numbers(machine.size(extent.of), machine.ranks, extent.extent)


def _add(machine: Machine, op: Operation, registers: Registers, counter: Counter, amount: int) -> None:
    now = machine.world.counters[counter] = machine.world.counters.get(counter, 0) + amount
    if machine.world.ledger is not None:
        machine.world.ledger.sent(counter, amount, registers[EPOCH], op)
    if machine.scheduler.trace is not None:
        machine.scheduler.trace.added(op, counter, amount, now)
    _announce(machine, op, registers, counter, now)


def _announce(machine: Machine, op: Operation, registers: Registers, counter: Counter, now: int) -> None:
    if machine.order is not None:
        machine.order.signal(registers[WORKER], counter, now, counters.order_of(op) or counters.Order.Release_Sys)
    machine.scheduler.let_go(counter)


def _until(machine: Machine, op: Operation, registers: Registers, counter: Counter, count: int) -> None:
    machine.scheduler.wait(op, counter, count, lambda: machine.world.counters.get(counter, 0))
    if machine.order is not None:
        machine.order.wait(registers[WORKER], counter, count)
