"""The operations on counters, as functions."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from xdsl.ir import Operation

from pkc.diagnostics import PkcError
from pkc.dialect import counters
from pkc.dialect.deferred import SendDeferredOp, is_deferred
from pkc.dialect.ranges import I32
from pkc.location import span_of
from pkc.semantics.evaluate import Call
from pkc.sim import errors
from pkc.sim.machine import Calls, Frame, Machine
from pkc.sim.schedule import Counter
from pkc.sim.trace import Access


def _at_once_or_deferred(op: Operation, send: Call) -> Call:
    """A signal; a deferred one is sent later, with the operands that it has now."""
    if not is_deferred(op):
        return send

    def hold(frame: Frame, *operands: Any) -> None:
        frame.deferred.append(partial(send.function, frame, *operands))

    return Call(hold, *send.arguments)


def _send_deferred(op: SendDeferredOp, machine: Machine) -> Call:
    left, most = op.left.value.data, op.most

    def send_deferred(frame: Frame) -> None:
        if len(frame.deferred) < most:
            return
        while len(frame.deferred) > left:
            frame.deferred.pop(0)()

    return Call(send_deferred)


def _signal(op: counters.SignalOp, machine: Machine) -> Call:
    counter_of = _locator(op, machine)

    def signal(frame: Frame, indices: tuple[int, ...], rank: int, amount: int) -> None:
        machine.check_rank(op, frame.rank, rank)
        _add(machine, op, frame, counter_of(frame, rank, indices), amount)

    return _at_once_or_deferred(op, Call(signal, op.indices, op.rank, op.amount))


def _signal_all(op: counters.SignalAllOp, machine: Machine) -> Call:
    counter_of = _locator(op, machine)

    def signal_all(frame: Frame, indices: tuple[int, ...], first: int | None, last: int | None, amount: int) -> None:
        for rank in range(first or 0, machine.ranks if last is None else last + 1):
            machine.check_rank(op, frame.rank, rank)
            _add(machine, op, frame, counter_of(frame, rank, indices), amount)

    return Call(signal_all, op.indices, op.first, op.last, op.amount)


def _raise(op: counters.RaiseOp, machine: Machine) -> Call:
    counter_of = _locator(op, machine)

    def raise_to(frame: Frame, indices: tuple[int, ...], rank: int, value: int) -> None:
        machine.check_rank(op, frame.rank, rank)
        counter = counter_of(frame, rank, indices)
        if machine.memory.ledger is not None:
            machine.memory.ledger.sent(counter, value, frame.epoch, op, raised=True)
        before = machine.memory.counters.get(counter, 0)
        now = machine.memory.counters[counter] = max(before, value)
        if machine.scheduler.trace is not None:
            machine.scheduler.trace.set(op, counter, now - before, now)
        _announce(machine, op, frame, counter, now)

    return _at_once_or_deferred(op, Call(raise_to, op.indices, op.rank, op.value))


def _wait(op: counters.WaitOp, machine: Machine) -> Call:
    counter_of = _locator(op, machine)

    def wait(frame: Frame, indices: tuple[int, ...], count: int) -> None:
        counter = counter_of(frame, frame.rank, indices)
        if machine.memory.ledger is not None:
            machine.memory.ledger.awaited(counter, count, frame.epoch - (counters.EARLIER in op.attributes), op)
        _until(machine, op, frame, counter, count)
        if machine.memory.unread is not None and counters.EARLIER in op.attributes:
            machine.memory.unread.emptied(frame.rank)

    if op.rows is None or op.of is None:
        return Call(wait, op.indices, op.count)
    extent = machine.size(op.of.of)
    shard = max(-(-extent // machine.ranks), 1)

    def wait_for_others(frame: Frame, indices: tuple[int, ...], count: int, rows: Any) -> None:
        named = np.asarray(rows)
        named = named[(named >= 0) & (named < extent)]
        if (named // shard != frame.rank).any():
            wait(frame, indices, count)

    return Call(wait_for_others, op.indices, op.count, op.rows)


def _barrier(op: counters.BarrierOp, machine: Machine) -> Call:
    counter_of = _locator(op, machine)

    def barrier(frame: Frame, indices: tuple[int, ...]) -> None:
        local = counter_of(frame, frame.rank, indices)
        arrived = machine.memory.counters.get(local, 0)
        if machine.scheduler.trace is not None:
            machine.scheduler.trace.steps[-1].touch((local,), Access.Write)  # the value waited for depends on the order
        for rank in range(machine.ranks):
            _add(machine, op, frame, local._replace(rank=rank), 1)
        # The next multiple above the value before this rank arrived, for every use of the counter.
        _until(machine, op, frame, local, (arrived // machine.ranks + 1) * machine.ranks)

    return Call(barrier, op.indices)


def _reset(op: counters.ResetOp, machine: Machine) -> Call:
    name = machine.names[op.signal]

    def reset(frame: Frame) -> None:
        machine.pause()
        for counter in machine.memory.counters:
            if (counter.rank, counter.signal) == (frame.rank, name):
                if machine.scheduler.trace is not None:
                    machine.scheduler.trace.set(op, counter, -machine.memory.counters[counter], 0)
                machine.memory.counters[counter] = 0
                if machine.order is not None:
                    machine.order.reset(counter)

    return Call(reset)


def _locator(op: counters.CounterOp, machine: Machine) -> Callable[[Frame, int, tuple[int, ...]], Counter]:
    """What finds a counter of a rank; others may run before it is changed, or when it is waited for."""
    name, sizes, pauses = machine.names[op.signal], machine.counters(op.signal), not isinstance(op, counters.WaitOp)

    def locate(frame: Frame, rank: int, indices: tuple[int, ...]) -> Counter:
        if pauses:
            machine.pause()
        machine.check_indices(op, frame.rank, indices, sizes)
        return Counter(rank, name, indices)

    return locate


def _check_width(op: Operation, counter: Counter, verb: str, value: int) -> None:
    if value not in I32:
        raise PkcError(errors.CounterOverflow(span_of(op.location), str(counter), counter.rank, verb, value))


def _add(machine: Machine, op: Operation, frame: Frame, counter: Counter, amount: int) -> None:
    now = machine.memory.counters[counter] = machine.memory.counters.get(counter, 0) + amount
    if machine.memory.ledger is not None:
        machine.memory.ledger.sent(counter, amount, frame.epoch, op)
    if machine.scheduler.trace is not None:
        machine.scheduler.trace.added(op, counter, amount, now)
    _announce(machine, op, frame, counter, now)


def _announce(machine: Machine, op: Operation, frame: Frame, counter: Counter, now: int) -> None:
    _check_width(op, counter, "reaches", now)
    if machine.order is not None:
        machine.order.signal(frame.warp_role, counter, now, counters.order_of(op) or counters.Order.Release_Sys)
    machine.scheduler.let_go(counter)


def _until(machine: Machine, op: Operation, frame: Frame, counter: Counter, count: int) -> None:
    _check_width(op, counter, "is awaited to be", count)
    machine.scheduler.wait(op, counter, count, lambda: machine.memory.counters.get(counter, 0))
    if machine.order is not None:
        machine.order.wait(frame.warp_role, counter, count)


SIGNALS: Calls = {
    counters.SignalOp: _signal,
    counters.SignalAllOp: _signal_all,
    counters.RaiseOp: _raise,
    SendDeferredOp: _send_deferred,
    counters.WaitOp: _wait,
    counters.BarrierOp: _barrier,
    counters.ResetOp: _reset,
}
