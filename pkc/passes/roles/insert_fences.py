"""The pass `pk-insert-fences`: the order of memory accesses, written out."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

from xdsl.dialects import scf
from xdsl.dialects.builtin import StringAttr, UnitAttr
from xdsl.ir import Block, Operation, SSAValue
from xdsl.traits import is_side_effect_free

from pkc.dialect.access import AddToArrayOp, AllReduceOp, LoadOp, Scatter, StoreOp
from pkc.dialect.by_table import AddByTableOp, GatherOp, ScatterStoreOp
from pkc.dialect.coordinates import RankOp
from pkc.dialect.copies import CopyOp
from pkc.dialect.counters import EARLIER, ORDER, Order, RaiseOp, SignalAllOp, SignalOp, WaitOp
from pkc.dialect.deferred import SendDeferredOp, is_deferred
from pkc.dialect.engines import is_engine
from pkc.dialect.fences import Drain, DrainOp, Fence, FenceOp
from pkc.dialect.inverse import InvertOp, SumRowsOp
from pkc.dialect.program import KernelOp, RoleOp, packed
from pkc.dialect.roles import CommitOp, ConsumeOp, ReleaseDeferredOp, ReleaseOp
from pkc.dialect.transfers import FENCED, crosses_proxies, is_fenced, moves_async, moves_by_tma, stage_of
from pkc.dialect.types import PGLType
from pkc.passes.analysis.dependence import ancestors, role_around, roles_around, same_values, sources
from pkc.passes.build import before
from pkc.passes.kernel_pass import KernelPass
from pkc.passes.roles.remote_accesses import remote_reads, remote_stores

_SENT = (SignalOp, SignalAllOp, RaiseOp)
_Store = StoreOp | AddToArrayOp
_WRITES = (StoreOp, AddToArrayOp, ScatterStoreOp, AddByTableOp, AllReduceOp)


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
      it waits again.
    - A stage that ordinary instructions filled and that TMA or wgmma will read is fenced before it is committed; for
      what is still on its way then, behind the consume.
    - A stage that a TMA store reads is released only when it has been read; where releases are deferred, that is the
      oldest stage. A stage that ordinary instructions read needs no drain: their values have arrived, and the mbarrier
      comes before the next load into it.
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
            if isinstance(op, _SENT):
                op.attributes[ORDER] = StringAttr(_order(op))
            if isinstance(op, CommitOp) and crosses_proxies(op) is not None:
                _fence_stage(op)
        shared = set(_shared_by_tma(kernel))
        _acquire(kernel, shared)
        shared |= set(_shared_rows(kernel))
        for role in kernel.roles:
            if not is_engine(role):
                _Drains(shared).role(role)


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


# Signals and waits


def _order(op: SignalOp | SignalAllOp | RaiseOp) -> Order:
    if packed(op):
        return Order.In_Packets
    return Order.Release_Gpu if _stays_here(op.signal) else Order.Release_Sys


def _stays_here(signal: SSAValue) -> bool:
    """Whether SMs of its own rank alone signal a counter.

    Otherwise all signals to it have the scope of the system: of additions in two scopes one may be lost (PTX 8.10.3).
    """
    return all(_is_local(use.operation) for use in signal.uses if isinstance(use.operation, _SENT))


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
        if isinstance(following, WaitOp):  # one fence for both
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


def _written(kernel: KernelOp) -> set[SSAValue]:
    """The arrays that a kernel writes."""
    written = {op.array for op in kernel.walk() if isinstance(op, _WRITES)}
    written |= {array for op in kernel.walk() if isinstance(op, InvertOp | SumRowsOp) for array in op.written}
    return written | {op.target for op in kernel.walk() if isinstance(op, CopyOp)}


def _shared_rows(kernel: KernelOp) -> Iterator[Operation]:
    """What is on its way to a stage, carried by threads, from where others may write."""
    written = _written(kernel)
    for op in kernel.walk():
        if not isinstance(op, LoadOp | GatherOp) or not moves_async(op):
            continue
        if isinstance(op.array.type, PGLType) or op.array in written:
            yield op


def _shared_by_tma(kernel: KernelOp) -> Iterator[Operation]:
    """The accesses by TMA to what others access too: other ranks' memory, and what this kernel has written."""
    written = _written(kernel)
    remote: set[Operation] = {*remote_reads(kernel), *remote_stores(kernel)}
    for op in kernel.walk():
        if not isinstance(op, LoadOp | StoreOp | AddToArrayOp) or not moves_by_tma(op):
            continue
        if op in remote or op.rank is not None or (not isinstance(op, StoreOp) and op.array in written):
            yield op


def _affected(op: Operation, seen: tuple[RoleOp, ...] = ()) -> Iterator[Operation]:
    """What runs behind `op` in its role, and in the roles of its CTA that get tiles from there, but for those `seen`
    on the way: a role may pass tiles to itself."""
    later = list(_later(op))
    for inner in later:
        yield inner
        if not isinstance(inner, CommitOp):
            continue
        consumes = (use.operation for use in inner.channel.uses if isinstance(use.operation, ConsumeOp))
        for role in roles_around(consumes):
            if role in seen:
                continue
            first = role.body.block.first_op
            assert first is not None
            yield from first.walk()
            yield from _affected(first, (*seen, role))


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
        yield from following.walk()
        following = following.next_op


def _is_fenced_anew(op: Operation) -> bool:
    """Whether an operation is a wait behind which all that is known by then is fenced, where an access needs it."""
    return isinstance(op, WaitOp) and not packed(op) and EARLIER not in op.attributes


# Asynchronous accesses


@dataclass(frozen=True)
class _InFlight:
    """The asynchronous accesses of a warp role that may be in flight."""

    storing: bool = False
    reading: frozenset[SSAValue] = frozenset()
    """The channels whose stages stores read from."""
    loading: bool = False
    stored: frozenset[_Store] = frozenset()
    """The stores, but for those of earlier iterations of a loop around that went to other places."""

    def __or__(self, other: _InFlight) -> _InFlight:
        loading, stored = self.loading or other.loading, self.stored | other.stored
        return _InFlight(self.storing or other.storing, self.reading | other.reading, loading, stored)

    def of_iterations_before(self, variables: Collection[SSAValue]) -> _InFlight:
        """What the next iteration of a loop, or the next of some tasks, finds."""
        again = (op for op in self.stored if sources(op.operands[2:]).isdisjoint(variables))
        return replace(self, stored=frozenset(again))


class _Drains:
    """Puts drains into roles; `shared` are the asynchronous accesses to what others access too."""

    def __init__(self, shared: set[Operation]) -> None:
        self._shared = shared

    def role(self, role: RoleOp) -> None:
        left = self._block(role.body.block, _InFlight(), insert=True)
        last = role.body.block.last_op
        if left.storing and last is not None:
            drain = DrainOp(Drain.Full)
            drain.location = last.location
            role.body.block.add_op(drain)

    def _block(self, block: Block, state: _InFlight, *, insert: bool) -> _InFlight:
        for op in list(block.ops):
            if op.regions:
                state = self._inside(op, state, insert=insert)
                continue
            needed = list(_needed(op, state))
            for drain in needed:
                state = _drained(state, drain)
            if insert:
                before(op, needed)
            state |= self._begun(op)
        return state

    def _inside(self, op: Operation, state: _InFlight, *, insert: bool) -> _InFlight:
        blocks = [region.block for region in op.regions if region.blocks]
        if isinstance(op, scf.IfOp):
            branches = [self._block(block, state, insert=insert) for block in blocks]
            return branches[0] | (branches[1] if len(branches) > 1 else state)
        (body,) = blocks
        for drain in self._once(op, state):  # not in each iteration
            if insert:
                before(op, [drain])
            state = _drained(state, drain)
        # What an iteration leaves in flight, the next one finds.
        state |= self._block(body, state, insert=False).of_iterations_before(body.args)
        return state | self._block(body, state, insert=insert)

    def _once(self, loop: Operation, state: _InFlight) -> Iterator[DrainOp]:
        """The drains that are needed only once: signals in a loop that starts no such accesses again, and stores in one
        to where stores before it go."""
        inside = list(loop.walk())
        if any(_meets(op, state) for op in inside):
            yield DrainOp(Drain.Full)
            state = _drained(state, DrainOp(Drain.Full))
        begun = [self._begun(op) for op in inside]
        if any(isinstance(op, _SENT) for op in inside):
            if state.loading and not any(one.loading for one in begun):
                yield DrainOp(Drain.Loads)
            if state.storing and not any(one.storing for one in begun):
                yield DrainOp(Drain.Full)

    def _begun(self, op: Operation) -> _InFlight:
        if isinstance(op, LoadOp | GatherOp) and moves_async(op):
            return _InFlight(loading=op in self._shared)
        if not isinstance(op, LoadOp | StoreOp | AddToArrayOp) or not moves_by_tma(op):
            return _InFlight()
        if isinstance(op, StoreOp | AddToArrayOp):
            stage = stage_of(op.tile)
            reading = frozenset[SSAValue]() if stage is None else frozenset((stage.channel,))
            return _InFlight(storing=True, reading=reading, stored=frozenset((op,)))
        # A copy waits for what it loads.
        filling = any(isinstance(use.operation, CommitOp) for use in op.results[0].uses)
        return _InFlight(loading=filling and op in self._shared)


def _needed(op: Operation, state: _InFlight) -> Iterator[DrainOp]:
    if _meets(op, state):
        yield DrainOp(Drain.Full)
    if isinstance(op, _SENT) and not is_deferred(op) and not packed(op):
        if state.loading:
            yield DrainOp(Drain.Loads)
        if state.storing:
            yield DrainOp(Drain.Full)
    if isinstance(op, SendDeferredOp) and state.storing:
        yield DrainOp(Drain.Full, _stores_since(op, _iterations_left(op)))
    if isinstance(op, ReleaseDeferredOp) and op.channel in state.reading:
        yield DrainOp(Drain.Read)
    if isinstance(op, ReleaseOp) and op.channel in state.reading:
        yield DrainOp(Drain.Read, _stores_since(op, op.kept))


def _meets(op: Operation, state: _InFlight) -> bool:
    """Whether a store, which has to be the last, may go where one in flight goes; additions have no order."""
    if isinstance(op, Scatter):
        return any(op.array is other.array for other in state.stored)
    if not isinstance(op, StoreOp | AddToArrayOp):
        return False
    return any(
        _may_be_there(op, other) for other in state.stored if isinstance(op, StoreOp) or isinstance(other, StoreOp)
    )


def _may_be_there(op: _Store, other: _Store) -> bool:
    """Whether an earlier store may be to the place of this one: in one iteration, places are the same or apart."""
    if op.array is not other.array or (op.rank is None) != (other.rank is None):
        return False
    return _loops(op) != _loops(other) or same_values([*op.operands[2:]], [*other.operands[2:]])


def _loops(op: Operation) -> list[Operation]:
    return [around for around in ancestors(op) if not isinstance(around, scf.IfOp)]


def _iterations_left(op: SendDeferredOp) -> int:
    """By how many iterations signals stay behind: the stores of these may be in flight."""
    assert op.parent is not None
    return op.left.value.data // max(1, sum(map(is_deferred, op.parent.ops)))


def _stores_since(op: Operation, iterations: int) -> int:
    """How many asynchronous stores follow, up to `op`, those of so many iterations before that it has to wait for."""
    if not iterations:
        return 0
    assert op.parent is not None
    stores = [other for other in op.parent.ops if isinstance(other, StoreOp | AddToArrayOp) and moves_by_tma(other)]
    behind = 0
    if isinstance(op, ReleaseOp):
        before_op = [other for other in stores if other.is_before_in_block(op)]
        mine = [stage_of(other.tile) for other in before_op]
        last = max(place for place, stage in enumerate(mine) if stage is not None and stage.channel is op.channel)
        behind = len(before_op) - 1 - last
    return iterations * len(stores) + behind


def _drained(state: _InFlight, drain: DrainOp) -> _InFlight:
    if drain.kind.data is Drain.Loads:
        return replace(state, loading=False)
    if drain.may_remain:
        return state
    left = drain.kind.data is Drain.Read
    stored = state.stored if left else frozenset[_Store]()
    return replace(state, reading=frozenset(), storing=state.storing and left, stored=stored)
