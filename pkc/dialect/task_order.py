"""The order of tasks: from the number of a task to its indices. Plain integer functions."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence


def banded(number: int, counts: Sequence[int], rows: int) -> tuple[int, ...]:
    """The indices of a task, below `counts`, when tasks are numbered by bands of `rows` rows.

    All indices but the last number the rows, the last one the columns. Within a band the row runs fastest. The last
    band may have fewer rows.
    """
    *outer, width = counts
    band, inside = divmod(number, width * rows)
    column, row = divmod(inside, min(math.prod(outer) - band * rows, rows))
    return *_indices(band * rows + row, outer), column


def in_order(counts: Sequence[int], rows: int | None) -> Iterable[tuple[int, ...]]:
    """The indices of all tasks in the order of their numbers; without bands the last index runs fastest."""
    if rows is None:
        return itertools.product(*map(range, counts))
    *outer, width = counts
    places = list(itertools.product(*map(range, outer)))
    bands = (places[first : first + rows] for first in range(0, len(places), rows))
    return ((*row, column) for band in bands for column, row in itertools.product(range(width), band))


def back_and_forth(number: int, total: int, step: int) -> int:
    """The number in whose place a task comes: of each second round of `step` tasks the last comes first.

    So whoever gets the longest of one round gets the shortest of the next. A round with fewer tasks stays as it is.
    """
    begin = number - number % step
    turns = number // step % 2 == 1 and begin + step <= total
    return 2 * begin + step - 1 - number if turns else number


def in_order_from(
    first: int, step: int, counts: Sequence[int], rows: int | None, *, turns: bool = False
) -> Iterable[tuple[int, ...]]:
    """The same of the tasks number `first`, `first + step`, and so on; with `turns` those that come in their places."""
    total = math.prod(counts)
    numbers: Iterable[int] = range(first, total, step)
    if turns:
        numbers = (back_and_forth(number, total, step) for number in numbers)
    if rows is not None:
        return (banded(number, counts, rows) for number in numbers)
    return (_indices(number, counts) for number in numbers)


def _indices(number: int, counts: Sequence[int]) -> tuple[int, ...]:
    *outer, last = counts
    return (*_indices(number // last, outer), number % last) if outer else (number,)
