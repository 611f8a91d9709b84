"""The mbarriers of a CTA whose threads run one after the other (PTX ISA: mbarrier): what each phase gets, who waits.

A thread arrives at most once in a phase, so its arrivals number the phases, whichever thread runs first.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass
class Barrier:
    """One mbarrier. `count` arrivals complete a phase, with the bytes that one of them expects; 0 before `init`.

    By thread: its arrivals, and the numbers of the first and of the last phase that it awaits; -1, of parity 1, is the
    one before the first, which is complete.
    """

    count: int = 0
    arrivals: Counter[int] = field(default_factory=Counter[int])
    missing: int = 0
    """Bytes that the phase expects and has not got."""
    first: dict[int, int] = field(default_factory=dict[int, int])
    awaited: dict[int, int] = field(default_factory=dict[int, int])

    def init(self, count: int) -> None:
        assert count > 0 and not self.count, "initialised twice"
        self.count = count

    def arrive(self, thread: int) -> None:
        self.arrivals[thread] += 1

    def expect(self, thread: int, size: int) -> None:
        assert not self.missing, f"{self.missing} bytes of the phase before never arrive"
        self.arrive(thread)
        self.missing = size

    def announce(self, size: int) -> None:
        self.missing += size

    def complete(self, size: int) -> None:
        assert size <= self.missing, f"{size} bytes arrive, {self.missing} are expected"
        self.missing -= size

    def wait(self, thread: int, parity: int) -> None:
        first = self.first.setdefault(thread, -parity)
        last = self.awaited.get(thread, first)
        self.awaited[thread] = last + (last % 2 != parity)

    def check(self) -> None:
        """Every phase gets its arrivals and bytes, and no wait is for ever, or lets a thread go on a phase early."""
        phases = max(self.arrivals.values(), default=0)
        assert not self.missing, f"{self.missing} bytes never arrive"
        for phase in range(phases):
            found = sum(arrivals > phase for arrivals in self.arrivals.values())
            assert found == self.count, f"phase {phase} gets {found} of {self.count} arrivals"
        for thread, phase in self.awaited.items():
            # Who takes what is there awaits every phase; who needs it to be free need not await the last one.
            least = phases - 1 if self.first[thread] == 0 else phases - 2
            assert least <= phase < phases, f"thread {thread} waits for phase {phase} of {phases}"


class Barriers(dict[int, Barrier]):
    """Those of a CTA, by address; each is there when it is first used, which may be before thread 0 initialises it."""

    def __missing__(self, address: int) -> Barrier:
        return self.setdefault(address, Barrier())

    def check(self) -> None:
        for address, barrier in self.items():
            assert barrier.count, f"the barrier at {address} is not initialised"
            barrier.check()
