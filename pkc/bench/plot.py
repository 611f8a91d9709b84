"""A plot of measurements: for each kernel the share of the machine's limit, by size and contestant."""

from __future__ import annotations

import hashlib
import importlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pkc.bench.tables import PEERS, PUBLISHED, groups, milliseconds, size

NAMES = {"pkc": "pkc", **PEERS, "published": PUBLISHED}

_OURS = ("#1f6f4a", "o", 42)
_GREY = ("#80868b", "s", 22)
_BLUE = ("#5b7db1", "D", 20)
_SAND = ("#d98324", "^", 26)
_BROWN = ("#8a6d3b", "v", 26)
"""Colour, mark, and area of the mark in square points."""

LOOKS = {
    "pkc": _OURS,
    "pkc_derived": _BLUE,
    "cublas": _GREY,
    "cublas_nccl": _GREY,
    "cublas_one_shot": _BLUE,
    "cublas_two_shot": _SAND,
    "cublas_torch": _GREY,
    "scaled_mm": _GREY,
    "scaled_mm_nccl": _GREY,
    "torch_fused": _SAND,
    "torch_symmetric": _BROWN,
    "torch_native": _BLUE,
    "cudnn": _GREY,
    "flash": _SAND,
    "all_gather_cudnn": _GREY,
    "all_gather_flash": _BLUE,
    "all_to_all_cudnn": _SAND,
    "torch_grouped": _GREY,
    "nccl_grouped": _SAND,
    "nccl_index_add": _SAND,
    "nccl": _GREY,
    "nccl_transposed": _BLUE,
    "torch_one_shot": _SAND,
    "torch_two_shot": _BLUE,
    "torch_reduce_scatter": _SAND,
    "published": _BLUE,
}

_WIDTH, _MARGIN, _LABELS, _GAP = 10.0, 0.12, 1.8, 0.25
_LINE, _HEAD, _FOOT = 0.19, 0.45, 0.3
"""In inches: the picture, its margin, room for sizes, between columns; a size, what is above and below the sizes."""


def shares(results: Sequence[Mapping[str, Any]], name: str) -> list[float]:
    """The limit over the time of a contestant for each result; 0 without a time or a limit."""
    return [_share(result["limit_ms"], _time(result, name)) for result in results]


def _share(limit: float | None, time: float | None) -> float:
    return limit / time if limit and time else 0.0


def _time(result: Mapping[str, Any], name: str) -> float | None:
    return result["published_ms"] if name == "published" else milliseconds(result, name)


def draw(records: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Write a PNG, for a page of `_WIDTH` inches, with one panel for each table that has limits; needs matplotlib."""
    importlib.import_module("matplotlib").use("Agg")
    pyplot = importlib.import_module("matplotlib.pyplot")
    columns = _columns([group for group in groups(records) if any(result["limit_ms"] for result in group[1])])
    height = max(sum(_height(results) for _, results in column) for column in columns)
    most = max(
        share for column in columns for _, results in column for name in NAMES for share in shares(results, name)
    )
    figure = pyplot.figure(figsize=(_WIDTH, height))
    width = (_WIDTH - 2 * _MARGIN - _GAP) / 2
    for number, column in enumerate(columns):
        left = _MARGIN + number * (width + _GAP) + _LABELS
        top = height
        for record, results in column:
            bottom = top - _height(results) + _FOOT
            box = (left, bottom, width - _LABELS, len(results) * _LINE)
            panel = figure.add_axes([part / whole for part, whole in zip(box, (_WIDTH, height) * 2, strict=True)])
            panel.set_xlim(0, max(most, 1) + 0.06)
            _panel(panel, f"{results[0]['title']}, {results[0]['ranks']} x {record['machine']['gpu']}", results)
            top = bottom - _FOOT
    figure.savefig(path, dpi=150, metadata={"Comment": mark(records)}, pil_kwargs={"optimize": True})
    pyplot.close(figure)


def mark(records: Sequence[Mapping[str, Any]]) -> str:
    """What a picture holds beside its points, by which it is known whether it is that of these records."""
    drawn = [
        (record["machine"]["gpu"], result["ranks"], size(result), name, shares([result], name))
        for record, results in groups(records)
        for result in results
        for name in NAMES
        if any(shares([result], name))
    ]
    return hashlib.sha256(json.dumps(drawn).encode()).hexdigest()


Group = tuple[Mapping[str, Any], Sequence[Mapping[str, Any]]]


def _columns(found: Sequence[Group]) -> tuple[Sequence[Group], Sequence[Group]]:
    """The panels of two columns that are about as high."""
    cuts = ((found[:cut], found[cut:]) for cut in range(len(found) + 1))
    return min(cuts, key=lambda halves: max(sum(_height(results) for _, results in half) for half in halves))


def _height(results: Sequence[Mapping[str, Any]]) -> float:
    return _HEAD + len(results) * _LINE + _FOOT


def _panel(panel: Any, title: str, results: Sequence[Mapping[str, Any]]) -> None:
    for name in [name for name in NAMES if any(shares(results, name))][::-1]:  # pkc is in front of the others
        colour, mark, area = LOOKS[name]
        found = [(share, line) for line, share in enumerate(shares(results, name)) if share]
        panel.scatter(*zip(*found, strict=True), s=area, color=colour, marker=mark, label=NAMES[name], zorder=3)
    panel.set_ylim(len(results) - 0.5, -0.5)
    panel.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0", "", "0.5", "", "limit"], fontsize=7.5)
    panel.set_yticks(range(len(results)), [size(result) for result in results], fontsize=7.5)
    panel.grid(color="#dadce0", linewidth=0.6)
    panel.axvline(1.0, color="black", linewidth=0.8)
    panel.tick_params(length=0)
    panel.set_title(title, fontsize=9, loc="left", x=-_LABELS / _across(), pad=20)
    handles, labels = panel.get_legend_handles_labels()
    at = {"loc": "lower left", "bbox_to_anchor": (-_LABELS / _across(), 1.0), "borderaxespad": 0.2}
    looks = {"fontsize": 7.5, "ncol": len(labels), "frameon": False, "handletextpad": 0.1, "columnspacing": 0.9}
    panel.legend(handles[::-1], labels[::-1], **at, **looks)


def _across() -> float:
    """How wide the sizes of a panel are drawn, in inches."""
    return (_WIDTH - 2 * _MARGIN - _GAP) / 2 - _LABELS
