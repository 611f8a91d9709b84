"""The records of a traced kernel as events: when each part of each CTA did what, in nanoseconds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pkc.codegen.artifact import Trace

Words = NDArray[np.int32]
"""What a rank has written: `[ctas, parts, records, 4]`."""


@dataclass(frozen=True)
class Events:
    """The events of all ranks, one position each, in every row of one part of one CTA in the order they ended.

    Times are in nanoseconds from the begin of the first CTA of the same rank: the clocks of GPUs are not compared.
    `within` is the position of the event that began the task around an event, or its own if it is in none.
    """

    trace: Trace
    rank: NDArray[np.int64]
    cta: NDArray[np.int64]
    part: NDArray[np.int64]
    point: NDArray[np.int64]
    task: NDArray[np.int64]
    begin: NDArray[np.float64]
    length: NDArray[np.float64]
    within: NDArray[np.int64]
    sms: NDArray[np.int64]
    """By rank and CTA the number of its SM, -1 if it wrote nothing."""
    lost: int
    """Records for which there was no room."""

    @property
    def row(self) -> NDArray[np.int64]:
        """A number for each part of each CTA of each rank."""
        _, ctas = self.sms.shape
        return (self.rank * ctas + self.cta) * len(self.trace.parts) + self.part

    @property
    def kinds(self) -> list[str]:
        """The kind of each event."""
        return [self.trace.points[int(point)].kind for point in self.point]

    def of_kind(self, *kinds: str) -> NDArray[np.bool_]:
        """Which events are of some kinds."""
        numbers = [number for number, point in enumerate(self.trace.points) if point.kind in kinds]
        return np.isin(self.point, numbers)


def decode(trace: Trace, ranks: Sequence[Words]) -> Events:
    """The events of all ranks; rows that are empty are of parts that do not run on that CTA."""
    found = [_of_rank(trace, rank, words) for rank, words in enumerate(ranks)]
    columns = {name: np.concatenate([columns[name] for columns, _, _ in found]) for name in found[0][0]}
    sms = np.stack([sms for _, sms, _ in found])
    events = Events(trace, **columns, within=np.zeros(0, np.int64), sms=sms, lost=sum(lost for _, _, lost in found))
    return _with_tasks(events)


def longest(words: Words) -> int:
    """How many records, record 0 among them, the part that has most would have written."""
    return int(words[:, :, 0, 0].max())


def _of_rank(trace: Trace, rank: int, words: Words) -> tuple[dict[str, NDArray[Any]], NDArray[np.int64], int]:
    ctas, _, records, _ = words.shape
    wanted = words[:, :, 0, 0].astype(np.int64)
    held = np.minimum(wanted, records)
    place = np.array(range(1, records))
    cta, part, place = np.nonzero(place < held.reshape(*held.shape, 1))
    raw = words.view(np.uint32)[cta, part, place + 1]
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
        "part": part.astype(np.int64),
        "point": point,
        "task": task,
        "begin": begin,
        "length": length,
    }
    return columns, sms, int((wanted - held).sum())


def _cycles_in_a_nanosecond(raw: NDArray[np.uint32], kinds: NDArray[Any]) -> float:
    """The clock rate, from the parts that have left both ends: they follow each other in pairs."""
    ends = np.flatnonzero((kinds == "begin") | (kinds == "end"))
    first, second = ends[:-1], ends[1:]
    pairs = (kinds[first] == "begin") & (kinds[second] == "end")
    passed = (raw[second] - raw[first])[pairs].astype(np.float64)
    usable = passed[:, 0] > 0
    if not usable.any():
        return 1.0
    return float(np.median(passed[usable, 3] / passed[usable, 0]))


def _with_tasks(events: Events) -> Events:
    """With `within`: the last event of kind `task`, unless the tasks are over since."""
    count = len(events.point)
    places = np.arange(count)
    starts = events.of_kind("cta", "task", "over")
    last = np.maximum.accumulate(np.where(starts, places, 0)) if count else places
    inside = events.of_kind("task")[last] if count else np.zeros(0, np.bool_)
    return replace(events, within=np.where(inside, last, places))
