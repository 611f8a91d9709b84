"""Bounds on time that hold on a busy machine."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
TRIES = 3
PACE = 0.008
"""Seconds that `fixed_work` takes on a machine for which the bounds are written, with nothing beside it."""


def fixed_work() -> int:
    """Work of Python that is always the same: tuples, strings, dictionaries."""
    found: dict[tuple[int, str], int] = {}
    for step in range(40_000):
        key = (step % 97, str(step % 31))
        found[key] = found.get(key, 0) + len(key)
    return len(found)


def seconds_of(action: Callable[[], T]) -> tuple[float, T]:
    """Time of this process that an action takes, and what it gives."""
    began = time.process_time()
    found = action()
    return time.process_time() - began, found


def slowness() -> float:
    """How many times as long as by `PACE` this machine takes now, 1 or more."""
    return max(1.0, seconds_of(fixed_work)[0] / PACE)


def within(seconds: float, action: Callable[[], T], what: str = "it") -> T:
    """What an action gives, which must take less time of this process than that in one of three tries.

    Time on the wall would also count what other tests do beside this one. Caches and clocks that are
    shared slow this process down all the same, so a try that takes longer is held against fixed work.
    """
    took: list[float] = []
    for _ in range(TRIES):
        spent, found = seconds_of(action)
        if spent < seconds:
            return found
        took.append(spent / slowness())
        if took[-1] < seconds:
            return found
    raise AssertionError(f"{what} takes {min(took):.4f} s at the pace of an idle machine, and may take {seconds} s")
