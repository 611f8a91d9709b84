"""A comparison: contestants are tried out, those whose results are right are timed in turn."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pkc.bench.peers.ranks import Job
from pkc.bench.peers.reference import Reference, Wrong
from pkc.bench.peers.timing import Hung, Timed, finish, measure, summary

LONGEST = 300
"""Characters kept of the message of a contestant that fails."""
WARMUP = 5
"""Repetitions that are not counted."""


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

    def run(self) -> list[Any]:
        """Enqueue all steps; their results."""
        return [step.run() for step in self.steps]

    def restore(self) -> None:
        for step in self.steps:
            step.restore()


def compete(entrants: Sequence[Entrant], job: Job, *, repetitions: int, warmup: int = WARMUP) -> dict[str, Any]:
    """Check all, measure those that are right, and check what the last repetition has made of poisoned memory.

    By name the `summary`, with `unheld` repetitions if there are some, or an `error`; `refused` beside it where the
    contestant does not take the problem. Raises `Hung`.
    """
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
    for entrant, timed in zip(ready, times, strict=True):
        found[entrant.name] = _afterwards(entrant, timed, found[entrant.name]["error_over_bound"])
    return found


def _afterwards(entrant: Entrant, timed: Timed, before: float) -> dict[str, Any]:
    """The summary of a contestant whose last timed result is right too; `before` is its error over its bound then."""
    try:
        after = max(
            (step.reference.check(result) for step, result in zip(entrant.steps, timed.result, strict=True)),
            default=0.0,
        )
    except Wrong as failure:
        return {"error": f"after timing {failure}"}
    unheld = {"unheld": timed.unheld} if timed.unheld else {}
    return {"error_over_bound": max(before, after), **summary(timed.samples), **unheld}


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
    problem, refused = "", False
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
        refused = isinstance(failure, Refused)
        problem = str(failure).partition("\n")[0][:LONGEST] or type(failure).__name__
    if job.any(bool(problem)):
        return {"error": problem or "it fails on another rank", **({"refused": True} if refused else {})}
    try:
        return {"error_over_bound": step.reference.check(result)}
    except Wrong as failure:
        return {"error": str(failure)}


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
