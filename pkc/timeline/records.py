"""The records of a traced kernel as events: when each role of each CTA did what, in nanoseconds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pkc.codegen.artifact import Trace

Words = NDArray[np.int32]
"""The records of a rank: `[ctas, roles, records, 4]`."""


@dataclass(frozen=True)
class Events:
    """The events of all ranks, as columns; those of one role of one CTA follow each other in the order they ended.

    Times are in nanoseconds from the begin of the first CTA of the same rank: the clocks of GPUs are not compared.
    `role` numbers the roles. `within` is the position of the event that began the task around an event, or that of the
    event itself if it is in no task.
    """

    trace: Trace
    rank: NDArray[np.int64]
    cta: NDArray[np.int64]
    role: NDArray[np.int64]
    point: NDArray[np.int64]
    task: NDArray[np.int64]
    begin: NDArray[np.float64]
    length: NDArray[np.float64]
    within: NDArray[np.int64]
    sms: NDArray[np.int64]
    """The number of the SM by rank and CTA; -1 if the CTA wrote nothing."""
    lost: int
    """Records for which there was no room."""

    @property
    def row(self) -> NDArray[np.int64]:
        """A number for each role of each CTA of each rank."""
        _, ctas = self.sms.shape
        return (self.rank * ctas + self.cta) * len(self.trace.roles) + self.role

    @property
    def kinds(self) -> list[str]:
        """The kind of each event."""
        return [self.trace.points[int(point)].kind for point in self.point]

    def of_kind(self, *kinds: str) -> NDArray[np.bool_]:
        """Which events are of some kinds."""
        numbers = [number for number, point in enumerate(self.trace.points) if point.kind in kinds]
        return np.isin(self.point, numbers)


@dataclass(frozen=True)
class Used:
    """How much of something each rank uses in each `width` nanoseconds, by rank and bin; `full` is all there is."""

    name: str
    full: float
    width: float
    values: NDArray[np.float64]


def decode(trace: Trace, ranks: Sequence[Words]) -> Events:
    """The events of all ranks; empty rows are of roles that do not run on that CTA."""
    found = [_of_rank(trace, rank, words) for rank, words in enumerate(ranks)]
    columns = {name: np.concatenate([columns[name] for columns, _, _ in found]) for name in found[0][0]}
    sms = np.stack([sms for _, sms, _ in found])
    events = Events(trace, **columns, within=np.zeros(0, np.int64), sms=sms, lost=sum(lost for _, _, lost in found))
    return with_tasks(events)


def longest(words: Words) -> int:
    """How many records, record 0 among them, the role with the most would have written."""
    return int(words[:, :, 0, 0].max())


def _of_rank(trace: Trace, rank: int, words: Words) -> tuple[dict[str, NDArray[Any]], NDArray[np.int64], int]:
    ctas, _, records, _ = words.shape
    wanted = words[:, :, 0, 0].astype(np.int64)
    kept = np.minimum(wanted, records)
    place = np.array(range(1, records))
    cta, role, place = np.nonzero(place < kept.reshape(*kept.shape, 1))
    raw = words.view(np.uint32)[cta, role, place + 1]
    point, task = raw[:, 1].astype(np.int64), raw[:, 2].view(np.int32).astype(np.int64)
    kinds = np.array([known.kind for known in trace.points])[point]
    began = kinds == "cta"
    sms = np.full(ctas, -1, np.int64)
    sms[cta[began]] = raw[began, 3]
    # Modulo 2^32: a kernel takes less than two seconds.
    time = (raw[:, 0] - raw[0, 0] if len(raw) else raw[:, 0]).view(np.int32).astype(np.float64)
    time -= time[began].min(initial=np.inf) if began.any() else 0.0
    spans = np.isin(kinds, ("wait", "waits", "drain"))
    length = np.where(spans, raw[:, 3].astype(np.float64) / _cycles_in_a_nanosecond(raw, kinds), 0.0)
    begin = np.where(kinds == "waits", time - length, time)
    columns = {
        "rank": np.full(len(raw), rank, np.int64),
        "cta": cta.astype(np.int64),
        "role": role.astype(np.int64),
        "point": point,
        "task": task,
        "begin": begin,
        "length": length,
    }
    return columns, sms, int((wanted - kept).sum())


def _cycles_in_a_nanosecond(raw: NDArray[np.uint32], kinds: NDArray[Any]) -> float:
    """The clock rate, from the roles with a record at begin and end, which follow each other in pairs."""
    ends = np.flatnonzero((kinds == "begin") | (kinds == "end"))
    first, second = ends[:-1], ends[1:]
    pairs = (kinds[first] == "begin") & (kinds[second] == "end")
    passed = (raw[second] - raw[first])[pairs].astype(np.float64)
    usable = passed[:, 0] > 0
    if not usable.any():
        return 1.0
    return float(np.median(passed[usable, 3] / passed[usable, 0]))


def with_tasks(events: Events) -> Events:
    """With `within` filled in: the last event of kind `task`, unless the tasks have ended since."""
    count = len(events.point)
    places = np.arange(count)
    starts = events.of_kind("cta", "task", "over")
    last = np.maximum.accumulate(np.where(starts, places, 0)) if count else places
    inside = events.of_kind("task")[last] if count else np.zeros(0, np.bool_)
    return replace(events, within=np.where(inside, last, places))
