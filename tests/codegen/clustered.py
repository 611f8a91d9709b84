"""CTAs of a cluster that run at the same time, and hand each other values through their shared memory."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Condition
from typing import Any

from xdsl.ir import Block

from tests.codegen.threads import Cta, Does
from tests.codegen.together import PATIENCE, Meeting, to_its_end

_WARP, _WORD, _BARRIER = 32, 4, 8


class Arriving:
    """An mbarrier that one thread arrives at in each phase, and bytes, which may come before that thread."""

    def __init__(self) -> None:
        self._phase = self._missing = self._arrived = 0
        self._changed = Condition()

    def expect(self, size: int) -> None:
        with self._changed:
            assert not self._arrived, "a phase is expected before the last one is complete"
            self._arrived = 1
            self._add(size)

    def complete(self, size: int) -> None:
        with self._changed:
            self._add(-size)

    def _add(self, size: int) -> None:
        self._missing += size
        if self._arrived and not self._missing:
            self._phase, self._arrived = self._phase + 1, 0
            self._changed.notify_all()

    def wait(self, parity: int) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: self._phase % 2 != parity, PATIENCE), "waits for ever"


class Clustered(Meeting):
    """A thread of a role of which all CTAs of a cluster run together."""

    def __init__(self, cta: Cta, number: int, warp: Barrier, role: Barrier, slots: list[Any], all_: Cluster) -> None:
        super().__init__(cta, number, warp, role, slots)
        self.cluster = all_

    @classmethod
    def does(cls, name: str) -> Does:
        return _DOES.get(name) or super().does(name)


class Cluster:
    """CTAs by their numbers in the cluster. Channels of what runs so are filled by threads, not by bytes."""

    def __init__(self, ctas: Sequence[Cta]) -> None:
        self.ctas = ctas
        self.arriving: dict[tuple[int, int], Arriving] = {}
        self._made = Condition()

    def barrier(self, cta: int, address: int) -> Arriving:
        with self._made:
            return self.arriving.setdefault((cta, address), Arriving())

    def run(self, body: Block, threads: range) -> None:
        group: list[Clustered] = []
        for cta in self.ctas:
            role = Barrier(len(threads))
            for first in range(threads.start, threads.stop, _WARP):
                warp, slots = Barrier(_WARP), [None] * _WARP
                group += [Clustered(cta, first + lane, warp, role, slots, self) for lane in range(_WARP)]
        with ThreadPoolExecutor(len(group)) as pool:
            list(pool.map(to_its_end, group, [body] * len(group)))


def _send(thread: Clustered, address: int, word: Any, barrier: int, cta: int) -> None:
    thread.cluster.ctas[cta].shared[address] = word
    thread.cluster.barrier(cta, barrier).complete(4)


def _store(thread: Clustered, address: int, word: Any) -> None:
    cta = thread.cta.number
    held = [at for of, at in list(thread.cluster.arriving) if of == cta and at - _WORD < address < at + _BARRIER]
    assert not held, f"a word is stored where an mbarrier is, at {held}"
    thread.cta.shared[address] = word


_DOES: dict[str, Does] = {
    "store_shared_b32": _store,
    "send_cluster_b32": _send,
    "mbarrier_expect": lambda thread, at, size: thread.cluster.barrier(thread.cta.number, at).expect(size),
    "mbarrier_wait_cluster": lambda thread, at, parity: thread.cluster.barrier(thread.cta.number, at).wait(parity),
}
