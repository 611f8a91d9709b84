"""The memory of the reference: real values in float64, each with a bound on the program's error."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from pkc.dialect.declaration import OPERATIONS
from pkc.dialect.elementwise import AddOp, Binary
from pkc.dialect.error_bounds import FORMATS, LARGEST, narrowing
from pkc.dialect.numeric import Values
from pkc.dialect.ranges import Bounded
from pkc.dialect.types import f32
from pkc.sim.array import Array, Placement, Where, fitted, padded, within


class BoundedArray(Array):
    """An array that is never rounded; tiles are `Bounded`."""

    real: type[np.floating[Any]] = np.float64

    def __init__(self, place: Placement, content: Values | None, *, summed: bool, frozen: bool) -> None:
        super().__init__(place, content, summed=summed, frozen=frozen)
        self.error = None if frozen else np.zeros(place.shape)
        self.written = np.full(place.shape, summed)
        self.ordinary = content is None or not self.is_float or bool(np.isfinite(self.value).all())
        self.in_any_order = False
        """Whether contributions to sums are added as they come, each rounded."""
        self._added: Values | None = None
        self._size: Values | None = None

    def load(self, where: Where, shape: tuple[int, ...]) -> Bounded:
        error = None if self.error is None else padded(self.error[where], shape, copy=True)
        return Bounded(super().load(where, shape), _unless_zero(error), self.ordinary)

    def later(self, tile: Bounded, axis: int, count: int) -> Bounded:
        error = None if tile.error is None else super().later(tile.error, axis, count)
        return Bounded(super().later(tile.value, axis, count), error, tile.ordinary)

    def empty(self, shape: tuple[int, ...]) -> Bounded:
        error = None if self.error is None else np.zeros(shape)
        return Bounded(super().empty(shape), error, self.ordinary)

    def put(self, tile: Bounded, at: Sequence[int | None], where: Where) -> None:
        super().put(tile.value, at, where)
        if self.error is not None and tile.error is not None:
            view = self.error[where]
            tile.error[within(at, view.shape)] = view

    def piece_of(self, tile: Bounded, at: Sequence[int | None]) -> Bounded:
        error = None if tile.error is None else super().piece_of(tile.error, at)
        return Bounded(super().piece_of(tile.value, at), error, tile.ordinary)

    def as_float(self, tile: Bounded) -> Bounded:
        return Bounded(tile.value.astype(np.float64), tile.error, tile.ordinary)

    @cached_property
    def _since_stored(self) -> tuple[Values, Values, Values]:
        """Of each element since it was stored: additions, how large all of them and what was there may be together,
        and the sum of their errors."""
        return np.zeros(self.place.shape), np.zeros(self.place.shape), np.zeros(self.place.shape)

    def store(self, where: Where, tile: Bounded) -> None:
        self._put(where, self._fitted(where, tile))
        if "_since_stored" in self.__dict__:
            self._since_stored[0][where] = 0

    def add(self, where: Where, tile: Bounded) -> None:
        made = self._fitted(where, tile)
        if self.in_any_order and self.is_float:
            self._note(where, made)
        self._put(where, self._sum(self._at(where), made))

    def _note(self, where: Where, made: Bounded) -> None:
        """Count an addition, and add up how large the contributions may be, which no partial sum exceeds."""
        if self._added is None or self._size is None:
            self._added, self._size = np.zeros(self.place.shape), np.zeros(self.place.shape)
        self._added[where] += 1
        self._size[where] += np.abs(made.value) + _or_zero(made.error)

    def add_rounded(self, where: Where, tile: Bounded) -> None:
        here, made = self._at(where), self._fitted(where, tile)
        if not self.is_float:
            self._put(where, self._sum(here, made))
            return
        assert self.error is not None
        added, size, begun = self._since_stored
        fresh = added[where] == 0
        begun[where] = np.where(fresh, _or_zero(here.error), begun[where]) + _or_zero(made.error)
        size[where] = np.where(fresh, np.abs(here.value) + _or_zero(here.error), size[where])
        size[where] += np.abs(made.value) + _or_zero(made.error)
        added[where] += 1
        self._put(where, self._sum(here, made))
        self.error[where] = begun[where] + self._lost(added[where], size[where])

    def reduce(self, where: Where, shape: tuple[int, ...], combine: type[Binary]) -> Bounded:
        total = self._at((0, *where[1:]))
        for copy in range(1, self.place.copies):
            total = self._combined(combine, total, self._at((copy, *where[1:])))
        error = None if total.error is None else padded(total.error, shape, copy=True)
        return Bounded(padded(total.value, shape, copy=True), error, total.ordinary)

    def exactly(self, values: Values) -> Bounded:
        return Bounded(super().exactly(values), None, True)

    def sum_of(self, tiles: Sequence[Bounded], shape: tuple[int, ...]) -> Bounded:
        total = self.exactly(np.zeros(shape))
        for tile in tiles:
            total = self._sum(total, tile)
        if not self.is_float or self.place.element == f32:
            return total
        return narrowing(f32, self.place.element)(total.value, total)

    def store_everywhere(self, where: Where, tile: Bounded) -> None:
        for copy in range(self.place.copies):
            self.store((copy, *where[1:]), tile)
            self._round((copy, *where[1:]))

    def finish_sums(self) -> None:
        if self._added is None or self._size is None:
            self._round((slice(None),))
            return
        assert self.error is not None
        self.error += self._lost(self._added, self._size)
        self._added = self._size = None

    def _lost(self, added: Values, size: Values) -> Values:
        """What roundings lose in any order: each of n additions gives a partial sum, at most the `size` of all that is
        added with the errors so far."""
        form = FORMATS[self.place.element]
        with np.errstate(all="ignore"):
            largest = size * (1 + form.unit) ** added
            lost = np.asarray(added * (form.unit * largest + form.half_step))
            lost[largest > LARGEST[self.place.element]] = np.inf
        return lost

    def _sum(self, a: Bounded, b: Bounded) -> Bounded:
        return self._combined(AddOp, a, b)

    def _combined(self, combine: type[Binary], a: Bounded, b: Bounded) -> Bounded:
        declared = OPERATIONS[combine]
        value = declared.value(a.value, b.value)
        if self.is_float:
            assert declared.real is not None
            return declared.real(value, a, b)
        errors = np.add if combine is AddOp else np.maximum
        return Bounded(value, errors(_or_zero(a.error), _or_zero(b.error)), True)

    def _round(self, where: Where) -> None:
        if not self.is_float or self.place.element == f32:
            return
        here = self._at(where)
        self._put(where, narrowing(f32, self.place.element)(here.value, here))

    def _at(self, where: Where) -> Bounded:
        error = None if self.error is None else self.error[where]
        return Bounded(self.value[where], _unless_zero(error), self.ordinary)

    def _put(self, where: Where, made: Bounded) -> None:
        assert self.error is not None
        self.value[where], self.error[where] = made.value, _or_zero(made.error)
        self.written[where] = True
        self.ordinary &= made.ordinary

    def _fitted(self, where: Where, tile: Bounded) -> Bounded:
        shape = self.value[where].shape
        value = np.broadcast_to(fitted(tile.value, shape, where), shape)
        error = None if tile.error is None else np.broadcast_to(fitted(tile.error, shape, where), shape)
        return Bounded(value, error, tile.ordinary)


def _unless_zero(error: Values | None) -> Values | None:
    return None if error is None or not error.any() else error


def _or_zero(error: Values | None) -> Values | float:
    return 0.0 if error is None else error
