"""Streams beside the kernels of a launch, for copy engines: forked from the kernels' streams, and joined to them.

On each rank of this process, in order: the counters that restart are cleared, the streams beside the kernel are forked,
the kernel starts, and only then is anything enqueued beside it. So if streams share a hardware queue, none waits in
front of a kernel that it needs.

Each copy engine role has several streams, its lanes. The first lane does what stands around the tasks. A strand is
what one task does, or several tasks whose copies were joined; strands go to the lanes round-robin. Whatever the number
of lanes, the calls of a role are made in the order of its tasks. So if lanes share a hardware queue after all, the
queue does what a single stream would do, and no lane waits in front of an earlier task.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, cycle, islice
from typing import Any, TypeAlias

from pkc.runtime.enqueue import Await, Call, Move, Write, calls
from pkc.runtime.mesh import Mesh
from pkc.runtime.rank import Rank, Side

_BATCH = 16
"""Calls for one rank before those of the next rank. A stream takes some hundred calls. When it is full the host waits,
and must by then have enqueued what that stream waits for."""

_ENOUGH = 1 << 30
"""The value of a counter at which any wait ends."""

_ROOM = 4 << 20
"""Bytes of the target of trial copies."""


Section: TypeAlias = Sequence[Sequence[Call]]
"""The calls of each strand of a section (`pkc.runtime.engines`)."""


_Enqueued: TypeAlias = tuple[str, tuple[Any, ...]]
"""A call of the driver, with all its arguments."""


@dataclass(frozen=True)
class Work:
    """What is done beside the kernel of one rank: counters to clear, and the sections of each copy engine role."""

    clear: int
    """The address of the counters that restart."""
    clear_bytes: int
    roles: Sequence[Sequence[Section]]
    kinds: tuple[Move, ...]
    """One copy of each kind (`pkc.runtime.enqueue.kinds`)."""
    arrays: frozenset[str]
    """The arrays between which copy engines copy."""


class Beside:
    """The streams of all ranks of this process: for each of `roles` copy engine roles, as many lanes as the GPU has
    queues for."""

    def __init__(self, mesh: Mesh, roles: int) -> None:
        self._mesh = mesh
        self._releasing: dict[int, int] = {}
        lanes = mesh.lanes(roles)
        self._sides: Sequence[tuple[Rank, Sequence[Sequence[Side]]]] = [
            (rank, [sides[first : first + lanes] for first in range(0, len(sides), lanes)])
            for rank, sides in zip(mesh.local, mesh.beside(roles * lanes), strict=True)
        ]

    def try_out(self, works: Sequence[Work]) -> None:
        """Do once on each stream what launches will do, into memory that is used for nothing else, and wait for it.

        When the driver is first asked for a kind of copy, it may load or allocate something, and wait for all kernels
        that run. All ranks call this together.
        """
        driver, heap = self._mesh.driver, self._mesh.heap
        counter, room = heap.allocate(4), heap.allocate(_ROOM)
        heap.share()  # other ranks copy into `room`
        for (rank, roles), work in zip(self._sides, works, strict=True):
            address = heap.address(rank.rank, counter)
            tried = [self._within(move, rank, room) for move in work.kinds]
            with self._mesh.current(rank):
                for side in chain(*roles):
                    for call in calls(driver.api, (Write(address, 1), Await(address, 1), *tried)):
                        getattr(driver, call.name)(*call.on(side.stream))
                    driver.cuEventRecord(side.event, side.stream)
                    driver.cuStreamWaitEvent(rank.stream, side.event, 0)
        self._mesh.synchronize()
        if self._mesh.group is not None:
            self._mesh.group.agree("has tried its copies")
        heap.free(counter)
        heap.free(room)

    def release(self, counters: Sequence[tuple[int, int]]) -> None:
        """Let all waits end for counters at these offsets of the heap, of so many bytes, without waiting for anything.

        A stream of the highest priority has a hardware queue that no waiting one shares.
        """
        driver, heap = self._mesh.driver, self._mesh.heap
        for rank, _ in self._sides:
            first = [heap.address(rank.rank, offset) for offset, _ in counters]
            writes = [
                Write(address + at, _ENOUGH)
                for address, (_, size) in zip(first, counters, strict=True)
                for at in range(0, size, 4)
            ]
            with self._mesh.current(rank):
                if rank.rank not in self._releasing:
                    _, highest = driver.cuCtxGetStreamPriorityRange()
                    flags = int(driver.api.CUstream_flags.CU_STREAM_NON_BLOCKING)
                    self._releasing[rank.rank] = int(driver.cuStreamCreateWithPriority(flags, highest))
                for call in calls(driver.api, writes):
                    getattr(driver, call.name)(*call.on(self._releasing[rank.rank]))

    def begin(self, works: Sequence[Work], streams: Sequence[int]) -> None:
        """Clear the counters that restart and fork the streams. Comes before the kernels start."""
        driver = self._mesh.driver
        for (rank, roles), work, stream in zip(self._sides, works, streams, strict=True):
            driver.cuCtxSetCurrent(rank.context)
            if work.clear_bytes:
                driver.cuMemsetD8Async(work.clear, 0, work.clear_bytes, stream)
            cleared = roles[0][0].event
            driver.cuEventRecord(cleared, stream)
            for first, *_ in roles:
                driver.cuStreamWaitEvent(first.stream, cleared, 0)

    def enqueue(self, works: Sequence[Work], streams: Sequence[int]) -> Any:
        """Enqueue what copy engines do and join the streams. Comes after the kernels were started. Returns which
        context is then the current one."""
        driver = self._mesh.driver
        for context, some in self._batches(works):
            driver.cuCtxSetCurrent(context)
            for name, arguments in some:
                getattr(driver, name)(*arguments)
        for (rank, roles), stream in zip(self._sides, streams, strict=True):
            driver.cuCtxSetCurrent(rank.context)
            for first, *_ in roles:
                driver.cuEventRecord(first.event, first.stream)
                driver.cuStreamWaitEvent(stream, first.event, 0)
        return self._mesh.local[-1].context

    def _batches(self, works: Sequence[Work]) -> Iterator[tuple[Any, list[_Enqueued]]]:
        """The calls in batches, round-robin over the ranks, each with its context; all of one role before the next.

        A role waits for earlier roles, at times on other ranks, and never for later ones. So this order works even if
        their streams share a hardware queue.
        """
        for number in range(len(works[0].roles)):
            todo = deque(
                (rank.context, _calls(roles[number], work.roles[number]))
                for (rank, roles), work in zip(self._sides, works, strict=True)
            )
            while todo:
                context, left = todo.popleft()
                some = list(islice(left, _BATCH))
                yield context, some
                if len(some) == _BATCH:
                    todo.append((context, left))

    def _within(self, move: Move, rank: Rank, room: int) -> Move:
        """The same copy into `room` on the rank that it goes to; only its first rows if `room` is too small for all."""
        there = self._mesh.heap.rank_at(move.target)
        target = self._mesh.heap.address(rank.rank if there is None else there, room)
        rows = max(1, min(move.rows, _ROOM // move.target_pitch)) if move.rows > 1 else 1
        return replace(move, target=target, rows=rows, width=min(move.width, _ROOM))


def _calls(lanes: Sequence[Side], sections: Sequence[Section]) -> Iterator[_Enqueued]:
    """The calls of a role: the strands of a section one after the other, each on the next lane.

    The lanes that a section needs are forked from the first one, and joined to it at the section's end.
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
