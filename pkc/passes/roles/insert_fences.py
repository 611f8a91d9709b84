"""The pass `pk-insert-fences`: the order of memory accesses, written out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeGuard

from xdsl.dialects import scf
from xdsl.dialects.builtin import StringAttr, UnitAttr
from xdsl.ir import Operation, SSAValue
from xdsl.traits import is_side_effect_free

from pkc.dialect.access import AddToArrayOp, LoadOp, StoreOp
from pkc.dialect.by_table import GatherOp
from pkc.dialect.coordinates import RankOp
from pkc.dialect.counters import EARLIER, ORDER, Order, RaiseOp, SignalAllOp, SignalOp, WaitOp, is_taken_down
from pkc.dialect.engines import is_engine
from pkc.dialect.fences import Fence, FenceOp
from pkc.dialect.program import KernelOp, RoleOp, packed
from pkc.dialect.roles import CommitOp, ConsumeOp, ReleaseDeferredOp, ReleaseOp
from pkc.dialect.transfers import (
    FENCED,
    crosses_proxies,
    is_fenced,
    is_read_fenced,
    moves_async,
    moves_by_tma,
    read_by_threads,
)
from pkc.dialect.types import PGLType
from pkc.passes.analysis.dependence import ancestors, enclosing_tasks, role_around, writes, written_arrays
from pkc.passes.build import before
from pkc.passes.kernel_pass import KernelPass
from pkc.passes.roles.in_flight import SENT, Drains
from pkc.passes.roles.remote_accesses import remote_reads, remote_stores


class InsertFences(KernelPass):
    """Write out what each signal, wait and channel needs so that what follows sees what came before.

    An order depends on three things: how the producer accessed memory, how the consumer will, and which threads agree.

    - A signal releases what its warp role did before: to all GPUs, or to this one if only this rank uses the counter.
      That includes asynchronous accesses only once they are drained: stores when they are complete (`full`), loads of
      what others write when they have arrived (`loads`). Deferred signals (`pk-defer-signals`) need that when they are
      sent: then the stores of as many iterations may be in flight as signals stay behind.
      A role's first signal is a release too: earlier kernels on this rank come before it.
    - A wait is followed by an acquire of the same scope. A fence to the async proxy follows if this warp role, or one
      that it feeds through channels, then accesses by TMA other ranks' memory or what this kernel has written, before
      it waits again; a store only what other tasks have written.
    - A stage that ordinary instructions filled and that TMA or wgmma will read is fenced before it is committed; for
      what is still on its way then, behind the consume.
    - A stage that a TMA store reads is released only when it has been read; where releases are deferred, that is the
      oldest stage. In front of the release of one that ordinary instructions read stands a fence if TMA fills it again:
      what they have asked for may come later than the mbarrier says so.
    - A signal that travels in packets releases nothing, and nothing is acquired behind its wait.
    - A store to a place to which another one is on its way waits until that is complete.
    - A role ends when its stores are complete.
    - Streams order what a copy engine does. It is no SM, so signals from it and to it are releases to all.

    Before:

        %t = pk.consume %1 : ...
        pk.store %t, %C[%m, %n : ...] {transfer = {by = "tma", ...}} : ...
        pk.release %1 : ...
        pk.signal %arrived at %owner[%i, %j] by %one : ...

    After:

        %t = pk.consume %1 : ...
        pk.store %t, %C[%m, %n : ...] {transfer = {by = "tma", ...}} : ...
        pk.drain read
        pk.release %1 : ...
        pk.drain full
        pk.signal %arrived at %owner[%i, %j] by %one {order = "release_sys"} : ...
    """

    name = "pk-insert-fences"
    ONLY_DERIVED = True

    def run(self, kernel: KernelOp) -> None:
        if FENCED in kernel.attributes:
            return
        kernel.attributes[FENCED] = UnitAttr()
        for op in list(kernel.walk()):
            if isinstance(op, SENT):
                op.attributes[ORDER] = StringAttr(_order(op))
            if isinstance(op, CommitOp) and crosses_proxies(op) is not None:
                _fence_stage(op)
        for role in kernel.roles:
            _fence_reads(role)
        shared = set(_shared_by_tma(kernel))
        _acquire(kernel, shared)
        shared |= set(_shared_rows(kernel))
        for role in kernel.roles:
            if not is_engine(role):
                Drains(shared).role(role)


def _fence_stage(commit: CommitOp) -> None:
    """Before the commit, for what is there by then; behind each consume, for what arrives while the role goes on."""
    if is_fenced(commit):
        return
    consumes = [use.operation for use in commit.channel.uses if isinstance(use.operation, ConsumeOp)]
    if any(isinstance(tile.owner, Operation) and moves_async(tile.owner) for tile in commit.tiles):
        for consume in consumes:
            fence = FenceOp(Fence.AsyncShared)
            fence.location = consume.location
            assert consume.parent is not None
            consume.parent.insert_op_after(fence, consume)
    if not is_fenced(commit):
        before(commit, [FenceOp(Fence.AsyncShared)])


def _fence_reads(role: RoleOp) -> None:
    """In front of each release of a stage that TMA fills again, for what threads have read from it: many of one block
    have one fence."""
    for op in [op for op in role.walk() if isinstance(op, ReleaseOp | ReleaseDeferredOp)]:
        if read_by_threads(op.channel, role) and not is_read_fenced(op):
            before(op, [FenceOp(Fence.AsyncShared)])


# Signals and waits


def _order(op: SignalOp | SignalAllOp | RaiseOp) -> Order:
    if packed(op):
        return Order.In_Packets
    return Order.Release_Gpu if _stays_here(op.signal) else Order.Release_Sys


def _stays_here(signal: SSAValue) -> bool:
    """Whether SMs of its own rank alone signal a counter.

    Otherwise all signals to it have the scope of the system: of additions in two scopes one may be lost (PTX 8.10.3).
    """
    return all(_is_local(use.operation) for use in signal.uses if isinstance(use.operation, SENT))


def _is_local(op: Operation) -> bool:
    """Whether a signal surely goes from an SM of this rank to SMs of this rank."""
    if not isinstance(op, SignalOp | RaiseOp) or not isinstance(op.rank.owner, RankOp) or _on_copy_engine(op):
        return False
    return not any(_on_copy_engine(use.operation) for use in op.signal.uses)


def _on_copy_engine(op: Operation) -> bool:
    role = role_around(op)
    return role is not None and is_engine(role)


def _scope(op: WaitOp) -> Fence:
    """The scope that includes all who signal the awaited counter."""
    return Fence.AcquireGpu if _stays_here(op.signal) else Fence.AcquireSys


def _acquire(kernel: KernelOp, shared: set[Operation]) -> None:
    waits = [op for op in kernel.walk() if isinstance(op, WaitOp) and not _on_copy_engine(op) and not packed(op)]
    scopes = {op: {_scope(op)} for op in waits}
    for op, scope in scopes.items():
        following = _next_effect(op)
        # One fence for both, unless the second must not look at a counter as it was before it was taken down.
        if following is not None and _is_fenced_anew(following) and not is_taken_down(following.signal):
            scopes[following] |= scope
            continue
        fences = [FenceOp(Fence.AcquireSys if Fence.AcquireSys in scope else Fence.AcquireGpu)]
        # What earlier launches signal is that they have read, and reads need none (decision 0004).
        if EARLIER not in op.attributes and any(inner in shared for inner in _affected(op)):
            fences.append(FenceOp(Fence.AsyncGlobal))
        for fence in fences:
            fence.location = op.location
        block = op.parent
        assert block is not None
        block.insert_ops_after(fences, op)


def _next_effect(op: Operation) -> Operation | None:
    """The operation behind `op` in its block that is the first to touch memory."""
    following = op.next_op
    while following is not None and is_side_effect_free(following):
        following = following.next_op
    return following


def _shared_rows(kernel: KernelOp) -> Iterator[Operation]:
    """What is on its way to a stage, carried by threads, from where others may write."""
    written = written_arrays(kernel)
    for op in kernel.walk():
        if not isinstance(op, LoadOp | GatherOp) or not moves_async(op):
            continue
        if isinstance(op.array.type, PGLType) or op.array in written:
            yield op


def _shared_by_tma(kernel: KernelOp) -> Iterator[Operation]:
    """The accesses by TMA to what others access too: other ranks' memory, and what this kernel has written; where they
    store, what other tasks write."""
    written = written_arrays(kernel)
    remote: set[Operation] = {*remote_reads(kernel), *remote_stores(kernel)}
    for op in kernel.walk():
        if not isinstance(op, LoadOp | GatherOp | StoreOp | AddToArrayOp) or not moves_by_tma(op):
            continue
        elsewhere = op in remote or (not isinstance(op, GatherOp) and op.rank is not None)
        here = _is_overwriting(op) if isinstance(op, StoreOp) else op.array in written
        if elsewhere or here:
            yield op


def _is_overwriting(store: StoreOp) -> bool:
    """Whether other tasks write the array of a store, too, maybe the same elements, before: those of an earlier phase,
    or of a loop's iteration before."""
    tasks = enclosing_tasks(store)[-1:]
    others = (use.operation for use in store.array.uses if writes(use))
    again = any(isinstance(around, scf.ForOp) for top in tasks for around in ancestors(top))
    return again or any(enclosing_tasks(other)[-1:] != tasks for other in others)


def _affected(op: Operation, seen: tuple[RoleOp, ...] = ()) -> Iterator[Operation]:
    """What runs behind `op` in its role, and in the roles of its CTA that get tiles from there, but for those `seen`
    on the way: a role may pass tiles to itself."""
    later = list(_later(op))
    for inner in later:
        yield inner
        if not isinstance(inner, CommitOp):
            continue
        consumes = (use.operation for use in inner.channel.uses if isinstance(use.operation, ConsumeOp))
        for consume in consumes:
            role = role_around(consume)
            if role is not None and role not in seen:
                # What stands in front, its first waits among it, comes before the tile.
                yield from _affected(consume, (*seen, role))


def _later(op: Operation) -> Iterator[Operation]:
    """What may run behind `op` in its role, up to a wait with fences of its own; of a loop around it, everything."""
    inner = op
    for around in ancestors(op):
        if isinstance(around, RoleOp):
            break
        yield from around.walk()
        inner = around
    following = inner.next_op
    while following is not None and not _is_fenced_anew(following):
        if not _begins_fenced_anew(following):
            yield from following.walk()
        following = following.next_op


def _begins_fenced_anew(op: Operation) -> bool:
    """Whether nothing in an operation, as a set of tasks of which each begins to wait, comes before a wait with fences
    of its own."""
    blocks = [region.block for region in op.regions if region.blocks]
    begins = [next((inner for inner in block.ops if not is_side_effect_free(inner)), None) for block in blocks]
    return bool(begins) and all(inner is not None and _is_fenced_anew(inner) for inner in begins)


def _is_fenced_anew(op: Operation) -> TypeGuard[WaitOp]:
    """Whether an operation is a wait behind which all that is known by then is fenced, where an access needs it."""
    return isinstance(op, WaitOp) and not packed(op) and EARLIER not in op.attributes
