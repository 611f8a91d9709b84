"""Writes docs/gallery.md, kernels with their time lines and measured times: `python -m tools.gallery`.

`--pictures` draws the time lines into docs/pictures too, which takes a minute.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pkc
from pkc.bench.tables import PEERS, dims, groups, milliseconds, size
from pkc.timeline import page as drawing
from tools import told

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "gallery.md"
PICTURES = ROOT / "docs" / "pictures"
HEAD = """\
# Gallery

<!-- Written by `python -m tools.gallery`; do not edit. -->

Each kernel as it stands in `examples/`, what is predicted of it without a GPU ([how](timeline.md)), and what was
measured. Pictures show rank 0: green is the share of CTAs whose role works, sand the share that waits, blue what is in
use. Times are medians in milliseconds of the slowest rank; (x) is how many times as long the fastest of the others
takes. `bench/` has all of it, with machines, versions and methods. More kernels are in the [cookbook](cookbook.md).
"""


@dataclass(frozen=True)
class Exhibit:
    """An example, the sizes of its picture, and the file of its measurements."""

    name: str
    title: str
    ranks: int
    dims: Mapping[str, int]
    results: str = ""


EXHIBITS = (
    Exhibit("gemm", "Matmul", 1, {"M": 4096, "N": 4096, "K": 2048}, "gemm_x1"),
    Exhibit("gemm_rs", "Matmul and reduce-scatter", 2, {"M": 4096, "N": 4096, "K": 2048}, "gemm_rs_x2"),
    Exhibit("ag_gemm", "All-gather and matmul", 2, {"M": 4096, "N": 2048, "K": 4096}, "ag_gemm_x2"),
    Exhibit("attention", "Attention", 1, {"B": 1, "H": 4, "S": 4096, "T": 4096, "D": 128}, "attention_x1"),
    Exhibit("ring_attention", "Ring attention", 2, {"B": 1, "H": 4, "S": 4096, "D": 128}, "ring_attention_x2"),
    Exhibit(
        "moe_dispatch_gemm",
        "Dispatch and grouped matmul",
        2,
        {"T": 2048, "H": 1024, "N": 1024, "E": 4, "P": 1024},
        "moe_dispatch_gemm_x2",
    ),
    Exhibit("all_reduce", "All-reduce", 2, {"M": 1024, "N": 2048}, "all_reduce_x2"),
)


def page() -> str:
    """The text of docs/gallery.md."""
    return "\n".join([HEAD, *(line for one in EXHIBITS for line in _section(one))])


def _section(one: Exhibit) -> Iterator[str]:
    source = (ROOT / "examples" / f"{one.name}.pk").read_text(encoding="utf-8")
    sizes = ", ".join(f"{name} = {value}" for name, value in one.dims.items())
    gpus = f"{one.ranks} GPU{'s' * (one.ranks > 1)}"
    yield from (f"## {one.title}", "", "```pk", source.rstrip(), "```", "")
    yield from (f"![Predicted on {gpus}, {sizes}](pictures/{one.name}.svg)", "", f"Predicted on {gpus}, {sizes}.", "")
    if one.results:
        yield from (*_measured(one.results), "")


def _measured(name: str) -> Iterator[str]:
    record: Mapping[str, Any] = json.loads((ROOT / "bench" / "results" / f"{name}.json").read_text(encoding="utf-8"))
    yield f"Measured on {record['results'][0]['ranks']} x {record['machine']['gpu']}, {record['time'][:10]}:"
    ((_, results),) = groups([record])
    yield from ("", f"| {dims(results)} | pkc | fastest of the others (x) |", "|---:|---:|---:|")
    for result in results:
        ours = milliseconds(result, "pkc")
        others = {PEERS[peer]: ms for peer in PEERS if (ms := milliseconds(result, peer)) is not None}
        if ours is None or not others:
            continue
        fastest = min(others, key=lambda peer: others[peer])
        yield f"| {size(result)} | {ours:.3g} | {fastest}: {others[fastest]:.3g} ({others[fastest] / ours:.2f}) |"


def draw(one: Exhibit) -> str:
    """The lanes of rank 0 as a picture of its own."""
    found = pkc.load(ROOT / "examples" / f"{one.name}.pk").timeline(ranks=one.ranks, **one.dims)
    return drawing.picture(*found.timelines())


if __name__ == "__main__":
    given = told.words(__doc__, "--pictures")
    PAGE.write_text(page(), encoding="utf-8")
    if given:
        PICTURES.mkdir(exist_ok=True)
        for exhibit in EXHIBITS:
            (PICTURES / f"{exhibit.name}.svg").write_text(draw(exhibit), encoding="utf-8")
