"""The mbarriers of a CTA whose threads run one after the other (PTX ISA: mbarrier): what each phase gets, who waits.

A thread arrives at most once in a phase, so its arrivals number the phases, whichever thread runs first. Afterwards
what the threads did is played again side by side, as hardware would: whoever waits for what never comes, hangs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

_WARP = 32


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
    log: Log = field(default_factory=dict[int, list[tuple[str, "Barrier", int]]])
    """What each thread did with this barrier and others, in its order: what, with which, and bytes or a parity."""

    def init(self, count: int) -> None:
        assert count > 0 and not self.count, "initialised twice"
        self.count = count

    def arrive(self, thread: int) -> None:
        self._note(thread, "arrive", 0)
        self.arrivals[thread] += 1

    def expect(self, thread: int, size: int) -> None:
        assert not self.missing, f"{self.missing} bytes of the phase before never arrive"
        self._note(thread, "announce", size)
        self.arrive(thread)
        self.missing = size

    def announce(self, thread: int, size: int) -> None:
        self._note(thread, "announce", size)
        self.missing += size

    def complete(self, thread: int, size: int) -> None:
        self._note(thread, "complete", size)
        assert size <= self.missing, f"{size} bytes arrive, {self.missing} are expected"
        self.missing -= size

    def wait(self, thread: int, parity: int) -> None:
        self._note(thread, "wait", parity)
        first = self.first.setdefault(thread, -parity)
        last = self.awaited.get(thread, first)
        self.awaited[thread] = last + (last % 2 != parity)

    def _note(self, thread: int, what: str, value: int) -> None:
        self.log.setdefault(thread, []).append((what, self, value))

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


Log: TypeAlias = "dict[int, list[tuple[str, Barrier, int]]]"


class Barriers(dict[int, Barrier]):
    """Those of a CTA, by address; each is there when it is first used, which may be before thread 0 initialises it."""

    def __init__(self) -> None:
        super().__init__()
        self._log: Log = {}

    def __missing__(self, address: int) -> Barrier:
        return self.setdefault(address, Barrier(log=self._log))

    def check(self) -> None:
        for address, barrier in self.items():
            assert barrier.count, f"the barrier at {address} is not initialised"
            barrier.check()
        play(self._log)
        for warp in sorted({thread // _WARP for thread in self._log}):
            play(self._log, late=warp)


@dataclass
class _State:
    """A barrier while it is played: the phase that is not complete yet, and what that lacks."""

    phase: int
    arrivals: int
    bytes: int = 0


def play(log: Log, *, late: int | None = None) -> None:
    """Let all threads go on until each has done all that it did, or all wait: then the first of them hangs.

    Threads of the warp `late` do one thing, and that once all others wait: what it awaits may be complete, and complete
    once more, by then, and the parity is that of a phase which is not.
    """
    states: dict[int, _State] = {}
    at = dict.fromkeys(log, 0)
    slow = [thread for thread in log if thread // _WARP == late]
    quick = [thread for thread in log if thread // _WARP != late]

    def advance(threads: Sequence[int], most: int) -> bool:
        before = sum(map(at.__getitem__, threads))
        for thread in threads:
            events, first = log[thread], at[thread]
            for number in range(first, min(first + most, len(events))):
                if not _goes_on(states, *events[number]):
                    break
                at[thread] += 1
        return sum(map(at.__getitem__, threads)) > before

    while advance(quick, max(map(len, log.values()), default=0)) or advance(slow, 1):
        pass
    hangs = next((thread for thread, events in log.items() if at[thread] < len(events)), None)
    assert hangs is None, f"thread {hangs} waits for ever"


def _goes_on(states: dict[int, _State], what: str, barrier: Barrier, value: int) -> bool:
    state = states.get(id(barrier)) or states.setdefault(id(barrier), _State(0, barrier.count))
    if what == "wait":
        return state.phase % 2 != value
    if what == "arrive":
        state.arrivals -= 1
    else:
        state.bytes += value if what == "announce" else -value
    if not state.arrivals and not state.bytes:
        states[id(barrier)] = _State(state.phase + 1, barrier.count)
    return True
