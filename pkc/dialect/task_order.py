"""The order of tasks: which indices the task of a number has. Plain integer functions."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence


def banded(number: int, height: int, width: int, rows: int) -> tuple[int, int]:
    """The indices of a task, below `height` and `width`, when tasks are numbered by bands of `rows` first indices.

    In a band, of which the last may have fewer rows, the first index runs fastest.
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
