"""What scratch memory holds that has not been read yet: a store over it may come too early."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from xdsl.ir import Operation

from pkc.diagnostics import Label, PkcError
from pkc.dialect.numeric import Values
from pkc.location import span_of
from pkc.sim import errors
from pkc.sim.array import Array, Where
from pkc.sim.conflicts import Task


class Unread:
    """For each element of the scratch arrays, the number of the store that was not read yet; 0 if there is none.

    The first load of an element counts, whoever it is from.
    """

    def __init__(self, arrays: Iterable[Array]) -> None:
        self._stored: dict[str, Values] = {
            array.name: np.zeros(array.value.shape, np.int32) for array in arrays if array.place.scratch
        }
        self._stores: list[tuple[Task, Operation]] = []

    def stored(self, array: Array, where: Where, task: Task, op: Operation) -> None:
        """Record a store; an error if it is over an element that has not been read since it was stored."""
        stored = self._stored.get(array.name)
        if stored is None:
            return
        before = np.asarray(stored[where])
        if before.any():
            first = tuple(int(i) for i in np.argwhere(before)[0])
            writer, earlier = self._stores[int(before[first]) - 1]
            label = Label(span_of(earlier.location), f"stored here by {writer}, and not read since")
            element = array.element(where, first)
            raise PkcError(errors.Overwritten(span_of(op.location), array.name, element, str(task), also=(label,)))
        self._stores.append((task, op))
        stored[where] = len(self._stores)

    def loaded(self, array: Array, where: Where) -> None:
        """Record a load."""
        stored = self._stored.get(array.name)
        if stored is not None:
            stored[where] = 0

    def begin_launch(self, array: Array, rank: int) -> None:
        """Forget what a rank's memory held: at the beginning of a launch it is undefined."""
        stored = self._stored.get(array.name)
        if stored is not None and not array.place.kept:
            stored[rank] = 0
