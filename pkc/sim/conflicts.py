"""The last writer of each element in the current phase: finds second writers, and reads of other tasks' elements."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import zip_longest
from typing import NamedTuple

import numpy as np
from xdsl.ir import Operation

from pkc.diagnostics import Label, PkcError
from pkc.dialect.by_table import ScatterStoreOp
from pkc.dialect.numeric import Values
from pkc.dialect.types import Layout
from pkc.location import span_of
from pkc.sim import errors
from pkc.sim.array import Array, Where

_BY_TASKS = "let one task of one rank own each element, or add with `+=`"
_OF_ONE_RANK = "let one task of one rank own each element, or add with `+=` into a `.shard` or `.replicate` array"
_BY_TABLE = "let each place be named once, a negative entry names none; or add with `+=`"


class Task(NamedTuple):
    """One task of one rank; `number` distinguishes equal indices of different statements.

    `names` has, for each index, what the source calls it, such as `i = ` or `m = block `.
    """

    rank: int
    number: int
    indices: tuple[int, ...]
    names: tuple[str, ...] = ()

    def __str__(self) -> str:
        if not self.indices:
            return f"rank {self.rank}"
        named = [f"{name}{index}" for name, index in zip_longest(self.names, self.indices, fillvalue="")]
        return f"rank {self.rank}, task ({', '.join(named)})"


class WriteLog:
    """For each element, the number of the store that wrote it last; numbers of earlier phases count as none."""

    def __init__(self, arrays: Iterable[Array]) -> None:
        self._last = {array.name: np.zeros(_tracked_shape(array), np.int32) for array in arrays}
        self._stores: list[tuple[Task, Operation]] = []
        self._before = 0

    def stored(self, array: Array, where: Where, task: Task, op: Operation) -> None:
        """Record a store; an error if another task has stored to one of the elements, or if a table names a place that
        this one has stored to: the threads of a task store to what tables name in no order."""
        place = _tracked(array, where)
        last = self._last[array.name]
        clash = self._of_others(last[place], None if isinstance(op, ScatterStoreOp) else task)
        if clash is not None:
            writer, earlier = self._stores[clash[1] - 1]
            element = array.element(where, clash[0])
            label = Label(span_of(earlier.location), f"and here by {writer}")
            of_one = array.place.layout is Layout.Symmetric  # to add from several ranks has no order there
            hint = _BY_TABLE if isinstance(op, ScatterStoreOp) else _OF_ONE_RANK if of_one else _BY_TASKS
            span = span_of(op.location)
            raise PkcError(errors.DoubleWrite(span, array.name, element, str(task), hint, also=(label,)))
        self._stores.append((task, op))
        last[place] = len(self._stores)

    def loaded(self, array: Array, where: Where, task: Task, op: Operation) -> None:
        """An error if another task has stored to one of the elements in this phase."""
        last = self._last.get(array.name)
        clash = None if last is None else self._of_others(last[_tracked(array, where)], task)
        if clash is None:
            return
        writer, earlier = self._stores[clash[1] - 1]
        label = Label(span_of(earlier.location), f"written here by {writer}")
        element = array.element(where, clash[0])
        raise PkcError(errors.ReadOfOther(span_of(op.location), array.name, element, str(task), also=(label,)))

    def end_phase(self) -> None:
        self._before = len(self._stores)

    def _of_others(self, last: Values, task: Task | None) -> tuple[tuple[int, ...], int] | None:
        """The first element that another task has written in this phase, and the number of its store."""
        last = np.asarray(last)
        if not last.size or last.max() <= self._before:
            return None
        for number in np.unique(last[last > self._before]):
            if self._stores[number - 1][0] != task:
                first = np.argwhere(last == number)[0]
                return tuple(int(i) for i in first), int(number)
        return None


def _tracked_shape(array: Array) -> tuple[int, ...]:
    shape = array.place.shape
    return (1, *shape[1:]) if array.place.layout is Layout.Replicate else shape


def _tracked(array: Array, where: Where) -> Where:
    """A replicated array is one: its copies share one record."""
    return (0, *where[1:]) if array.place.layout is Layout.Replicate else where
