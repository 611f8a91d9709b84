"""The body of a worker, operation by operation: loops, branches, tasks, integers; the rest goes to who knows it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IndexType, UnitAttr
from xdsl.ir import Block, Operation, SSAValue

from pkc.dialect import access, coordinates, counters, deferred, fences, program, roles
from pkc.dialect.machine import TASKS
from pkc.dialect.tile import MmaOp, TransposeOp, in_flight, tile_type
from pkc.dialect.transfers import moves_by_tma
from pkc.dialect.types import TileType
from pkc.passes.analysis.pointwise import is_pointwise
from pkc.passes.machine.lowering import (
    channels,
    computed,
    flat,
    fragments,
    memory,
    mma,
    rounding,
    signals,
    staging,
    tma,
    unstaging,
)
from pkc.passes.machine.lowering.context import Staged, WarpRole
from pkc.passes.machine.lowering.fragments import Held
from pkc.passes.machine.lowering.missing import CannotLowerError


def lower_block(worker: WarpRole, block: Block) -> None:
    """Every operation of a block, in order."""
    if not worker.threads.flat or worker.chunk is not None:
        lower_ops(worker, list(block.ops))
        return
    before, inside, after = flat.chunked(block)
    lower_ops(worker, before)
    if inside:
        flat.lower(worker, inside, lower_ops)
    lower_ops(worker, after)


def lower_ops(worker: WarpRole, ops: Sequence[Operation]) -> None:
    for op in ops:
        worker.emit.location = op.location
        _lower(worker, op)


def _lower(worker: WarpRole, op: Operation) -> None:
    handler = _HANDLERS.get(type(op))
    if handler is not None:
        handler(worker, op)
        return
    if op.regions or not (op.results and all(isinstance(r.type, TileType) for r in op.results)):
        _integer(worker, op)
        return
    if not (computed.show(worker, op) or computed.compute(worker, op)):
        raise CannotLowerError(op)


def _integer(worker: WarpRole, op: Operation) -> None:
    """Arithmetic on integers and scalars stays as it is, but for divisions that round down."""
    if isinstance(op, arith.FloorDivSIOp):
        a, b = (worker.known[operand] for operand in op.operands)
        worker.known[op.result] = rounding.divide_down(worker.emit, a, b)
        return
    if not isinstance(op, _KEPT):
        raise CannotLowerError(op)
    copy = op.clone(value_mapper=dict(worker.known))
    worker.emit.add(copy)
    for old, new in zip(op.results, copy.results, strict=True):
        new.name_hint = old.name_hint
        worker.known[old] = new


_KEPT = (
    arith.ConstantOp,
    arith.AddiOp,
    arith.SubiOp,
    arith.MuliOp,
    arith.DivSIOp,
    arith.RemSIOp,
    arith.MinSIOp,
    arith.MaxSIOp,
    arith.AndIOp,
    arith.OrIOp,
    arith.XOrIOp,
    arith.CmpiOp,
    arith.SelectOp,
    arith.IndexCastOp,
)
"""What the machine level has as well."""


def _know(make: Callable[[WarpRole, Any], SSAValue]) -> Callable[[WarpRole, Any], None]:
    def handler(worker: WarpRole, op: Any) -> None:
        value = make(worker, op)
        if op.results[0].name_hint and value.name_hint is None:
            value.name_hint = op.results[0].name_hint
        worker.known[op.results[0]] = value

    return handler


def _block(worker: WarpRole, op: coordinates.BlockOp) -> None:
    worker.blocks[op.result] = worker.dims.place(op, worker.known)


def _rotate(worker: WarpRole, op: coordinates.RotateOp) -> SSAValue:
    emit = worker.emit
    index, shift, count = (worker.known[x] for x in (op.index, op.shift, op.count))
    return emit.modulo(emit.plus(index, shift), emit.most(count, 1))


def _peer(worker: WarpRole, op: coordinates.RingPeerOp) -> SSAValue:
    emit = worker.emit
    return emit.modulo(emit.plus(worker.rank, worker.known[op.step]), worker.dims.extent("ranks"))


def _tasks(worker: WarpRole, op: program.TasksOp) -> None:
    """CTA c of n takes tasks c, c + n, ... in the order of their numbers (`pkc/dialect/task_order.py`).

    Tasks that enclose others are gone through by every CTA; the numbers of those inside go on from one to the next.
    """
    emit, outer = worker.emit, worker.begun
    counts = [worker.known[count] for count in op.counts]
    total = counts[0]
    for count in counts[1:]:
        total = emit.times(total, count)
    cta, ctas = worker.launch.cta_of[worker.group], worker.launch.ctas[worker.group]
    if op.encloses_tasks:
        if outer is None:
            worker.begun = emit.registers(1, IndexType(), "begun")
            emit.set(emit.const(0), worker.begun, 0)
        with emit.loop(0, total) as task:
            _task(worker, op, task, counts)
        worker.begun = outer
        return
    first = cta if outer is None else emit.modulo(emit.plus(cta, emit.minus(ctas, emit.get(outer, 0))), ctas)
    with emit.loop(first, total, ctas) as task:
        loop = task.owner.parent_op() if isinstance(task.owner, Block) else None
        assert loop is not None
        loop.attributes[TASKS] = UnitAttr()
        _task(worker, op, task, counts)
    if outer is not None:
        emit.set(emit.modulo(emit.plus(emit.get(outer, 0), total), ctas), outer, 0)


def _task(worker: WarpRole, op: program.TasksOp, task: SSAValue, counts: list[SSAValue]) -> None:
    task.name_hint = "task"
    indices = _natural(worker, task, counts) if op.raster is None else _banded(worker, task, counts, op.raster)
    worker.known.update(zip(op.body.block.args, indices, strict=True))
    threads = worker.threads
    worker.threads = replace(threads, flat=not threads.one and is_pointwise(op))
    lower_block(worker, op.body.block)
    worker.threads = threads


def _natural(worker: WarpRole, task: SSAValue, counts: list[SSAValue]) -> list[SSAValue]:
    emit, rest, indices = worker.emit, task, list[SSAValue]()
    for count in reversed(counts[1:]):
        indices.append(emit.modulo(rest, count))
        rest = emit.over(rest, count)
    return [rest, *reversed(indices)]


def _banded(worker: WarpRole, task: SSAValue, counts: list[SSAValue], rows: int) -> list[SSAValue]:
    """As `banded` of `pkc/dialect/task_order.py`."""
    emit, (height, width) = worker.emit, counts
    each = emit.times(width, rows)
    band, inside = emit.over(task, each), emit.modulo(task, each)
    first = emit.times(band, rows)
    here = emit.least(emit.minus(height, first), rows)
    return [emit.plus(first, emit.modulo(inside, here)), emit.over(inside, here)]


def _for(worker: WarpRole, op: scf.ForOp) -> None:
    emit, body = worker.emit, op.body.block
    carried = [_carry(worker, start) for start in op.iter_args]
    first, last, step = (worker.known[x] for x in (op.lb, op.ub, op.step))
    if worker.turns > 1:
        first = _turns_at_once(worker, op, carried, (first, last, step))
    with emit.loop(first, last, step) as index:
        index.name_hint = body.args[0].name_hint
        worker.known[body.args[0]] = index
        for argument, target in zip(body.args[1:], carried, strict=True):
            _bind(worker, argument, target)
        lower_block(worker, body)
        _yield(worker, body, carried)
    for result, target in zip(op.results, carried, strict=True):
        _bind(worker, result, target)
    if issued := [product for product in body.ops if isinstance(product, MmaOp) and in_flight(product)]:
        mma.finish(worker, issued)


def _turns_at_once(
    worker: WarpRole, op: scf.ForOp, carried: list[Held | SSAValue], bounds: tuple[SSAValue, SSAValue, SSAValue]
) -> SSAValue:
    """Turns in groups of `worker.turns`, the loads of a group before all else; where the turns that are left begin."""
    emit, body = worker.emit, op.body.block
    first, last, step = bounds
    ahead = flat.loads_ahead(body)
    if not ahead:
        return first
    stride = emit.times(step, worker.turns)
    groups = emit.over(emit.most(emit.minus(last, first), 0), stride)
    end = emit.plus(first, emit.times(groups, stride))
    results = [result for op in ahead for result in op.results]
    tables: tuple[dict[SSAValue, Any], ...] = (worker.known, worker.blocks, worker.tiles)
    with emit.loop(first, end, stride) as index:
        made: list[list[tuple[dict[SSAValue, Any], SSAValue, Any]]] = []
        for turn in range(worker.turns):
            worker.known[body.args[0]] = emit.plus(index, emit.times(step, turn))
            lower_ops(worker, ahead)
            made.append([(table, result, table[result]) for result in results for table in tables if result in table])
        for found in made:
            for table, result, value in found:
                table[result] = value
            for argument, target in zip(body.args[1:], carried, strict=True):
                _bind(worker, argument, target)
            lower_ops(worker, [op for op in body.ops if op not in ahead])
            _yield(worker, body, carried)
    return end


def _carry(worker: WarpRole, start: SSAValue) -> Held | SSAValue:
    """Registers for what a loop carries, with its first value."""
    if isinstance(start.type, TileType):
        known = fragments.held(worker, start)
        if isinstance(known, Held) and len(list(start.uses)) == 1:
            return known
        fragment = fragments.fragment_of(worker, start)
        target = fragments.allocate(worker, fragment, tile_type(start).element_type, start.name_hint)
        fragments.copy(worker, known, target)
        return target
    value = worker.known[start]
    register = worker.emit.registers(1, value.type, start.name_hint)
    worker.emit.set(value, register, 0)
    return register


def _bind(worker: WarpRole, value: SSAValue, target: Held | SSAValue) -> None:
    if isinstance(target, Held):
        worker.tiles[value] = target
    else:
        worker.known[value] = worker.emit.get(target, 0)


def _yield(worker: WarpRole, body: Block, carried: list[Held | SSAValue]) -> None:
    """The values of the next turn into the registers of this one; all are read before any is written."""
    last = body.last_op
    assert isinstance(last, scf.YieldOp)
    targets = [target.registers for target in carried if isinstance(target, Held)]
    pending: list[tuple[fragments.Value, Held]] = []
    for value, target in zip(last.operands, carried, strict=True):
        if not isinstance(target, Held):
            worker.emit.set(worker.known[value], target, 0)
            continue
        found = fragments.held(worker, value)
        if isinstance(found, Held) and found.registers is target.registers:
            continue
        if not isinstance(found, Held) or found.registers in targets:
            fresh = fragments.allocate(worker, target.fragment, target.element_type, None)
            fragments.copy(worker, found, fresh)
            found = fresh
        pending.append((found, target))
    for found, target in pending:
        fragments.copy(worker, found, target)


def _if(worker: WarpRole, op: scf.IfOp) -> None:
    emit = worker.emit
    condition = worker.known[op.cond]
    targets: list[Held | SSAValue] = []
    for result in op.results:
        if isinstance(result.type, TileType):
            fragment = fragments.fragment_of(worker, result)
            targets.append(fragments.allocate(worker, fragment, result.type.element_type, result.name_hint))
        else:
            targets.append(emit.registers(1, result.type, result.name_hint))
    with emit.when(condition):
        _branch(worker, op.true_region.block, targets)
    if op.false_region.blocks:
        with emit.when(emit.negated(condition)):
            _branch(worker, op.false_region.block, targets)
    for result, target in zip(op.results, targets, strict=True):
        _bind(worker, result, target)


def _branch(worker: WarpRole, body: Block, targets: list[Held | SSAValue]) -> None:
    lower_block(worker, body)
    last = body.last_op
    for value, target in zip(last.operands if last is not None else (), targets, strict=False):
        if isinstance(target, Held):
            fragments.copy(worker, fragments.held(worker, value), target)
        else:
            worker.emit.set(worker.known[value], target, 0)


def _load(worker: WarpRole, op: access.LoadOp) -> None:
    if moves_by_tma(op):
        tma.load(worker, op)
    elif unstaging.is_carried(worker, op):
        unstaging.load(worker, op)
    else:
        memory.load(worker, op)


def _store(worker: WarpRole, op: access.StoreOp) -> None:
    tile = worker.tiles[op.tile]
    if moves_by_tma(op):
        tma.store(worker, op)
    elif isinstance(tile, Staged) and (not worker.threads.warpgroups or unstaging.fits(op, tile)):
        unstaging.store(worker, op, tile)
    else:
        memory.store(worker, op)


def _transpose(worker: WarpRole, op: TransposeOp) -> None:
    tile = worker.tiles[op.tile]
    if not isinstance(tile, Staged):
        raise CannotLowerError(op, "`.T` of a tile that is computed", "load it the other way round, or store it first")
    worker.tiles[op.result] = Staged(tile.address, tile.type, tile.layout, tile.ring, not tile.transposed)


def _commit(worker: WarpRole, op: roles.CommitOp) -> None:
    staging.write(worker, op)
    for fence in worker.pending_fences:
        worker.emit.do(fence)
    worker.pending_fences.clear()
    channels.commit(worker, op)


def _fence(worker: WarpRole, op: fences.FenceOp) -> None:
    """Generic writes to a stage are made at its commit, so the fence that orders them comes after those."""
    name = f"fence_{op.kind.data}"
    if op.kind.data is fences.Fence.AsyncShared:
        worker.pending_fences.append(name)
    else:
        worker.emit.do(name)


def _drain(worker: WarpRole, op: fences.DrainOp) -> None:
    if op.kind.data is fences.Drain.Loads:
        channels.drain_loads(worker)
    else:
        left = f"_{op.may_remain}" if op.may_remain else ""
        worker.emit.do(f"bulk_wait_{op.kind.data}{left}")


def _index(worker: WarpRole, op: coordinates.BlockIndexOp) -> SSAValue:
    return worker.dims.index(worker.blocks[op.block], op.of, sharded=op.sharded is not None, last=op.last is not None)


def _nothing(_worker: WarpRole, _op: Operation) -> None:
    pass


_HANDLERS: dict[type[Operation], Callable[[WarpRole, Any], None]] = {
    scf.ForOp: _for,
    scf.IfOp: _if,
    scf.YieldOp: _nothing,
    program.TasksOp: _tasks,
    coordinates.BlockOp: _block,
    coordinates.BlockCountOp: _know(lambda w, op: w.dims.count(op.block, op, w.known)),
    coordinates.BlockPositionOp: _know(lambda w, op: w.dims.position(w.blocks[op.block])),
    coordinates.BlockNumberOp: _know(lambda w, op: w.dims.number(w.blocks[op.block])),
    coordinates.OwnerOp: _know(lambda w, op: w.dims.owner(w.blocks[op.block], last=op.last is not None)),
    coordinates.BlockIndexOp: _know(_index),
    coordinates.RotateOp: _know(_rotate),
    coordinates.InterleaveOp: _know(lambda w, op: w.dims.interleave(op.block, w.known[op.index], w.known[op.first])),
    coordinates.RingPeerOp: _know(_peer),
    coordinates.RankOp: _know(lambda w, op: w.rank),
    coordinates.DimOp: _know(lambda w, op: w.dims.extent(op.dim.data)),
    coordinates.EpochOp: _know(lambda w, op: w.launch.epoch),
    coordinates.CtasOp: _know(lambda w, op: w.launch.ctas[w.launch.group_of[str(op.role.data)]]),
    roles.AcquireOp: channels.acquire,
    roles.CommitOp: _commit,
    roles.ConsumeOp: channels.consume,
    roles.ReleaseOp: channels.release,
    roles.ReleaseDeferredOp: channels.release_deferred,
    access.LoadOp: _load,
    access.StoreOp: _store,
    counters.SignalOp: signals.send,
    counters.RaiseOp: signals.send,
    counters.SignalAllOp: signals.send_all,
    counters.WaitOp: signals.await_,
    fences.FenceOp: _fence,
    fences.DrainOp: _drain,
    deferred.SendDeferredOp: signals.send_deferred,
    MmaOp: mma.multiply,
    TransposeOp: _transpose,
}
