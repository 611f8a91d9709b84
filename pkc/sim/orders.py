"""In which order coroutines run: kinds of order that seeds choose, and roles that are delayed on purpose."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from pkc.sim.schedule import Coroutine, Order

_NOW_AND_THEN = 0.002
"""The probability that a straggler goes on although others could."""

_LATE = 1 / 8
"""The share of operations that are late, in the orders that have late operations."""


@dataclass(frozen=True)
class Delay:
    """Coroutines that run only when no other can: those of a rank, of a role, or of a role of a rank."""

    rank: int | None = None
    role: str | None = None

    def covers(self, coroutine: Coroutine) -> bool:
        """Whether a coroutine is delayed."""
        if coroutine.rank != self.rank and self.rank is not None:
            return False
        return self.role is None or coroutine.role.partition(" of ")[0] == self.role


def order_of(seed: int, delays: Sequence[Delay] = ()) -> Order:
    """The order of a seed; coroutines that `delays` covers come last in it.

    In a uniformly random order no coroutine gets far ahead of the others, so a missing wait seldom shows. Four seeds of
    five therefore make some coroutine late:

    - 0, 5, ...: uniformly at random;
    - 1, 6, ...: ranks in a random precedence: a rank runs when those before it cannot, or now and then;
    - 2, 7, ...: roles of ranks in a random precedence;
    - 3, 8, ...: one role of one rank is last, the others at random;
    - 4, 9, ...: one operation in eight is late: its coroutine goes on when no other can.
    """
    if delays:
        return _Delayed(seed, delays)
    kinds = (_Uniform, _RankByRank, _RoleByRole, _Straggler, _LateOperations)
    return kinds[seed % len(kinds)](seed)


class _Uniform:
    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def choose(self, ready: list[Coroutine]) -> int:
        return self._random.randrange(len(ready))

    def _among(self, places: list[int]) -> int:
        return places[self._random.randrange(len(places))]


class _RankByRank(_Uniform):
    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self._precedence: dict[object, float] = {}

    def choose(self, ready: list[Coroutine]) -> int:
        if self._random.random() < _NOW_AND_THEN:
            return super().choose(ready)
        precedence, key = self._precedence, self._key
        for coroutine in ready:
            if key(coroutine) not in precedence:
                precedence[key(coroutine)] = self._random.random()
        return min(range(len(ready)), key=lambda place: precedence[key(ready[place])])

    def _key(self, coroutine: Coroutine) -> object:
        return coroutine.rank


class _RoleByRole(_RankByRank):
    def _key(self, coroutine: Coroutine) -> object:
        return coroutine.name


class _Delayed(_Uniform):
    def __init__(self, seed: int, delays: Sequence[Delay]) -> None:
        super().__init__(seed)
        self._delays = delays

    def choose(self, ready: list[Coroutine]) -> int:
        if self._random.random() < _NOW_AND_THEN:
            return super().choose(ready)
        return self._among(
            [place for place, coroutine in enumerate(ready) if not self._last(coroutine)] or [*range(len(ready))]
        )

    def _last(self, coroutine: Coroutine) -> bool:
        return any(delay.covers(coroutine) for delay in self._delays)


class _Straggler(_Delayed):
    def __init__(self, seed: int) -> None:
        super().__init__(seed, ())
        self._seen: set[object] = set()
        self._slow: object = None

    def _last(self, coroutine: Coroutine) -> bool:
        if coroutine.name not in self._seen:
            self._seen.add(coroutine.name)
            # Each of n is chosen with probability 1/n, although n is not known before.
            if self._random.randrange(len(self._seen)) == 0:
                self._slow = coroutine.name
        return coroutine.name == self._slow


class _LateOperations(_Uniform):
    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self._late: dict[Coroutine, bool] = {}

    def choose(self, ready: list[Coroutine]) -> int:
        late = self._late
        for coroutine in ready:
            if coroutine not in late:
                late[coroutine] = self._random.random() < _LATE
        chosen = self._among(
            [place for place, coroutine in enumerate(ready) if not late[coroutine]] or [*range(len(ready))]
        )
        del late[ready[chosen]]
        return chosen
