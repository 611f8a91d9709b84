"""Whether the memory accesses of a run are ordered by its signals, waits, channels, fences and drains.

Every run is checked for all that its accesses could do, not for what they happened to do: of two accesses to one
element, one of them a write, the second must know that the first is over (docs/decisions/0004-memory-order.md).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from xdsl.ir import Operation

from pkc.diagnostics import Diagnostic, Label, PkcError
from pkc.dialect.counters import Order
from pkc.location import span_of
from pkc.sim import order_errors as errors
from pkc.sim.accessed import Access, Box, Copy, Grid, box_of, each, is_empty, note
from pkc.sim.array import Array, Where
from pkc.sim.schedule import Counter
from pkc.sim.warp_roles import Clock, History, RingClocks, Worker

_UNDER_WAY = {"read": ("reading", "loaded", "loads"), "stored": ("writing", "stored", "full")}
"""For what is done: what TMA may still be doing, what it was told here, and the drain that waits for it."""


class Attempt(NamedTuple):
    """An access that is about to happen: whose it is, what it does, and whether through the async proxy."""

    worker: Worker
    op: Operation
    done: str
    by_tma: bool = False

    @property
    def clock(self) -> Clock:
        """What happened before it."""
        return self.worker.known_async if self.by_tma else self.worker.known

    def noted(self, component: int | None = None, tick: int = 0) -> Access:
        """How it is remembered: over when its component, its worker's own unless another is given, is at the tick."""
        worker = self.worker
        begun = int(worker.known[worker.own])
        if component is None:
            return Access(worker, worker.own, begun, begun, self.done, self.op)
        return Access(worker, component, tick, begun, self.done, self.op)


class MemoryOrder:
    """The clocks of all workers, counters and rings of a run, and the accesses to its arrays."""

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
        """`written` are the arrays that the kernel writes; `components` is as many as all workers and rings take.

        Unless `explicit`, a signal releases and a wait acquires whatever it says. If `guarded`, arrays are the caller's
        before and after each launch of their rank.
        """
        # What only one rank reaches and nobody writes, cannot be accessed in the wrong order.
        self.arrays = {name: a for name, a in arrays.items() if a.place.layout is not None or name in written}
        self.written = written
        self.explicit = explicit
        self._guarded = guarded
        self._nothing = np.zeros(components, np.int32)
        self._components: dict[object, int] = {}
        self._taken = 0
        self._histories: dict[Counter, History] = {}
        self._callers = [self._worker(rank, f"the caller of rank {rank}", rank, self._nothing) for rank in range(ranks)]
        self._ended: list[Clock] = [self._nothing.copy() for _ in range(ranks)]
        entries = [self._entry(caller) for caller in self._callers]
        self._grids = {name: Grid() for name in self.arrays}
        self._copies = {
            name: [Copy(self._grids[name], entry) for entry in entries[: array.place.copies]]
            for name, array in self.arrays.items()
        }

    def _worker(self, rank: int, name: str, key: object, known: Clock, *, on_stream: bool = False) -> Worker:
        own = self._component(key, 2)
        return Worker(rank, name, own, known, explicit=self.explicit and not on_stream, on_stream=on_stream)

    def _component(self, key: object, count: int) -> int:
        """The first of some components; the same for the same key."""
        if key not in self._components:
            self._components[key] = self._taken
            self._taken += count
        return self._components[key]

    def _entry(self, caller: Worker) -> Access | None:
        if not self._guarded:
            return None
        return Access(caller, caller.own, int(caller.known[caller.own]), 0, "written", None)

    # Workers

    def caller(self, rank: int) -> Worker:
        """What launches the kernel on a rank."""
        return self._callers[rank]

    def begin(self, caller: Worker, name: str, key: object, *, on_stream: bool) -> Worker:
        """A part of a launch, or a lane, begins, on SMs or as a copy engine; `key` is the same in each launch."""
        known = caller.release()
        return self._worker(caller.rank, f"rank {caller.rank}, {name}", (caller.rank, key), known, on_stream=on_stream)

    def join(self, worker: Worker, lanes: Iterable[Worker]) -> None:
        """A part goes on when its lanes have ended."""
        for lane in lanes:
            worker.acquire((lane.known, lane.known_async))

    def end(self, worker: Worker) -> None:
        """A part has ended."""
        ended = self._ended[worker.rank]
        np.maximum(ended, worker.known, out=ended)

    def end_launch(self, rank: int) -> None:
        """All parts of a rank have ended: its arrays are its caller's again. Raises `PkcError` if others use them."""
        caller = self._callers[rank]
        np.maximum(caller.known, self._ended[rank], out=caller.known)
        if not self._guarded:
            return
        entry = self._entry(caller)
        for name, copies in self._copies.items():
            for box, access in copies[rank].everything() if rank < len(copies) else ():
                if not caller.knows(access.component, access.tick):
                    raise PkcError(_after_exit(self.arrays[name], rank, box, access, caller))
            if rank < len(copies):
                copies[rank] = Copy(self._grids[name], entry)

    # Counters

    def signal(self, worker: Worker, counter: Counter, value: int, order: Order) -> None:
        """A worker has brought a counter to a value."""
        if counter not in self._histories:
            self._histories[counter] = History(counter.rank)
        self._histories[counter].send(worker, value, order)

    def wait(self, worker: Worker, counter: Counter, value: int) -> None:
        """A worker has waited for a value of a counter."""
        if value > 0:
            worker.see(*self._histories[counter].reach(value))

    def reset(self, counter: Counter) -> None:
        """A counter is brought back to zero."""
        self._histories.pop(counter, None)

    # Rings

    def ring(self, key: object, depth: int) -> RingClocks:
        """The clocks of a new ring."""
        return RingClocks(self._component(key, 1), depth)

    # Arrays

    def read(self, read: Attempt, array: Array, where: Where, ring: RingClocks | None) -> None:
        """A read, into `ring` if it is asynchronous. Raises `PkcError` if what it finds is not certain."""
        box = box_of(where)
        if is_empty(box):
            return
        number: int = where[0]
        copy, clock = self._copies[array.name][number], read.clock
        if copy.entry is not None and clock[copy.entry.component] < copy.entry.tick:
            raise PkcError(_found(array, number, (box, box), copy.entry, read))
        for other, stores in copy.stores.meeting(box):
            if all(clock[access.component] < access.tick for access in stores):
                raise PkcError(_found(array, number, (box, other), stores[0], read))
        for other, access in each(copy.sums.meeting(box)):
            if clock[access.component] < access.tick:
                raise PkcError(_found(array, number, (box, other), access, read))
        note(copy.reads, box, read.noted() if ring is None else read.noted(*read.worker.fill(ring)))

    def read_constant(self, read: Attempt, array: Array, where: Where, ring: RingClocks | None) -> None:
        """As `read`, from an array that the kernel does not write, so that it does not matter which elements."""
        box = box_of(where)
        if is_empty(box):
            return
        number: int = where[0]
        copy = self._copies[array.name][number]
        if copy.entry is not None and read.clock[copy.entry.component] < copy.entry.tick:
            raise PkcError(_found(array, number, (box, box), copy.entry, read))
        access = read.noted() if ring is None else read.noted(*read.worker.fill(ring))
        copy.constant[access.component] = access

    def store(self, store: Attempt, array: Array, where: Where, tile: Any) -> None:
        """A store of a tile. Raises `PkcError` if somebody may still access what was there."""
        box = box_of(where)
        if is_empty(box):
            return
        worker, clock = store.worker, store.clock
        for number, copy in self._addressed(array, where):
            access = store.noted(*worker.store()) if store.by_tma else store.noted()
            same = copy.stores.items.get(box)
            if same is not None and _holds(array, (number, *where[1:]), tile):
                same.append(access)
                continue
            for other, earlier in copy.before_store(box):
                if clock[earlier.component] < earlier.tick:
                    raise PkcError(_found(array, number, (box, other), earlier, store))
            for other, earlier in each(copy.reads.meeting(box)):
                if not worker.knows(earlier.component, earlier.tick):
                    raise PkcError(_found(array, number, (box, other), earlier, store))
            copy.store(box, access)

    def add(self, addition: Attempt, array: Array, where: Where) -> None:
        """An addition, which others may do as well. Raises `PkcError` if somebody may do something else."""
        box = box_of(where)
        if is_empty(box):
            return
        worker = addition.worker
        for number, copy in self._addressed(array, where):
            if copy.entry is not None and not worker.knows(copy.entry.component, copy.entry.tick):
                raise PkcError(_found(array, number, (box, box), copy.entry, addition))
            stores = ((other, access) for other, stores in copy.stores.meeting(box) for access in stores)
            for other, access in chain(stores, each(copy.reads.meeting(box))):
                if not worker.knows(access.component, access.tick):
                    raise PkcError(_found(array, number, (box, other), access, addition))
            note(copy.sums, box, addition.noted())

    def _addressed(self, array: Array, where: Where) -> Iterable[tuple[int, Copy]]:
        copies, first = self._copies[array.name], where[0]
        if isinstance(first, slice):
            return enumerate(copies)
        number: int = first
        return ((number, copies[number]),)


# Findings


def _found(array: Array, copy: int, boxes: tuple[Box, Box], first: Access, second: Attempt) -> Diagnostic:
    """What is missing between two accesses."""
    worker, done = second.worker, second.done
    what = (array.name, _element(array, copy, boxes), done, worker.name)
    span = span_of(second.op.location)
    if _is_under_way(first, worker):
        return _not_drained(first, *what[:3], also=(Label(span, f"{done} here by {worker}"),))
    also = () if first.op is None else (Label(span_of(first.op.location), f"{first.done} here by {first.worker}"),)
    if second.by_tma and worker.knows(first.component, first.tick):
        return errors.ProxiesNotFenced(span, *what, also=also)
    if worker.has_seen(first.component, first.tick):
        return errors.NotAcquired(span, *what, also=also)
    if first.op is None:
        return errors.BeforeEntry(span, array.name, first.worker.rank, done, worker.name)
    return errors.Race(span, *what, also=also)


def _after_exit(array: Array, rank: int, box: Box, access: Access, caller: Worker) -> Diagnostic:
    """What is missing between an access and the end of the launch."""
    if _is_under_way(access, caller):
        return _not_drained(access, array.name, _element(array, rank, (box, box)), "given back to the caller")
    assert access.op is not None
    return errors.AfterExit(span_of(access.op.location), array.name, rank, access.done, access.worker.name)


def _is_under_way(access: Access, worker: Worker) -> bool:
    """Whether an asynchronous access is known to have begun, and not to be over."""
    over = worker.knows(access.component, access.tick)
    return not over and access.component != access.worker.own and worker.knows(access.worker.own, access.begun)


def _not_drained(access: Access, array: str, element: str, done: str, also: tuple[Label, ...] = ()) -> Diagnostic:
    doing, begun, kind = _UNDER_WAY[access.done]
    assert access.op is not None
    span = span_of(access.op.location)
    return errors.NotDrained(span, array, element, done, doing, begun, access.worker.name, kind, also=also)


def _element(array: Array, copy: int, boxes: tuple[Box, Box]) -> str:
    """The first element that two boxes have in common."""
    first = [max(a, b) for (a, _), (b, _) in zip(*boxes, strict=True)]
    return array.element((copy, *(slice(at, at + 1) for at in first)), [0] * len(first))


def _holds(array: Array, where: Where, tile: Any) -> bool:
    """Whether memory has the values of a tile already: who stores them again changes nothing."""
    before = np.array(array.value[where])
    array.store(where, tile)
    return np.array_equal(before, array.value[where], equal_nan=True)
