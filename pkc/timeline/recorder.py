"""What is recorded of a predicted time line: the events of each warp role, and what is in use meanwhile."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.ir import Operation

from pkc.codegen.artifact import Probe, Trace
from pkc.location import describe
from pkc.targets.target import Target
from pkc.timeline import steps
from pkc.timeline.names import task_work
from pkc.timeline.processes import Process
from pkc.timeline.records import Events, Used, with_tasks

_SHOWN = 300.0
"""Nanoseconds of a wait in a loop that has a place of its own; shorter ones are added up."""

BINS = 240
"""Into how many times of equal length `Used` divides a time line."""


@dataclass(frozen=True)
class Prediction:
    """The events of a launch, what is in use meanwhile, and whether the kernel goes on behind them."""

    events: Events
    used: tuple[Used, ...]
    nanoseconds: float
    ends: bool


class Recorder:
    """Keeps what processes do, as records of points; `names` are those of the roles."""

    def __init__(self, target: Target, ranks: int, names: Sequence[str]) -> None:
        self._target, self._ranks, self._names = target, ranks, names
        self._points: dict[tuple[int, str, str, Operation], int] = {}
        self.busy: dict[str, list[tuple[int, float, float, float]]] = {
            name: [] for name in ("tensor cores", "link out", "memory")
        }
        """Rank, begin, end, amount."""

    def begin(self, one: Process) -> None:
        """A process is there, on its CTA."""
        for kind in ("cta", "begin"):
            one.records.append((self.point(one, kind, "", one.op), -1, 0.0, 0.0))

    def end(self, one: Process) -> None:
        """A process has made its last step."""
        one.records.append((self.point(one, "end", "", one.op), -1, one.time, 0.0))

    def task(self, one: Process, step: steps.Step) -> bool:
        """The begin of a task."""
        self._close(one)
        one.task += 1
        one.within = step[1]
        one.records.append((self.point(one, "task", task_work(step[1]), step[1]), one.task, one.time, 0.0))
        return True

    def over(self, one: Process, step: steps.Step) -> bool:
        """The tasks of a phase are done."""
        self._close(one)
        one.within = None
        one.records.append((self.point(one, "over", task_work(step[1]), step[1]), -1, one.time, 0.0))
        return True

    def cut(self, one: Process, end: float) -> None:
        """What a process is in the midst of when the time line ends counts until then."""
        if one.within is not None:
            one.time = end
            self.over(one, (steps.OVER, one.within))
        self._close(one)
        one.time = end
        self.end(one)

    def _close(self, one: Process) -> None:
        """The end of a task: what its waits in loops add up to."""
        for point, length in one.summed.items():
            one.records.append((point, one.task, one.time - length, length))
        one.summed.clear()

    def waited(self, one: Process, op: Operation, what: str, until: float) -> None:
        """Go on at a time. It is no waiting as long as MMAs of the process are in flight."""
        begin = max(one.time, min(until, one.mmas[-1])) if one.mmas else one.time
        length = until - begin
        one.time = max(one.time, until)
        if length <= 0:
            return
        if length < _SHOWN:
            one.summed[self.point(one, "waits", what, op)] += length
        else:
            one.records.append((self.point(one, "wait", what, op), one.task, begin, length))

    def point(self, one: Process, kind: str, what: str, op: Operation) -> int:
        """The number of what is recorded, given at its first record."""
        key = (one.role, kind, what, op)
        known = self._points.get(key)
        if known is None:
            known = self._points[key] = len(self._points)
        return known

    def prediction(self, processes: Sequence[Process], ctas: int, *, ends: bool) -> Prediction:
        """What is recorded by now, of kernels with so many CTAs on each rank."""

        def column(values: Iterable[Any], kind: Any) -> Any:
            return np.array(list(values), kind)

        shown = [one for one in processes if one.group == 0]
        end = max((one.time for one in processes), default=0.0)
        for one in shown:
            if one.records[-1][0] != self._points.get((one.role, "end", "", one.op)):
                self.cut(one, end)
        shown.sort(key=lambda one: (one.rank, one.cta, one.role))
        rows = [(one, record) for one in shown for record in one.records]
        sms = column([list(range(ctas))] * self._ranks, np.int64)
        points = tuple(Probe(role, kind, what, describe(op.location)) for role, kind, what, op in self._points)
        trace = Trace("", "", "", tuple(self._names), points)

        events = with_tasks(
            Events(
                trace,
                rank=column((one.rank for one, _ in rows), np.int64),
                cta=column((one.cta for one, _ in rows), np.int64),
                role=column((one.role for one, _ in rows), np.int64),
                point=column((record[0] for _, record in rows), np.int64),
                task=column((record[1] for _, record in rows), np.int64),
                begin=column((record[2] for _, record in rows), np.float64),
                length=column((record[3] for _, record in rows), np.float64),
                within=np.zeros(0, np.int64),
                sms=sms,
                lost=0,
            )
        )
        return Prediction(events, tuple(self._used(end)), end, ends)

    def _used(self, end: float) -> Iterator[Used]:
        rates, width = self._target.rates, max(end, 1.0) / BINS
        for name, full in (
            ("tensor cores", self._target.arch.sms),
            ("link out", rates.link_bytes),
            ("memory", rates.memory_bytes),
        ):
            yield Used(name, width * full, width, _binned(self.busy[name], self._ranks, width))


def _binned(
    spent: list[tuple[int, float, float, float]], ranks: int, width: float
) -> np.ndarray[Any, np.dtype[np.float64]]:
    """What is spent in each bin, each amount evenly from its begin to its end."""
    values = np.zeros((ranks, BINS))
    if not spent:
        return values
    rank, begin, end, amount = np.array(spent).T
    first, last = (np.clip(times / width, 0, BINS - 1e-9) for times in (begin, np.maximum(end, begin + 1e-3)))
    for place in range(int((last.astype(int) - first.astype(int)).max()) + 1):
        bins = first.astype(int) + place
        inside = np.clip(np.minimum(last, bins + 1) - np.maximum(first, bins), 0, None)
        share = np.where(last > first, inside / np.maximum(last - first, 1e-12), float(place == 0))
        chosen = inside > 0
        np.add.at(values, (rank[chosen].astype(int), bins[chosen]), (amount * share)[chosen])
    return values
