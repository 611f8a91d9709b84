"""Counters: their addresses, sending, awaiting."""

from __future__ import annotations

from xdsl.ir import BlockArgument, Operation, SSAValue

from pkc.dialect.access import Order, RaiseOp, SignalAllOp, SignalOp, WaitOp, order_of
from pkc.dialect.types import BlockType, SignalType
from pkc.passes.lowering.context import Worker


def send(worker: Worker, op: SignalOp | RaiseOp) -> None:
    """One counter of one rank, by one thread, when all threads of the worker have come here."""
    emit = worker.emit
    verb, amount = ("signal", op.amount) if isinstance(op, SignalOp) else ("raise", op.value)
    address = _address(worker, op.signal, list(op.indices), worker.known[op.rank])
    _gather(worker)
    with _first(worker):
        emit.do(f"{verb}_{_order(op)}", address, worker.known[amount])


def send_all(worker: Worker, op: SignalAllOp) -> None:
    """The same counter of every rank."""
    emit = worker.emit
    _gather(worker)
    with _first(worker):
        # One fence releases to all; a release at each signal would wait for memory as many times.
        if _order(op) is not Order.Relaxed_Sys:
            emit.do("fence_release_sys")
        with emit.loop(0, worker.dims.extent("ranks")) as rank:
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
    first = worker.emit.compare("eq", worker.threads.thread, 32 * worker.threads.first)
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
