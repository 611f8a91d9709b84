"""A picture of what was measured: for each kernel the share of the machine's limit, by size and contestant."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pkc.bench.tables import PEERS, milliseconds, size

NAMES = {"pkc": "pkc", **PEERS}
_COLOURS = {"pkc": "#1f6f4a", "cublas": "#9aa0a6", "cublas_nccl": "#9aa0a6", "torch_fused": "#d98324"}


def shares(results: Sequence[Mapping[str, Any]], name: str) -> list[float]:
    """The limit over the time of a contestant for each result; 0 without a time or a limit."""
    pairs = ((result["limit_ms"], milliseconds(result, name)) for result in results)
    return [limit / own if limit and own else 0.0 for limit, own in pairs]


def draw(records: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Write a PNG with one panel for each kernel; needs matplotlib."""
    matplotlib = importlib.import_module("matplotlib")
    matplotlib.use("Agg")
    pyplot = importlib.import_module("matplotlib.pyplot")
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for record in sorted(records, key=lambda record: record["time"]):
        for result in record["results"]:
            title = f"{result['title']}, {result['ranks']} x {record['machine']['gpu']}"
            groups.setdefault(title, []).append(result)
    figure, panels = pyplot.subplots(1, len(groups), figsize=(5.2 * len(groups), 3.6), squeeze=False, sharey=True)
    for panel, (title, results) in zip(panels[0], groups.items(), strict=True):
        _panel(panel, title, sorted(results, key=lambda result: (result["m"], result["n"], result["k"])))
    panels[0][0].set_ylabel("share of the machine's limit")
    figure.tight_layout()
    figure.savefig(path, dpi=150)
    pyplot.close(figure)


def _panel(panel: Any, title: str, results: Sequence[Mapping[str, Any]]) -> None:
    present = [name for name in NAMES if any(shares(results, name))]
    width = 0.8 / max(len(present), 1)
    for place, name in enumerate(present):
        at = [index + (place - (len(present) - 1) / 2) * width for index in range(len(results))]
        bars = panel.bar(at, shares(results, name), width, label=NAMES[name], color=_COLOURS[name])
        panel.bar_label(bars, fmt="%.2f", fontsize=7)
    panel.axhline(1.0, color="black", linewidth=0.8)
    panel.set_xticks(range(len(results)), [size(result) for result in results])
    panel.set_title(title, fontsize=9)
    panel.set_xlabel("M = N = K, or M x N x K")
    panel.legend(fontsize=7, loc="lower right")
