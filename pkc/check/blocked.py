"""Why warp roles are blocked: a counter gets too few signals, or they wait for each other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from xdsl.ir import Operation

from pkc.check import static_errors as errors
from pkc.check.progress import Progress, Run
from pkc.check.trace import ADD, ARRIVED, RAISE, Counter, Event, counter_name
from pkc.diagnostics import Diagnostic, Label
from pkc.location import span_of

_LISTED = 8
"""The most warp roles that are listed."""


@dataclass(frozen=True)
class _Wait:
    """A blocked warp role, and what it waits for."""

    run: Run
    op: Operation
    counter: Counter
    wanted: int

    @property
    def text(self) -> str:
        return f"{self.run.warp_role.where(self.op)}: waits for {counter_name(self.counter)} to be {self.wanted}"


def blocked(runs: Sequence[Run], progress: Progress, launch: int) -> list[Diagnostic]:
    """Why a launch does not end."""
    waits = [_wait(run) for run in runs]
    coming = _coming(waits)
    short: dict[Operation, list[_Wait]] = {}
    for wait in waits:
        if _end(progress, wait.counter, coming) < wait.wanted:
            short.setdefault(wait.op, []).append(wait)
    if not short:
        return [_cycle(waits, launch)]
    return [_never(group, progress, coming, launch) for group in short.values()]


def _wait(run: Run) -> _Wait:
    kind, counter, number, op = run.warp_role.events[run.place]
    return _Wait(run, op, counter, run.target if kind == ARRIVED else number)


def _never(
    group: list[_Wait], progress: Progress, coming: dict[Counter, list[Event]], launch: int
) -> errors.NeverSatisfied:
    group.sort(key=lambda wait: (wait.counter[1], wait.counter, wait.run.warp_role.cta or 0))
    first = group[0]
    sent = _end(progress, first.counter, coming)
    where = (counter_name(first.counter), first.counter[1], first.wanted, sent, launch)
    return errors.NeverSatisfied(span_of(first.op.location), *where, _listing(wait.text for wait in group))


def _coming(waits: Iterable[_Wait]) -> dict[Counter, list[Event]]:
    """By counter, the signals that blocked warp roles would still send."""
    found: dict[Counter, list[Event]] = {}
    for run in _all_runs(waits):
        for event in _rest(run):
            found.setdefault(event[1], []).append(event)
    return found


def _all_runs(waits: Iterable[_Wait]) -> list[Run]:
    """The blocked warp roles, and those that wait for the end of tasks that are blocked."""
    found: dict[Run, None] = {}
    for wait in waits:
        run: Run | None = wait.run
        while run is not None:
            found[run] = None
            run = run.parent
    return list(found)


def _rest(run: Run) -> Iterator[Event]:
    """The signals that a warp role has still to send."""
    lists = [run.warp_role.events[run.place :]]
    lists += [each.events for child in run.warp_role.children[run.begun :] for each in child.everyone()]
    for events in lists:
        yield from (event for event in events if event[0] in (ADD, RAISE))


def _end(progress: Progress, counter: Counter, coming: dict[Counter, list[Event]]) -> int:
    """The value of a counter if all blocked warp roles went on."""
    value = progress.counters.get(counter, 0)
    for kind, _, number, _ in coming.get(counter, ()):
        value = value + number if kind == ADD else max(value, number)
    return value


def _cycle(waits: Sequence[_Wait], launch: int) -> errors.CyclicWait:
    """Warp roles that wait for each other: follow the waits from any blocked one until one comes again.

    There is always a next one, since every counter would get enough signals if all went on.
    """
    by_run = {wait.run: wait for wait in waits}
    senders: dict[Counter, Run] = {}
    for run in _all_runs(waits):
        for event in _rest(run):
            senders.setdefault(event[1], run)
    path = [waits[0]]
    while True:
        run = senders[path[-1].counter]
        while run not in by_run:
            # It waits for the end of its tasks, of which a blocked one is among the waits.
            run = next(wait.run for wait in waits if _within(wait.run, run))
        if by_run[run] in path:
            break
        path.append(by_run[run])
    cycle = path[path.index(by_run[run]) :]
    first = min(range(len(cycle)), key=lambda place: span_of(cycle[place].op.location).start)
    cycle = cycle[first:] + cycle[:first]
    also = tuple(Label(span_of(op.location), "and here") for op in dict.fromkeys(wait.op for wait in cycle[1:]))
    also = tuple(label for label in also if label.span != span_of(cycle[0].op.location))
    span = span_of(cycle[0].op.location)
    return errors.CyclicWait(span, launch, len(cycle), _listing(wait.text for wait in cycle), also=also[:2])


def _within(run: Run, around: Run) -> bool:
    parent = run.parent
    while parent is not None and parent is not around:
        parent = parent.parent
    return parent is around


def _listing(texts: Iterable[str]) -> str:
    lines = list(texts)
    more = [f"and {len(lines) - _LISTED} more"] if len(lines) > _LISTED else []
    return "".join(f"\n    {text}" for text in (*lines[:_LISTED], *more))
