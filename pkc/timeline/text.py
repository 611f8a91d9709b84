"""A time line for terminals: a line for each lane, in blocks of eight heights."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pkc.timeline.lanes import Lane, Timeline

_HEIGHTS = " ▁▂▃▄▅▆▇█"


def text(shown: Timeline, until: float, columns: int = 60) -> str:
    """The lanes; how high a column is says which share of the CTAs works then, or how much is used."""
    width = max((len(lane.name) for lane in shown.lanes), default=0)
    return "\n".join(_lines(shown, until, columns, width))


def _lines(shown: Timeline, until: float, columns: int, width: int) -> Iterator[str]:
    yield shown.title
    end = f"{until:.1f} us"
    yield f"{'':8}{'':{width}}  0{end:>{columns - 1}}"
    before = None
    for lane in shown.lanes:
        rank = f"rank {lane.rank}" if lane.rank != before else ""
        before = lane.rank
        yield f"{rank:8}{lane.name:{width}} |{_columns(lane, columns)}| {_share(lane)}".rstrip()


def _columns(lane: Lane, columns: int) -> str:
    bins = np.array_split(lane.works, columns)
    return "".join(_HEIGHTS[_height(float(part.mean()))] for part in bins)


def _height(share: float) -> int:
    """The lowest height is for anything above a hundredth."""
    return 0 if share < 0.01 else max(1, round(share * (len(_HEIGHTS) - 1)))


def _share(lane: Lane) -> str:
    if not lane.is_role:
        return f"{lane.works.mean():.0%} used"
    return f"works {lane.works.mean():.0%}, waits {lane.waits.mean():.0%}"
