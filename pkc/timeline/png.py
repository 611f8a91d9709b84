"""A time line as a PNG; needs matplotlib, the extra `pictures`."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pkc.diagnostics import PkcError
from pkc.location import NOWHERE
from pkc.timeline.errors import NoMatplotlib
from pkc.timeline.lanes import BINS, Lane, Timeline
from pkc.timeline.looks import USED, WAITS, WORKS


def draw(shown: Sequence[Timeline], until: float, path: Path) -> None:
    """Write the lanes of time lines, one below the other on the same axis. Raises `PkcError` without matplotlib."""
    try:
        importlib.import_module("matplotlib").use("Agg")
        pyplot = importlib.import_module("matplotlib.pyplot")
    except ImportError:
        raise PkcError(NoMatplotlib(NOWHERE, str(path))) from None
    rows = [(one, lane) for one in shown for lane in one.lanes]
    figure, panels = pyplot.subplots(
        len(rows), 1, figsize=(11, 0.42 * len(rows) + 1.2), sharex=True, squeeze=False, gridspec_kw={"hspace": 0.15}
    )
    at = (np.arange(BINS) + 0.5) * until / BINS
    for panel, (one, lane) in zip(panels[:, 0], rows, strict=True):
        _panel(panel, lane, at)
        if lane is one.lanes[0]:
            panel.set_title(one.title, fontsize=9, loc="left")
    panels[-1, 0].set_xlabel("us since the CTAs began")
    panels[-1, 0].set_xlim(0, until)
    figure.savefig(path, dpi=130, bbox_inches="tight", format="png")
    pyplot.close(figure)


def _panel(panel: Any, lane: Lane, at: Any) -> None:
    colours = [WORKS, WAITS] if lane.is_role else [USED, WAITS]
    panel.stackplot(at, lane.works, lane.waits, colors=colours, linewidth=0)
    panel.set_ylim(0, 1)
    panel.set_yticks([])
    panel.set_ylabel(f"rank {lane.rank} {lane.name}", rotation=0, ha="right", va="center", fontsize=7)
    for side in ("top", "right", "left"):
        panel.spines[side].set_visible(False)
