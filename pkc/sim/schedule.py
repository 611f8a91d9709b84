"""Coroutines that stand for ranks, roles and tasks, and the order in which they run."""

from __future__ import annotations

import contextvars
from collections import Counter as Counts
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from greenlet import getcurrent, greenlet
from xdsl.ir import Operation

from pkc.diagnostics import Label, PkcError
from pkc.location import describe, span_of
from pkc.sim import errors
from pkc.sim.trace import Guard, Trace

_LISTED = 12
"""The most lines of blocked waits that a report of a deadlock lists."""

_SHOWN = 2
"""The most waits that are shown beside the first."""


class Counter(NamedTuple):
    """One counter of one rank."""

    rank: int
    signal: str
    indices: tuple[int, ...]

    def __str__(self) -> str:
        return f"`{self.signal}[{', '.join(map(str, self.indices))}]`"


@dataclass(eq=False)
class Coroutine:
    """One coroutine: a rank, one of its roles, or a task of a role."""

    rank: int
    role: str
    path: tuple[int, ...]
    """Its rank, and its number among the children of its parent, and so on: the same in every order."""
    body: greenlet = field(repr=False)
    parent: Coroutine | None = None
    spawned: int = 0
    children: int = 0
    joining: bool = False
    name: tuple[int, str] = field(init=False)
    """The same in every launch."""

    def __post_init__(self) -> None:
        self.name = self.rank, self.role


class Blocked(NamedTuple):
    """A coroutine that waits for a counter."""

    coroutine: Coroutine
    op: Operation
    counter: Counter
    wanted: int
    value: Callable[[], int]

    def __str__(self) -> str:
        role = f", {self.coroutine.role}" if self.coroutine.role else ""
        place = f"rank {self.coroutine.rank}{role}, {describe(self.op.location)}"
        return f"{place}: {self.counter} is {self.value()}, waits for {self.wanted}"


class Order(Protocol):
    """Which of the coroutines that can run is the next."""

    def choose(self, ready: list[Coroutine]) -> int:
        """The position of the next one in a list."""
        ...


class Scheduler:
    """Runs coroutines one at a time. An `Order` chooses the next; without one, it is the first."""

    def __init__(self, order: Order | None) -> None:
        self.trace: Trace | None = None
        self._order = order
        self._hub = getcurrent()
        self._current: Coroutine | None = None
        self._ready: list[Coroutine] = []
        self._blocked: dict[Counter, list[Blocked]] = {}
        self._at_phase_end: list[Coroutine] = []

    def spawn(self, rank: int, role: str, body: Callable[[], None]) -> None:
        """Add a coroutine, as a child of the one that runs now."""
        parent = self._current
        path: tuple[int, ...] = (rank,)
        if parent is not None:
            path = (*parent.path, parent.spawned)
            parent.spawned += 1
            parent.children += 1
        made = greenlet(body, self._hub)
        # numpy keeps its error settings in the context, of which a coroutine otherwise gets an empty one.
        made.gr_context = contextvars.copy_context()
        self._ready.append(Coroutine(rank, role, path, made, parent))

    def run(self, finish_phase: Callable[[], None]) -> None:
        """Run until every coroutine has ended; `finish_phase` is called when all ranks have ended a phase."""
        while True:
            while self._ready:
                self._step(self._take())
            if self._blocked:
                raise PkcError(self._deadlock())
            finish_phase()
            if not self._at_phase_end:
                return
            self._ready, self._at_phase_end = self._at_phase_end, []

    def pause(self) -> None:
        """Let others run."""
        self._ready.append(self._running())
        self._hub.switch()

    def end_phase(self) -> None:
        """Wait until every rank has reached the end of a phase, or of the kernel."""
        self._at_phase_end.append(self._running())
        self._hub.switch()

    def join(self) -> None:
        """Wait until the coroutines that this one has spawned have ended."""
        coroutine = self._running()
        if coroutine.children:
            coroutine.joining = True
            self._hub.switch()
        if self.trace is not None:
            self.trace.passed(None, Guard(_ended(coroutine), coroutine.spawned, coroutine.spawned))

    def wait(self, op: Operation, counter: Counter, wanted: int, value: Callable[[], int]) -> None:
        """Wait until a counter has reached a value. If it has already, others may run first."""
        if value() >= wanted and self._order is not None:
            self.pause()
        # Others may have reset the counter since it was reached.
        while value() < wanted:
            blocked = Blocked(self._running(), op, counter, wanted, value)
            self._blocked.setdefault(counter, []).append(blocked)
            self._hub.switch()
        if self.trace is not None:
            self.trace.passed(op, Guard(counter, wanted, value()))

    def wake(self, counter: Counter) -> None:
        """A counter has grown by one."""
        if self.trace is not None:
            self.trace.added(None, counter, 1, 0)
        self.let_go(counter)

    def let_go(self, counter: Counter) -> None:
        """Resume the coroutines whose wait on a counter is over."""
        waiting = self._blocked.pop(counter, None)
        if waiting is None:
            return
        self._ready += [blocked.coroutine for blocked in waiting if blocked.value() >= blocked.wanted]
        waiting = [blocked for blocked in waiting if blocked.value() < blocked.wanted]
        if waiting:
            self._blocked[counter] = waiting

    def _running(self) -> Coroutine:
        assert self._current is not None
        return self._current

    def _take(self) -> Coroutine:
        if self._order is None:
            return self._ready.pop(0)
        chosen = self._order.choose(self._ready)
        self._ready[chosen], self._ready[-1] = self._ready[-1], self._ready[chosen]
        return self._ready.pop()

    def _step(self, coroutine: Coroutine) -> None:
        self._current = coroutine
        if self.trace is not None:
            self.trace.begin(coroutine)
        coroutine.body.switch()
        self._current = None
        parent = coroutine.parent
        if not coroutine.body.dead or parent is None:
            return
        parent.children -= 1
        if self.trace is not None:
            self.trace.added(None, _ended(parent), 1, 0)
        if parent.joining and not parent.children:
            parent.joining = False
            self._ready.append(parent)

    def _deadlock(self) -> errors.Deadlock:
        waiting = sorted(
            (blocked for group in self._blocked.values() for blocked in group),
            key=lambda blocked: (blocked.coroutine.rank, blocked.coroutine.role, blocked.counter),
        )
        if self.trace is not None:
            self.trace.stuck(waiting)
        # Tasks of one role that wait for the same read alike.
        alike = Counts(map(str, waiting))
        lines = [f"\n    {text}{f' ({count} tasks)' if count > 1 else ''}" for text, count in alike.items()]
        rest = len(waiting) - sum(list(alike.values())[:_LISTED])
        more = f"\n    and {rest} more" if rest else ""
        count = "1 wait" if len(waiting) == 1 else f"{len(waiting)} waits"
        first, *others = dict.fromkeys(blocked.op for blocked in waiting)
        also = tuple(Label(span_of(op.location), "and here") for op in others[:_SHOWN])
        return errors.Deadlock(span_of(first.location), count, "".join(lines[:_LISTED]) + more, also=also)


def _ended(coroutine: Coroutine) -> Counter:
    """How many of the coroutines that this one has spawned have ended."""
    return Counter(coroutine.rank, "coroutines ended", coroutine.path)
