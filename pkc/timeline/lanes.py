"""A time line as lanes: for each rank and role, which share of its CTAs works and which waits, over time.

Predicted and measured time lines come here as the events of the file for viewers (`chrome.py`), so both look alike.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

BINS = 240
"""Times that a lane has."""

THREAD = re.compile(r"CTA (\d+) \(SM \d+\) (.+)")
"""What the events of a role of a CTA are named after."""


@dataclass(frozen=True)
class Lane:
    """A role of a rank, or something that the rank uses: shares from 0 to 1 in bins of equal length."""

    rank: int
    name: str
    works: NDArray[np.float64]
    waits: NDArray[np.float64]
    is_role: bool


@dataclass(frozen=True)
class Span:
    """What a role of one CTA does from `begin` on, in microseconds: a `task`, a `wait` or a `drain`."""

    rank: int
    cta: int
    role: str
    kind: str
    name: str
    begin: float
    length: float


@dataclass(frozen=True)
class Timeline:
    """One launch: its lanes, and the spans of some CTAs. Times are in microseconds from the begin of its CTAs."""

    title: str
    end: float
    lanes: tuple[Lane, ...]
    spans: tuple[Span, ...]


def end_of(events: Sequence[dict[str, Any]]) -> float:
    """When the last event ends, in microseconds."""
    return max((event["ts"] + event["dur"] for event in events if event["ph"] == "X"), default=0.0)


def timeline(title: str, events: Sequence[dict[str, Any]], until: float, ctas: int = 4) -> Timeline:
    """The lanes of events up to a time, and the spans of `ctas` CTAs of each rank."""
    threads = {
        (event["pid"], event["tid"]): THREAD.fullmatch(event["args"]["name"])
        for event in events
        if event["name"] == "thread_name"
    }
    named = {key: (int(found[1]), found[2]) for key, found in threads.items() if found is not None}
    spans = [
        (
            Span(
                event["pid"], *named[event["pid"], event["tid"]], event["cat"], event["name"], event["ts"], event["dur"]
            ),
            sum(value for key, value in event["args"].items() if key != "task"),
            event["args"]["task"] >= 0,
        )
        for event in events
        if event["ph"] == "X"
    ]
    lanes = [*_roles(spans, until), *_counters(events, until)]
    every = sorted({span.cta for span, _, _ in spans})
    shown = {every[number * len(every) // min(ctas, len(every))] for number in range(min(ctas, len(every)))}
    kept = tuple(span for span, _, _ in spans if span.cta in shown)
    ranks = sorted({lane.rank for lane in lanes})
    return Timeline(title, end_of(events), tuple(lane for rank in ranks for lane in lanes if lane.rank == rank), kept)


def _roles(spans: Sequence[tuple[Span, float, bool]], until: float) -> Iterable[Lane]:
    keys = dict.fromkeys(
        sorted({(span.rank, span.role) for span, _, _ in spans}, key=lambda key: (key[0], _place(key[1])))
    )
    for rank, role in keys:
        mine = [entry for entry in spans if (entry[0].rank, entry[0].role) == (rank, role)]
        works, waits = np.zeros(BINS), np.zeros(BINS)
        ctas = len({span.cta for span, _, _ in mine})
        for span, inside, in_task in mine:
            covered = _covered(span.begin, span.length, until) / ctas
            if span.kind == "task":
                waiting = min(1.0, inside / span.length) if span.length else 0.0
                works += covered * (1 - waiting)
                waits += covered * waiting
            else:
                waits += covered
                works -= covered * in_task
        yield Lane(rank, role, works.clip(0, 1), waits.clip(0, 1), is_role=True)


_ORDER = ("loader", "consumer", "storer", "communicator", "copy_engine")


def _place(role: str) -> tuple[int, str]:
    kind = role.partition(",")[0].partition(" ")[0]
    return (_ORDER.index(kind) if kind in _ORDER else len(_ORDER), role)


def _counters(events: Sequence[dict[str, Any]], until: float) -> Iterable[Lane]:
    found: dict[tuple[int, str], list[tuple[float, float]]] = {}
    for event in events:
        if event["ph"] == "C":
            value = float(next(iter(event["args"].values())))
            found.setdefault((event["pid"], event["name"]), []).append((event["ts"], value))
    for (rank, name), points in found.items():
        width = points[1][0] - points[0][0] if len(points) > 1 else until
        works = sum((_covered(at, width, until) * share for at, share in points), np.zeros(BINS))
        yield Lane(rank, name, works.clip(0, 1), np.zeros(BINS), is_role=False)


def _covered(begin: float, length: float, until: float) -> NDArray[np.float64]:
    """Which share of each bin a span covers."""
    first, last = begin / until * BINS, (begin + length) / until * BINS
    shares = np.zeros(BINS)
    low, high = max(0, int(first)), min(BINS, int(np.ceil(last)))
    if low < high:
        edges = np.arange(low, high)
        shares[low:high] = np.clip(np.minimum(last, edges + 1) - np.maximum(first, edges), 0, 1)
    return shares
