"""Times of contestants: in turn, each behind a hold of the stream that is seen to outlast what the host enqueues."""

from __future__ import annotations

import gc
import math
import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from pkc.bench.peers.ranks import TIMEOUT, Job, torch

FLUSH_BYTES = 256 << 20
"""Written before each repetition: several times the L2 cache of any GPU so far."""
HOLD_CYCLES = 4_000_000
"""About 2 ms, longer than the host needs to enqueue most contestants."""
LONGEST_HOLD = 16
"""Times as long as that the stream is held for a contestant that needs it."""


class Hung(Exception):
    """The GPUs do not finish; this process can only end."""


@dataclass(frozen=True)
class Timed:
    """What was measured of a contestant.

    `samples` are milliseconds of the slowest rank by repetition. Of these `unheld` may include time of the host, which
    had not enqueued all when the GPU began. `result` is what the last one returned, poisoned before.
    """

    samples: list[float]
    unheld: int
    result: Any


@dataclass
class _Turns:
    """One contestant over all repetitions."""

    run: Callable[[], Any]
    restore: Callable[[], Any]
    events: list[tuple[Any, Any]] = field(default_factory=list[tuple[Any, Any]])
    unheld: int = 0
    hold: int = HOLD_CYCLES
    result: Any = None


def measure(
    contestants: Sequence[Callable[[], Any]],
    job: Job,
    *,
    repetitions: int,
    warmup: int,
    restores: Sequence[Callable[[], Any]] = (),
) -> list[Timed]:
    """Time contestants in turn; each returns its result, or a list of several. What brings its operands back is one of
    `restores`, if there are any, and not timed.

    A repetition in which the GPU did not wait for the host of some rank is done again, with a hold twice as long.
    Raises `Hung`.
    """
    flushed = torch().empty(FLUSH_BYTES, dtype=torch().uint8, device="cuda")
    meeting = torch().zeros(1, device="cuda")
    turns = [_Turns(run, restores[number] if restores else lambda: None) for number, run in enumerate(contestants)]

    def enqueue(turn: _Turns, poisoned: bool) -> bool:
        """Enqueue one repetition; whether the GPU waited for all of it."""
        before, after = (torch().cuda.Event(enable_timing=True) for _ in range(2))
        torch().cuda._sleep(turn.hold)
        if poisoned:
            _poison(turn.result)
        turn.restore()
        flushed.zero_()
        job.total(meeting)
        before.record()
        turn.result = turn.run()
        after.record()
        turn.events.append((before, after))
        return not before.query()

    gc.collect()
    gc.disable()
    try:
        for repetition in range(-warmup, repetitions):
            last = repetition == repetitions - 1
            order = [turns[number] for number in _order(len(turns), repetition)]
            late = _late(order, [enqueue(turn, last) for turn in order], job)
            while late:
                for turn in late:
                    turn.hold *= 2
                    turn.events.pop()
                again = [enqueue(turn, last) for turn in late]
                late = _late(late, again, job)
            if repetition < 0:
                for turn in turns:
                    turn.events.clear()
                    turn.unheld = 0
    finally:
        gc.enable()
    times = [[before.elapsed_time(after) for before, after in turn.events] for turn in turns]
    slowest = job.largest(torch().tensor(times, device=meeting.device, dtype=torch().float64)).tolist()
    return [Timed(samples, turn.unheld, turn.result) for samples, turn in zip(slowest, turns, strict=True)]


def _late(turns: Sequence[_Turns], held: Sequence[bool], job: Job) -> list[_Turns]:
    """Wait for a repetition; those to be done again, on all ranks alike. Of one that no hold is long enough for it is
    noted. Raises `Hung`."""
    finish()
    if not turns:
        return []
    flags = torch().tensor([float(not each) for each in held], device=job.place)
    late = [turn for turn, flag in zip(turns, job.largest(flags).tolist(), strict=True) if flag]
    for turn in late:
        turn.unheld += turn.hold >= LONGEST_HOLD * HOLD_CYCLES
    return [turn for turn in late if turn.hold < LONGEST_HOLD * HOLD_CYCLES]


def _poison(result: Any) -> None:
    several = cast("list[Any]", result) if isinstance(result, list) else [result]
    for tensor in several:
        tensor.fill_(math.nan)


def finish(timeout: float = TIMEOUT) -> None:
    """Wait for all that is enqueued on the current stream, without waiting inside the driver. Raises `Hung`."""
    event = torch().cuda.Event()
    event.record()
    deadline = time.monotonic() + timeout
    while not event.query():
        if time.monotonic() > deadline:
            raise Hung(f"the GPU has not finished within {timeout:g} s")
        time.sleep(0.0002)


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
