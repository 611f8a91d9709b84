"""Threads of a role that run at the same time: they hand each other values by shuffles and meet at barriers."""

from __future__ import annotations

import contextlib
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

from xdsl.ir import Block

from tests.codegen.threads import Cta, Does, EndedError, Thread

_WARP = 32
PATIENCE = 60
"""Seconds after which who is waited for does not come."""


class Meeting(Thread):
    """A thread of a role whose warps run together."""

    def __init__(self, cta: Cta, number: int, warp: Barrier, role: Barrier, slots: list[Any]) -> None:
        super().__init__(cta, number)
        self._warp, self._role, self._slots = warp, role, slots

    @classmethod
    def does(cls, name: str) -> Does:
        if name.startswith("shuffle_xor"):
            return Meeting.hand_over
        if name == "mbarrier_wait":
            return Meeting.await_stage
        if name in _OF_WARP:
            return _OF_WARP[name]
        if name.startswith("sync_") and "_of_" in name:
            return Meeting.meet
        return super().does(name)

    def hand_over(self, value: Any, distance: int) -> Any:
        """What the thread at this distance has; all of the warp meet here."""
        assert 0 < distance < _WARP
        return self._of_all(value)[self.number % _WARP ^ distance]

    def shuffle(self, value: Any, lane: int) -> Any:
        """What one thread of the warp has."""
        return self._of_all(value)[lane]

    def from_before(self, value: Any, distance: int) -> Any:
        """What the thread at this distance before has, or what this one has."""
        lane = self.number % _WARP
        return self._of_all(value)[lane - distance if lane >= distance else lane]

    def vote(self, value: bool) -> int:
        """A bit for each thread of the warp."""
        return sum(1 << lane for lane, holds in enumerate(self._of_all(value)) if holds)

    def _of_all(self, value: Any) -> list[Any]:
        self._slots[self.number % _WARP] = value
        self._warp.wait(PATIENCE)
        found = list(self._slots)
        self._warp.wait(PATIENCE)
        return found

    def await_stage(self, at: int, parity: int) -> None:
        """Of a stage that the thread has just filled itself, it awaits what the others of its role write there."""
        barrier = self.cta.barriers[at]
        before = sum(what == "wait" and of is barrier for what, of, _ in barrier.log.get(self.number, ()))
        barrier.wait(self.number, parity)
        if barrier.arrivals[self.number] > before:
            self.meet()

    def meet(self) -> None:
        self._role.wait(PATIENCE)


_OF_WARP: dict[str, Does] = {
    **{f"shuffle_{name}": Meeting.shuffle for name in ("index", "from", "from_i32")},
    **{f"shuffle_up{suffix}": Meeting.from_before for suffix in ("", "_i32")},
    "vote": Meeting.vote,
}


class Together(Cta):
    """A CTA each of whose roles runs with all its threads at once."""

    def run(self, body: Block, threads: range) -> None:
        role = Barrier(len(threads))
        group: list[Meeting] = []
        for first in range(threads.start, threads.stop, _WARP):
            warp, slots = Barrier(_WARP), [None] * _WARP
            group += [Meeting(self, first + lane, warp, role, slots) for lane in range(_WARP)]
        with ThreadPoolExecutor(len(group)) as pool:
            list(pool.map(to_its_end, group, [body] * len(group)))
        for first in range(0, len(group), _WARP):
            self._store_matrices([thread.matrices for thread in group[first : first + _WARP]])


def to_its_end(thread: Thread, body: Block) -> None:
    """Let a thread run."""
    with contextlib.suppress(EndedError):
        thread.block(body)
