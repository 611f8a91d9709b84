"""The order that an author wrote, kept when a role is split: waits come before, signals after what stands around them.

What two of the new roles do is ordered by the tiles that pass between them, and by nothing else. A wait guards loads,
and through their tiles what is stored of them; what does not depend on such a load gets a copy of the wait. A signal
follows stores; what it says of earlier loads, that they are done, holds if something that is stored before it depends
on them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from xdsl.dialects import scf
from xdsl.ir import Operation

from pkc.dialect.access import AddToArrayOp, LoadOp, ReadOp, Scatter, StoreOp
from pkc.dialect.attributes import Role, RoleAttr
from pkc.dialect.by_table import GatherOp
from pkc.dialect.coordinates import DimOp
from pkc.dialect.counters import SignalAllOp, SignalOp, WaitOp, takes_down
from pkc.dialect.program import RoleOp, TasksOp
from pkc.dialect.scalars import constant_of
from pkc.dialect.types import RANKS
from pkc.passes.analysis.dependence import ancestors, role_around, sources, writes
from pkc.passes.build import copy_of
from pkc.passes.roles.assign_roles import ROLE, are_exclusive, role_of

_Store = StoreOp | AddToArrayOp | Scatter
_Signal = SignalOp | SignalAllOp


class UnorderedSignalError(Exception):
    """A signal follows a load, and nothing that is stored before it depends on the load."""

    def __init__(self, signal: Operation, load: Operation) -> None:
        super().__init__()
        self.signal = signal
        self.load = load


class ReadBackError(Exception):
    """A load may read what its own role stores before it, and no signal and wait lie between them."""

    def __init__(self, load: Operation) -> None:
        super().__init__()
        self.load = load


class DividedWaitError(Exception):
    """Several roles need a wait for a counter that is taken down again: one could do so before another has looked."""

    def __init__(self, wait: Operation, signal: Operation) -> None:
        super().__init__()
        self.wait = wait
        self.signal = signal


def keep_order(role_op: RoleOp) -> None:
    """Copy waits of a role that is about to be split to the roles that need them. Raises `UnorderedSignalError` and
    `DividedWaitError`."""
    ops = list(role_op.body.walk())
    places = {op: place for place, op in enumerate(ops)}
    for op in ops:
        if isinstance(op, _Signal):
            _place_signal(op, ops, places)
    placed = {op: _roles_behind(op) for op in ops if isinstance(op, WaitOp) and role_of(op) is Role.Loader}
    for wait, roles in placed.items():
        lowered = taken_down(wait)
        if lowered is not None and roles != [role_of(lowered)]:
            raise DividedWaitError(wait, lowered)
    for wait, (first, *others) in placed.items():
        wait.attributes[ROLE] = RoleAttr(first)
        for role in others:
            copy = copy_of(wait)
            copy.attributes[ROLE] = RoleAttr(role)
            block = wait.parent
            assert block is not None
            block.insert_op_after(copy, wait)


def check_read_elements(role_op: RoleOp) -> None:
    """Raises `DividedWaitError` if elements are read, as all roles do, behind a wait whose counter is taken down."""
    for wait in role_op.body.walk():
        lowered = taken_down(wait) if isinstance(wait, WaitOp) else None
        if isinstance(wait, WaitOp) and lowered is not None:
            behind = (*_later(wait), *(op for loop in _loops(wait) for op in loop.walk()))
            if any(isinstance(op, ReadOp) and any(map(writes, op.array.uses)) for op in behind):
                raise DividedWaitError(wait, lowered)


def check_read_back(role_op: RoleOp) -> None:
    """Raises `ReadBackError` if one role is to load what another one stores, and only their order in the program says
    that it is stored before."""
    ops = list(role_op.body.walk())
    places = {op: place for place, op in enumerate(ops)}
    stores = [op for op in ops if isinstance(op, StoreOp)]
    for op in ops:
        if not isinstance(op, LoadOp | GatherOp):
            continue
        if any(store.array is op.array and not _is_announced(store, op, ops, places) for store in stores):
            raise ReadBackError(op)


def _is_announced(store: Operation, load: Operation, ops: Sequence[Operation], places: dict[Operation, int]) -> bool:
    """Whether a load follows a store by a signal and a wait behind it, or does not follow it."""
    if places[store] < places[load]:
        between = ops[places[store] : places[load]]
    else:
        around = set(ancestors(load))
        loop = next((op for op in ancestors(store) if op in around and isinstance(op, scf.ForOp | TasksOp)), None)
        if loop is None:
            return True
        between = [*ops[places[store] :], *ops[places[loop] : places[load]]]  # of the next iteration
    signals = [place for place, op in enumerate(between) if isinstance(op, _Signal)]
    return bool(signals) and any(isinstance(op, WaitOp) for op in between[signals[0] :])


def _place_signal(signal: _Signal, ops: Sequence[Operation], places: dict[Operation, int]) -> None:
    """Leave a signal with the stores; or with the consumer, if it follows loads alone."""
    around = _tasks(signal)
    before = [op for op in ops[: places[signal]] if around is None or _tasks(op) is around]
    stores = [op for op in before if isinstance(op, _Store)]
    stored = {op: sources([op.tile]) for op in stores}
    earlier = (op for op in before if isinstance(op, LoadOp | GatherOp) and not are_exclusive(op, signal))
    loads = [op for op in earlier if _is_written(op)]
    loose = [
        load
        for load in loads
        if not _are_between([store for store, found in stored.items() if load.results[0] in found], load, signal)
    ]
    if not loose:
        return
    if stores or not all(_is_consumed(load, signal) for load in loose):
        raise UnorderedSignalError(signal, loose[0])
    signal.attributes[ROLE] = RoleAttr(Role.Consumer)


def _is_written(load: LoadOp | GatherOp) -> bool:
    """Whether the kernel writes the array of a load, so that it matters when it is read."""
    return any(isinstance(use.operation, _Store) for use in load.array.uses)


def _are_between(stores: Iterable[Operation], load: Operation, signal: Operation) -> bool:
    """Whether one of the stores is carried out whenever a load that they depend on is, or the signal behind them."""
    blocks = {store.parent for store in stores}
    todo = list(blocks)
    while todo:
        block = todo.pop()
        around = block.parent_op() if block is not None else None
        # Of two branches that both store one is taken.
        if isinstance(around, scf.IfOp) and all(region.blocks and region.block in blocks for region in around.regions):
            outer = around.parent
            todo += [] if outer in blocks else [outer]
            blocks.add(outer)
        if isinstance(around, scf.ForOp) and _is_entered(around) and around.parent not in blocks:
            todo.append(around.parent)
            blocks.add(around.parent)
    return any(block is not None and (block.is_ancestor(load) or block.is_ancestor(signal)) for block in blocks)


def _is_entered(loop: scf.ForOp) -> bool:
    """Whether a loop has an iteration, whatever the sizes are: one for each rank, say."""
    stop = loop.ub.owner
    all_ranks = isinstance(stop, DimOp) and stop.dim.data == RANKS
    return constant_of(loop.lb) == 0 and (all_ranks or (constant_of(loop.ub) or 0) > 0)


def _is_consumed(load: Operation, signal: Operation) -> bool:
    """Whether the consumer has used a load before a signal."""
    users = [use.operation for use in load.results[0].uses if role_of(use.operation) is Role.Consumer]
    return bool(users) and all(_precedes(user, signal) for user in users)


def _precedes(op: Operation, signal: Operation) -> bool:
    block = signal.parent
    inner = block.find_ancestor_op_in_block(op) if block is not None else None
    return inner is not None and inner.is_before_in_block(signal)


def _roles_behind(wait: WaitOp) -> list[Role]:
    """The roles that have something to do behind a wait, or the loader."""
    later = list(_later(wait))
    again = [op for loop in _loops(wait) for op in loop.walk()]
    loads = {op.results[0] for op in later if isinstance(op, LoadOp | GatherOp)}
    every = loads | {op.results[0] for op in again if isinstance(op, LoadOp | GatherOp)}
    guarded: list[Operation] = []
    roles: set[Role] = set()
    for op in dict.fromkeys([*later, *again]):
        if isinstance(op, LoadOp | GatherOp):
            roles.add(Role.Loader)
        if isinstance(op, _Store) and not sources([op.tile]).isdisjoint(loads if op in later else every):
            guarded.append(op)
        elif isinstance(op, _Store | _Signal) and not _is_behind(op, guarded):
            role = role_of(op)
            assert role is not None
            roles.add(role)
    return sorted(roles) or [Role.Loader]


def taken_down(wait: WaitOp) -> Operation | None:
    """What the role of a wait takes off the counters that it is for."""
    role = role_around(wait)
    return next(
        (
            use.operation
            for use in wait.signal.uses
            if isinstance(use.operation, _Signal) and role_around(use.operation) is role and takes_down(use.operation)
        ),
        None,
    )


def _is_behind(op: Operation, guarded: Sequence[Operation]) -> bool:
    """Whether a signal comes after a store that is guarded, in the same role, whenever it is sent."""
    return isinstance(op, _Signal) and any(
        role_of(op) is Role.Storer and store.parent is not None and _comes_after(op, store) for store in guarded
    )


def _comes_after(op: Operation, store: Operation) -> bool:
    block = store.parent
    inner = block.find_ancestor_op_in_block(op) if block is not None else None
    return inner is not None and store.is_before_in_block(inner)


def _later(op: Operation) -> Iterator[Operation]:
    """What runs behind an operation in its task, or outside of tasks in its role."""
    inner = op
    while not isinstance(inner, RoleOp | TasksOp):
        following = inner.next_op
        while following is not None:
            yield from following.walk()
            following = following.next_op
        around = inner.parent_op()
        assert around is not None
        inner = around


def _loops(op: Operation) -> Iterator[scf.ForOp]:
    """The loops around an operation in its task, or in its role."""
    for around in ancestors(op):
        if isinstance(around, RoleOp | TasksOp):
            return
        if isinstance(around, scf.ForOp):
            yield around


def _tasks(op: Operation) -> TasksOp | None:
    return next((around for around in ancestors(op) if isinstance(around, TasksOp)), None)
