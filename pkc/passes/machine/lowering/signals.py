"""Counters: their addresses, signals and waits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import nullcontext

from xdsl.dialects.builtin import IndexType, i64
from xdsl.ir import BlockArgument, Operation, SSAValue

from pkc.dialect.counters import Order, RaiseOp, ResetOp, SignalAllOp, SignalOp, WaitOp, order_of
from pkc.dialect.deferred import SendDeferredOp, is_deferred
from pkc.dialect.program import packed
from pkc.dialect.scalars import constant_of
from pkc.dialect.tile import tile_type
from pkc.dialect.types import BlockType, Dim, SignalType
from pkc.passes.machine.lowering import tables
from pkc.passes.machine.lowering.context import Queue, WarpRole, first_thread
from pkc.passes.machine.lowering.missing import CannotLowerError


def send(role: WarpRole, op: SignalOp | RaiseOp) -> None:
    """Signal one counter of one rank: one thread does, when all threads of the role have come here; or defer it."""
    if packed(op):
        return  # the packets tell it
    emit = role.emit
    verb, amount = _verb(op)
    address = _address(role, op.signal, _known(role, op.indices), role.known[op.rank])
    if is_deferred(op):
        _defer(role, address, role.known[amount])
        return
    _gather(role)
    with first_thread(role):
        emit.do(f"{verb}_{_order(op)}", address, role.known[amount])


def _verb(op: SignalOp | RaiseOp) -> tuple[str, SSAValue]:
    """What a signal does to its counter, and with which number."""
    return ("signal", op.amount) if isinstance(op, SignalOp) else ("raise", op.value)


# Deferred signals


def prepare(role: WarpRole, ops: Iterable[Operation]) -> None:
    """Make an empty queue, if any signal of a role is deferred."""
    inside = list(ops)
    deferred = [op for op in inside if is_deferred(op) and isinstance(op, SignalOp | RaiseOp)]
    if not deferred:
        return
    if len({type(op) for op in deferred}) > 1:
        raise CannotLowerError(deferred[-1], "deferring both signals that add and signals that raise in one role")
    emit = role.emit
    length = max(other.most for other in inside if isinstance(other, SendDeferredOp))
    addresses, count = emit.registers(length, i64, "deferred"), emit.registers(1, IndexType(), "deferred_count")
    emit.set(emit.const(0), count, 0)
    with emit.loop(0, length, unroll=True) as place:
        emit.set(emit.wide_const(0), addresses, place)
    verb, _ = _verb(deferred[0])
    amount, *others = {constant_of(_verb(op)[1]) for op in deferred}
    amounts = None
    if amount is None or others:
        amounts = emit.registers(length, IndexType(), "deferred_amounts")
        with emit.loop(0, length, unroll=True) as place:
            emit.set(emit.const(0), amounts, place)
    order = max(map(_order, deferred), key=[Order.Relaxed_Sys, Order.Release_Gpu, Order.Release_Sys].index)
    role.queue = Queue(length, addresses, amounts, count, verb, amount, order)


def _defer(role: WarpRole, address: SSAValue, amount: SSAValue) -> None:
    """Append a signal: the others move one place forward, as registers have no addresses."""
    emit, queue = role.emit, role.queue
    assert queue is not None
    for registers, value in ((queue.addresses, address), (queue.amounts, amount)):
        if registers is None:
            continue
        with emit.loop(1, queue.length, unroll=True) as place:
            emit.set(emit.get(registers, place), registers, emit.minus(place, 1))
        emit.set(value, registers, queue.length - 1)
    emit.set(emit.plus(emit.get(queue.count, 0), 1), queue.count, 0)


def send_deferred(role: WarpRole, op: SendDeferredOp) -> None:
    """Send the signals behind one fence: a release at each would wait for memory as many times."""
    emit, queue = role.emit, role.queue
    if queue is None:
        raise CannotLowerError(op, "sending deferred signals where there are none")
    left = op.left.value.data
    count = emit.get(queue.count, 0)
    _gather(role)
    with emit.when(emit.compare("sge", count, op.most)):
        with first_thread(role):
            _send_first(role, queue, queue.length - left, emit.minus(emit.const(queue.length), count))
        emit.set(emit.const(left), queue.count, 0)


def _send_first(role: WarpRole, queue: Queue, end: int, first: SSAValue) -> None:
    """Send the signals in the places from `first` on, below `end`."""
    emit = role.emit
    if queue.order is not Order.Relaxed_Sys:
        emit.do(f"fence_{queue.order}")
    with emit.loop(0, end, unroll=True) as place, emit.when(emit.compare("sge", place, first)):
        amount = emit.get(queue.amounts, place) if queue.amounts is not None else emit.const(queue.amount or 0)
        emit.do(f"{queue.verb}_relaxed_sys", emit.get(queue.addresses, place), amount)


def send_all(role: WarpRole, op: SignalAllOp) -> None:
    """Signal the same counter of every rank, or of a range of ranks."""
    if packed(op):
        return
    emit = role.emit
    _gather(role)
    with first_thread(role):
        # One fence releases to all; a release at each signal would wait for memory as many times.
        if _order(op) is not Order.Relaxed_Sys:
            emit.do("fence_release_sys")
        first = 0 if op.first is None else role.known[op.first]
        stop = role.dims.extent("ranks") if op.last is None else emit.plus(role.known[op.last], 1)
        with emit.loop(first, stop) as rank:
            address = _address(role, op.signal, _known(role, op.indices), rank)
            emit.do("signal_relaxed_sys", address, role.known[op.amount])


def await_(role: WarpRole, op: WaitOp) -> None:
    """Wait until this rank's counter is high enough: one thread of each warp looks, the others wait for it."""
    if packed(op):
        return  # the loads of the packets wait
    emit = role.emit
    address = _address(role, op.signal, _known(role, op.indices), role.rank)
    needed = None if op.rows is None or op.of is None else _names_others(role, op.rows, op.of.of)
    if role.threads.one:
        with nullcontext() if needed is None else emit.when(needed):
            _spin(role, op, address)
        return
    looks = emit.compare("eq", role.threads.lane, 0)
    with emit.when(looks if needed is None else emit.both(looks, needed)):
        _spin(role, op, address)
    emit.do("sync_warp")


def _names_others(role: WarpRole, rows: SSAValue, of: Dim) -> SSAValue:
    """Whether one of the rows of a table is another rank's: each lane asks for some of them, and then all know."""
    emit, dims, one = role.emit, role.dims, role.threads.one
    seen = emit.registers(1, IndexType())
    emit.set(emit.const(0), seen, 0)
    first, step = (0, 1) if one else (role.threads.lane, role.threads.arch.warp)
    with emit.loop(first, tile_type(rows).shape[0], step) as number:
        row = tables.row_of(role, rows, [number])
        exists = emit.both(emit.compare("sge", row, 0), emit.compare("slt", row, dims.extent(of)))
        shard = dims.at(of, row, split=True).shard
        assert shard is not None
        with emit.when(emit.both(exists, emit.compare("ne", shard, role.rank))):
            emit.set(emit.const(1), seen, 0)
    found = emit.compare("ne", emit.get(seen, 0), 0)
    return found if one else emit.compare("ne", emit.value("vote", found), 0)


def _spin(role: WarpRole, op: WaitOp, address: SSAValue) -> None:
    assert isinstance(op.signal, BlockArgument)
    name = role.launch.kernel.argument_name(op.signal)
    role.emit.wait("spin", address, role.known[op.count], awaits=name, until="raised")


def reset(role: WarpRole, op: ResetOp) -> None:
    """Set all counters of this rank to zero, which one thread does."""
    emit, kind = role.emit, op.signal.type
    assert isinstance(kind, SignalType)
    total: SSAValue = emit.const(1)
    for extent in kind.extents:
        total = emit.times(total, _count(role, extent))
    base = _on_rank(role, op.signal, role.rank)
    _gather(role)
    with first_thread(role), emit.loop(0, total) as number:
        emit.do("clear_u32", emit.plus(base, emit.times(emit.wide(number), 4)))


def _order(op: Operation) -> Order:
    return order_of(op) or Order.Release_Sys


def _gather(role: WarpRole) -> None:
    if not role.threads.one:
        role.emit.do(role.threads.sync)


def _address(role: WarpRole, signal: SSAValue, indices: list[SSAValue], rank: SSAValue) -> SSAValue:
    emit, kind = role.emit, signal.type
    assert isinstance(kind, SignalType)
    linear: SSAValue = emit.const(0)
    for extent, index in zip(kind.extents, indices, strict=True):
        linear = emit.plus(emit.times(linear, _count(role, extent)), index)
    return emit.plus(_on_rank(role, signal, rank), emit.times(emit.wide(linear), 4))


def _known(role: WarpRole, values: Sequence[SSAValue]) -> list[SSAValue]:
    return [role.known[value] for value in values]


def _on_rank(role: WarpRole, signal: SSAValue, rank: SSAValue) -> SSAValue:
    """Where the counters of a rank begin."""
    return role.emit.on_rank(role.emit.address(signal), rank)


def _count(role: WarpRole, extent: str | int | BlockType) -> SSAValue:
    """How many counters a dimension has; of a blocked one as many as `numbers` of `pkc/dialect/blocks.py` says."""
    if not isinstance(extent, BlockType):
        return role.dims.extent(extent)
    blocks = role.emit.round_up_over(role.dims.extent(extent.of), extent.extent)
    return role.emit.plus(blocks, role.dims.extent("ranks"))
