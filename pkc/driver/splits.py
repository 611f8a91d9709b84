"""Into how many splits the autoschedule divides the loops of a few long tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from math import inf
from typing import TypeAlias

from xdsl.dialects import scf
from xdsl.dialects.builtin import BoolAttr

from pkc.diagnostics import PkcError
from pkc.driver.better import careful
from pkc.driver.chosen import Autoschedule
from pkc.driver.planned_candidates import Candidate
from pkc.driver.search import Asked, compiles
from pkc.frontend.elaborate import build_module
from pkc.frontend.schedule import SPLIT
from pkc.passes.tile.split_loops import goes_through

MAY_SPLIT = "splits"
"""The key of a schedule that says whether loops may be divided though it does not say how often."""

_NUMBERS = (2, 4, 8, 16, 32, 64, 128)

Settings: TypeAlias = Mapping[str, str]


def with_splits(
    asked: Asked, base: Candidate, found: Autoschedule, again: Callable[[Asked], Autoschedule]
) -> Autoschedule:
    """What is found, or a schedule with splits, where tasks leave SMs idle and splits are estimated to be faster.

    `again` finds the rest of a schedule with twice as many splits each time, as long as that gains.
    """
    if not _leaves_sms_idle(asked, base, found):
        return found
    now = found.taken
    assert now is not None
    worth = now.launch + careful(asked.target.tuning.gain_of_splits, now.doubt, asked.target) * (now.total - now.launch)
    several = [one for key in _keys(asked) for one in _divided(asked, key, again)]
    others = (*found.others, *((one.taken, schedule) for one, schedule in several if one.taken is not None))
    for one, schedule in sorted(several, key=lambda pair: _total(pair[0])):
        if _total(one) <= worth and compiles(asked, schedule):
            return replace(one, schedule=schedule, instead=found.instead or now, others=others)
    return replace(found, others=others)


def _divided(asked: Asked, key: str, again: Callable[[Asked], Autoschedule]) -> Iterator[tuple[Autoschedule, Settings]]:
    """What is found for more and more splits of a dimension, up to the first that gains nothing; nothing if its loops
    cannot be divided."""
    best = inf
    for number in _NUMBERS:
        more = {key: str(number)}
        try:
            found = again(replace(asked, schedule=(*asked.schedule, *more.items())))
        except PkcError:
            return
        yield found, {**more, **found.schedule}
        if _total(found) >= best:
            return
        best = _total(found)


def _leaves_sms_idle(asked: Asked, base: Candidate, found: Autoschedule) -> bool:
    """Whether a kernel of one rank computes for long with few SMs, and nobody has said how its loops are divided."""
    now, tuning = found.taken, asked.target.tuning
    said = base.kernel.schedule
    if said.get(MAY_SPLIT) == BoolAttr.from_bool(False) or any(key.startswith(SPLIT) for key in said):
        return False
    if asked.ranks > 1 or now is None:
        return False
    tasks = min(now.tasks, (found.instead or now).tasks)
    few = now.rounds <= 1 and 4 * tasks <= 3 * now.sms
    return few and now.busy > tuning.idle * now.memory and now.total - now.launch > tuning.splits_from


def _keys(asked: Asked) -> list[str]:
    """A key of the schedule for each dimension and constant that a loop goes through."""
    module = build_module(
        asked.program, kernel=asked.kernel, constants=dict(asked.constants), options=dict(asked.schedule)
    )
    found = (name for op in module.walk() if isinstance(op, scf.ForOp) for name in goes_through(op))
    return [f"{SPLIT}{name}" for name in dict.fromkeys(found)]


def _total(found: Autoschedule) -> float:
    return inf if found.taken is None else found.taken.total
