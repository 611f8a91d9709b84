"""A time line as a table: what each role spends its time on, and when that begins and ends."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pkc.timeline.records import Events

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Line:
    """One line of the table: `each` are the microseconds in each CTA, `first` and `last` when it began and ended there.

    `share` is that of all time of the role. `depth` 0 is the role itself, 1 a set of tasks, 2 a wait within it.
    """

    depth: int
    name: str
    line: str
    count: float
    share: float
    each: Floats
    first: Floats
    last: Floats


def text(events: Events, *, ends: bool = True) -> str:
    """The table, after a few lines on the kernel as a whole and on each role. If the kernel goes on behind the events
    (not `ends`), the end of a role may be where they are cut."""
    found = list(lines(events))
    return "\n".join([*_kernel(events, ends), "", *_sentences(found), "", *_table(found)])


def _kernel(events: Events, whole: bool) -> Iterator[str]:
    """When the CTAs of each rank began and ended."""
    begins, ends = events.of_kind("cta"), events.of_kind("end")
    for rank in range(len(events.sms)):
        here = events.rank == rank
        first, last = events.begin[begins & here] / 1e3, events.begin[ends & here] / 1e3
        if not whole:
            left = (last == last.max()).mean()
            yield f"rank {rank}: cut at {last.max():.1f} us, when {left:.0%} of the warp roles have not ended"
            continue
        yield (
            f"rank {rank}: CTAs begin within {first.max():.1f} us; their warp roles end from {last.min():.1f}"
            f" to {last.max():.1f} us, half of them by {np.median(last):.1f}"
        )


def _sentences(found: Sequence[Line]) -> Iterator[str]:
    """Each role in words: what it spends at least a hundredth of its time on; times are medians over CTAs."""
    for place, head in enumerate(found):
        if head.depth:
            continue
        following = next((n for n in range(place + 1, len(found)) if not found[n].depth), len(found))
        inside = sorted(found[place + 1 : following], key=lambda line: -line.share)
        texts = [f"{line.name} {line.share:.0%}{_when(line)}" for line in inside if line.share >= 0.01]
        yield f"{head.name}: {', '.join(texts) or 'nothing takes a hundredth of its time'}"


def _when(line: Line) -> str:
    """From when until when, of what fills at least half of that time."""
    if not len(line.first):
        return ""
    first, last = float(np.nanmedian(line.first)), float(np.nanmedian(line.last))
    return f" from {first:.1f} to {last:.1f} us" if 2 * float(np.median(line.each)) >= last - first else ""


def _table(found: Sequence[Line]) -> Iterator[str]:
    yield f"{'':51} {'us in each CTA':20} {'first at':>8} {'last until':>10}"
    yield f"{'':36} {'times':>5} {'share':>6} {'least':>8} {'median':>8} {'most':>8} {'median':>8} {'median':>10}"
    for line in found:
        if line.name == "else" and line.share < 0.0005:
            continue
        name = f"{'  ' * line.depth}{line.name}"
        times = "" if line.count == 0 or line.depth == 0 else f"{line.count:g}"
        numbers = "".join(f" {value:z8.1f}" for value in (line.each.min(), np.median(line.each), line.each.max()))
        ends = (_median(line.first, 8), _median(line.last, 10))
        yield f"{name:36} {times:>5} {line.share:z6.1%}{numbers} {' '.join(ends)}  {line.line}".rstrip()


def _median(values: Floats, width: int) -> str:
    known = values[~np.isnan(values)]
    return f"{np.median(known):{width}.1f}" if len(known) else " " * width


def lines(events: Events) -> Iterator[Line]:
    """The lines of all roles, in their order."""
    for role in range(len(events.trace.roles)):
        mine = np.flatnonzero(events.role == role)
        if len(mine):
            yield from _Role(events, role, mine).lines()


class _Role:
    def __init__(self, events: Events, role: int, mine: NDArray[np.int64]) -> None:
        self._events, self._role = events, role
        rows = events.row[mine]
        self._rows, self._row = np.unique(rows, return_inverse=True)
        self._mine = mine
        self._kind = np.array(events.kinds)[mine]
        self._begin, self._end = events.begin[mine], (events.begin + events.length)[mine]
        self._length, self._point = events.length[mine], events.point[mine]
        # The point of the task around each event; of an event in no task, its point.
        self._around = events.point[events.within[mine]]
        starts, ends = self._moments("begin"), self._moments("end")
        self._first, self._last = self._least(starts, self._begin), self._most(ends, self._begin)
        self._total = float((self._last - self._first).sum())

    def lines(self) -> Iterator[Line]:
        points = self._events.trace.points
        length = (self._last - self._first) / 1e3
        name = self._events.trace.roles[self._role]
        line = points[int(self._point[self._moments("begin")][0])].line
        yield Line(0, name, line, 1, 1.0, length, self._first / 1e3, self._last / 1e3)
        rest = self._last - self._first
        numbers: list[int] = np.unique(self._point).tolist()
        sets = [number for number in numbers if points[number].kind == "task"]
        for number in sets:
            found = list(self._tasks(number))
            yield from found
            rest = rest - 1e3 * sum(line.each for line in found)
        for line in self._waits([number for number in numbers if number not in sets], None):
            yield line
            rest = rest - 1e3 * line.each
        yield self._line(1, "else", "", 0, rest, None, None)

    def _tasks(self, number: int) -> Iterator[Line]:
        """A set of tasks without its waits, then the waits."""
        point = self._events.trace.points[number]
        begins = (self._point == number) & self._moments("task")
        # A task ends where the next one begins, or where the tasks are over; what was recorded may end before.
        moments = np.flatnonzero(begins | self._moments("over"))
        ends = self._most(np.ones(len(self._end), np.bool_), self._end)[self._row]
        closed = self._row[moments[:-1]] == self._row[moments[1:]]
        ends[moments[:-1][closed]] = self._begin[moments[1:][closed]]
        spans = np.where(begins, ends - self._begin, 0.0)
        waits = list(self._waits(np.unique(self._point).tolist(), number))
        rest = self._sum(begins, spans) - 1e3 * sum((line.each for line in waits), np.zeros(len(self._rows)))
        first, last = self._least(begins, self._begin), self._most(begins, ends)
        yield self._line(1, point.what, point.line, self._count(begins), rest, first, last)
        yield from waits

    def _waits(self, numbers: Sequence[int], around: int | None) -> Iterator[Line]:
        """What is waited for within a set of tasks, or outside of all."""
        points = self._events.trace.points
        for number in numbers:
            kind, what = points[number].kind, points[number].what
            if kind not in ("wait", "waits", "drain"):
                continue
            chosen = (self._point == number) & (self._around == (number if around is None else around))
            if not chosen.any():
                continue
            text = f"waits for {what}" if kind != "drain" else f"drains: {what}"
            first = last = None
            if kind != "waits":
                first, last = self._least(chosen, self._begin), self._most(chosen, self._end)
            each = self._sum(chosen, self._length)
            depth = 1 if around is None else 2
            yield self._line(depth, text, points[number].line, self._count(chosen), each, first, last)

    def _line(
        self, depth: int, name: str, line: str, count: float, each: Floats, first: Floats | None, last: Floats | None
    ) -> Line:
        none = np.zeros(0)
        return Line(
            depth,
            name,
            line,
            count,
            float(each.sum()) / self._total if self._total else 0.0,
            each / 1e3,
            none if first is None else first / 1e3,
            none if last is None else last / 1e3,
        )

    def _moments(self, kind: str) -> NDArray[np.bool_]:
        return self._kind == kind

    def _count(self, chosen: NDArray[np.bool_]) -> float:
        return float(np.median(np.bincount(self._row[chosen], minlength=len(self._rows))))

    def _sum(self, chosen: NDArray[np.bool_], values: Floats) -> Floats:
        return np.bincount(self._row[chosen], values[chosen], len(self._rows)).astype(np.float64)

    def _least(self, chosen: NDArray[np.bool_], values: Floats) -> Floats:
        found = np.full(len(self._rows), np.nan)
        np.fmin.at(found, self._row[chosen], values[chosen])
        return found

    def _most(self, chosen: NDArray[np.bool_], values: Floats) -> Floats:
        found = np.full(len(self._rows), np.nan)
        np.fmax.at(found, self._row[chosen], values[chosen])
        return found
