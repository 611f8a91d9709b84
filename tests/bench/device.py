"""A stand-in for torch and one GPU: a stream and a host with clocks that the test moves, and arrays of numpy."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

CYCLES_PER_MS = 2e6


class Tensor(np.ndarray[Any, Any]):
    """An array with what the measurement asks of a tensor."""

    def zero_(self) -> None:
        self[...] = 0

    def fill_(self, value: float) -> None:
        self[...] = value


def tensor(values: Any) -> Tensor:
    return np.array(values, dtype=float).view(Tensor)


class Event:
    """What the stream has reached when it is recorded."""

    def __init__(self, gpu: Gpu) -> None:
        self._gpu, self.at = gpu, 0.0

    def record(self) -> None:
        self.at = max(self._gpu.done, self._gpu.now)

    def query(self) -> bool:
        return self.at <= self._gpu.now

    def elapsed_time(self, other: Event) -> float:
        return other.at - self.at


class Gpu:
    """The time of the host, `now`, and when the stream is through with what is enqueued, `done`, in ms."""

    def __init__(self) -> None:
        self.now = self.done = 0.0
        self.holds: list[int] = []
        cuda = SimpleNamespace(Event=lambda **_: Event(self), _sleep=self._sleep)
        self.torch = SimpleNamespace(
            cuda=cuda,
            uint8=None,
            float64=None,
            empty=lambda *_, **__: tensor([0]),
            zeros=lambda *_, **__: tensor([0]),
            tensor=lambda values, **_: tensor(values),
        )

    def wait(self) -> None:
        """The host waits until the stream is through."""
        self.now = max(self.now, self.done)

    def _sleep(self, cycles: int) -> None:
        self.holds.append(cycles)
        self.enqueue(cycles / CYCLES_PER_MS)

    def enqueue(self, ms: float, host: float = 0.0) -> None:
        """Work for the stream that takes so long, after the host has taken so long to enqueue it."""
        self.now += host
        self.done = max(self.done, self.now) + ms

    def call(
        self, ms: float, host: float = 0.0, into: Tensor | None = None, value: float = 1.0
    ) -> Callable[[], Tensor]:
        """A contestant that takes so long, and writes `value`."""
        out = tensor([0.0]) if into is None else into

        def run() -> Tensor:
            self.enqueue(ms, host)
            out.fill_(value)
            return out

        return run
