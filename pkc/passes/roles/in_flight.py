"""Drains of asynchronous accesses: where what is in flight has to be complete, or read."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

from xdsl.dialects import scf
from xdsl.ir import Block, Operation, SSAValue

from pkc.dialect.access import AddToArrayOp, LoadOp, Scatter, StoreOp
from pkc.dialect.by_table import GatherOp
from pkc.dialect.counters import RaiseOp, SignalAllOp, SignalOp
from pkc.dialect.deferred import SendDeferredOp, is_deferred
from pkc.dialect.fences import Drain, DrainOp
from pkc.dialect.program import RoleOp, TasksOp, packed
from pkc.dialect.roles import CommitOp, ReleaseDeferredOp, ReleaseOp
from pkc.dialect.transfers import moves_async, moves_by_tma, stage_of
from pkc.passes.analysis.dependence import ancestors, is_one, same_values, sources
from pkc.passes.build import before

SENT = (SignalOp, SignalAllOp, RaiseOp)
Store = StoreOp | AddToArrayOp


@dataclass(frozen=True)
class _InFlight:
    """The asynchronous accesses of a warp role that may be in flight."""

    storing: bool = False
    reading: frozenset[SSAValue] = frozenset()
    """The channels whose stages stores read from."""
    loading: bool = False
    stored: frozenset[Store] = frozenset()
    """The stores, but for those of earlier iterations of a loop around that went to other places."""

    def __or__(self, other: _InFlight) -> _InFlight:
        loading, stored = self.loading or other.loading, self.stored | other.stored
        return _InFlight(self.storing or other.storing, self.reading | other.reading, loading, stored)

    def of_iterations_before(self, variables: Collection[SSAValue]) -> _InFlight:
        """What the next iteration of a loop, or the next of some tasks, finds."""
        again = (op for op in self.stored if sources(op.operands[2:]).isdisjoint(variables))
        return replace(self, stored=frozenset(again))


class Drains:
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
        once = isinstance(op, TasksOp) and all(map(is_one, op.counts))
        if not once:
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
        if any(isinstance(op, SENT) for op in inside):
            if state.loading and not any(one.loading for one in begun):
                yield DrainOp(Drain.Loads)
            if state.storing and not any(one.storing for one in begun):
                yield DrainOp(Drain.Full)

    def _begun(self, op: Operation) -> _InFlight:
        if isinstance(op, LoadOp | GatherOp) and moves_async(op):
            return _InFlight(loading=op in self._shared)
        if not isinstance(op, LoadOp | GatherOp | StoreOp | AddToArrayOp) or not moves_by_tma(op):
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
    if isinstance(op, SENT) and not is_deferred(op) and not packed(op):
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


def _may_be_there(op: Store, other: Store) -> bool:
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
    stored = state.stored if left else frozenset[Store]()
    return replace(state, reading=frozenset(), storing=state.storing and left, stored=stored)
