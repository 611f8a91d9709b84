"""The data files of this package: what is measured of which kernel, and the rates of machines."""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pkc.bench import errors
from pkc.bench.peers import attention, collective, gemm, layers, moe, scaled
from pkc.bench.peers.problem import Problem
from pkc.diagnostics import PkcError
from pkc.location import NOWHERE

FOLDER = Path(__file__).parent

LINKS = {
    "reduce_scatter": "reduce",
    "all_gather": "push",
    "ring": "push",
    "all_to_all": "push",
    "dispatch": "push",
    "combine": "push",
    "gathered_combine": "pull",
    "both": "push",
    "all_reduce": "push",
}
"""The fastest kind of transfer for each exchange."""

_FAMILIES: Mapping[str, Any] = {
    "gemm": gemm,
    "fp8": scaled.PerTensor,
    "fp8_blocks": scaled.Blocks,
    "swiglu": layers.Swiglu,
    "mlp": layers.Mlp,
    "attention": attention,
    "moe": moe,
    "collective": collective,
}

PUBLISHED = "ParallelKittens"
PUBLISHED_RANKS = 8


@dataclass(frozen=True)
class Entry:
    """A kernel that can be measured; suite.toml says what the members are."""

    kernel: str
    title: str
    family: str
    exchange: str
    operands: tuple[str, ...]
    result: str
    sizes: str
    alone: str | None
    derived: str | None

    def problems(self, sizes: str | None, ranks: int) -> list[Problem]:
        """The problems of a list of sizes, such as `4096,16x8192x8192`; without, of the suite's. Raises `PkcError`."""
        return [self._problem(size.strip(), ranks) for size in (self.sizes if sizes is None else sizes).split(",")]

    def _problem(self, size: str, ranks: int) -> Problem:
        family = _FAMILIES[self.family]
        problem = family.parse(size, self.exchange, ranks)
        if problem is None:
            raise PkcError(errors.MalformedSize(NOWHERE, size, family.FORM))
        return problem


@functools.cache
def suite() -> dict[str, Entry]:
    """All entries by the name of the kernel."""
    return {name: _entry(name, values) for name, values in _read(FOLDER / "suite.toml").items()}


def _entry(name: str, values: Mapping[str, Any]) -> Entry:
    given: dict[str, Any] = {"alone": None, "derived": None, **values}
    return Entry(kernel=name, operands=tuple(given.pop("operands")), **given)


@functools.cache
def fitted() -> Mapping[str, Mapping[str, Sequence[str]]]:
    """The sizes that rates of the cost model were fitted to, by kernel and number of GPUs."""
    return _read(FOLDER / "fitted.toml")


@dataclass(frozen=True)
class Machine:
    """Measured rates: of matmuls in TFLOP/s, of memory in GB/s, of links in GB/s by number of ranks and kind of
    transfer; and times in ms by kernel and size."""

    gpu: str
    source: str
    matmul: float
    memory: float
    links: Mapping[int, Mapping[str, float]]
    published: Mapping[str, Mapping[int, float]]

    def rate(self, exchange: str, ranks: int) -> float | None:
        """GB/s at which a GPU can send; `None` without communication or without a figure."""
        known = [count for count in sorted(self.links) if count >= ranks]
        if exchange not in LINKS or ranks == 1 or not known:
            return None
        return self.links[known[0]][LINKS[exchange]]

    def published_ms(self, kernel: str, problem: Problem) -> float | None:
        """The figure of ParallelKittens for M = N = K over 8 ranks."""
        if problem.ranks != PUBLISHED_RANKS or problem.square is None:
            return None
        return self.published.get(kernel, {}).get(problem.square)


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
    return Machine(values["gpu"], values["source"], values["matmul"], values["memory"], links, published)


def link_ms(problem: Problem, rate: float | None) -> float | None:
    """Milliseconds that a rank needs to send its bytes at `rate` GB/s."""
    return None if rate is None else problem.link_bytes / rate / 1e6


def limit_ms(problem: Problem, known: Machine | None, alone: float | None, link: float | None) -> float | None:
    """The milliseconds that a rank needs at least: the longest of its FLOPs, its bytes of memory and its bytes over the
    link, each at the machine's rate; or of its work alone, as measured, and the link, where no bytes of memory are
    counted. `None` if that is not known."""
    if problem.memory_bytes:
        if known is None:
            return None
        return max(problem.flops / known.matmul / 1e9, problem.memory_bytes / known.memory / 1e6, link or 0.0)
    return None if alone is None else max(alone, link or 0.0)


def _read(path: Path) -> dict[str, Any]:
    return tomllib.loads(path.read_text(encoding="utf-8"))
