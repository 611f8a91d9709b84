"""Streams beside the kernels of a launch, for copy engines: forked from the kernels' streams, and joined to them.

On each rank of this process, in order: the counters that restart are cleared, the streams beside begin, the kernel
starts, and only then is anything enqueued beside it. So if streams share a hardware queue, none waits in front of a
kernel that it needs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pkc.runtime.enqueue import Await, Call, Move, Write, calls
from pkc.runtime.mesh import Mesh, Rank, Side

_TURN = 16
"""Calls for one stream before it is the next one's turn. A stream holds some hundred calls; when it is full the host
waits, and must by then have enqueued what that stream waits for."""

_ROOM = 4 << 20
"""Bytes for copies that are tried out."""


@dataclass(frozen=True)
class Work:
    """What is done beside the kernel of one rank: counters to clear, and the calls for each stream."""

    clear: int
    """The address of the counters that restart."""
    clear_bytes: int
    calls: tuple[tuple[Call, ...], ...]
    kinds: tuple[Move, ...]
    """One copy of each kind."""


class Beside:
    """The streams of all ranks of this process; `count` for each."""

    def __init__(self, mesh: Mesh, count: int) -> None:
        self._mesh = mesh
        self._sides: Sequence[tuple[Rank, Sequence[Side]]] = list(zip(mesh.local, mesh.beside(count), strict=True))

    def try_out(self, works: Sequence[Work]) -> None:
        """Do once what launches will do, with other memory as the target of copies, and wait for it.

        When the driver is first asked for a kind of copy, it may have to load or allocate something, and to wait for
        all kernels that run. All ranks come here together.
        """
        driver, heap = self._mesh.driver, self._mesh.heap
        counter, room = heap.allocate(4), heap.allocate(_ROOM)  # others copy to where there is room
        for (rank, sides), work in zip(self._sides, works, strict=True):
            own = heap.address(rank.rank, counter)
            tried = [self._within(move, rank, room) for move in work.kinds]
            with self._mesh.current(rank):
                for call in calls(driver.api, (Write(own, 1), Await(own, 1), *tried)):
                    getattr(driver, call.name)(*call.on(sides[0].stream))
                driver.cuEventRecord(sides[0].event, sides[0].stream)
                driver.cuStreamWaitEvent(rank.stream, sides[0].event, 0)
        self._mesh.synchronize()
        if self._mesh.group is not None:
            self._mesh.group.agree("has tried its copies")
        heap.free(counter)
        heap.free(room)

    def begin(self, works: Sequence[Work], streams: Sequence[int]) -> None:
        """Before the kernels."""
        driver = self._mesh.driver
        for (rank, sides), work, stream in zip(self._sides, works, streams, strict=True):
            driver.cuCtxSetCurrent(rank.context)
            if work.clear_bytes:
                driver.cuMemsetD8Async(work.clear, 0, work.clear_bytes, stream)
            driver.cuEventRecord(sides[0].event, stream)
            for side in sides:
                driver.cuStreamWaitEvent(side.stream, sides[0].event, 0)

    def enqueue(self, works: Sequence[Work], streams: Sequence[int]) -> None:
        """Behind the kernels."""
        driver = self._mesh.driver
        for context, stream, call in self._in_turn(works):
            driver.cuCtxSetCurrent(context)
            getattr(driver, call.name)(*call.on(stream))
        for (rank, sides), stream in zip(self._sides, streams, strict=True):
            driver.cuCtxSetCurrent(rank.context)
            for side in sides:
                driver.cuEventRecord(side.event, side.stream)
                driver.cuStreamWaitEvent(stream, side.event, 0)

    def _in_turn(self, works: Sequence[Work]) -> Iterator[tuple[Any, int, Call]]:
        todo = [
            (rank.context, side.stream, some)
            for (rank, sides), work in zip(self._sides, works, strict=True)
            for side, some in zip(sides, work.calls, strict=True)
        ]
        longest = max(len(some) for _, _, some in todo)
        for first in range(0, longest, _TURN):
            for context, stream, some in todo:
                for call in some[first : first + _TURN]:
                    yield context, stream, call

    def _within(self, move: Move, rank: Rank, room: int) -> Move:
        """The same copy to where there is room on the rank it goes to: its first rows if it is larger than that."""
        there = self._mesh.heap.rank_at(move.target)
        target = self._mesh.heap.address(rank.rank if there is None else there, room)
        rows = max(1, min(move.rows, _ROOM // move.target_pitch)) if move.rows > 1 else 1
        return replace(move, target=target, rows=rows, width=min(move.width, _ROOM))
