"""Channels as rings of stages in shared memory with two mbarriers a stage (CUTLASS: pipeline)."""

from __future__ import annotations

from collections.abc import Collection

from xdsl.dialects import scf
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Operation, SSAValue

from pkc.dialect.roles import AcquireOp, CommitOp, ConsumeOp, ReleaseHeldOp, ReleaseOp
from pkc.dialect.tile import tile_type
from pkc.passes.machine.lowering.context import Place, Ring, Staged, Worker


def prepare(worker: Worker, channel: SSAValue, users: Collection[Operation]) -> None:
    """The registers that say where the worker, which has these `users` of a channel, is in the ring: before its first
    stage; and how many stages it keeps, if loops do not say that."""
    emit, ring = worker.emit, worker.launch.rings[channel]
    hint = ring.channel.label.data.split(",")[0].split(".")[0].lower()
    phase = emit.registers(1, IndexType(), f"{hint}_phase")
    emit.set(emit.const(0), phase, 0)
    stage = None
    if ring.depth > 1:
        stage = emit.registers(1, IndexType(), f"{hint}_stage")
        emit.set(emit.const(0), stage, 0)
    kept = None
    if _needs_counter(users):
        kept = emit.registers(1, IndexType(), f"{hint}_kept")
        emit.set(emit.const(0), kept, 0)
    worker.places[channel] = Place(stage, phase, kept)


def _needs_counter(users: Collection[Operation]) -> bool:
    """Whether releases keep stages, and not just from one turn of a loop to the next."""
    freed = {op for op in users if isinstance(op, ReleaseHeldOp)}
    return freed != {_freed_by(op) for op in users if isinstance(op, ReleaseOp) and op.kept}


def _freed_by(op: ReleaseOp) -> ReleaseHeldOp | None:
    """What frees, right behind a loop, the one stage that each of its turns keeps for the next."""
    loop = op.parent_op()
    if op.kept != 1 or not isinstance(loop, scf.ForOp):
        return None
    if any(isinstance(other, ReleaseOp) and other.channel is op.channel for other in loop.walk() if other is not op):
        return None
    following = loop.next_op
    while isinstance(following, ReleaseHeldOp):
        if following.channel is op.channel:
            return following
        following = following.next_op
    return None


def stage_of(worker: Worker, channel: SSAValue) -> SSAValue:
    stage = worker.places[channel].stage
    return worker.emit.const(0) if stage is None else worker.emit.get(stage, 0)


def previous(worker: Worker, channel: SSAValue, turns: int = 1) -> SSAValue:
    """The stage so many turns, fewer than there are stages, before the one that the worker is at."""
    emit, depth, stage = worker.emit, worker.launch.rings[channel].depth, stage_of(worker, channel)
    if depth == 1:
        return stage
    if turns == 1:
        return emit.select(emit.compare("eq", stage, 0), emit.const(depth - 1), emit.minus(stage, 1))
    return emit.select(emit.compare("slt", stage, turns), emit.plus(stage, depth - turns), emit.minus(stage, turns))


def advance(worker: Worker, channel: SSAValue) -> None:
    """To the next stage of the ring."""
    emit, place, ring = worker.emit, worker.places[channel], worker.launch.rings[channel]
    phase = emit.get(place.phase, 0)
    if place.stage is None:
        emit.set(emit.bit_xor(phase, 1), place.phase, 0)
        return
    following = emit.plus(emit.get(place.stage, 0), 1)
    wraps = emit.compare("eq", following, ring.depth)
    emit.set(emit.select(wraps, emit.bit_xor(phase, 1), phase), place.phase, 0)
    emit.set(emit.select(wraps, emit.const(0), following), place.stage, 0)


def acquire(worker: Worker, op: AcquireOp) -> None:
    """Until the stage is free; what TMA will bring is announced."""
    emit, launch = worker.emit, worker.launch
    ring, stage = launch.rings[op.channel], stage_of(worker, op.channel)
    phase = emit.get(worker.places[op.channel].phase, 0)
    _wait(worker, ring, ring.empty(stage, emit, launch.base), emit.bit_xor(phase, 1), "free")
    if ring.by_bytes:
        emit.do("mbarrier_expect", ring.full(stage, emit, launch.base), emit.const(ring.by_bytes))


def commit(worker: Worker, op: CommitOp) -> None:
    """The stage is filled, as far as this worker does it itself."""
    emit, launch = worker.emit, worker.launch
    ring = launch.rings[op.channel]
    if not ring.by_bytes:
        stage = stage_of(worker, op.channel)
        emit.do("mbarrier_arrive", ring.full(stage, emit, launch.base))
    advance(worker, op.channel)


def consume(worker: Worker, op: ConsumeOp) -> None:
    """Until the stage is filled; its tiles are where they lie."""
    emit, launch = worker.emit, worker.launch
    ring, stage = launch.rings[op.channel], stage_of(worker, op.channel)
    barrier = ring.full(stage, emit, launch.base)
    _wait(worker, ring, barrier, emit.get(worker.places[op.channel].phase, 0), "filled")
    start = stage_address(worker, ring, stage)
    for offset, result in zip(ring.slots, op.tiles, strict=True):
        layout = emit.target.shared_layout(tile_type(result))
        worker.tiles[result] = Staged(emit.plus(start, offset), tile_type(result), layout, ring)


def stage_address(worker: Worker, ring: Ring, stage: SSAValue) -> SSAValue:
    emit = worker.emit
    return emit.plus(emit.plus(worker.launch.base, ring.offset), emit.times(stage, ring.stage_bytes))


def release(worker: Worker, op: ReleaseOp) -> None:
    """The stage may be filled again; or that of some turns before."""
    emit, kept = worker.emit, worker.places[op.channel].kept
    if not op.kept:
        arrive_empty(worker, op.channel, stage_of(worker, op.channel))
    elif kept is None:
        loop = op.parent_op()
        assert isinstance(loop, scf.ForOp)
        with emit.when(emit.compare("ne", worker.known[loop.body.block.args[0]], worker.known[loop.lb])):
            arrive_empty(worker, op.channel, previous(worker, op.channel))
    else:
        before = emit.get(kept, 0)
        with emit.when(emit.compare("eq", before, op.kept)):
            arrive_empty(worker, op.channel, previous(worker, op.channel, op.kept))
        emit.set(emit.least(emit.plus(before, 1), op.kept), kept, 0)
    advance(worker, op.channel)


def release_held(worker: Worker, op: ReleaseHeldOp) -> None:
    """The stages that are kept may be filled again, the oldest first."""
    emit, kept = worker.emit, worker.places[op.channel].kept
    if kept is None:
        loop = op.prev_op
        while isinstance(loop, ReleaseHeldOp):
            loop = loop.prev_op
        assert isinstance(loop, scf.ForOp)
        with emit.when(emit.compare("slt", worker.known[loop.lb], worker.known[loop.ub])):
            arrive_empty(worker, op.channel, previous(worker, op.channel))
        return
    most = max(use.operation.kept for use in op.channel.uses if isinstance(use.operation, ReleaseOp))
    for turns in range(most, 0, -1):
        with emit.when(emit.compare("sge", emit.get(kept, 0), turns)):
            arrive_empty(worker, op.channel, previous(worker, op.channel, turns))
    emit.set(emit.const(0), kept, 0)


def arrive_empty(worker: Worker, channel: SSAValue, stage: SSAValue) -> None:
    """One thread of each warp says that the warp is done with a stage."""
    emit, launch = worker.emit, worker.launch
    barrier = launch.rings[channel].empty(stage, emit, launch.base)
    if worker.threads.one:
        emit.do("mbarrier_arrive", barrier)
        return
    with emit.when(emit.compare("eq", worker.threads.lane, 0)):
        emit.do("mbarrier_arrive", barrier)


def drain_loads(worker: Worker) -> None:
    """Until what this worker has loaded into stages has arrived, and been consumed."""
    emit, launch = worker.emit, worker.launch
    for channel in worker.filling:
        ring, place = launch.rings[channel], worker.places[channel]
        stage, phase = stage_of(worker, channel), emit.get(place.phase, 0)
        for turn in range(ring.depth):
            following = emit.plus(stage, turn)
            wraps = emit.compare("sge", following, ring.depth)
            at = emit.select(wraps, emit.minus(following, ring.depth), following)
            parity = emit.bit_xor(emit.select(wraps, emit.bit_xor(phase, 1), phase), 1)
            _wait(worker, ring, ring.empty(at, emit, launch.base), parity, "free")


def _wait(worker: Worker, ring: Ring, barrier: SSAValue, parity: SSAValue, until: str) -> None:
    worker.emit.wait("mbarrier_wait", barrier, parity, awaits=ring.channel.label.data, until=until)
