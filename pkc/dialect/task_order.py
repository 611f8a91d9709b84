"""The order of tasks: from the number of a task to its indices. Plain integer functions."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence


def banded(number: int, height: int, width: int, rows: int) -> tuple[int, int]:
    """The indices of a task, below `height` and `width`, when tasks are numbered by bands of `rows` first indices.

    Within a band the first index runs fastest. The last band may have fewer rows.
    """
    band, inside = divmod(number, width * rows)
    column, row = divmod(inside, min(height - band * rows, rows))
    return band * rows + row, column


def in_order(counts: Sequence[int], rows: int | None) -> Iterable[tuple[int, ...]]:
    """The indices of all tasks in the order of their numbers; without bands the last index runs fastest."""
    if rows is None:
        return itertools.product(*map(range, counts))
    height, width = counts
    bands = ((first, min(first + rows, height)) for first in range(0, height, rows))
    return ((row, column) for first, end in bands for column, row in itertools.product(range(width), range(first, end)))


def in_order_from(first: int, step: int, counts: Sequence[int], rows: int | None) -> Iterable[tuple[int, ...]]:
    """The same of the tasks number `first`, `first + step`, and so on."""
    numbers = range(first, math.prod(counts), step)
    if rows is not None:
        height, width = counts
        return (banded(number, height, width, rows) for number in numbers)
    return (_indices(number, counts) for number in numbers)


def _indices(number: int, counts: Sequence[int]) -> tuple[int, ...]:
    *outer, last = counts
    return (*_indices(number // last, outer), number % last) if outer else (number,)
