"""Which steps of a run happened before which, and which could have come in another order.

Two steps depend on each other if they access the same address, unless both only read it or both only add to it.
Signals and waits are finer: a counter grows, so a wait depends on the signals before it, and signals do not depend on
each other. Vector clocks (Mattern 1989) give the order that all runs share in which dependent steps come in the same
order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from pkc.sim.schedule import Counter
from pkc.sim.trace import Access, Address, Guard, Step

Path = tuple[int, ...]


@dataclass
class _Touched:
    """The steps that have accessed an address since it was last written, and the one that wrote it."""

    written: int = -1
    since: dict[Access, list[int]] = field(default_factory=dict[Access, list[int]])

    def conflicts(self, accesses: set[Access]) -> Iterator[int]:
        """The steps that these accesses depend on."""
        if self.written >= 0:
            yield self.written
        for kind, steps in self.since.items():
            if accesses != {kind}:
                yield from steps

    def touch(self, step: int, accesses: set[Access]) -> None:
        if Access.Write in accesses:
            self.written, self.since = step, {}
            return
        for kind in accesses:
            self.since.setdefault(kind, []).append(step)


class Happened:
    """The order of the steps of a run: `clocks[i][c]` counts the steps of coroutine c up to step i.

    `races` has the pairs of steps that depend on each other directly, and could have come in the opposite order.
    """

    def __init__(self, steps: Sequence[Step]) -> None:
        self.steps = steps
        self.paths: list[Path] = [step.coroutine.path for step in steps]
        self.clocks: list[dict[Path, int]] = []
        self.places: list[int] = []
        """Of each step, its number among those of its coroutine, from 1."""
        self.races: list[tuple[int, int]] = []
        self._last: dict[Path, int] = {}
        self._addresses: dict[Address, _Touched] = {}
        self._senders: dict[Counter, list[int]] = {}
        self._waiters: dict[Counter, list[int]] = {}
        self._enough: dict[int, dict[Path, int]] = {}
        """For each step that has waited, the first signals that together were enough: of each coroutine the last."""
        for number in range(len(steps)):
            self._add(number)

    def before(self, first: int, second: int) -> bool:
        """Whether a step happened before another one, or is the same."""
        return self._knows(self.clocks[second], first)

    def _knows(self, clock: dict[Path, int], step: int) -> bool:
        return clock.get(self.paths[step], 0) >= self.places[step]

    def _add(self, number: int) -> None:
        step, path = self.steps[number], self.paths[number]
        clock: dict[Path, int] = {}
        previous = self._last.get(path, self._last.get(path[:-1]))  # begun by the parent's last step
        if previous is not None:
            clock |= self.clocks[previous]
        self.places.append(self.places[self._last[path]] + 1 if path in self._last else 1)
        self.clocks.append(clock)
        for earlier in sorted(self._depends_on(number), reverse=True):
            self._follow(number, earlier)
        for earlier in sorted(self._overtaken(step), reverse=True):
            if self._knows(clock, earlier):  # and so all that was enough for it
                continue
            if any(not self._knows(clock, sender) for sender in self._enough[earlier].values()):
                self._follow(number, earlier)
        clock[path] = self.places[number]
        self._last[path] = number
        for address, accesses in step.accesses.items():
            self._addresses.setdefault(address, _Touched()).touch(number, accesses)
        for counter in step.amounts:
            self._senders.setdefault(counter, []).append(number)
        if step.guard is not None:
            self._waiters.setdefault(step.guard.counter, []).append(number)

    def _depends_on(self, number: int) -> set[int]:
        step = self.steps[number]
        found: set[int] = set()
        for address, accesses in step.accesses.items():
            if address in self._addresses:
                found.update(self._addresses[address].conflicts(accesses))
        if step.guard is not None:
            found.update(self._signals_for(number, step.guard))
        return found

    def _signals_for(self, number: int, guard: Guard) -> Iterator[int]:
        """The signals that a wait depends on: the first ones that are enough, and others that could replace them."""
        senders = self._senders.get(guard.counter, ())
        amounts = [self.steps[sender].amounts[guard.counter] for sender in senders]
        reached = guard.value - sum(amounts)
        enough = self._enough[number] = dict[Path, int]()
        for sender, amount in zip(senders, amounts, strict=True):
            if reached < guard.wanted:
                enough[self.paths[sender]] = sender
                yield sender
            elif any(not self.before(first, sender) for first in enough.values()):
                yield sender
            reached += amount

    def _overtaken(self, step: Step) -> set[int]:
        """The steps that have waited for a counter which this one signals."""
        return {waiter for counter in step.amounts for waiter in self._waiters.get(counter, ())}

    def _follow(self, number: int, earlier: int) -> None:
        clock = self.clocks[number]
        if self._knows(clock, earlier):
            return
        if self.paths[earlier] != self.paths[number] and self._could_come_first(number, earlier):
            self.races.append((earlier, number))
        for path, place in self.clocks[earlier].items():
            clock[path] = max(clock.get(path, 0), place)

    def _could_come_first(self, number: int, earlier: int) -> bool:
        """Whether the wait of a step is satisfied without an earlier step and those that happened after that."""
        guard = self.steps[number].guard
        if guard is None:
            return True
        senders = self._senders.get(guard.counter, ())
        without = sum(self.steps[sender].amounts[guard.counter] for sender in senders if self.before(earlier, sender))
        return guard.value - without >= guard.wanted

    def instead(self, first: int, second: int) -> list[Path]:
        """The coroutines of which one must run in place of step `first`, so that `second` comes before it."""
        others = [step for step in range(first + 1, second) if not self.before(first, step)] + [second]
        begun: set[Path] = set()
        found: list[Path] = []
        for place, step in enumerate(others):
            path = self.paths[step]
            if path not in begun and not any(self.before(other, step) for other in others[:place]):
                found.append(path)
            begun.add(path)
        return found
