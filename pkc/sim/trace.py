"""What the parts of a run did, step by step: a step is what a part does from one point at which others may run to the
next."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from xdsl.ir import Operation

from pkc.sim.array import Array, Where

if TYPE_CHECKING:
    from pkc.sim.schedule import Blocked, Counter, Part

Cell: TypeAlias = "tuple[str, int] | Counter"
"""What two steps may both touch: an element of an array, by its number in memory, or a counter."""


class Access(Enum):
    """What a step does to a cell. Reads are independent of each other, and so are additions."""

    Read = auto()
    Add = auto()
    Write = auto()


class Guard(NamedTuple):
    """What a step has waited for: a counter that had this value when the part went on."""

    counter: Counter
    wanted: int
    value: int


class Kind(Enum):
    """What an action is."""

    Wait = auto()
    Signal = auto()
    Access = auto()
    Launch = auto()
    Stuck = auto()


class Action(NamedTuple):
    """One thing that a part does, for people: an operation, unless it is the launch itself, and what came of it."""

    part: Part
    kind: Kind
    op: Operation | None
    outcome: str
    cells: frozenset[Cell]


@dataclass(eq=False)
class Step:
    """One step of a part; `amounts` is what it has added to counters."""

    part: Part
    guard: Guard | None = None
    accesses: dict[Cell, set[Access]] = field(default_factory=dict["Cell", set[Access]])
    amounts: dict[Counter, int] = field(default_factory=dict["Counter", int])

    def touch(self, cells: Iterable[Cell], access: Access) -> None:
        """Note an access."""
        for cell in cells:
            self.accesses.setdefault(cell, set()).add(access)


_VERBS = {Access.Read: "reads", Access.Add: "adds to", Access.Write: "stores to"}


class Trace:
    """The steps of a run, in their order, and with `in_words` the actions of all of them."""

    def __init__(self, *, in_words: bool = False) -> None:
        self.steps: list[Step] = []
        self.actions: list[Action] = []
        self.differs: Cell | None = None
        """The element of an output that is not what it should be."""
        self._in_words = in_words
        self._numbers: dict[str, Any] = {}

    @property
    def choices(self) -> tuple[tuple[int, ...], ...]:
        """The part of each step."""
        return tuple(step.part.path for step in self.steps)

    def begin(self, part: Part) -> None:
        """A part goes on."""
        self.steps.append(Step(part))

    def passed(self, op: Operation | None, guard: Guard) -> None:
        """A part has got what it waited for."""
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
        """A counter has been changed in a way that other changes do not commute with; it has grown by an amount."""
        step = self.steps[-1]
        step.amounts[counter] = step.amounts.get(counter, 0) + amount
        step.touch((counter,), Access.Write)
        self._act(Kind.Signal, op, f"sets {counter} of rank {counter.rank} to {now}", counter)

    def accessed(self, op: Operation, array: Array, where: Where, access: Access) -> None:
        """Elements of an array have been accessed."""
        cells = self._cells(array, where)
        self.steps[-1].touch(cells, access)
        if self._in_words and cells:
            first = array.element(where, [0] * sum(hasattr(index, "start") for index in where[1:]))
            self._act(Kind.Access, op, f"{_VERBS[access]} {array.name}, from {first} on", *cells)

    def launched(self, arrays: Iterable[Array], rank: int, access: Access, outcome: str) -> None:
        """A rank's memory has been taken over or given back between two launches."""
        cells = [cell for array in arrays for cell in self._cells(array, (rank,))]
        self.steps[-1].touch(cells, access)
        self._act(Kind.Launch, None, outcome, *cells)

    def stuck(self, blocked: Sequence[Blocked]) -> None:
        """Nothing can go on any more."""
        for part, op, counter, wanted, value in blocked:
            outcome = f"waits for {counter} to be {wanted}: is {value()}, for ever"
            self.actions.append(Action(part, Kind.Stuck, op, outcome, frozenset((counter,))))

    def _cells(self, array: Array, where: Where) -> list[Cell]:
        numbers = self._numbers.get(array.name)
        if numbers is None:
            numbers = self._numbers[array.name] = np.arange(array.value.size).reshape(array.value.shape)
        return [(array.name, int(number)) for number in np.ravel(numbers[where])]

    def _act(self, kind: Kind, op: Operation | None, outcome: str, *cells: Cell) -> None:
        if self._in_words and (op is not None or kind is Kind.Launch):
            self.actions.append(Action(self.steps[-1].part, kind, op, outcome, frozenset(cells)))
