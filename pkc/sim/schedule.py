"""Coroutines that stand for ranks, roles and tasks, and the order in which they run."""

from __future__ import annotations

import contextvars
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from greenlet import getcurrent, greenlet
from xdsl.ir import Operation

from pkc.diagnostics import PkcError
from pkc.location import describe, span_of
from pkc.sim import errors

_LISTED = 12
"""As many blocked parts are listed in the report of a deadlock."""


class Counter(NamedTuple):
    """One counter of one rank."""

    rank: int
    signal: str
    indices: tuple[int, ...]

    def __str__(self) -> str:
        return f"`{self.signal}[{', '.join(map(str, self.indices))}]`"


@dataclass(eq=False)
class Part:
    """One coroutine: the part of a rank, of one of its roles, or of a task of a role."""

    rank: int
    role: str
    body: greenlet = field(repr=False)
    parent: Part | None = None
    children: int = 0
    joining: bool = False


class Blocked(NamedTuple):
    """A part that waits for a counter."""

    part: Part
    op: Operation
    counter: Counter
    wanted: int
    value: Callable[[], int]

    def __str__(self) -> str:
        role = f", {self.part.role}" if self.part.role else ""
        place = f"rank {self.part.rank}{role}, {describe(self.op.location)}"
        return f"{place}: {self.counter} is {self.value()}, waits for {self.wanted}"


class Scheduler:
    """Runs coroutines one at a time. With a seed, any that can run may be the next; without, the first."""

    def __init__(self, seed: int | None) -> None:
        self._random = None if seed is None else random.Random(seed)
        self._hub = getcurrent()
        self._current: Part | None = None
        self._ready: list[Part] = []
        self._blocked: dict[Counter, list[Blocked]] = {}
        self._at_phase_end: list[Part] = []

    def spawn(self, rank: int, role: str, body: Callable[[], None]) -> None:
        """Add a coroutine, as a child of the one that runs now."""
        parent = self._current
        if parent is not None:
            parent.children += 1
        coroutine = greenlet(body, self._hub)
        # numpy keeps its error settings in the context, of which a coroutine otherwise gets an empty one.
        coroutine.gr_context = contextvars.copy_context()
        self._ready.append(Part(rank, role, coroutine, parent))

    def run(self, finish_phase: Callable[[], None]) -> None:
        """Until every coroutine has ended; `finish_phase` is called whenever all ranks have ended a phase."""
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
        """Wait until every rank has come to the end of a phase, or of the kernel."""
        self._at_phase_end.append(self._running())
        self._hub.switch()

    def join(self) -> None:
        """Wait until the coroutines that this one has spawned have ended."""
        part = self._running()
        if part.children:
            part.joining = True
            self._hub.switch()

    def wait(self, op: Operation, counter: Counter, wanted: int, value: Callable[[], int]) -> None:
        """Wait until a counter has reached a value."""
        while value() < wanted:
            blocked = Blocked(self._running(), op, counter, wanted, value)
            self._blocked.setdefault(counter, []).append(blocked)
            self._hub.switch()

    def wake(self, counter: Counter) -> None:
        """Let those look again who wait for a counter."""
        self._ready += [blocked.part for blocked in self._blocked.pop(counter, ())]

    def _running(self) -> Part:
        assert self._current is not None
        return self._current

    def _take(self) -> Part:
        if self._random is None:
            return self._ready.pop(0)
        chosen = self._random.randrange(len(self._ready))
        self._ready[chosen], self._ready[-1] = self._ready[-1], self._ready[chosen]
        return self._ready.pop()

    def _step(self, part: Part) -> None:
        self._current = part
        part.body.switch()
        self._current = None
        parent = part.parent
        if not part.body.dead or parent is None:
            return
        parent.children -= 1
        if parent.joining and not parent.children:
            parent.joining = False
            self._ready.append(parent)

    def _deadlock(self) -> errors.Deadlock:
        waiting = sorted(
            (blocked for group in self._blocked.values() for blocked in group),
            key=lambda blocked: (blocked.part.rank, blocked.part.role, blocked.counter),
        )
        lines = [f"\n    {blocked}" for blocked in waiting[:_LISTED]]
        if len(waiting) > _LISTED:
            lines.append(f"\n    and {len(waiting) - _LISTED} more")
        count = "1 part" if len(waiting) == 1 else f"{len(waiting)} parts"
        return errors.Deadlock(span_of(waiting[0].op.location), count, "".join(lines))
