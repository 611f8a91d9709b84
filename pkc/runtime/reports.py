"""Reports of a kernel whose waits are bounded, when it has given up: who waits for what, or which index is none."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pkc.codegen.artifact import Wait, Waits
from pkc.diagnostics import Diagnostic
from pkc.dialect.words import BEGINS, ENDS, RANK, ROW
from pkc.location import NOWHERE, Span, span_at
from pkc.runtime.errors import Stuck
from pkc.semantics.errors import ZEROS, BoundOutOfRange, IndexOutOfRange, RankOutOfRange

WORDS = 8
_OUTSIDE = 3
MOST_LINES = 24

Words = NDArray[np.int32]
"""The reports of a rank: `[ctas, 2 * warps, 8]`."""


@dataclass(frozen=True)
class Report:
    """One warp of a CTA has given up, `late` if it waited too long itself; `index` has the indices of the counter. With
    `outside` it has `seen` an index that is not less than `wanted`."""

    rank: int
    cta: int
    warp: int
    late: bool
    wait: Wait
    task: int
    seen: int
    wanted: int
    index: tuple[int, ...]
    outside: bool = False


CounterAt = Callable[[int, str, int], tuple[int, ...]]
"""From a rank, the name of a signal and the low half of an address: the indices of the counter there."""


def read(waits: Waits, ranks: Mapping[int, Words], counter_at: CounterAt) -> list[Report]:
    """The reports of all ranks of this process; none if nothing was given up."""
    found: list[Report] = []
    for rank, words in ranks.items():
        for cta, warp in np.argwhere(words[:, :, 0] != 0).tolist():
            values: list[int] = words[cta, warp].tolist()
            why, point, task, seen, wanted, low, *_ = values
            wait = waits.points[point]
            indices = counter_at(rank, wait.awaits, low % 2**32) if wait.until == "raised" else ()
            if why == _OUTSIDE:
                found.append(Report(rank, cta, warp - waits.warps, False, wait, task, seen, wanted, (), outside=True))
                continue
            found.append(Report(rank, cta, warp, why == 1, wait, task, seen % 2**32, wanted % 2**32, indices))
    return found


def diagnose(kernel: str, reports: Sequence[Report], seconds: float, absent: Sequence[str] = ()) -> Diagnostic:
    """All reports as one diagnostic, at the line of the first; waits at the same place share a line. Before them what
    is known of ranks that are `absent`. If an index is out of range, all else follows from that: it is what the
    simulator says of it."""
    wrong = [report for report in reports if report.outside]
    if wrong:
        return _out_of_range(wrong[0])
    groups = sorted(_groups(reports), key=_importance)
    texts = [_describe(group) for group in groups[:MOST_LINES]]
    if len(groups) > MOST_LINES:
        texts.append(f"and {len(groups) - MOST_LINES} more")
    texts = [*absent, *texts]
    first = groups[0][0]
    title = f"rank {first.rank} waits for {_what(first.wait)} in vain"
    late = any(report.late for report in reports)
    return Stuck(_span(first.wait), kernel, title, "\n          ".join(texts), seconds, late)


def _out_of_range(report: Report) -> Diagnostic:
    point, last = report.wait, report.wanted - 1
    if point.until == RANK:
        return RankOutOfRange(_span(point), report.seen, report.rank, last)
    if point.until in (BEGINS, ENDS):
        return BoundOutOfRange(_span(point), point.until, report.seen, point.awaits, last, report.rank)
    if point.until == ROW:
        return IndexOutOfRange(_span(point), report.seen, 0, point.awaits, report.rank, last)
    axis = int(point.until.removeprefix("index "))
    return IndexOutOfRange(_span(point), report.seen, axis, point.awaits, report.rank, last, ZEROS)


def _groups(reports: Sequence[Report]) -> Iterator[list[Report]]:
    """Groups of reports of the same wait on the same rank, sorted by CTA; one report of each CTA."""
    groups: dict[tuple[int, Wait], dict[int, Report]] = {}
    for report in sorted(reports, key=lambda report: (report.cta, report.warp)):
        groups.setdefault((report.rank, report.wait), {}).setdefault(report.cta, report)
    for by_cta in groups.values():
        yield list(by_cta.values())


def _importance(group: Sequence[Report]) -> tuple[object, ...]:
    """Waits for counters first: these come from other roles and ranks, channels only pass on what is missing."""
    first = group[0]
    return first.wait.until != "raised", not any(report.late for report in group), first.rank, first.wait.line


def _describe(group: Sequence[Report]) -> str:
    first = group[0]
    others = f" and {len(group) - 1} more" if len(group) > 1 else ""
    task = "" if first.task < 0 else f", task {first.task}"
    values = f" >= {first.wanted}, sees {first.seen}" if first.wait.until == "raised" else ""
    indices = f"[{', '.join(map(str, first.index))}]" if first.index else ""
    where = f"{first.wait.file}:{first.wait.line}"
    return (
        f"rank {first.rank}, {first.wait.role} of CTA {first.cta}{others}{task}:"
        f" waits for {_what(first.wait)}{indices}{values} ({where})"
    )


def _what(wait: Wait) -> str:
    return f"room in `{wait.awaits}`" if wait.until == "free" else f"`{wait.awaits}`"


def _span(wait: Wait) -> Span:
    return NOWHERE if wait.file == NOWHERE.source.name else span_at(wait.file, wait.line, wait.column)


def missing_launches(launches: Mapping[int, int]) -> list[str]:
    """Which ranks have launched a kernel less often than another, in words."""
    most = max(launches.values(), default=0)
    return [
        f"rank {rank} has launched this kernel {_times(count)}, others {_times(most)}"
        for rank, count in launches.items()
        if count < most
    ]


def _times(count: int) -> str:
    return f"{count} time{'s' * (count != 1)}"
