"""What a kernel whose waits are bounded says when it has given up: who waits for what."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pkc.codegen.artifact import Wait, Waits
from pkc.location import NOWHERE, Span, span_at
from pkc.runtime.errors import Stuck

WORDS = 8
MOST_LINES = 24

Words = NDArray[np.int32]
"""The reports of a rank: `[ctas, warps, 8]`."""


@dataclass(frozen=True)
class Report:
    """One warp of a CTA has given up, `late` if it waited too long itself; `cell` is the counter it watched."""

    rank: int
    cta: int
    warp: int
    late: bool
    wait: Wait
    task: int
    seen: int
    wanted: int
    cell: tuple[int, ...]


Cell = Callable[[int, str, int], tuple[int, ...]]
"""From a rank, counters and the low half of an address: which of the counters lies there."""


def read(waits: Waits, ranks: Mapping[int, Words], cell: Cell) -> list[Report]:
    """The reports of all ranks of this process; none if nothing was given up."""
    found: list[Report] = []
    for rank, words in ranks.items():
        for cta, warp in np.argwhere(words[:, :, 0] != 0).tolist():
            values: list[int] = words[cta, warp].tolist()
            why, point, task, seen, wanted, low, *_ = values
            wait = waits.points[point]
            place = cell(rank, wait.awaits, low % 2**32) if wait.until == "raised" else ()
            found.append(Report(rank, cta, warp, why == 1, wait, task, seen % 2**32, wanted % 2**32, place))
    return found


def diagnose(kernel: str, reports: Sequence[Report], seconds: float) -> Stuck:
    """All reports as one finding, at the line of the first: waits that are alike in one line."""
    groups = sorted(_groups(reports), key=_importance)
    texts = [_describe(group) for group in groups[:MOST_LINES]]
    if len(groups) > MOST_LINES:
        texts.append(f"and {len(groups) - MOST_LINES} more")
    first = groups[0][0]
    title = f"rank {first.rank} waits for {_what(first.wait)} in vain"
    return Stuck(_span(first.wait), kernel, title, "\n          ".join(texts), seconds)


def _groups(reports: Sequence[Report]) -> Iterator[list[Report]]:
    """Waits at the same place of the program on the same rank, by CTA; one of each CTA."""
    groups: dict[tuple[int, Wait], dict[int, Report]] = {}
    for report in sorted(reports, key=lambda report: (report.cta, report.warp)):
        groups.setdefault((report.rank, report.wait), {}).setdefault(report.cta, report)
    for by_cta in groups.values():
        yield list(by_cta.values())


def _importance(group: Sequence[Report]) -> tuple[object, ...]:
    """Counters come from other parts and ranks, channels only pass on what is missing."""
    first = group[0]
    return first.wait.until != "raised", not any(report.late for report in group), first.rank, first.wait.line


def _describe(group: Sequence[Report]) -> str:
    first = group[0]
    others = f" and {len(group) - 1} more" if len(group) > 1 else ""
    task = "" if first.task < 0 else f", task {first.task}"
    values = f" >= {first.wanted}, sees {first.seen}" if first.wait.until == "raised" else ""
    cell = f"[{', '.join(map(str, first.cell))}]" if first.cell else ""
    where = f"{first.wait.file}:{first.wait.line}"
    return (
        f"rank {first.rank}, {first.wait.part} of CTA {first.cta}{others}{task}:"
        f" waits for {_what(first.wait)}{cell}{values} ({where})"
    )


def _what(wait: Wait) -> str:
    return f"room in `{wait.awaits}`" if wait.until == "free" else f"`{wait.awaits}`"


def _span(wait: Wait) -> Span:
    return NOWHERE if wait.file == NOWHERE.source.name else span_at(wait.file, wait.line, wait.column)
