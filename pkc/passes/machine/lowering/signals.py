"""Counters: their addresses, sending, awaiting."""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerAttr, i64
from xdsl.ir import BlockArgument, Operation, SSAValue

from pkc.dialect.counters import Order, RaiseOp, SignalAllOp, SignalOp, WaitOp, order_of
from pkc.dialect.held import SendHeldOp, is_held
from pkc.dialect.types import BlockType, SignalType
from pkc.passes.machine.lowering.context import Queue, Worker
from pkc.passes.machine.lowering.missing import CannotLowerError


def send(worker: Worker, op: SignalOp | RaiseOp) -> None:
    """One counter of one rank, by one thread, when all threads of the worker have come here; or held back."""
    emit = worker.emit
    verb, amount = _verb(op)
    address = _address(worker, op.signal, list(op.indices), worker.known[op.rank])
    if is_held(op):
        _hold(worker, address, worker.known[amount])
        return
    _gather(worker)
    with _first(worker):
        emit.do(f"{verb}_{_order(op)}", address, worker.known[amount])


def _verb(op: SignalOp | RaiseOp) -> tuple[str, SSAValue]:
    """What a signal does to its counter, and with which number."""
    return ("signal", op.amount) if isinstance(op, SignalOp) else ("raise", op.value)


# Signals that are held back


def prepare(worker: Worker, ops: Iterable[Operation]) -> None:
    """An empty queue, if signals among the operations of a worker are held."""
    inside = list(ops)
    held = [op for op in inside if is_held(op) and isinstance(op, SignalOp | RaiseOp)]
    if not held:
        return
    if len({type(op) for op in held}) > 1:
        raise CannotLowerError(held[-1], "holding back signals that add and signals that raise in one part")
    emit = worker.emit
    length = max(other.most for other in inside if isinstance(other, SendHeldOp))
    addresses, count = emit.registers(length, i64, "held"), emit.registers(1, IndexType(), "holding")
    emit.set(emit.const(0), count, 0)
    with emit.loop(0, length, unroll=True) as place:
        emit.set(emit.wide_const(0), addresses, place)
    verb, _ = _verb(held[0])
    amount, *others = {_constant(_verb(op)[1]) for op in held}
    amounts = None
    if amount is None or others:
        amounts = emit.registers(length, IndexType(), "held_amounts")
        with emit.loop(0, length, unroll=True) as place:
            emit.set(emit.const(0), amounts, place)
    order = max(map(_order, held), key=[Order.Relaxed_Sys, Order.Release_Gpu, Order.Release_Sys].index)
    worker.queue = Queue(length, addresses, amounts, count, verb, amount, order)


def _hold(worker: Worker, address: SSAValue, amount: SSAValue) -> None:
    """The others move one place forward: registers are not addressed."""
    emit, queue = worker.emit, worker.queue
    assert queue is not None
    for registers, value in ((queue.addresses, address), (queue.amounts, amount)):
        if registers is None:
            continue
        with emit.loop(1, queue.length, unroll=True) as place:
            emit.set(emit.get(registers, place), registers, emit.minus(place, 1))
        emit.set(value, registers, queue.length - 1)
    emit.set(emit.plus(emit.get(queue.count, 0), 1), queue.count, 0)


def send_held(worker: Worker, op: SendHeldOp) -> None:
    """One fence releases to all that signals: a release at each would wait for memory as many times."""
    emit, queue = worker.emit, worker.queue
    if queue is None:
        raise CannotLowerError(op, "sending signals where none are held")
    left = op.left.value.data
    count = emit.get(queue.count, 0)
    _gather(worker)
    with emit.when(emit.compare("sge", count, op.most)):
        with _first(worker):
            _send_first(worker, queue, queue.length - left, emit.minus(emit.const(queue.length), count))
        emit.set(emit.const(left), queue.count, 0)


def _send_first(worker: Worker, queue: Queue, end: int, first: SSAValue) -> None:
    """The signals in the places from `first` on, below `end`."""
    emit = worker.emit
    if queue.order is not Order.Relaxed_Sys:
        emit.do(f"fence_{queue.order}")
    with emit.loop(0, end, unroll=True) as place, emit.when(emit.compare("sge", place, first)):
        amount = emit.get(queue.amounts, place) if queue.amounts is not None else emit.const(queue.amount or 0)
        emit.do(f"{queue.verb}_relaxed_sys", emit.get(queue.addresses, place), amount)


def _constant(value: SSAValue) -> int | None:
    """A number that is known when the kernel is compiled."""
    made = value.owner
    if isinstance(made, arith.ConstantOp) and isinstance(made.value, IntegerAttr):
        return made.value.value.data
    return None


def send_all(worker: Worker, op: SignalAllOp) -> None:
    """The same counter of every rank, or of those from one to another."""
    emit = worker.emit
    _gather(worker)
    with _first(worker):
        # One fence releases to all; a release at each signal would wait for memory as many times.
        if _order(op) is not Order.Relaxed_Sys:
            emit.do("fence_release_sys")
        first = 0 if op.first is None else worker.known[op.first]
        stop = worker.dims.extent("ranks") if op.last is None else emit.plus(worker.known[op.last], 1)
        with emit.loop(first, stop) as rank:
            address = _address(worker, op.signal, list(op.indices), rank)
            emit.do("signal_relaxed_sys", address, worker.known[op.amount])


def await_(worker: Worker, op: WaitOp) -> None:
    """Until this rank's counter is high enough: one thread of each warp looks, the others wait for it."""
    emit = worker.emit
    address = _address(worker, op.signal, list(op.indices), worker.rank)
    if worker.threads.one:
        _spin(worker, op, address)
        return
    with emit.when(emit.compare("eq", worker.threads.lane, 0)):
        _spin(worker, op, address)
    emit.do("sync_warp")


def _spin(worker: Worker, op: WaitOp, address: SSAValue) -> None:
    assert isinstance(op.signal, BlockArgument)
    name = worker.launch.kernel.argument_name(op.signal)
    worker.emit.wait("spin", address, worker.known[op.count], awaits=name, until="raised")


def _order(op: Operation) -> Order:
    return order_of(op) or Order.Release_Sys


def _gather(worker: Worker) -> None:
    if worker.threads.one:
        return
    if worker.threads.warps == 1:
        worker.emit.do("sync_warp")
    else:
        worker.emit.do(f"sync_{worker.threads.barrier}_of_{worker.threads.count}")


def _first(worker: Worker):
    first = worker.emit.compare("eq", worker.threads.thread, worker.threads.start)
    return worker.emit.when(first)


def _address(worker: Worker, signal: SSAValue, indices: list[SSAValue], rank: SSAValue) -> SSAValue:
    emit, kind = worker.emit, signal.type
    assert isinstance(kind, SignalType)
    linear: SSAValue = emit.const(0)
    for extent, index in zip(kind.extents, indices, strict=True):
        linear = emit.plus(emit.times(linear, _count(worker, extent)), worker.known[index])
    base = emit.plus(emit.address(signal), emit.times(emit.wide(rank), emit.launch_value("heap_stride")))
    return emit.plus(base, emit.times(emit.wide(linear), 4))


def _count(worker: Worker, extent: str | int | BlockType) -> SSAValue:
    """How many counters a dimension has; of a blocked one as many as `numbers` of `pkc/dialect/blocks.py` says."""
    if not isinstance(extent, BlockType):
        return worker.dims.extent(extent)
    blocks = worker.emit.round_up_over(worker.dims.extent(extent.of), extent.extent)
    return worker.emit.plus(blocks, worker.dims.extent("ranks"))
