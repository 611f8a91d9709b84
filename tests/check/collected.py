"""All protocols as an author could write them, of all modules beside this one."""

from __future__ import annotations

from tests.check import (
    at_sizes,
    branches,
    buffers,
    by_chance,
    groups,
    lists,
    more_right,
    more_wrong,
    protocols,
    rounds,
    sizes,
    unasked,
)
from tests.check.protocols import Right, Wrong

_BOTH = (buffers, groups, by_chance, sizes, lists, rounds, branches, at_sizes, unasked)

_WRONG = (protocols.WRONG, more_wrong.MORE_WRONG, *(each.WRONG for each in _BOTH))
_RIGHT = (protocols.RIGHT, more_right.MORE_RIGHT, *(each.RIGHT for each in _BOTH))

ALL_WRONG: dict[str, Wrong] = {name: wrong for those in _WRONG for name, wrong in those.items()}
ALL_RIGHT: dict[str, Right] = {name: right for those in _RIGHT for name, right in those.items()}

assert len(ALL_WRONG) == sum(map(len, _WRONG)) and len(ALL_RIGHT) == sum(map(len, _RIGHT)), "two have one name"
