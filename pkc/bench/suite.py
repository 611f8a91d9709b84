"""The data files of this package: what is measured of which kernel, and the rates of machines."""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pkc.bench.peers import Collective, Problem

FOLDER = Path(__file__).parent

LINKS: Mapping[Collective, str] = {"reduce_scatter": "reduce", "all_gather": "push"}
"""The fastest kind of transfer for each collective."""

PUBLISHED = "ParallelKittens"
PUBLISHED_RANKS = 8


@dataclass(frozen=True)
class Entry:
    """A kernel that can be measured; suite.toml says what the members are."""

    kernel: str
    title: str
    collective: Collective
    operands: tuple[str, str]
    result: str
    alone: str | None


@functools.cache
def suite() -> dict[str, Entry]:
    """All entries by the name of the kernel."""
    return {name: _entry(name, values) for name, values in _read(FOLDER / "suite.toml").items()}


def _entry(name: str, values: Mapping[str, Any]) -> Entry:
    left, right = values["operands"]
    return Entry(name, values["title"], values["collective"], (left, right), values["result"], values.get("alone"))


@dataclass(frozen=True)
class Machine:
    """Measured rates in GB/s by number of ranks and kind of transfer, and times in ms by kernel and size."""

    gpu: str
    source: str
    links: Mapping[int, Mapping[str, float]]
    published: Mapping[str, Mapping[int, float]]

    def rate(self, collective: Collective, ranks: int) -> float | None:
        """GB/s at which a GPU can send; `None` without communication or without a figure."""
        known = [count for count in sorted(self.links) if count >= ranks]
        if collective not in LINKS or ranks == 1 or not known:
            return None
        return self.links[known[0]][LINKS[collective]]

    def published_ms(self, kernel: str, problem: Problem) -> float | None:
        """The figure of ParallelKittens for M = N = K over 8 ranks."""
        if problem.ranks != PUBLISHED_RANKS or not problem.m == problem.n == problem.k:
            return None
        return self.published.get(kernel, {}).get(problem.m)


def machines() -> list[Machine]:
    """The machines that the package has data of."""
    return [_machine(_read(path)) for path in sorted((FOLDER / "machines").glob("*.toml"))]


def machine(gpu: str) -> Machine | None:
    """The machine with this GPU, by the name that the driver gives it."""
    return next((found for found in machines() if found.gpu == gpu), None)


def _machine(values: Mapping[str, Any]) -> Machine:
    links = {int(ranks): rates for ranks, rates in values["links"].items()}
    published = {
        kernel: {int(size): milliseconds for size, milliseconds in times.items()}
        for kernel, times in values.get(PUBLISHED, {}).items()
    }
    return Machine(values["gpu"], values["source"], links, published)


def link_ms(problem: Problem, rate: float | None) -> float | None:
    """Milliseconds that a rank needs to send its bytes at `rate` GB/s."""
    return None if rate is None else problem.link_bytes / rate / 1e6


def _read(path: Path) -> dict[str, Any]:
    return tomllib.loads(path.read_text(encoding="utf-8"))
