"""What scratch memory holds that has not been read yet: a store over it may come too early."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from xdsl.ir import Attribute, Operation

from pkc.diagnostics import Label, PkcError
from pkc.dialect.numeric import Values
from pkc.dialect.program import PHASE
from pkc.location import span_of
from pkc.sim import errors
from pkc.sim.array import Array, Where
from pkc.sim.conflicts import Task


class Unread:
    """For each element of the scratch arrays, the number of the store that was not read yet; 0 if there is none.

    The first load of an element counts, whoever it is from.
    """

    def __init__(self, arrays: Collection[Array]) -> None:
        self._stored: dict[str, Values] = {
            array.name: np.zeros(array.value.shape, np.int32) for array in arrays if array.place.scratch
        }
        self._kept = {array.name for array in arrays if array.place.kept}
        self._stores: list[tuple[Task, Operation]] = []
        self._earlier: dict[int, int] = {}
        """By rank, how many stores there had been when its launch began."""

    def stored(self, array: Array, where: Where, task: Task, op: Operation) -> None:
        """Record a store; an error if it is over an element that has not been read since it was stored. What a later
        phase of a launch stores again, the program does."""
        stored = self._stored.get(array.name)
        if stored is None:
            return
        before = np.asarray(stored[where])
        early = [number for number in np.unique(before) if number and not self._is_of_phase_before(number, task, op)]
        if early:
            first = tuple(int(i) for i in np.argwhere(np.isin(before, early))[0])
            writer, earlier = self._stores[int(before[first]) - 1]
            label = Label(span_of(earlier.location), f"stored here by {writer}, and not read since")
            element = array.element(where, first)
            raise PkcError(errors.Overwritten(span_of(op.location), array.name, element, str(task), also=(label,)))
        self._stores.append((task, op))
        stored[where] = len(self._stores)

    def _is_of_phase_before(self, number: int, task: Task, op: Operation) -> bool:
        """Whether a store is of another phase of the same launch; phases come in their order."""
        return number > self._earlier.get(task.rank, 0) and _phase(self._stores[number - 1][1]) != _phase(op)

    def loaded(self, array: Array, where: Where) -> None:
        """Record a load."""
        stored = self._stored.get(array.name)
        if stored is not None:
            stored[where] = 0

    def begin_launch(self, array: Array, rank: int) -> None:
        """Forget what a rank's memory held: at the beginning of a launch it is undefined, unless it is kept."""
        self._earlier[rank] = len(self._stores)
        stored = self._stored.get(array.name)
        if stored is not None and array.name not in self._kept:
            stored[rank] = 0

    def emptied(self, rank: int) -> None:
        """Forget what a rank has stored in earlier launches to what is kept: it knows that all who read are done with
        them, and under a mask they may have left some unread."""
        stores = self._stores[: self._earlier.get(rank, 0)]
        over = np.array(
            [False, *(task.rank == rank for task, _ in stores)] + [False] * (len(self._stores) - len(stores))
        )
        for name in self._kept:
            stored = self._stored[name]
            stored[over[stored]] = 0


def _phase(op: Operation) -> Attribute | None:
    """The phase that an operation belongs to, in a kernel of several."""
    around: Operation | None = op
    while around is not None and PHASE not in around.attributes:
        around = around.parent_op()
    return None if around is None else around.attributes[PHASE]
