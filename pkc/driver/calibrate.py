"""Measures rates of a machine on kernels that little else limits, and keeps them for estimates."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from pkc.driver import tuned
from pkc.driver.autoschedule import autoschedule
from pkc.driver.builder import build_program
from pkc.driver.tune import Clock
from pkc.frontend import tree
from pkc.frontend.parse import parse_text
from pkc.location import Source
from pkc.targets import DEFAULT
from pkc.targets.target import lookup

ClockFor: TypeAlias = Callable[[tree.Program, Mapping[str, int]], Clock]
"""The clock for a program at some dimensions."""

MOST = 4.0
"""How far a rate may be from that of the record: beyond, something else was measured."""


@dataclass(frozen=True)
class Probe:
    """A kernel that one rate limits, on one rank or on several."""

    rate: str
    text: str
    dims: Mapping[str, int]
    ranks: int


def probes(ranks: int) -> list[Probe]:
    """For `ranks` ranks: memory and MMAs of one of them, and the link if there are others."""
    copied = (
        "kernel copied(X: f32[M, N], Y: f32[M, N]):\n    for m, n in tasks(blocks(M, 32), blocks(N, 256)):\n"
        "        Y[m, n] = X[m, n]\n"
    )
    multiplied = (
        "kernel multiplied(A: bf16[M, K], B: bf16[K, N], C: bf16[M, N]):\n"
        "    for m, n in tasks(blocks(M, 128), blocks(N, 256)):\n        acc = zeros(f32, m, n)\n"
        "        for k in blocks(K, 64):\n            acc += A[m, k] @ B[k, n]\n        C[m, n] = acc\n"
    )
    sent = (
        "kernel sent(X: bf16[M, N].shard(0), Y: bf16[M, N]):\n"
        "    for m, n in tasks(blocks(M, 128), blocks(N, 128)):\n        Y[m, n] = X[m, n]\n"
    )
    found = [
        Probe("memory_bytes", copied, {"M": 8192, "N": 8192}, 1),
        Probe("clock", multiplied, {"M": 8192, "N": 8192, "K": 4096}, 1),
    ]
    return [*found, Probe("link_bytes", sent, {"M": 8192 * ranks, "N": 4096}, ranks)] if ranks > 1 else found


def calibrate(clock_for: ClockFor, ranks: int, *, target: str = DEFAULT, rounds: int = 5) -> dict[str, float]:
    """The rates of this machine by name, kept for later estimates of the target: each makes the estimate of its probe
    what the probe takes. Raises `PkcError`."""
    record, found = lookup(target).rates, dict[str, float]()
    for probe in probes(ranks):
        program = parse_text(Source(f"{probe.rate}.pk", probe.text))
        chosen = autoschedule(program, dims=probe.dims, ranks=probe.ranks, target=target, measured=False)
        estimate = chosen.taken or chosen.instead
        assert estimate is not None
        launch = clock_for(program, probe.dims)(
            build_program(program, schedule=chosen.schedule, target=target, sizes=(probe.dims, probe.ranks))
        )
        took = statistics.median(launch() for _ in range(rounds))
        share = min(max(estimate.total / took, 1 / MOST), MOST)
        found[probe.rate] = getattr(record, probe.rate) * share
    tuned.keep_rates(target, found)
    return found
