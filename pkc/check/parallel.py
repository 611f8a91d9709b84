"""One predicate on many items, on two processes where that is worth it."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

_T = TypeVar("_T")

_WORTH = 2.0
"""Seconds that the remaining items must be expected to take."""

_AHEAD = 16
"""Items that are asked for before their answers are needed."""

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
    if left <= _WORTH or (os.cpu_count() or 1) < 2 or "fork" not in multiprocessing.get_all_start_methods():
        return next((thing for thing in rest if holds(thing)), None)
    _asked[:] = holds, rest
    processes = ProcessPoolExecutor(2, multiprocessing.get_context("fork"), initializer=_leave_interrupts)
    try:
        return next((thing for thing, yes in zip(rest, _answers(processes, len(rest)), strict=True) if yes), None)
    finally:
        _end(processes)


def _answers(processes: ProcessPoolExecutor, count: int) -> Iterator[bool]:
    """What the predicate says of each item of the rest, in order. Few are asked for ahead, so that little
    is thrown away at the end."""
    with _interrupts_later():
        asked = deque([processes.submit(_ask, 0)])  # starts the processes
    for number in range(1, count):
        asked.append(processes.submit(_ask, number))
        if len(asked) > _AHEAD:
            yield asked.popleft().result()
    for each in asked:
        yield each.result()


@contextmanager
def _interrupts_later() -> Generator[None]:
    """A Ctrl-C in here raises at the end. Else a process that has just been forked would be known to nobody."""
    if threading.current_thread() is not threading.main_thread():  # which alone is interrupted
        yield
        return
    come: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: come.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if come:
            signal.raise_signal(signal.SIGINT)  # also where nothing handles it, and the process ends


def _leave_interrupts() -> None:
    """In a process beside this one: a Ctrl-C of the group is for this one, which ends the others."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _end(processes: ProcessPoolExecutor) -> None:
    """End them at once: what they are at is not waited for."""
    workers: dict[int, Any] = getattr(processes, "_processes", None) or {}
    for worker in [*workers.values()]:
        worker.kill()
    processes.shutdown(cancel_futures=True)


def _ask(number: int) -> bool:
    holds, things = _asked
    return holds(things[number])
