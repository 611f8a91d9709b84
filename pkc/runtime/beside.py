"""Streams beside the kernels of a launch, for copy engines: forked from the kernels' streams, and joined to them.

On each rank of this process, in order: the counters that restart are cleared, the streams beside begin, the kernel
starts, and only then is anything enqueued beside it. So if streams share a hardware queue, none waits in front of a
kernel that it needs.

Each part has several streams, its lanes. The first one does what stands around tasks; their strands, of one task or of
some that are made one, go to the lanes in turn. Whatever the lanes, the calls of a part come in the order of its tasks:
if lanes share a hardware queue after all, it does what a single stream would do, and none waits in front of a task that
comes before its own.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, cycle, islice
from typing import Any, TypeAlias

from pkc.runtime.enqueue import Await, Call, Move, Write, calls
from pkc.runtime.mesh import Mesh, Rank, Side

_TURN = 16
"""Calls for one rank before it is the next one's turn. A stream holds some hundred calls; when it is full the host
waits, and must by then have enqueued what that stream waits for."""

_ROOM = 4 << 20
"""Bytes for copies that are tried out."""


Section: TypeAlias = Sequence[Sequence[Call]]
"""The calls of each strand of a section (`pkc.runtime.engines`)."""


_Enqueued: TypeAlias = tuple[str, tuple[Any, ...]]
"""A call of the driver, with its stream and all else that it is given."""


@dataclass(frozen=True)
class Work:
    """What is done beside the kernel of one rank: counters to clear, and the sections of each part."""

    clear: int
    """The address of the counters that restart."""
    clear_bytes: int
    parts: Sequence[Sequence[Section]]
    kinds: tuple[Move, ...]
    """One copy of each kind."""


class Beside:
    """The streams of all ranks of this process: for each of `parts` parts as many lanes as the GPU has queues for."""

    def __init__(self, mesh: Mesh, parts: int) -> None:
        self._mesh = mesh
        lanes = mesh.lanes(parts)
        self._sides: Sequence[tuple[Rank, Sequence[Sequence[Side]]]] = [
            (rank, [sides[first : first + lanes] for first in range(0, len(sides), lanes)])
            for rank, sides in zip(mesh.local, mesh.beside(parts * lanes), strict=True)
        ]

    def try_out(self, works: Sequence[Work]) -> None:
        """Do once on each stream what launches will do, with other memory as the target of copies, and wait for it.

        When the driver is first asked for a kind of copy, it may have to load or allocate something, and to wait for
        all kernels that run. All ranks come here together.
        """
        driver, heap = self._mesh.driver, self._mesh.heap
        counter, room = heap.allocate(4), heap.allocate(_ROOM)  # others copy to where there is room
        for (rank, parts), work in zip(self._sides, works, strict=True):
            own = heap.address(rank.rank, counter)
            tried = [self._within(move, rank, room) for move in work.kinds]
            with self._mesh.current(rank):
                for side in chain(*parts):
                    for call in calls(driver.api, (Write(own, 1), Await(own, 1), *tried)):
                        getattr(driver, call.name)(*call.on(side.stream))
                    driver.cuEventRecord(side.event, side.stream)
                    driver.cuStreamWaitEvent(rank.stream, side.event, 0)
        self._mesh.synchronize()
        if self._mesh.group is not None:
            self._mesh.group.agree("has tried its copies")
        heap.free(counter)
        heap.free(room)

    def begin(self, works: Sequence[Work], streams: Sequence[int]) -> None:
        """Before the kernels."""
        driver = self._mesh.driver
        for (rank, parts), work, stream in zip(self._sides, works, streams, strict=True):
            driver.cuCtxSetCurrent(rank.context)
            if work.clear_bytes:
                driver.cuMemsetD8Async(work.clear, 0, work.clear_bytes, stream)
            cleared = parts[0][0].event
            driver.cuEventRecord(cleared, stream)
            for first, *_ in parts:
                driver.cuStreamWaitEvent(first.stream, cleared, 0)

    def enqueue(self, works: Sequence[Work], streams: Sequence[int]) -> None:
        """Behind the kernels."""
        driver = self._mesh.driver
        for context, some in self._in_turn(works):
            driver.cuCtxSetCurrent(context)
            for name, arguments in some:
                getattr(driver, name)(*arguments)
        for (rank, parts), stream in zip(self._sides, streams, strict=True):
            driver.cuCtxSetCurrent(rank.context)
            for first, *_ in parts:
                driver.cuEventRecord(first.event, first.stream)
                driver.cuStreamWaitEvent(stream, first.event, 0)

    def _in_turn(self, works: Sequence[Work]) -> Iterator[tuple[Any, list[_Enqueued]]]:
        """Some calls of each rank in turn, with its context, all of one part before those of the next.

        A part waits for those before it, at times on other ranks, and never for those behind it: so all is right even
        if their streams share a hardware queue.
        """
        for number in range(len(works[0].parts)):
            todo = deque(
                (rank.context, _calls(parts[number], work.parts[number]))
                for (rank, parts), work in zip(self._sides, works, strict=True)
            )
            while todo:
                context, left = todo.popleft()
                some = list(islice(left, _TURN))
                yield context, some
                if len(some) == _TURN:
                    todo.append((context, left))

    def _within(self, move: Move, rank: Rank, room: int) -> Move:
        """The same copy to where there is room on the rank it goes to: its first rows if it is larger than that."""
        there = self._mesh.heap.rank_at(move.target)
        target = self._mesh.heap.address(rank.rank if there is None else there, room)
        rows = max(1, min(move.rows, _ROOM // move.target_pitch)) if move.rows > 1 else 1
        return replace(move, target=target, rows=rows, width=min(move.width, _ROOM))


def _calls(lanes: Sequence[Side], sections: Sequence[Section]) -> Iterator[_Enqueued]:
    """The calls of a part: the strands of a section one after the other, each on the next lane.

    Lanes that a section needs begin behind what the first one has done, and that goes on behind all of them.
    """
    first = lanes[0]
    for strands in sections:
        forked = lanes[1 : len(strands)]
        if forked:
            yield "cuEventRecord", (first.event, first.stream)
        for lane in forked:
            yield "cuStreamWaitEvent", (lane.stream, first.event, 0)
        for strand, lane in zip(strands, cycle(lanes), strict=False):
            for call in strand:
                yield call.name, call.on(lane.stream)
        for lane in forked:
            yield "cuEventRecord", (lane.event, lane.stream)
            yield "cuStreamWaitEvent", (first.stream, lane.event, 0)
