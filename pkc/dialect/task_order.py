"""The order of tasks: from the number of a task to its indices. Plain integer functions."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence


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


def sharer(number: int, counts: Sequence[int], rows: int | None, shares: int) -> int:
    """Who of `shares` takes a task when they go through each band back and forth, and begin every other one backwards.

    So nobody gets the longest task of every round, wherever bands end. After two bands they change places, as some may
    get long tasks alone of every other band: with 128 long and 128 short ones, four of 124 get two long ones.
    """
    band, inside = divmod(number, _band(counts, rows))
    turn, place = divmod(inside, shares)
    forth = place if (turn + band) % 2 == 0 else shares - 1 - place
    return (forth - moved(band, shares)) % shares


def moved(band: int, shares: int) -> int:
    """How many places further on a share begins a band than the first one. 5 of 13 is near the golden section, so that
    few bands come near each other."""
    return band // 2 * (shares * 5 // 13)


def back_and_forth(share: int, shares: int, counts: Sequence[int], rows: int | None) -> Iterator[int]:
    """The numbers of the tasks of which `sharer` is `share`, in their order."""
    total, size = math.prod(counts), _band(counts, rows)
    for band, begin in enumerate(range(0, total, size)):
        length, first = min(size, total - begin), (share + moved(band, shares)) % shares
        for turn, at in enumerate(range(0, length, shares)):
            place = first if (turn + band) % 2 == 0 else shares - 1 - first
            if at + place < length:
                yield begin + at + place


def _band(counts: Sequence[int], rows: int | None) -> int:
    """Tasks of a whole band, or all without bands; at least one."""
    return max(1, math.prod(counts) if rows is None else counts[-1] * rows)


def in_order_from(
    first: int, step: int, counts: Sequence[int], rows: int | None, *, turns: bool = False
) -> Iterable[tuple[int, ...]]:
    """The same of the tasks number `first`, `first + step`, and so on; with `turns` of the share `first` of `step` that
    go back and forth."""
    numbers = back_and_forth(first, step, counts, rows) if turns else range(first, math.prod(counts), step)
    if rows is not None:
        return (banded(number, counts, rows) for number in numbers)
    return (_indices(number, counts) for number in numbers)


def _indices(number: int, counts: Sequence[int]) -> tuple[int, ...]:
    *outer, last = counts
    return (*_indices(number // last, outer), number % last) if outer else (number,)
