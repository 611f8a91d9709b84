"""What the coroutines of a run did, step by step: a step is what one does between two points at which others may
run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from xdsl.ir import Operation

from pkc.sim.array import Array, Where

if TYPE_CHECKING:
    from pkc.sim.schedule import Blocked, Coroutine, Counter

Address: TypeAlias = "tuple[str, int] | Counter"
"""What two steps may both access: an element of an array, by its number in memory, or a counter."""


class Access(Enum):
    """What a step does to an address. Reads are independent of each other, and so are additions."""

    Read = auto()
    Add = auto()
    Write = auto()


class Guard(NamedTuple):
    """What a step has waited for: a counter, which had this value when the coroutine went on."""

    counter: Counter
    wanted: int
    value: int


class Kind(Enum):
    """The kind of an action."""

    Wait = auto()
    Signal = auto()
    Access = auto()
    Launch = auto()
    Stuck = auto()


class Action(NamedTuple):
    """One action of a coroutine, to be printed: an operation (none for the launch itself), and its outcome in words."""

    coroutine: Coroutine
    kind: Kind
    op: Operation | None
    outcome: str
    addresses: frozenset[Address]


@dataclass(eq=False)
class Step:
    """One step of a coroutine; `amounts` is what it has added to counters."""

    coroutine: Coroutine
    guard: Guard | None = None
    accesses: dict[Address, set[Access]] = field(default_factory=dict["Address", set[Access]])
    amounts: dict[Counter, int] = field(default_factory=dict["Counter", int])

    def touch(self, addresses: Iterable[Address], access: Access) -> None:
        """Note an access."""
        for address in addresses:
            self.accesses.setdefault(address, set()).add(access)


_VERBS = {Access.Read: "reads", Access.Add: "adds to", Access.Write: "stores to"}


class Trace:
    """The steps of a run in order, and with `in_words` their actions."""

    def __init__(self, *, in_words: bool = False) -> None:
        self.steps: list[Step] = []
        self.actions: list[Action] = []
        self.differs: Address | None = None
        """The element of an output that is not what it should be."""
        self._in_words = in_words
        self._numbers: dict[str, Any] = {}

    @property
    def choices(self) -> tuple[tuple[int, ...], ...]:
        """The coroutine of each step."""
        return tuple(step.coroutine.path for step in self.steps)

    def begin(self, coroutine: Coroutine) -> None:
        """A coroutine goes on."""
        self.steps.append(Step(coroutine))

    def passed(self, op: Operation | None, guard: Guard) -> None:
        """A wait has ended."""
        step = self.steps[-1]
        step.guard = guard
        step.touch((guard.counter,), Access.Read)
        self._act(Kind.Wait, op, f"waits for {guard.counter} to be {guard.wanted}: is {guard.value}", guard.counter)

    def added(self, op: Operation | None, counter: Counter, amount: int, now: int) -> None:
        """A counter has been increased."""
        step = self.steps[-1]
        step.amounts[counter] = step.amounts.get(counter, 0) + amount
        step.touch((counter,), Access.Read)
        self._act(Kind.Signal, op, f"signals {counter} of rank {counter.rank}: now {now}", counter)

    def set(self, op: Operation, counter: Counter, amount: int, now: int) -> None:
        """A counter has been set, which does not commute with other changes; it has grown by an amount."""
        step = self.steps[-1]
        step.amounts[counter] = step.amounts.get(counter, 0) + amount
        step.touch((counter,), Access.Write)
        self._act(Kind.Signal, op, f"sets {counter} of rank {counter.rank} to {now}", counter)

    def accessed(self, op: Operation, array: Array, where: Where, access: Access) -> None:
        """Elements of an array have been accessed."""
        addresses = self._addresses(array, where)
        self.steps[-1].touch(addresses, access)
        if self._in_words and addresses:
            first = array.element(where, [0] * sum(hasattr(index, "start") for index in where[1:]))
            self._act(Kind.Access, op, f"{_VERBS[access]} {array.name}, from {first} on", *addresses)

    def launched(self, arrays: Iterable[Array], rank: int, access: Access, outcome: str) -> None:
        """A rank's memory has been taken over or given back between two launches."""
        addresses = [address for array in arrays for address in self._addresses(array, (rank,))]
        self.steps[-1].touch(addresses, access)
        self._act(Kind.Launch, None, outcome, *addresses)

    def stuck(self, blocked: Sequence[Blocked]) -> None:
        """Nothing is left to run: these are blocked."""
        for coroutine, op, counter, wanted, value in blocked:
            outcome = f"waits for {counter} to be {wanted}: is {value()}, for ever"
            self.actions.append(Action(coroutine, Kind.Stuck, op, outcome, frozenset((counter,))))

    def _addresses(self, array: Array, where: Where) -> list[Address]:
        numbers = self._numbers.get(array.name)
        if numbers is None:
            numbers = self._numbers[array.name] = np.arange(array.value.size).reshape(array.value.shape)
        return [(array.name, int(number)) for number in np.ravel(numbers[where])]

    def _act(self, kind: Kind, op: Operation | None, outcome: str, *addresses: Address) -> None:
        if self._in_words and (op is not None or kind is Kind.Launch):
            self.actions.append(Action(self.steps[-1].coroutine, kind, op, outcome, frozenset(addresses)))
