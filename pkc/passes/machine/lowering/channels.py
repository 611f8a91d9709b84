"""Channels as rings of stages in shared memory with two mbarriers a stage (CUTLASS: pipeline)."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from contextlib import AbstractContextManager, nullcontext

from xdsl.dialects import scf
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Operation, SSAValue

from pkc.dialect.access import AddToArrayOp, Scatter, StoreOp
from pkc.dialect.fences import FenceOp
from pkc.dialect.roles import AHEAD, AcquireOp, CommitOp, ConsumeOp, ReleaseDeferredOp, ReleaseOp
from pkc.dialect.tile import AnyMmaOp, ClipOp, TransposeOp, tile_type
from pkc.dialect.transfers import begins_anywhere, moves_async
from pkc.passes.machine.lowering import shifting
from pkc.passes.machine.lowering.context import Place, Ring, Staged, WarpRole, first_thread, first_warp, spare_barrier
from pkc.passes.machine.lowering.in_step import counted_later, in_step, takes_it_itself

_WRITTEN_OUT = 4
"""So many stages are waited for without a loop."""


def prepare(role: WarpRole, users: Mapping[SSAValue, Collection[Operation]]) -> None:
    """Allocate the registers for the role's place in the ring of each channel, at first before the first stage, and for
    the number of stages that it keeps, unless loops tell that. Channels that it goes through in step have one place.
    `users` are the role's operations on each channel."""
    groups = in_step(users)
    role.counted_later = counted_later(groups, users)
    for group in groups:
        phase = _counter(role, group[0], "phase")
        stage = _counter(role, group[0], "stage") if role.launch.rings[group[0]].depth > 1 else None
        for channel in group:
            ops = users[channel]
            kept = _counter(role, channel, "kept") if _needs_counter(ops) else None
            filled = _counter(role, channel, "filled") if any(AHEAD in op.attributes for op in ops) else None
            role.places[channel] = Place(stage, phase, kept, filled)


def _counter(role: WarpRole, channel: SSAValue, what: str) -> SSAValue:
    emit, ring = role.emit, role.launch.rings[channel]
    hint = re.split("[,.;]", ring.channel.label.data)[0].lower()
    found = emit.registers(1, IndexType(), f"{hint}_{what}")
    emit.set(emit.const(0), found, 0)
    return found


def _needs_counter(users: Collection[Operation]) -> bool:
    """Whether releases keep stages for longer than from one iteration of a loop to the next."""
    freed = {op for op in users if isinstance(op, ReleaseDeferredOp)}
    return freed != {_freed_by(op) for op in users if isinstance(op, ReleaseOp) and op.kept}


def _freed_by(op: ReleaseOp) -> ReleaseDeferredOp | None:
    """The operation right behind a loop that frees the one stage which each iteration keeps for the next."""
    loop = op.parent_op()
    if op.kept != 1 or not isinstance(loop, scf.ForOp):
        return None
    if any(isinstance(other, ReleaseOp) and other.channel is op.channel for other in loop.walk() if other is not op):
        return None
    following = loop.next_op
    while isinstance(following, ReleaseDeferredOp | FenceOp):
        if isinstance(following, ReleaseDeferredOp) and following.channel is op.channel:
            return following
        following = following.next_op
    return None


def stage_of(role: WarpRole, channel: SSAValue) -> SSAValue:
    stage = role.places[channel].stage
    return role.emit.const(0) if stage is None else role.emit.get(stage, 0)


def previous(role: WarpRole, channel: SSAValue, back: int = 1) -> SSAValue:
    """The stage `back` places, fewer than there are stages, before the one that the role is at."""
    emit, depth, stage = role.emit, role.launch.rings[channel].depth, stage_of(role, channel)
    if depth == 1:
        return stage
    if back == 1:
        return emit.select(emit.compare("eq", stage, 0), emit.const(depth - 1), emit.minus(stage, 1))
    return emit.select(emit.compare("slt", stage, back), emit.plus(stage, depth - back), emit.minus(stage, back))


def advance(role: WarpRole, op: CommitOp | ConsumeOp | ReleaseOp) -> None:
    """To the next stage of the ring, behind an operation on it."""
    if op in role.counted_later:
        return
    emit, place, ring = role.emit, role.places[op.channel], role.launch.rings[op.channel]
    phase = emit.get(place.phase, 0)
    if place.stage is None:
        emit.set(emit.bit_xor(phase, 1), place.phase, 0)
        return
    following = emit.plus(emit.get(place.stage, 0), 1)
    wraps = emit.compare("eq", following, ring.depth)
    emit.set(emit.select(wraps, emit.bit_xor(phase, 1), phase), place.phase, 0)
    emit.set(emit.select(wraps, emit.const(0), following), place.stage, 0)


def acquire(role: WarpRole, op: AcquireOp) -> None:
    """Wait until the stage is free, and announce the bytes that TMA will write to it."""
    emit, launch = role.emit, role.launch
    ring, stage = launch.rings[op.channel], stage_of(role, op.channel)
    if ring.channel.host is not None:
        _has_read(role)
        return
    phase = emit.get(role.places[op.channel].phase, 0)
    with _who_fills(role, ring):
        _wait(role, ring, ring.empty(stage, emit, launch.base), emit.bit_xor(phase, 1), "free")
        if ring.by_bytes:
            with first_thread(role):
                emit.do("mbarrier_expect", ring.full(stage, emit, launch.base), emit.const(ring.by_bytes))


def _who_fills(role: WarpRole, ring: Ring) -> AbstractContextManager[object]:
    """The warps that have a share in filling a stage, and wait until it is free: all, or the one that starts copies.

    Others would find it filled and free once more, if they are late, and take that for not yet free.
    """
    return first_warp(role) if ring.by_bytes else nullcontext()


def _has_read(role: WarpRole) -> None:
    """Wait until all warps of a warpgroup have read the rows that it overwrites: its MMAs are complete in each."""
    emit, threads = role.emit, role.threads
    size = threads.arch.warpgroup
    if size == 1:
        emit.do("sync_warp")
        return
    for group in range(threads.warpgroups):
        first = threads.first + group * size
        with emit.when(emit.between(threads.warp, first, first + size)):
            emit.do(f"sync_{spare_barrier(role, group)}_of_{size * threads.arch.warp}")


def commit(role: WarpRole, op: CommitOp) -> None:
    """Announce that the threads have filled the stage; TMA does so by itself."""
    emit, launch = role.emit, role.launch
    ring = launch.rings[op.channel]
    if not ring.by_bytes:
        barrier = ring.full(stage_of(role, op.channel), emit, launch.base)
        if any(isinstance(tile.owner, Operation) and moves_async(tile.owner) for tile in op.tiles):
            emit.do("mbarrier_arrive_copied", barrier)
        emit.do("mbarrier_arrive", barrier)
    if not takes_it_itself(op):
        advance(role, op)


def consume(role: WarpRole, op: ConsumeOp) -> None:
    """Wait until the stage is filled; its tiles are used where they lie."""
    emit, launch = role.emit, role.launch
    ring, stage = launch.rings[op.channel], stage_of(role, op.channel)
    barrier, place = ring.full(stage, emit, launch.base), role.places[op.channel]
    unknown = None if place.filled is None else emit.compare("eq", emit.get(place.filled, 0), 0)
    with nullcontext() if unknown is None else emit.when(unknown):
        _wait(role, ring, barrier, emit.get(place.phase, 0), "filled")
    start = stage_address(role, ring, stage)
    commits = (use.operation for use in op.channel.uses if isinstance(use.operation, CommitOp))
    moved = [any(_around(tile) for tile in tiles) for tiles in zip(*(commit.tiles for commit in commits), strict=True)]
    for offset, result, around in zip(ring.slots, op.tiles, moved, strict=True):
        layout, address = emit.target.shared_layout(tile_type(result)), emit.plus(start, offset)
        shifts = shifting.noted(emit, address, layout) if around else None
        role.tiles[result] = Staged(address, tile_type(result), layout, ring, shifts=shifts)
    if ring.channel.guest is not None:  # another role releases it
        advance(role, op)


def _around(tile: SSAValue) -> bool:
    """Whether the rows of a tile come with what lies around them."""
    return isinstance(tile.owner, Operation) and begins_anywhere(tile.owner)


def stage_address(role: WarpRole, ring: Ring, stage: SSAValue) -> SSAValue:
    emit = role.emit
    return emit.plus(emit.plus(role.launch.base, ring.offset), emit.times(stage, ring.stage_bytes))


def release(role: WarpRole, op: ReleaseOp) -> None:
    """Free the stage, or, with `kept`, the one that was released so many stages before."""
    emit, kept = role.emit, role.places[op.channel].kept
    if not op.kept:
        for tile in role.tiles.values():
            if isinstance(tile, Staged) and tile.ring.channel.result is op.channel:
                tile.free = True
        arrive_empty(role, op.channel, stage_of(role, op.channel))
    elif kept is None:
        loop = op.parent_op()
        assert isinstance(loop, scf.ForOp)
        with emit.when(emit.compare("ne", role.known[loop.body.block.args[0]], role.known[loop.lb])):
            arrive_empty(role, op.channel, previous(role, op.channel))
    else:
        before = emit.get(kept, 0)
        with emit.when(emit.compare("eq", before, op.kept)):
            arrive_empty(role, op.channel, previous(role, op.channel, op.kept))
        emit.set(emit.least(emit.plus(before, 1), op.kept), kept, 0)
    advance(role, op)
    _look_ahead(role, op.channel)


def _look_ahead(role: WarpRole, channel: SSAValue) -> None:
    """Look whether the stage that the role has come to is filled, if it wants to know that before it consumes it."""
    emit, place = role.emit, role.places[channel]
    if place.filled is not None:
        barrier = role.launch.rings[channel].full(stage_of(role, channel), emit, role.launch.base)
        emit.set(emit.value("mbarrier_test", barrier, emit.get(place.phase, 0)), place.filled, 0)


def release_deferred(role: WarpRole, op: ReleaseDeferredOp) -> None:
    """Free the stages that are kept, the oldest first."""
    emit, kept = role.emit, role.places[op.channel].kept
    if kept is None:
        loop = op.prev_op
        while isinstance(loop, ReleaseDeferredOp | FenceOp):
            loop = loop.prev_op
        assert isinstance(loop, scf.ForOp)
        with emit.when(emit.compare("slt", role.known[loop.lb], role.known[loop.ub])):
            arrive_empty(role, op.channel, previous(role, op.channel))
        return
    most = max(use.operation.kept for use in op.channel.uses if isinstance(use.operation, ReleaseOp))
    for back in range(most, 0, -1):
        with emit.when(emit.compare("sge", emit.get(kept, 0), back)):
            arrive_empty(role, op.channel, previous(role, op.channel, back))
    emit.set(emit.const(0), kept, 0)


def arrive_empty(role: WarpRole, channel: SSAValue, stage: SSAValue) -> None:
    """One thread of each warp says that the warp is done with a stage: for all of them, as MMAs are of a warp as a
    whole, and other reads come before a barrier of the warp."""
    emit, launch = role.emit, role.launch
    barrier = launch.rings[channel].empty(stage, emit, launch.base)
    if role.threads.one:
        emit.do("mbarrier_arrive", barrier)
        return
    consumed = (use.operation for use in channel.uses if isinstance(use.operation, ConsumeOp))
    if any(_threads_read(tile) for op in consumed for tile in op.tiles):
        emit.do("sync_warp")
    with emit.when(emit.compare("eq", role.threads.lane, 0)):
        emit.do("mbarrier_arrive", barrier)


def _threads_read(tile: SSAValue) -> bool:
    """Whether each thread reads elements of a tile where it lies: MMAs do not, and stores end with a barrier."""
    for use in tile.uses:
        op = use.operation
        if isinstance(op, TransposeOp | ClipOp):
            if _threads_read(op.result):
                return True
        elif not isinstance(op, AnyMmaOp | StoreOp | AddToArrayOp | Scatter):
            return True
    return False


def drain_loads(role: WarpRole) -> None:
    """Wait until all that this role has loaded into stages has arrived and has been consumed."""
    emit = role.emit
    for channel in role.filling:
        depth = role.launch.rings[channel].depth
        stage, phase = stage_of(role, channel), emit.get(role.places[channel].phase, 0)
        if depth <= _WRITTEN_OUT:
            for offset in range(depth):
                _drain(role, channel, emit.plus(stage, offset), phase)
            continue
        # Of many stages written out one by one the compiler would keep the addresses in registers.
        with emit.loop(0, depth) as offset:
            _drain(role, channel, emit.plus(stage, offset), phase)


def _drain(role: WarpRole, channel: SSAValue, number: SSAValue, phase: SSAValue) -> None:
    """Wait for a stage, of which `number` is the place in the order in which stages are filled."""
    emit, ring = role.emit, role.launch.rings[channel]
    wraps = emit.compare("sge", number, ring.depth)
    at = emit.select(wraps, emit.minus(number, ring.depth), number)
    parity = emit.bit_xor(emit.select(wraps, emit.bit_xor(phase, 1), phase), 1)
    with _who_fills(role, ring):
        _wait(role, ring, ring.empty(at, emit, role.launch.base), parity, "free")


def _wait(role: WarpRole, ring: Ring, barrier: SSAValue, parity: SSAValue, until: str) -> None:
    role.emit.wait("mbarrier_wait", barrier, parity, awaits=ring.channel.label.data, until=until)
