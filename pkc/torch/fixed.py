"""Sums over ranks whose bits do not change with the number of ranks."""

from __future__ import annotations

import contextlib
import importlib
import math
from collections.abc import Callable, Generator
from typing import Any

from pkc.torch import kernels, plain
from pkc.torch.launches import Launch, aligned, loaded, place_on
from pkc.torch.shapes import Flat

torch: Any = importlib.import_module("torch")

_splits: int | None = None


@contextlib.contextmanager
def fixed_order(splits: int) -> Generator[None]:
    """Within this, matmul + reduce-scatter and matmul + all-reduce have the same bits on any number of ranks that
    divides `splits`.

    The inner dimension of all ranks together is cut into so many parts. The product of each part is rounded to the
    type of the result, and they are added in their order, in f32 or wider. Ranks exchange all parts, and nothing
    overlaps: that is the price. It counts for all threads, and for gradients that are computed within it. Raises
    `ValueError` unless `splits` is greater than 0.
    """
    global _splits  # noqa: PLW0603
    if splits < 1:
        raise ValueError(f"splits is {splits}; it must be greater than 0")
    before, _splits = _splits, splits
    try:
        yield
    finally:
        _splits = before


def splits() -> int | None:
    """The number of parts that sums have; `None` if their order is not fixed."""
    return _splits


def parts_of(ranks: int, inner: int) -> int:
    """How many parts each rank has of `inner` columns of its A. Raises `ValueError` if these cannot be shared out."""
    count = _splits or 1
    if count % ranks or inner % (count // ranks):
        raise ValueError(f"{count} parts cannot be shared by {ranks} ranks, each with {inner} columns of A")
    return count // ranks


class FixedSum:
    """What `fused.MatmulSum` does, in an order that does not depend on the ranks."""

    def __init__(
        self, a: Any, right: Any, form: Flat, group: str, ranks: int, *, scatter: bool, average: bool, kernel: bool
    ) -> None:
        inner = right.shape[0]
        self._parts = parts_of(ranks, inner)
        self._form, self._mine = form, form.over(ranks) if scatter else form
        self._ranks, self._group, self._scatter, self._average = ranks, group, scatter, average
        self._step, self._shape = inner // self._parts, (math.prod(form.rows), right.shape[1])
        self._multiply = self._kernel(a) if kernel else torch.mm

    def __call__(self, a: Any, right: Any) -> Any:
        matrix = self._form.of(a)
        mine = matrix.new_empty((self._parts, *self._shape))
        for number in range(self._parts):
            inner = slice(number * self._step, (number + 1) * self._step)
            self._multiply(matrix[:, inner].contiguous(), right[inner].contiguous(), out=mine[number])
        first, *others = self._exchanged(mine).unbind()
        total = first.to(torch.promote_types(first.dtype, torch.float32))
        for other in others:
            total += other
        return self._mine.back((total / self._ranks if self._average else total).to(a.dtype))

    def _exchanged(self, mine: Any) -> Any:
        """The parts of all ranks in order, of the rows that this rank adds up."""
        if not self._scatter:
            return plain.gather(mine, 0, self._ranks, self._group)
        rows = mine.unflatten(1, (self._ranks, -1)).transpose(0, 1)
        return plain.exchange(rows, self._ranks, self._group).flatten(0, 1)

    def _kernel(self, a: Any) -> Callable[..., None]:
        program = kernels.matmul(kernels.type_name(a.dtype)).tree
        dims = {"M": self._shape[0], "K": self._step, "N": self._shape[1]}
        launch = Launch(loaded(place_on(a.device.index), program, dims), "ABC", {})

        def multiply(left: Any, right: Any, *, out: Any) -> None:
            found = aligned(out)
            launch(left, right, found)
            if found is not out:
                out.copy_(found)

        return multiply
