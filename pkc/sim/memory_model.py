"""pkc's memory model: which earlier accesses an access may rely on. The rest of the simulator only asks this file.

Of two accesses that conflict, the later one in a run must know that the earlier one is complete; if it does not, the
program is refused (PK730-PK737), whatever the run has read. If no run is refused, each read gives the last write before
it. What a warp role knows are vector clocks (Mattern 1989): a component for its ordinary accesses, one for its
asynchronous stores, and one of each ring for the loads into it.

`python -m tests.litmus` compares it with PTX.

The axioms, with the sections of the PTX ISA 9.0 that they come from, and where they are:

Conflict       8.7.1            accesses to one element conflict, but two reads, or two additions: `Attempt.must_know`
Program        8.9.1            what a warp role did is complete for what it does next: `Attempt.noted`
Asynchronous   8.9.1.1          but not what TMA does for it, be it a store, an addition or a load: `WarpRole.store`,
                                `fill`, `Attempt.noted`
Completion     9.7.9.25.1, .6.2 a drain waits for groups of stores, oldest first, or for loads; then they are complete
               9.7.9.25.2       for both proxies, without a fence: `WarpRole.drain`
Release        8.8, 8.9.4       a signal adds what its warp role knows to the counter, for the ranks in its scope,
                                unless it is relaxed; what stands there stays: `History.send`
Observation    8.9.2, 8.9.4     a wait sees what had been released when its counter first had the value: `History.reach`
Coherence      8.10.1, 8.10.6   but no value that it had before a signal that the warp role knows of: `History.reach`
Acquire        8.8, 8.11.1      an acquire makes that known, if its scope has who released it: `WarpRole.see`, `fence`
Cumulativity   8.9.5            what is known is released too, whoever did it: clocks are joined, never replaced
Packet         8.2, 8.7, 8.10   the element and the epoch are one scalar, stored and read by strong accesses: who
                                reads the epoch reads the element, and learns nothing else: `WarpRole.sent`, `see`
Mbarrier       9.7.13.15.16     commit to consume, and release to acquire, of one stage pass on what is known; the loads
                                into a stage are complete when it is consumed: `RingClocks`
Proxy          8.6, 8.9.5       an asynchronous access needs what was known at the last fence to the async proxy of its
                                CTA; counters do not carry that: `Attempt.must_know`, `WarpRole.fence`
Stage          9.7.9.25.1, .6.2 a stage is given back when no store and no MMA reads it, which MMAs do until they are
               9.7.15.7         awaited, oldest first, and those in pieces until the chain ends that needs these:
                                `WarpRole.store_reading`, `mma_reading`, `finish_mmas`
Memory                          channels of phases that have the same shared memory are filled when all stages of the
                                others have been given back, and who fills them knows that: `RingClocks.is_over_for`
Launch         8.9.4            a launch begins after its caller's writes, for both proxies, and ends when its roles
                                have, on this rank alone: `WarpRole.__init__`

A stage that ordinary instructions fill and TMA or wgmma reads needs a fence before its commit, or behind its consume if
it arrives asynchronously, and one that ordinary instructions read and TMA fills again needs one before its release.
Whether there is one is seen in the IR (`pkc.dialect.transfers.is_fenced`, `is_read_fenced`), as passes ask that too.

Stronger than PTX, so that programs are refused that PTX gives a meaning:

- relaxed and racing accesses have no values: arrays are accessed weakly, and counters are only added to and awaited.
  So there is no `fence.sc`: without a race it orders nothing that signals do not (8.9.3);
- there is no scope of CTA or cluster, except through channels;
- a fence to the async proxy counts where the access is, not where the data was written (8.9.5 has no rule for it);
- a fence for a stage that is full when it is committed counts before the commit, not behind the consume.

Weaker than PTX, so that programs pass that PTX does not order; each is a test in `tests/litmus`, explained as a hole:

- a read before an asynchronous write needs no proxy fence. PTX has no exception for it; the value has arrived in a
  register by then, and every pipeline of TMA loads relies on that;
- all signals to a counter are atomic to each other. Under PTX those of scope `gpu` are not towards other GPUs (8.10.3);
- additions are atomic to each other, also by TMA and by threads, which are two proxies, and by TMA of two GPUs, whose
  scope is `gpu` (8.7, 8.10.3);
- `pk.reset` is no access: nothing asks whether it is ordered before the next signal.

A store of the values that are there already is no conflict: whichever is the last, it leaves them.

The threads of a warp role are one: the barrier among them, and a fence by each of them, are for code generation.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection
from enum import StrEnum
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from xdsl.ir import Operation

from pkc.dialect.counters import Order
from pkc.dialect.fences import Drain, Fence

Clock: TypeAlias = "np.ndarray[Any, np.dtype[np.int32]]"

Stage: TypeAlias = "tuple[RingClocks, int]"
"""A stage of a ring, counted from 1."""


class Kind(StrEnum):
    """What an access does, as findings say it."""

    Given = "written"
    """What a rank's caller does before the launch."""
    Store = "stored"
    Add = "added to"
    Read = "read"


class Access(NamedTuple):
    """One access: complete when `component` reaches `tick`, begun when its role's own component was at `begun`."""

    warp_role: WarpRole
    component: int
    tick: int
    begun: int
    done: Kind
    op: Operation | None
    """None for what a rank's caller does."""


class Attempt(NamedTuple):
    """An access that is about to happen: of which role, what it does, and whether through the async proxy."""

    warp_role: WarpRole
    op: Operation
    done: Kind
    by_tma: bool = False
    in_packets: bool = False

    def must_know(self, earlier: Kind) -> Clock | None:
        """The clock that must have reached each earlier access of a kind (Conflict, Proxy); None without a conflict."""
        if self.done == earlier and earlier is not Kind.Store:
            return None
        if self.by_tma and earlier is not Kind.Read:
            return self.warp_role.known_async
        return self.warp_role.known

    def noted(self, component: int | None = None, tick: int = 0) -> Access:
        """The recorded access: complete at `tick` of `component`, or else at the role's current tick (Program)."""
        warp_role = self.warp_role
        begun = int(warp_role.known[warp_role.component])
        if component is None:
            return Access(warp_role, warp_role.component, begun, begun, self.done, self.op)
        return Access(warp_role, component, tick, begun, self.done, self.op)


class RingClocks:
    """The clocks at the last commit and the last release of each stage of a ring."""

    def __init__(self, component: int, depth: int) -> None:
        self.component = component
        self.commits = 0
        self._depth = depth
        self._full: dict[int, tuple[Clock, Clock]] = {}
        self._free: dict[int, tuple[Clock, Clock]] = {}
        self._given_back = (component, 0)

    def commit(self, warp_role: WarpRole) -> None:
        """The producer commits the next stage: with its clock, and the loads into the stage (Mbarrier)."""
        known, known_async = warp_role.release(), warp_role.known_async.copy()
        self.commits += 1
        known[self.component] = known_async[self.component] = self.commits
        self._full[self.commits % self._depth] = known, known_async

    def consume(self, warp_role: WarpRole, number: int) -> None:
        """The consumer has acquired a full stage, counted from 1."""
        warp_role.acquire(self._full[number % self._depth])

    def release(self, warp_role: WarpRole, number: int) -> None:
        """The consumer releases a stage."""
        known = warp_role.release()
        self._given_back = warp_role.component, int(known[warp_role.component])
        self._free[number % self._depth] = known, warp_role.known_async.copy()

    def is_over_for(self, warp_role: WarpRole) -> bool:
        """Whether the last release happened before what a role does next (Memory)."""
        return warp_role.knows(*self._given_back)

    def acquire(self, warp_role: WarpRole, number: int) -> None:
        """The producer has acquired a free stage."""
        free = self._free.get(number % self._depth)
        if free is not None:
            warp_role.acquire(free)


class WarpRole:
    """One role of one CTA in one launch; or the caller of a rank, who launches."""

    def __init__(
        self, rank: int, name: str, component: int, known: Clock, *, explicit: bool, on_stream: bool = False
    ) -> None:
        """`component` is the first of its two components.

        With `explicit`, only fences order accesses. Otherwise each wait acquires, and all accesses are alike.
        `on_stream` is for a copy engine: it is outside of the scope of its GPU.
        """
        self.rank = rank
        self.name = name
        self.component = component
        self.known = known.copy()
        self.known[component] += 1
        self.known_async = known.copy()
        """As `known`, for accesses through the async proxy: without its own ordinary accesses since the last fence."""
        self.reading: dict[Stage, tuple[Operation, int]] = {}
        """The stages that asynchronous stores may still read: the store, and the number of its group."""
        self.mmas: list[tuple[Operation, Collection[Stage]]] = []
        """The MMAs in flight, the oldest first, and the stages that they read."""
        self.pieces: dict[Operation, Collection[Stage]] = {}
        """MMAs in pieces, of which some are issued later, with the stages that they read."""
        self.on_stream = on_stream
        self._explicit = explicit
        self._near: Clock | None = None
        self._far: Clock | None = None
        self._stores = int(known[component + 1])
        self._groups: list[int] = []
        self._filled: dict[RingClocks, None] = {}

    def __str__(self) -> str:
        return self.name

    # Accesses

    def knows(self, component: int, tick: int) -> bool:
        """Whether an access happened before the next ordinary one."""
        return bool(self.known[component] >= tick)

    def has_seen(self, component: int, tick: int) -> bool:
        """Whether an access was released to a counter that this role has waited for."""
        return any(seen is not None and seen[component] >= tick for seen in (self._near, self._far))

    def store(self) -> tuple[int, int]:
        """Begin an asynchronous store, or one of packets: its component and tick (Asynchronous, Packet)."""
        self._stores += 1
        return self.component + 1, self._stores

    def end_group(self, op: Operation, stage: Stage | None) -> None:
        """End a group of asynchronous stores, made by `op`, which reads from `stage`."""
        self._groups.append(self._stores)
        if stage is not None:
            self.reading[stage] = op, len(self._groups)

    def store_reading(self, stage: Stage) -> Operation | None:
        """The asynchronous store that may still read a stage (Stage)."""
        return self.reading[stage][0] if stage in self.reading else None

    def mma_reading(self, stage: Stage) -> Operation | None:
        """The MMA in flight, or in pieces, that reads a stage (Stage)."""
        return next((mma for mma, stages in (*self.mmas, *self.pieces.items()) if stage in stages), None)

    def issue_mma(self, op: Operation, stages: Collection[Stage]) -> None:
        """Issue an MMA that reads from some stages."""
        self.mmas.append((op, stages))

    def finish_mmas(self, left: int) -> None:
        """Wait for all but the last `left` MMAs."""
        del self.mmas[: max(0, len(self.mmas) - left)]

    def finish_pieces(self, mmas: Collection[Operation]) -> None:
        """End the chain that needs these MMAs in pieces."""
        for mma in mmas:
            self.pieces.pop(mma, None)

    def fill(self, stages: RingClocks) -> tuple[int, int]:
        """Begin an asynchronous load into the next stage: its component and tick (Asynchronous)."""
        self._filled[stages] = None
        return stages.component, stages.commits + 1

    # Order

    def release(self) -> Clock:
        """What has happened so far, its own accesses and what it has learnt (Cumulativity)."""
        now = self.known.copy()
        self.known[self.component] += 1
        return now

    def acquire(self, known: tuple[Clock, Clock]) -> None:
        """Learn what another role of this CTA knew."""
        np.maximum(self.known, known[0], out=self.known)
        np.maximum(self.known_async, known[1], out=self.known_async)

    def sent(self) -> Clock:
        """Its packets so far, and nothing else (Packet)."""
        clock = np.zeros_like(self.known)
        clock[self.component + 1] = self._stores
        return clock

    def see(self, near: Clock | None, far: Clock | None, packets: Clock | None = None) -> None:
        """Read from a counter what roles of this rank (`near`), and of others (`far`), have released to it; `packets`
        are known at once, since it is they that are read."""
        if packets is not None:
            np.maximum(self.known, packets, out=self.known)
        self._near, self._far = _joined(self._near, near), _joined(self._far, far)
        if not self._explicit:
            self.fence(Fence.AcquireSys)
            self.fence(Fence.AsyncGlobal)

    def fence(self, kind: Fence) -> None:
        """Order accesses in global memory (Acquire, Proxy)."""
        if kind is Fence.AsyncGlobal:
            self.known_async = self.release()
            return
        if kind is Fence.AsyncShared:
            return  # seen where the stage is committed
        if self._near is not None:
            np.maximum(self.known, self._near, out=self.known)
            self._near = None
        if self._far is not None and kind is Fence.AcquireSys:
            np.maximum(self.known, self._far, out=self.known)
            self._far = None

    def drain(self, kind: Drain, left: int = 0) -> None:
        """Wait for asynchronous accesses, except the last `left` groups of stores (Completion)."""
        if kind is Drain.Loads:
            for stages in self._filled:
                self._complete(stages.component, stages.commits)
            return
        over = len(self._groups) - left
        self.reading = {stage: (op, group) for stage, (op, group) in self.reading.items() if group > over}
        if kind is Drain.Full and over > 0:
            self._complete(self.component + 1, self._groups[over - 1])

    def _complete(self, component: int, tick: int) -> None:
        self.known[component] = self.known_async[component] = max(tick, int(self.known[component]))


class History:
    """What has been released to a counter, by the value that it had then."""

    def __init__(self, rank: int) -> None:
        self._rank = rank
        self._values: list[int] = []
        self._writers: list[tuple[int, int]] = []
        self._lowered = False
        self._clocks: list[tuple[Clock | None, Clock | None, Clock | None]] = []

    def send(self, warp_role: WarpRole, value: int, order: Order) -> None:
        """A warp role has set the counter to a value (Release)."""
        self._writers.append((warp_role.component, int(warp_role.known[warp_role.component])))
        self._lowered |= bool(self._values) and value < self._values[-1]
        near, far, packets = self._clocks[-1] if self._clocks else (None, None, None)
        if order is Order.In_Packets:
            packets = _joined(packets, warp_role.sent())
        elif order is not Order.Relaxed_Sys and warp_role.rank == self._rank and not warp_role.on_stream:
            near = _joined(near, warp_role.release())
        elif order is Order.Release_Sys:
            far = _joined(far, warp_role.release())
        self._values.append(value)
        self._clocks.append((near, far, packets))

    def reach(self, value: int, warp_role: WarpRole) -> tuple[Clock | None, Clock | None, Clock | None]:
        """What had been released when the counter first reached a value: a wait may end then (Observation). Of one that
        is taken down again, it cannot be that of before a signal that the warp role knows of (Coherence)."""
        if not self._lowered:
            return self._clocks[bisect_left(self._values, value)]
        numbers = range(len(self._values))
        known = next((at for at in reversed(numbers) if warp_role.knows(*self._writers[at])), 0)
        return self._clocks[next((at for at in numbers[known:] if self._values[at] >= value), -1)]


def _joined(a: Clock | None, b: Clock | None) -> Clock | None:
    if a is None or b is None:
        return b if a is None else a
    joined: Clock = np.maximum(a, b)
    return joined
