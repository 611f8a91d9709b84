"""How long launches take one after the other, by events of the GPUs: shared by the tools that measure."""

from __future__ import annotations

import importlib
import statistics
from collections.abc import Callable, Sequence
from typing import Any

_WARMUP = 3
"""Launches before the first that counts."""


def batch(launch: Callable[[], object], launches: int, streams: Sequence[Any] | None = None) -> float:
    """Milliseconds for each of so many launches, on the slowest of the streams; by default the current one."""
    torch: Any = importlib.import_module("torch")
    streams = [torch.cuda.current_stream()] if streams is None else streams
    marks = [[torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in streams]
    for stream in streams:
        stream.synchronize()
    for stream, (begin, _) in zip(streams, marks, strict=True):
        begin.record(stream)
    for _ in range(launches):
        launch()
    for stream, (_, end) in zip(streams, marks, strict=True):
        end.record(stream)
    for stream in streams:
        stream.synchronize()
    return max(begin.elapsed_time(end) for begin, end in marks) / launches


def median(launch: Callable[[], object], launches: int, rounds: int) -> float:
    """Milliseconds for a launch on the current stream: the median of rounds."""
    for _ in range(_WARMUP):
        launch()
    return statistics.median(batch(launch, launches) for _ in range(rounds))
