"""Whether the memory accesses of a run are ordered by its signals, waits, channels, fences and drains.

A run is checked for every order that its accesses could have, not only for the one that they had. Of two accesses to
one element, one of them a write, the second must know that the first is complete (docs/decisions/0004-memory-order.md).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import numpy as np

from pkc.diagnostics import Diagnostic, Label, PkcError
from pkc.dialect.counters import Order
from pkc.location import span_of
from pkc.sim import order_errors as errors
from pkc.sim.accessed import Box, Copy, Grid, box_of, each, is_empty, note
from pkc.sim.array import Array, Where
from pkc.sim.memory_model import Access, Attempt, Clock, History, Kind, RingClocks, WarpRole
from pkc.sim.schedule import Counter

_IN_FLIGHT = {
    Kind.Read: ("reading", "loaded", "loads"),
    Kind.Store: ("writing", "stored", "full"),
    Kind.Add: ("adding to", "added", "full"),
}
"""By access: what TMA may still be doing, what was issued, and the kind of drain that waits for it."""


class MemoryOrder:
    """The clocks of all warp roles, counters and rings of a run, and the accesses to its arrays."""

    def __init__(
        self,
        arrays: Mapping[str, Array],
        written: Collection[str],
        ranks: int,
        components: int,
        *,
        explicit: bool,
        guarded: bool,
    ) -> None:
        """`written` are the arrays that the kernel writes; `components` is how many all warp roles and rings take.

        Unless `explicit`, every signal releases and every wait acquires. If `guarded`, arrays belong to the caller
        before and after each launch of their rank.
        """
        # An array that one rank alone reaches and nobody writes cannot be accessed in the wrong order.
        self.arrays = {name: a for name, a in arrays.items() if a.place.layout is not None or name in written}
        self.written = written
        self.explicit = explicit
        self._guarded = guarded
        self._nothing = np.zeros(components, np.int32)
        self._components: dict[object, int] = {}
        self._taken = 0
        self._histories: dict[Counter, History] = {}
        self._callers = [
            self._warp_role(rank, f"the caller of rank {rank}", rank, self._nothing) for rank in range(ranks)
        ]
        self._ended: list[Clock] = [self._nothing.copy() for _ in range(ranks)]
        entries = [self._entry(caller) for caller in self._callers]
        self._grids = {name: Grid() for name in self.arrays}
        self._copies = {
            name: [
                Copy(self._grids[name], None if array.place.kept else entry) for entry in entries[: array.place.copies]
            ]
            for name, array in self.arrays.items()
        }

    def _warp_role(self, rank: int, name: str, key: object, known: Clock, *, on_stream: bool = False) -> WarpRole:
        component = self._component(key, 2)
        return WarpRole(rank, name, component, known, explicit=self.explicit and not on_stream, on_stream=on_stream)

    def _component(self, key: object, count: int) -> int:
        """The first of some components; the same for the same key."""
        if key not in self._components:
            self._components[key] = self._taken
            self._taken += count
        return self._components[key]

    def _entry(self, caller: WarpRole) -> Access | None:
        if not self._guarded:
            return None
        return Access(caller, caller.component, int(caller.known[caller.component]), 0, Kind.Given, None)

    # Warp roles

    def caller(self, rank: int) -> WarpRole:
        """What launches the kernel on a rank."""
        return self._callers[rank]

    def begin(self, caller: WarpRole, name: str, key: object, *, on_stream: bool) -> WarpRole:
        """A role of a launch, or a lane, begins, on SMs or as a copy engine; `key` is the same in each launch."""
        known = caller.release()
        return self._warp_role(
            caller.rank, f"rank {caller.rank}, {name}", (caller.rank, key), known, on_stream=on_stream
        )

    def join(self, warp_role: WarpRole, lanes: Iterable[WarpRole]) -> None:
        """A role goes on after its lanes have ended."""
        for lane in lanes:
            warp_role.acquire((lane.known, lane.known_async))

    def end(self, warp_role: WarpRole) -> None:
        """A role has ended."""
        ended = self._ended[warp_role.rank]
        np.maximum(ended, warp_role.known, out=ended)

    def end_launch(self, rank: int) -> None:
        """All roles of a rank have ended: its arrays are its caller's again. Raises `PkcError` if others use them."""
        caller = self._callers[rank]
        np.maximum(caller.known, self._ended[rank], out=caller.known)
        if not self._guarded:
            return
        entry = self._entry(caller)
        for name, copies in self._copies.items():
            if self.arrays[name].place.kept:
                continue
            for box, access in copies[rank].everything() if rank < len(copies) else ():
                if not caller.knows(access.component, access.tick):
                    raise PkcError(_after_exit(self.arrays[name], rank, box, access, caller))
            if rank < len(copies):
                copies[rank] = Copy(self._grids[name], entry)

    # Counters

    def signal(self, warp_role: WarpRole, counter: Counter, value: int, order: Order) -> None:
        """A warp role has set a counter to a value."""
        if counter not in self._histories:
            self._histories[counter] = History(counter.rank)
        self._histories[counter].send(warp_role, value, order)

    def wait(self, warp_role: WarpRole, counter: Counter, value: int) -> None:
        """A warp role has waited for a value of a counter."""
        if value > 0:
            warp_role.see(*self._histories[counter].reach(value, warp_role))

    def reset(self, counter: Counter) -> None:
        """A counter is reset to zero."""
        self._histories.pop(counter, None)

    # Rings

    def ring(self, key: object, depth: int) -> RingClocks:
        """The clocks of a new ring."""
        return RingClocks(self._component(key, 1), depth)

    # Arrays

    def read(self, read: Attempt, array: Array, where: Where, ring: RingClocks | None) -> None:
        """A read, into `ring` if it is asynchronous. Raises `PkcError` if a write is not ordered before it."""
        box = box_of(where)
        if is_empty(box):
            return
        number: int = where[0]
        copy = self._copies[array.name][number]
        self._check(read, array, number, box, copy)
        note(copy.reads, box, read.noted() if ring is None else read.noted(*read.warp_role.fill(ring)))

    def read_constant(self, read: Attempt, array: Array, where: Where, ring: RingClocks | None) -> None:
        """As `read`, from an array that the kernel does not write: which elements does not matter."""
        box = box_of(where)
        if is_empty(box):
            return
        number: int = where[0]
        copy = self._copies[array.name][number]
        self._check_entry(read, array, number, box, copy)
        access = read.noted() if ring is None else read.noted(*read.warp_role.fill(ring))
        copy.constant[access.component] = access

    def store(self, store: Attempt, array: Array, where: Where, tile: Any) -> None:
        """A store of a tile. Raises `PkcError` if an earlier access there may not be complete."""
        box = box_of(where)
        if is_empty(box):
            return
        for number, copy in self._addressed(array, where):
            apart = store.by_tma or store.in_packets
            access = store.noted(*store.warp_role.store()) if apart else store.noted()
            same = copy.stores.items.get(box)
            if same is not None and _holds(array, (number, *where[1:]), tile):
                same.append(access)
                continue
            self._check(store, array, number, box, copy)
            copy.store(box, access)

    def add(self, addition: Attempt, array: Array, where: Where) -> None:
        """An addition, which needs no order among additions. Raises `PkcError` if a read or store is not ordered."""
        box = box_of(where)
        if is_empty(box):
            return
        for number, copy in self._addressed(array, where):
            self._check(addition, array, number, box, copy)
            apart = addition.by_tma
            note(copy.sums, box, addition.noted(*addition.warp_role.store()) if apart else addition.noted())

    def _check(self, attempt: Attempt, array: Array, number: int, box: Box, copy: Copy) -> None:
        """Refuse an access that does not know that all earlier ones are complete with which it conflicts."""
        self._check_entry(attempt, array, number, box, copy)
        clock = attempt.must_know(Kind.Store)
        assert clock is not None
        enough = any if attempt.done is Kind.Read else all
        for other, stores in copy.stores.meeting(box):
            if not enough([clock[access.component] >= access.tick for access in stores]):
                unknown = next(access for access in stores if clock[access.component] < access.tick)
                raise PkcError(_found(array, number, (box, other), unknown, attempt))
        for kind, boxes in ((Kind.Add, copy.sums), (Kind.Read, copy.reads)):
            clock = attempt.must_know(kind)
            if clock is None:
                continue
            for other, access in each(boxes.meeting(box)):
                if clock[access.component] < access.tick:
                    raise PkcError(_found(array, number, (box, other), access, attempt))

    def _check_entry(self, attempt: Attempt, array: Array, number: int, box: Box, copy: Copy) -> None:
        clock = attempt.must_know(Kind.Given)
        if clock is not None and copy.entry is not None and clock[copy.entry.component] < copy.entry.tick:
            raise PkcError(_found(array, number, (box, box), copy.entry, attempt))

    def _addressed(self, array: Array, where: Where) -> Iterable[tuple[int, Copy]]:
        copies, first = self._copies[array.name], where[0]
        if isinstance(first, slice):
            return enumerate(copies)
        number: int = first
        return ((number, copies[number]),)


# Findings


def _found(array: Array, copy: int, boxes: tuple[Box, Box], first: Access, second: Attempt) -> Diagnostic:
    """The finding for two accesses that nothing orders: what is missing between them."""
    warp_role, done = second.warp_role, second.done
    what = (array.name, _element(array, copy, boxes), done, warp_role.name)
    span = span_of(second.op.location)
    if _is_in_flight(first, warp_role):
        return _not_drained(first, *what[:3], also=(Label(span, f"{done} here by {warp_role}"),))
    also = () if first.op is None else (Label(span_of(first.op.location), f"{first.done} here by {first.warp_role}"),)
    if second.by_tma and warp_role.knows(first.component, first.tick):
        return errors.ProxiesNotFenced(span, *what, also=also)
    if warp_role.has_seen(first.component, first.tick):
        return errors.NotAcquired(span, *what, also=also)
    if first.op is None:
        return errors.BeforeEntry(span, array.name, first.warp_role.rank, done, warp_role.name)
    return errors.Race(span, *what, also=also)


def _after_exit(array: Array, rank: int, box: Box, access: Access, caller: WarpRole) -> Diagnostic:
    """The finding for an access that the end of the launch does not wait for."""
    if _is_in_flight(access, caller):
        return _not_drained(access, array.name, _element(array, rank, (box, box)), "given back to the caller")
    assert access.op is not None
    return errors.AfterExit(span_of(access.op.location), array.name, rank, access.done, access.warp_role.name)


def _is_in_flight(access: Access, warp_role: WarpRole) -> bool:
    """Whether an asynchronous access is known to have begun, and not known to be complete."""
    over = warp_role.knows(access.component, access.tick)
    return (
        not over
        and access.component != access.warp_role.component
        and warp_role.knows(access.warp_role.component, access.begun)
    )


def _not_drained(access: Access, array: str, element: str, done: str, also: tuple[Label, ...] = ()) -> Diagnostic:
    doing, begun, kind = _IN_FLIGHT[access.done]
    assert access.op is not None
    span = span_of(access.op.location)
    return errors.NotDrained(span, array, element, done, doing, begun, access.warp_role.name, kind, also=also)


def _element(array: Array, copy: int, boxes: tuple[Box, Box]) -> str:
    """The first element that two boxes have in common."""
    first = [max(a, b) for (a, _), (b, _) in zip(*boxes, strict=True)]
    return array.element((copy, *(slice(at, at + 1) for at in first)), [0] * len(first))


def _holds(array: Array, where: Where, tile: Any) -> bool:
    """Whether memory holds the values of a tile already, so that storing them again changes nothing."""
    before = np.array(array.value[where])
    array.store(where, tile)
    return np.array_equal(before, array.value[where], equal_nan=True)
