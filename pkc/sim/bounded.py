"""The memory of the reference: real values in float64, each with a bound on the program's error."""

from __future__ import annotations

from typing import Any

import numpy as np

from pkc.dialect.error_bounds import Bounded, rounded
from pkc.dialect.numeric import FORMATS, UNIT, Values
from pkc.dialect.types import f32
from pkc.sim.array import Array, Placement, Where, fitted, padded


class BoundedArray(Array):
    """An array that is never rounded; tiles are `Bounded`."""

    real: type[np.floating[Any]] = np.float64

    def __init__(self, place: Placement, content: Values | None, *, summed: bool, frozen: bool) -> None:
        super().__init__(place, content, summed=summed, frozen=frozen)
        self.error = np.zeros(place.shape) if self.is_float and not frozen else None
        self.written = np.full(place.shape, summed)

    def load(self, where: Where, shape: tuple[int, ...]) -> Bounded:
        error = None if self.error is None else padded(self.error[where], shape, copy=True)
        return Bounded(super().load(where, shape), error)

    def empty(self, shape: tuple[int, ...]) -> Bounded:
        return Bounded(super().empty(shape), None if self.error is None else np.zeros(shape))

    def put_row(self, tile: Bounded, row: int, where: Where) -> None:
        super().put_row(tile.value, row, where)
        if self.error is not None and tile.error is not None:
            view = self.error[where]
            tile.error[(row, *map(slice, view.shape))] = view

    def row_of(self, tile: Bounded, row: int) -> Bounded:
        return Bounded(tile.value[row], None if tile.error is None else tile.error[row])

    def as_float(self, tile: Bounded) -> Bounded:
        return Bounded(tile.value.astype(np.float64), tile.error)

    def store(self, where: Where, tile: Bounded) -> None:
        super().store(where, tile.value)
        self.written[where] = True
        if self.error is not None:
            self.error[where] = self._fitted_error(where, tile)

    def add(self, where: Where, tile: Bounded) -> None:
        super().add(where, tile.value)
        self.written[where] = True
        if self.error is not None:
            self.error[where] += self._fitted_error(where, tile) + UNIT * np.abs(self.value[where])

    def add_rounded(self, where: Where, tile: Bounded) -> None:
        self.add(where, tile)
        self._round(where)

    def reduce(self, where: Where, shape: tuple[int, ...]) -> Bounded:
        value = self.value[(slice(None), *where[1:])].sum(axis=0, dtype=self.dtype)
        error = None
        if self.error is not None:
            every = (slice(None), *where[1:])
            # Each copy takes part in fewer additions than there are copies.
            sizes = np.abs(self.value[every]) * (UNIT * self.place.copies) + self.error[every]
            error = padded(sizes.sum(axis=0), shape, copy=False)
        return Bounded(padded(value, shape, copy=False), error)

    def store_everywhere(self, where: Where, tile: Bounded) -> None:
        for copy in range(self.place.copies):
            self.store((copy, *where[1:]), tile)
            self._round((copy, *where[1:]))

    def finish_sums(self) -> None:
        self._round((slice(None),))

    def _round(self, where: Where) -> None:
        if self.error is None or self.place.element == f32:
            return
        form = FORMATS[self.place.element]
        self.error[where] = rounded(self.value[where], self.error[where], form.unit, form.half_step)

    def _fitted_error(self, where: Where, tile: Bounded) -> Values | float:
        return 0.0 if tile.error is None else fitted(tile.error, self.value[where].shape, where)
