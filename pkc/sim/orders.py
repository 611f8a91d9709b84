"""In which order coroutines run: kinds of order that seeds choose, and parts that are delayed on purpose."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from pkc.sim.schedule import Order, Part

_NOW_AND_THEN = 0.002
"""A straggler goes on now and then, although others could."""

_LATE = 1 / 8
"""As many operations are late, in the orders that have late operations."""


@dataclass(frozen=True)
class Delay:
    """Parts that run only when no other can: those of a rank, of a role, or both; with neither, all are alike."""

    rank: int | None = None
    role: str | None = None

    def covers(self, part: Part) -> bool:
        """Whether a part is delayed."""
        if part.rank != self.rank and self.rank is not None:
            return False
        return self.role is None or part.role.partition(" of ")[0] == self.role


def order_of(seed: int, delays: Sequence[Delay] = ()) -> Order:
    """The order of a seed; parts that `delays` names come last in it.

    Uniformly at random nobody gets far ahead, and a missing wait is met in time by accident. So four seeds of five make
    somebody late:

    - 0, 5, ...: uniformly at random;
    - 1, 6, ...: ranks in a random precedence: one runs only when those before it cannot, or now and then;
    - 2, 7, ...: parts of ranks in a random precedence;
    - 3, 8, ...: one part of one rank is last, the others at random;
    - 4, 9, ...: one operation in eight is late: its part goes on when no other part can.
    """
    if delays:
        return _Delayed(seed, delays)
    kinds = (_Uniform, _RankByRank, _PartByPart, _Straggler, _LateOperations)
    return kinds[seed % len(kinds)](seed)


class _Uniform:
    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def choose(self, ready: list[Part]) -> int:
        return self._random.randrange(len(ready))

    def _among(self, places: list[int]) -> int:
        return places[self._random.randrange(len(places))]


class _RankByRank(_Uniform):
    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self._precedence: dict[object, float] = {}

    def choose(self, ready: list[Part]) -> int:
        if self._random.random() < _NOW_AND_THEN:
            return super().choose(ready)
        precedence, key = self._precedence, self._key
        for part in ready:
            if key(part) not in precedence:
                precedence[key(part)] = self._random.random()
        return min(range(len(ready)), key=lambda place: precedence[key(ready[place])])

    def _key(self, part: Part) -> object:
        return part.rank


class _PartByPart(_RankByRank):
    def _key(self, part: Part) -> object:
        return part.name


class _Delayed(_Uniform):
    def __init__(self, seed: int, delays: Sequence[Delay]) -> None:
        super().__init__(seed)
        self._delays = delays

    def choose(self, ready: list[Part]) -> int:
        if self._random.random() < _NOW_AND_THEN:
            return super().choose(ready)
        return self._among([place for place, part in enumerate(ready) if not self._last(part)] or [*range(len(ready))])

    def _last(self, part: Part) -> bool:
        return any(delay.covers(part) for delay in self._delays)


class _Straggler(_Delayed):
    def __init__(self, seed: int) -> None:
        super().__init__(seed, ())
        self._seen: set[object] = set()
        self._slow: object = None

    def _last(self, part: Part) -> bool:
        if part.name not in self._seen:
            self._seen.add(part.name)
            # Each of n is chosen with probability 1/n, although n is not known before.
            if self._random.randrange(len(self._seen)) == 0:
                self._slow = part.name
        return part.name == self._slow


class _LateOperations(_Uniform):
    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self._late: dict[Part, bool] = {}

    def choose(self, ready: list[Part]) -> int:
        late = self._late
        for part in ready:
            if part not in late:
                late[part] = self._random.random() < _LATE
        chosen = self._among([place for place, part in enumerate(ready) if not late[part]] or [*range(len(ready))])
        del late[ready[chosen]]
        return chosen
