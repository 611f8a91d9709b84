"""Streams that run: executes what was enqueued on the fake driver, in some order, on numpy memory."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from tests.runtime.fake import SPAN

STRIDE = 1 << 38

Kernel: TypeAlias = Generator[tuple[int, int] | None]
"""A kernel, in steps: it yields the address of a counter and the value that it waits for, or nothing."""


class Memory:
    """The memory of each rank, at the addresses of the heap."""

    def __init__(self, ranks: int, size: int) -> None:
        self._memories = [np.zeros(size, np.uint8) for _ in range(ranks)]

    def view(self, address: int, count: int) -> np.ndarray[Any, Any]:
        rank, offset = divmod(address - SPAN, STRIDE)
        assert offset + count <= len(self._memories[rank]), f"no memory at {address:#x}"
        return self._memories[rank][offset : offset + count]

    def counter(self, address: int) -> np.ndarray[Any, Any]:
        return self.view(address, 4).view(np.int32)

    def array(self, address: int, shape: Sequence[int], dtype: Any) -> np.ndarray[Any, Any]:
        return self.view(address, int(np.prod(shape)) * np.dtype(dtype).itemsize).view(dtype).reshape(shape)


class Deadlock(Exception):
    """No stream can go on."""


class Streams:
    """Runs the streams of all ranks; `kernel` makes the kernel of a number.

    `seed` decides which stream goes on; now and then one goes on for long while the others stand still. The stream
    `last` goes on only while no other can, one step at a time. Streams for which `queues` has the same number are in
    one hardware queue: their calls are done one after the other.
    """

    def __init__(
        self,
        memory: Memory,
        kernel: Callable[[int], Kernel],
        seed: int,
        queues: Mapping[int, int] | None = None,
        last: int | None = None,
    ) -> None:
        self._memory, self._kernel, self._random = memory, kernel, random.Random(seed)
        self._shared, self._last = queues or {}, last
        self._queues: dict[int, deque[tuple[Any, ...]]] = {}
        self._recorded: dict[tuple[int, int], bool] = {}
        self._latest: dict[int, int] = {}
        self._running: dict[int, Kernel] = {}
        self._awaited: dict[int, tuple[int, int] | None] = {}

    def run(self, enqueued: Sequence[tuple[Any, ...]]) -> None:
        """Execute everything, or raise `Deadlock`. Waiting for an event means its latest record before that call."""
        for stream, what, *rest in enqueued:
            if what == "sync":
                self._drain()
                continue
            if what == "record":
                self._latest[rest[0]] = self._latest.get(rest[0], 0) + 1
                self._recorded[rest[0], self._latest[rest[0]]] = False
            if what in ("record", "follow"):
                rest = [(rest[0], self._latest.get(rest[0], 0))]
            self._queues.setdefault(self._shared.get(stream, stream), deque()).append((what, *rest))
        self._drain()

    def _drain(self) -> None:
        while ready := [stream for stream in self._queues if self._can(stream)]:
            stream = self._random.choice([stream for stream in ready if stream != self._last] or ready)
            for _ in range(1 if stream == self._last else self._random.choice((1, 1, 1, 50))):
                if not self._can(stream):
                    break
                self._step(stream)
        if any(self._queues.values()):
            raise Deadlock({stream: queue[0] for stream, queue in self._queues.items() if queue})

    def _can(self, stream: int) -> bool:
        queue = self._queues[stream]
        if not queue:
            return False
        what, *rest = queue[0]
        if what == "wait":
            return self._reached(*rest)
        if what == "follow":
            return self._recorded.get(rest[0], True)
        if what == "kernel" and stream in self._running:
            awaited = self._awaited.get(stream)
            return awaited is None or self._reached(*awaited)
        return True

    def _reached(self, address: int, value: int) -> bool:
        return bool(self._memory.counter(address)[0] >= value)

    def _step(self, stream: int) -> None:
        what, *rest = self._queues[stream][0]
        if what == "kernel":
            running = self._running.setdefault(stream, self._kernel(rest[0]))
            try:
                self._awaited[stream] = next(running)
            except StopIteration:
                del self._running[stream]
                self._awaited.pop(stream, None)
                self._queues[stream].popleft()
            return
        self._queues[stream].popleft()
        if what == "record":
            self._recorded[rest[0]] = True
        elif what == "write":
            self._memory.counter(rest[0])[0] = rest[1]
        elif what == "clear":
            self._memory.view(*rest)[:] = 0
        elif what == "copy":
            self._copy(*rest)
        elif what == "call":
            rest[0]()

    def _copy(self, source: int, target: int, width: int, rows: int, from_pitch: int, to_pitch: int) -> None:
        for row in range(rows):
            row_bytes = self._memory.view(source + row * from_pitch, width)
            self._memory.view(target + row * to_pitch, width)[:] = row_bytes
