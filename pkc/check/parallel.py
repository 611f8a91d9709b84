"""One predicate on many items, on two processes where that is worth it."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any, TypeVar

_T = TypeVar("_T")

_WORTH = 2.0
"""Seconds that the remaining items must be expected to take."""

_asked: list[Any] = []
"""The predicate and the items, for the processes that are forked from this one."""


def first_that(holds: Callable[[_T], bool], things: Sequence[_T]) -> _T | None:
    """The first item for which `holds`; None if there is none.

    Other processes are forked from this one if the time of the first item shows that it is worth it, so that nothing
    has to be sent to them. With one core, or without `fork`, this process does all. What the others cache is lost.
    """
    if not things:
        return None
    began = time.perf_counter()
    if holds(things[0]):
        return things[0]
    rest = things[1:]
    left = (time.perf_counter() - began) * len(rest)
    if left < _WORTH or (os.cpu_count() or 1) < 2 or "fork" not in multiprocessing.get_all_start_methods():
        return next((thing for thing in rest if holds(thing)), None)
    _asked[:] = holds, rest
    with ProcessPoolExecutor(2, multiprocessing.get_context("fork")) as processes:
        try:
            return next(
                (thing for thing, yes in zip(rest, processes.map(_ask, range(len(rest))), strict=True) if yes), None
            )
        except KeyboardInterrupt:
            _end(processes)
            raise


def _end(processes: ProcessPoolExecutor) -> None:
    """End them at once: what they are at is not waited for."""
    workers: dict[int, Any] = getattr(processes, "_processes", None) or {}
    for worker in [*workers.values()]:
        worker.kill()


def _ask(number: int) -> bool:
    holds, things = _asked
    return holds(things[number])
