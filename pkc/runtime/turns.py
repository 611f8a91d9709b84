"""Launches of a mesh take turns: one begins when the one before has ended, whatever streams they are on.

Launches share counters and scratch memory, and CTAs that wait for each other must all run: on streams of their own,
launches could overtake each other on one rank and not on another. In a capture nothing runs, and the graph is in the
order of its stream alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pkc.runtime.driver import Driver
from pkc.runtime.rank import Rank

_LEGACY = 1
"""Handles up to this one are the driver's own default stream."""


class Borrowed(list[int]):
    """Handles of streams of which some may be destroyed at any time, after which the driver crashes if it is asked for
    them, or other streams have these handles. Those of torch and of a mesh last."""


def handles_of(streams: Sequence[Any]) -> list[int]:
    """The handles of streams, `Borrowed` if some are: integers, torch streams, or anything with `__cuda_stream__`."""
    found: list[int] = []
    borrowed = False
    for stream in streams:
        handle = getattr(stream, "cuda_stream", None)
        lasts = handle is not None and type(stream).__name__ != "ExternalStream"
        if handle is None:
            handle = int(stream.__cuda_stream__()[1] if hasattr(stream, "__cuda_stream__") else stream)
        found.append(handle)
        borrowed = borrowed or not (lasts or handle <= _LEGACY)
    return Borrowed(found) if borrowed else found


class Turns:
    """The turns of launches on `ranks`, those of this process. Streams are one for each of them."""

    def __init__(self, driver: Driver, ranks: Sequence[Rank]) -> None:
        self._driver, self._ranks = driver, ranks
        self._last: Sequence[int] = ()
        """The streams of the last launch that has to end before the next one begins."""
        self._noted = False
        """Whether events say where it ends, as its streams may not be there any more when the next one begins. If it
        failed, they say so of the one before."""
        self._notes = False
        """Whether they are to be recorded behind the launch whose turn it is."""

    def take(self, streams: Sequence[int], current: Any) -> Any:
        """Let what is launched next on these streams begin when the last launch has ended. `current` is the driver's
        current context; returns which one is then."""
        borrowed = type(streams) is Borrowed
        self._notes = False
        if streams == self._last and not borrowed and not self._noted:
            return current
        driver = self._driver
        current = self._enter(self._ranks[0], current)
        if is_captured(driver, streams[0]):
            return current
        for rank, old, new in zip(self._ranks, self._last or streams, streams, strict=True):
            if self._noted or old != new:
                current = self._enter(rank, current)
                if not self._noted:
                    driver.cuEventRecord(rank.turn, old)
                driver.cuStreamWaitEvent(new, rank.turn, 0)
        self._last, self._noted, self._notes = streams, borrowed, borrowed
        return current

    def end(self, streams: Sequence[int], current: Any) -> Any:
        """Note where the launch on these streams ends, if they are borrowed. Contexts are as for `take`."""
        if self._notes:
            for rank, stream in zip(self._ranks, streams, strict=True):
                current = self._enter(rank, current)
                self._driver.cuEventRecord(rank.turn, stream)
        return current

    def _enter(self, rank: Rank, current: Any) -> Any:
        if current != rank.context:
            self._driver.api.cuCtxSetCurrent(rank.context)
        return rank.context


def is_captured(driver: Driver, stream: int) -> bool:
    """Whether a stream of the current context is being captured."""
    return driver.cuStreamIsCapturing(stream) != driver.api.CUstreamCaptureStatus.CU_STREAM_CAPTURE_STATUS_NONE
