"""All threads of all CTAs of a GPU at the same time: whoever waits for an mbarrier is held until it is ready."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Condition
from typing import Any

from xdsl.ir import Block

from tests.codegen.threads import Cta, Does, Memory
from tests.codegen.together import PATIENCE, Meeting, to_its_end

_WARP = 32


class LiveBarrier:
    """An mbarrier (PTX ISA): a phase is complete after `count` arrivals and the bytes that these announce."""

    def __init__(self) -> None:
        self._count = self._arrivals = self._bytes = self._phase = 0
        self._changed = Condition()

    def init(self, count: int) -> None:
        self._count = count

    def arrive(self, size: int = 0) -> None:
        with self._changed:
            self._arrivals += 1
            self._bytes += size
            assert self._arrivals <= self._count, "one arrival too many"
            self._complete()

    def complete(self, size: int) -> None:
        with self._changed:
            self._bytes -= size
            self._complete()

    def _complete(self) -> None:
        if self._arrivals == self._count and not self._bytes:
            self._phase, self._arrivals = self._phase + 1, 0
            self._changed.notify_all()

    def wait(self, parity: int) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: self._phase % 2 != parity, PATIENCE), "waits for ever"


class Gpu:
    """CTAs with their mbarriers, and words of memory that no array has: counters."""

    def __init__(self, memory: Memory, ctas: int) -> None:
        self.ctas = [Cta(memory, 0, number, ctas) for number in range(ctas)]
        memory.ctas = self.ctas
        self.words: dict[int, int] = {}
        self.asked = 0
        """How often a number was taken."""
        self._barriers: dict[tuple[int, int], LiveBarrier] = {}
        self._changing = Condition()

    def barrier(self, cta: int, address: int) -> LiveBarrier:
        with self._changing:
            return self._barriers.setdefault((cta, address), LiveBarrier())

    def take(self, address: int) -> int:
        with self._changing:
            self.asked += 1
            self.words[address] = self.words.get(address, 0) + 1
            return self.words[address] - 1

    def run(self, body: Block, roles: Sequence[range]) -> None:
        """Let these roles run through a kernel; of a role of one warp its first thread is all there is."""
        group: list[Live] = []
        for cta in self.ctas:
            all_ = Barrier(sum(len(role) if len(role) > _WARP else 1 for role in roles))
            for role in roles:
                together = Barrier(len(role))
                for first in range(role.start, role.stop, _WARP):
                    warp, slots = Barrier(_WARP), [None] * _WARP
                    lanes = _WARP if len(role) > _WARP else 1
                    group += [Live(cta, first + lane, warp, together, slots, self, all_) for lane in range(lanes)]
        with ThreadPoolExecutor(len(group)) as pool:
            list(pool.map(to_its_end, group, itertools.repeat(body)))


class Live(Meeting):
    """A thread of a GPU on which all run together."""

    def __init__(
        self, cta: Cta, number: int, warp: Barrier, role: Barrier, slots: list[Any], gpu: Gpu, all_: Barrier
    ) -> None:
        super().__init__(cta, number, warp, role, slots)
        self.gpu, self.all_ = gpu, all_

    def barrier(self, address: int) -> LiveBarrier:
        return self.gpu.barrier(self.cta.number, address)

    @classmethod
    def does(cls, name: str) -> Does:
        return _DOES.get(name) or (_tma_load if name.startswith("tma_load") else super().does(name))

    def meet_all(self) -> None:
        self.all_.wait(PATIENCE)

    def meet_warp(self) -> None:
        self._warp.wait(PATIENCE)


def _tma_load(thread: Live, address: int, box: Any, barrier: int, *place: int) -> None:
    thread.barrier(barrier).complete(thread.cta.copy(box, address, place, load=True))


def _store_word(thread: Live, address: int, word: int) -> None:
    thread.gpu.words[address] = word


_DOES: dict[str, Does] = {
    "mbarrier_init": lambda thread, at, count: thread.barrier(at).init(count),
    "mbarrier_arrive": lambda thread, at: thread.barrier(at).arrive(),
    "mbarrier_expect": lambda thread, at, size: thread.barrier(at).arrive(size),
    "mbarrier_wait": lambda thread, at, parity: thread.barrier(at).wait(parity),
    "sync_threads": Live.meet_all,
    "sync_warp": Live.meet_warp,
    "take_number": lambda thread, address: thread.gpu.take(address),
    "load_u32": lambda thread, address: thread.gpu.words.get(address, 0),
    "store_u32": _store_word,
}
