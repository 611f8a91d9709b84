"""A time line as a file that chrome://tracing and ui.perfetto.dev show (Trace Event Format)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, TextIO

import numpy as np

from pkc.timeline.records import Events, Used


def write(events: Events, file: TextIO, ctas: int, used: Sequence[Used] = ()) -> None:
    """A process for each rank, a thread for each role of `ctas` CTAs, chosen evenly; times in microseconds."""
    file.write('{"displayTimeUnit": "ns", "traceEvents": [\n')
    separator = ""
    for event in listed(events, ctas, used):
        file.write(separator + json.dumps(event))
        separator = ",\n"
    file.write("\n]}\n")


def listed(events: Events, ctas: int, used: Sequence[Used] = ()) -> Iterator[dict[str, Any]]:
    """The same as a list, with a counter for each of what is `used`."""
    _, count = events.sms.shape
    shown = frozenset(number * count // min(ctas, count) for number in range(min(ctas, count)))
    yield from _names(events, shown)
    yield from _durations(events, shown)
    for each in used:
        yield from _counter(each)


def _counter(used: Used) -> Iterator[dict[str, Any]]:
    for rank, values in enumerate(used.values):
        for place, share in enumerate(values / used.full):
            at = round(place * used.width / 1e3, 3)
            yield {"ph": "C", "pid": rank, "ts": at, "name": used.name, "args": {used.name: round(float(share), 3)}}


def _thread(events: Events, cta: int, role: int) -> int:
    return cta * len(events.trace.roles) + role


def _names(events: Events, shown: frozenset[int]) -> Iterator[dict[str, Any]]:
    for rank, sms in enumerate(events.sms):
        yield {"ph": "M", "pid": rank, "name": "process_name", "args": {"name": f"rank {rank}"}}
        for cta in sorted(shown):
            if sms[cta] < 0:
                continue
            for role, name in enumerate(events.trace.roles):
                named = {"name": f"CTA {cta} (SM {sms[cta]}) {name}"}
                thread = _thread(events, cta, role)
                yield {"ph": "M", "pid": rank, "tid": thread, "name": "thread_name", "args": named}
                order = {"sort_index": thread}
                yield {"ph": "M", "pid": rank, "tid": thread, "name": "thread_sort_index", "args": order}


def _durations(events: Events, shown: frozenset[int]) -> Iterator[dict[str, Any]]:
    """Tasks, and the waits within them; the waits of a loop are an argument of its task."""
    points = events.trace.points
    kinds = events.kinds
    summed: dict[int, dict[str, float]] = {}
    for place in np.flatnonzero(events.of_kind("waits")):
        what = f"waits for {points[int(events.point[place])].what}, us"
        summed.setdefault(int(events.within[place]), {})[what] = round(float(events.length[place]) / 1e3, 3)
    row = events.row
    for place, kind in enumerate(kinds):
        cta = int(events.cta[place])
        if cta not in shown or kind not in ("task", "wait", "drain"):
            continue
        point, length = points[int(events.point[place])], float(events.length[place])
        name = {"task": point.what, "wait": f"waits for {point.what}", "drain": f"drains: {point.what}"}[kind]
        if kind == "task":
            following = place + 1
            while following < len(kinds) and (kinds[following] not in ("task", "over") or row[following] != row[place]):
                following += 1
            if following == len(kinds):  # what was recorded ends in this task
                continue
            length = float(events.begin[following] - events.begin[place])
        yield {
            "ph": "X",
            "pid": int(events.rank[place]),
            "tid": _thread(events, cta, int(events.role[place])),
            "ts": round(float(events.begin[place]) / 1e3, 3),
            "dur": round(length / 1e3, 3),
            "name": f"{name} {point.line}",
            "cat": kind,
            "args": {"task": int(events.task[place]), **(summed.get(place, {}) if kind == "task" else {})},
        }
