"""Runs the events of all warp roles as far as they go.

Counters only grow and a wait is for a least value, so nothing that one warp role does can block another. Each comes to
the same end in every order: one greedy run decides for all orders, and what is blocked when it ends is blocked in every
order. The tasks of a copy engine are run one after the other, as on a single stream; on several streams fewer of them
wait. (A barrier waits for the next multiple of the number of ranks, which is the same in every order if one warp role
of each rank is at it. Counters are reset only after all ranks have left, by waits for counters that are not reset.)
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable
from dataclasses import dataclass, field

from xdsl.dialects.builtin import LocationAttr
from xdsl.ir import Operation

from pkc.check.trace import ADD, ARRIVE, ARRIVED, FORK, RAISE, RESET, WAIT, Counter, WarpRole, counter_name, of_channel
from pkc.diagnostics import PkcError
from pkc.dialect.ranges import I32
from pkc.location import NOWHERE, span_of
from pkc.sim.errors import CounterOverflow


@dataclass(eq=False)
class Run:
    """A warp role as it runs."""

    warp_role: WarpRole
    parent: Run | None = None
    place: int = 0
    begun: int = 0
    joining: int = 0
    target: int = 0


@dataclass(frozen=True)
class _Held:
    """A wait that does not end if it is for `wanted` or more, whatever its counter reaches; with all that the same wait
    of the program, which is at `place`, has become."""

    wait: Operation
    place: LocationAttr | None
    wanted: int

    def holds(self, op: Operation, wanted: int) -> bool:
        return wanted >= self.wanted and (op is self.wait or op.location == self.place)


@dataclass
class Progress:
    """Counters as they are after the launches so far, and what has been awaited."""

    ranks: int
    counters: dict[Counter, int] = field(default_factory=dict[Counter, int])
    awaited: dict[Counter, dict[tuple[int, Operation], WarpRole]] = field(
        default_factory=dict[Counter, dict[tuple[int, Operation], WarpRole]]
    )
    """By counter, the values that warp roles of the last launch waited for, where, and one of those that did."""
    sent: dict[Counter, Operation] = field(default_factory=dict[Counter, Operation])
    """By counter, an operation of the last launch that signals it."""

    senders: dict[Counter, set[WarpRole]] = field(default_factory=dict[Counter, "set[WarpRole]"])
    """By counter, the warp roles of the last launch that signal it."""

    batched: set[Counter] = field(default_factory=set[Counter])
    """Counters that one signal of the last launch adds more than 1 to, as credits for several stages do."""

    least: dict[Counter, int] = field(default_factory=dict[Counter, int])
    """By counter, the least that one signal of the last launch adds."""

    lowered: bool = False
    """Whether something was taken off a counter, so that another order may end otherwise."""

    reset: dict[Counter, int] = field(default_factory=dict[Counter, int])
    """Counters that the last launch has reset, and what they had reached."""

    before: dict[Counter, int] = field(default_factory=dict[Counter, int])
    """Counters as they were before the last launch."""

    def reached(self, counter: Counter) -> int:
        """The value of a counter at the end of the last launch, before any reset."""
        return self.reset.get(counter, self.counters.get(counter, 0))

    partial: set[Operation] = field(default_factory=set[Operation])
    """Waits for fewer signals than come, of which some come only after them."""

    held: _Held | None = None

    def without(self, wait: Operation, wanted: int, warp_roles: Iterable[WarpRole]) -> Progress:
        """The same launch once more, in which this wait does not end if it is for as many or more."""
        place = None if span_of(wait.location) == NOWHERE else wait.location
        again = Progress(self.ranks, dict(self.before), held=_Held(wait, place, wanted))
        again.launch(warp_roles)
        return again

    def launch(self, warp_roles: Iterable[WarpRole]) -> list[Run]:
        """Run one more launch; the runs that are blocked at its end, each at the event that it waits at. Raises
        `PkcError` for a number that a counter does not hold."""
        self.counters = {counter: value for counter, value in self.counters.items() if not of_channel(counter)}
        self.before = dict(self.counters)
        self.awaited, self.sent, self.reset, self.batched, self.least = {}, {}, {}, set(), {}
        self.senders = {}
        ready = [Run(warp_role) for warp_role in warp_roles]
        waiting: dict[Counter, list[tuple[int, Run]]] = {}
        while ready:
            self._run(ready.pop(), ready, waiting)
        return [run for group in waiting.values() for _, run in group]

    def _run(self, run: Run, ready: list[Run], waiting: dict[Counter, list[tuple[int, Run]]]) -> None:
        counters, events = self.counters, run.warp_role.events
        while run.place < len(events):
            kind, counter, number, op = events[run.place]
            if kind in (WAIT, ARRIVED):
                wanted = run.target if kind == ARRIVED else number
                self.awaited.setdefault(counter, {})[wanted, op] = run.warp_role
                if wanted not in I32:
                    raise _overflow(counter, "is awaited to be", wanted, op)
                if self.held is not None and self.held.holds(op, wanted):
                    return
                if counters.get(counter, 0) < wanted:
                    bisect.insort(waiting.setdefault(counter, []), (wanted, run), key=_wanted)
                    return
            elif kind in (ADD, RAISE):
                value = counters.get(counter, 0)
                added = number if kind == ADD else 0
                self.lowered |= added < 0
                self.least[counter] = min(self.least.get(counter, added), added)
                if added > 1:
                    self.batched.add(counter)
                counters[counter] = value = value + number if kind == ADD else max(value, number)
                self.sent[counter] = op
                self.senders.setdefault(counter, set()).add(run.warp_role)
                if value not in I32:
                    raise _overflow(counter, "reaches", value, op)
                if counter in waiting and waiting[counter][0][0] <= value:
                    _wake(counter, value, ready, waiting)
            elif kind == RESET:
                self._reset(counter)
            elif kind == ARRIVE:
                run.target = (counters.get(counter, 0) // self.ranks + 1) * self.ranks
            elif kind == FORK and number and not run.joining:
                begun = run.warp_role.children[run.begun : run.begun + number]
                run.begun, run.joining = run.begun + number, number
                ready += [Run(child, run) for child in begun]
                return
            run.place += 1
        if run.parent is not None:
            _join(run.parent, ready)

    def _reset(self, every: Counter) -> None:
        for counter, value in self.counters.items():
            if counter[:2] == every[:2]:
                self.reset[counter] = value
                self.counters[counter] = 0


def _overflow(counter: Counter, verb: str, value: int, op: Operation) -> PkcError:
    return PkcError(CounterOverflow(span_of(op.location), counter_name(counter), counter[1], verb, value))


def _wanted(entry: tuple[int, Run]) -> int:
    return entry[0]


def _wake(counter: Counter, value: int, ready: list[Run], waiting: dict[Counter, list[tuple[int, Run]]]) -> None:
    """Resume the runs whose wait is over. Those that wait are sorted by the value that they wait for."""
    entries = waiting[counter]
    over = bisect.bisect_right(entries, value, key=_wanted)
    ready += [run for _, run in entries[:over]]
    del entries[:over]
    if not entries:
        del waiting[counter]


def _join(parent: Run, ready: list[Run]) -> None:
    parent.joining -= 1
    if not parent.joining:
        parent.place += 1
        ready.append(parent)
