"""A comparison: contestants are tried out, those whose results are right are timed in turn."""

from __future__ import annotations

import gc
import math
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pkc.bench.peers.ranks import TIMEOUT, Job, torch
from pkc.bench.peers.reference import Reference, Wrong

FLUSH_BYTES = 256 << 20
"""Written before each repetition: several times the L2 cache of any GPU so far."""
HOLD_CYCLES = 4_000_000
"""About 2 ms, longer than the host needs to enqueue any contestant."""
LONGEST = 300
"""Characters kept of the message of a contestant that fails."""
WARMUP = 5
"""Repetitions that are not counted."""


class Hung(Exception):
    """The GPUs do not finish; this process can only end."""


class Refused(Exception):
    """A contestant cannot run with these sizes, or must not run on this machine."""


@dataclass(frozen=True)
class Contestant:
    """`run` enqueues on the current stream and returns the local shard of the result.

    One that overwrites its operands enqueues by `restore`, which is not timed, what brings them back.
    """

    name: str
    run: Callable[[], Any]
    restore: Callable[[], Any] = lambda: None


@dataclass(frozen=True)
class Step:
    """What a contestant runs at a time, and the reference that its result is compared with."""

    run: Callable[[], Any]
    reference: Reference
    restore: Callable[[], Any] = lambda: None


@dataclass(frozen=True)
class Entrant:
    """A contestant with what its results must be; of several steps, which run one after the other."""

    name: str
    steps: Sequence[Step]

    def run(self) -> None:
        for step in self.steps:
            step.run()

    def restore(self) -> None:
        for step in self.steps:
            step.restore()


def compete(entrants: Sequence[Entrant], job: Job, *, repetitions: int, warmup: int = WARMUP) -> dict[str, Any]:
    """Check all, then measure those that are right; by name the `summary`, or an `error`. Raises `Hung`."""
    found: dict[str, dict[str, Any]] = {}
    ready: list[Entrant] = []
    for entrant in entrants:
        found[entrant.name] = _try_out(entrant, job)
        if "error" not in found[entrant.name]:
            ready.append(entrant)
    times = measure(
        [entrant.run for entrant in ready],
        job,
        repetitions=repetitions,
        warmup=warmup,
        restores=[entrant.restore for entrant in ready],
    )
    for entrant, samples in zip(ready, times, strict=True):
        found[entrant.name] |= summary(samples)
    return found


def _try_out(entrant: Entrant, job: Job) -> dict[str, Any]:
    """Try each step: the largest error of all over its bound, or an `error`."""
    worst = 0.0
    for step in entrant.steps:
        found = _try_step(step, job)
        if "error" in found:
            return found
        worst = max(worst, found["error_over_bound"])
    return {"error_over_bound": worst}


def _try_step(step: Step, job: Job) -> dict[str, Any]:
    """Run it twice, the result poisoned in between, and check it: the largest error over its bound, or an `error`."""
    problem = ""
    result = None
    try:
        # A new allocation most often gets the memory of the poisoned result.
        step.run().fill_(math.nan)
        step.restore()
        result = step.run()
        finish()
    except Hung:
        raise
    except Exception as failure:
        problem = str(failure).partition("\n")[0][:LONGEST] or type(failure).__name__
    if job.any(bool(problem)):
        return {"error": problem or "it fails on another rank"}
    try:
        return {"error_over_bound": step.reference.check(result)}
    except Wrong as failure:
        return {"error": str(failure)}


# Time


def finish(timeout: float = TIMEOUT) -> None:
    """Wait for all that is enqueued on the current stream, without waiting inside the driver. Raises `Hung`."""
    event = torch().cuda.Event()
    event.record()
    deadline = time.monotonic() + timeout
    while not event.query():
        if time.monotonic() > deadline:
            raise Hung(f"the GPU has not finished within {timeout:g} s")
        time.sleep(0.0002)


def measure(
    contestants: Sequence[Callable[[], Any]],
    job: Job,
    *,
    repetitions: int,
    warmup: int,
    restores: Sequence[Callable[[], Any]] = (),
) -> list[list[float]]:
    """Milliseconds of the slowest rank for each repetition of each contestant. What brings its operands back is one of
    `restores`, if there are any, and not timed. Raises `Hung`."""
    flushed = torch().empty(FLUSH_BYTES, dtype=torch().uint8, device="cuda")
    meeting = torch().zeros(1, device="cuda")
    events = [[_pair() for _ in range(repetitions)] for _ in contestants]
    gc.collect()
    gc.disable()
    try:
        for repetition in range(-warmup, repetitions):
            for number in _order(len(contestants), repetition):
                before, after = events[number][repetition] if repetition >= 0 else _pair()
                torch().cuda._sleep(HOLD_CYCLES)
                if restores:
                    restores[number]()
                flushed.zero_()
                job.total(meeting)
                before.record()
                contestants[number]()
                after.record()
            finish()
    finally:
        gc.enable()
    times = [[before.elapsed_time(after) for before, after in pairs] for pairs in events]
    return job.largest(torch().tensor(times, device="cuda", dtype=torch().float64)).tolist()


def _pair() -> tuple[Any, Any]:
    return torch().cuda.Event(enable_timing=True), torch().cuda.Event(enable_timing=True)


def _order(count: int, repetition: int) -> Iterable[int]:
    """The contestants in round-robin order: each repetition begins with the next one."""
    return ((repetition + number) % count for number in range(count))


def summary(samples: Sequence[float]) -> dict[str, Any]:
    """Median and percentiles of times in milliseconds, and the times themselves."""
    cuts = statistics.quantiles(samples, n=20, method="inclusive")
    return {
        "median_ms": round(statistics.median(samples), 6),
        "p5_ms": round(cuts[0], 6),
        "p25_ms": round(cuts[4], 6),
        "p75_ms": round(cuts[14], 6),
        "p95_ms": round(cuts[18], 6),
        "samples_ms": [round(sample, 6) for sample in samples],
    }


# What is said of it


def say(text: str) -> None:
    """Print a line at once: what follows may be killed."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def line(times: Mapping[str, Any], flops: float, link_bytes: int = 0) -> str:
    """Median, 5th to 95th percentile and rate, of the link where nothing is computed; or what went wrong."""
    if "error" in times:
        return f"ERROR {times['error']}"
    spread = f"{times['p5_ms']:.4f} to {times['p95_ms']:.4f}"
    work, unit = (flops / 1e9, "TFLOP/s") if flops else (link_bytes / 1e6, "GB/s")
    return f"{times['median_ms']:.4f} ms ({spread}) {work / times['median_ms']:.0f} {unit}"
