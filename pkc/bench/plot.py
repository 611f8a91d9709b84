"""A plot of measurements: for each kernel the share of the machine's limit, by size and contestant."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pkc.bench.tables import PEERS, PUBLISHED, groups, milliseconds, size

NAMES = {"pkc": "pkc", **PEERS, "published": PUBLISHED}
_COLOURS = {
    "pkc": "#1f6f4a",
    "cublas": "#9aa0a6",
    "cublas_nccl": "#9aa0a6",
    "cublas_one_shot": "#5b7db1",
    "cublas_two_shot": "#d98324",
    "cublas_torch": "#9aa0a6",
    "scaled_mm": "#9aa0a6",
    "scaled_mm_nccl": "#9aa0a6",
    "torch_fused": "#d98324",
    "cudnn": "#9aa0a6",
    "flash": "#d98324",
    "all_gather_cudnn": "#9aa0a6",
    "all_gather_flash": "#5b7db1",
    "all_to_all_cudnn": "#d98324",
    "torch_grouped": "#9aa0a6",
    "nccl_grouped": "#d98324",
    "nccl_index_add": "#d98324",
    "nccl": "#9aa0a6",
    "nccl_transposed": "#5b7db1",
    "torch_one_shot": "#d98324",
    "torch_two_shot": "#5b7db1",
    "torch_reduce_scatter": "#d98324",
    "published": "#5b7db1",
}

_ACROSS = 5
"""Panels side by side."""


def shares(results: Sequence[Mapping[str, Any]], name: str) -> list[float]:
    """The limit over the time of a contestant for each result; 0 without a time or a limit."""
    return [_share(result["limit_ms"], _time(result, name)) for result in results]


def _share(limit: float | None, time: float | None) -> float:
    return limit / time if limit and time else 0.0


def _time(result: Mapping[str, Any], name: str) -> float | None:
    return result["published_ms"] if name == "published" else milliseconds(result, name)


def draw(records: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Write a PNG with one panel for each table; needs matplotlib."""
    importlib.import_module("matplotlib").use("Agg")
    pyplot = importlib.import_module("matplotlib.pyplot")
    found = groups(records)
    lines = -(-len(found) // _ACROSS)
    across = -(-len(found) // lines)
    size = (5.6 * across, 3.8 * lines)
    figure, panels = pyplot.subplots(lines, across, figsize=size, squeeze=False, sharey=True)
    for panel in panels.flat[len(found) :]:
        panel.set_axis_off()
    for panel, (record, results) in zip(panels.flat, found, strict=False):
        title = f"{results[0]['title']}, {results[0]['ranks']} x {record['machine']['gpu']}"
        _panel(panel, title, results)
    for line in panels:
        line[0].set_ylabel("share of the machine's limit")
    figure.tight_layout()
    figure.savefig(path, dpi=150)
    pyplot.close(figure)


def _panel(panel: Any, title: str, results: Sequence[Mapping[str, Any]]) -> None:
    present = [name for name in NAMES if any(shares(results, name))]
    width = 0.84 / max(len(present), 1)
    for place, name in enumerate(present):
        at = [index + (place - (len(present) - 1) / 2) * width for index in range(len(results))]
        heights = shares(results, name)
        bars = panel.bar(at, heights, width, label=NAMES[name], color=_COLOURS[name])
        panel.bar_label(bars, [f"{height:.2f}" if height else "" for height in heights], fontsize=6)
    panel.axhline(1.0, color="black", linewidth=0.8)
    panel.set_xticks(range(len(results)), [size(result) for result in results], fontsize=7, rotation=30, ha="right")
    panel.set_title(title, fontsize=9)
    panel.legend(fontsize=7, loc="upper center", bbox_to_anchor=(0.5, -0.36), ncol=max(len(present), 1), frameon=False)
