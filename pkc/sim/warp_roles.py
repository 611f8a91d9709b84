"""What each warp role knows to have happened: vector clocks (Mattern 1989), with components for what is asynchronous.

A warp role has two components: its ordinary accesses, and its asynchronous stores. Each ring has one, for the
asynchronous loads into it: its n-th commit is their n-th tick. An access A happened before an access B if the clock of
B's warp role has reached A's tick in A's component.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection
from typing import Any, TypeAlias

import numpy as np
from xdsl.ir import Operation

from pkc.dialect.counters import Order
from pkc.dialect.fences import Drain, Fence

Clock: TypeAlias = "np.ndarray[Any, np.dtype[np.int32]]"

Stage: TypeAlias = "tuple[RingClocks, int]"
"""A stage of a ring, counted from 1."""


class RingClocks:
    """The clocks at the last commit and the last release of each stage of a ring."""

    def __init__(self, component: int, depth: int) -> None:
        self.component = component
        self.commits = 0
        self._depth = depth
        self._full: dict[int, tuple[Clock, Clock]] = {}
        self._free: dict[int, tuple[Clock, Clock]] = {}

    def commit(self, warp_role: WarpRole) -> None:
        """The producer commits the next stage: with its clock, and the loads into the stage."""
        known, known_async = warp_role.release(), warp_role.known_async.copy()
        self.commits += 1
        known[self.component] = known_async[self.component] = self.commits
        self._full[self.commits % self._depth] = known, known_async

    def consume(self, warp_role: WarpRole, number: int) -> None:
        """The consumer has acquired a full stage, counted from 1."""
        warp_role.acquire(self._full[number % self._depth])

    def release(self, warp_role: WarpRole, number: int) -> None:
        """The consumer releases a stage."""
        self._free[number % self._depth] = warp_role.release(), warp_role.known_async.copy()

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
        self.known_async = self.known.copy()
        """As `known`, for accesses through the async proxy."""
        self.reading: dict[Stage, tuple[Operation, int]] = {}
        """The stages that asynchronous stores may still read: the store, and the number of its group."""
        self.mmas: list[tuple[Operation, Collection[Stage]]] = []
        """The MMAs in flight, the oldest first, and the stages that they read."""
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
        """Begin an asynchronous store: its component and tick."""
        self._stores += 1
        return self.component + 1, self._stores

    def end_group(self, op: Operation, stage: Stage | None) -> None:
        """End a group of asynchronous stores, made by `op`, which reads from `stage`."""
        self._groups.append(self._stores)
        if stage is not None:
            self.reading[stage] = op, len(self._groups)

    def issue_mma(self, op: Operation, stages: Collection[Stage]) -> None:
        """Issue an MMA that reads from some stages."""
        self.mmas.append((op, stages))

    def finish_mmas(self, left: int) -> None:
        """Wait for all but the last `left` MMAs."""
        del self.mmas[: max(0, len(self.mmas) - left)]

    def fill(self, stages: RingClocks) -> tuple[int, int]:
        """Begin an asynchronous load into the next stage: its component and tick."""
        self._filled[stages] = None
        return stages.component, stages.commits + 1

    # Order

    def release(self) -> Clock:
        """What has happened so far."""
        now = self.known.copy()
        self.known[self.component] += 1
        return now

    def acquire(self, known: tuple[Clock, Clock]) -> None:
        """Learn what another role of this CTA knew."""
        np.maximum(self.known, known[0], out=self.known)
        np.maximum(self.known_async, known[1], out=self.known_async)

    def see(self, near: Clock | None, far: Clock | None) -> None:
        """Read from a counter what roles of this rank (`near`), and of others (`far`), have released to it."""
        self._near, self._far = _joined(self._near, near), _joined(self._far, far)
        if not self._explicit:
            self.fence(Fence.AcquireSys)
            self.fence(Fence.AsyncGlobal)

    def fence(self, kind: Fence) -> None:
        """Order accesses in global memory."""
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
        """Wait for asynchronous accesses, except the last `left` groups of stores."""
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
        self._clocks: list[tuple[Clock | None, Clock | None]] = []

    def send(self, warp_role: WarpRole, value: int, order: Order) -> None:
        """A warp role has set the counter to a value."""
        near, far = self._clocks[-1] if self._clocks else (None, None)
        if order is not Order.Relaxed_Sys and warp_role.rank == self._rank and not warp_role.on_stream:
            near = _joined(near, warp_role.release())
        elif order is Order.Release_Sys:
            far = _joined(far, warp_role.release())
        self._values.append(value)
        self._clocks.append((near, far))

    def reach(self, value: int) -> tuple[Clock | None, Clock | None]:
        """What had been released when the counter first reached a value: a wait may end at that moment."""
        return self._clocks[bisect_left(self._values, value)]


def _joined(a: Clock | None, b: Clock | None) -> Clock | None:
    if a is None or b is None:
        return b if a is None else a
    joined: Clock = np.maximum(a, b)
    return joined
