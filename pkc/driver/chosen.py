"""What the autoschedule has chosen, in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from pkc.cost.estimate import Estimate
from pkc.remarks import Remark

Found: TypeAlias = tuple[Estimate, Mapping[str, str]]
"""An estimate, and the settings that it is of."""


@dataclass(frozen=True)
class Autoschedule:
    """The schedule that is chosen for a kernel, by key, and why."""

    schedule: Mapping[str, str] = field(default_factory=dict[str, str])
    taken: Estimate | None = None
    instead: Estimate | None = None
    reason: str = ""
    place: str = ""
    untried: tuple[str, ...] = ()
    """What was not tried, and why, though it might have been better."""
    remarks: tuple[Remark, ...] = ()
    """`untried` as remarks at the kernel."""
    others: tuple[Found, ...] = ()
    """What else was estimated."""
    usual: float = 0.0
    """An error that estimates may have without being called uncertain."""
    why: str = ""
    """Why it is taken though the program's is estimated to be faster."""
    why_not: str = "too small a gain"
    """Why none of the others is taken that is estimated to be faster."""
    asked: Mapping[str, str] = field(default_factory=dict[str, str])
    """What the caller sets in place of the program."""

    def __str__(self) -> str:
        as_it_is = f"as asked for, {_settings(self.asked)}" if self.asked else "as the program says"
        which = _settings(self.schedule) or as_it_is
        if self.taken is None:
            return f"{self.place}: schedule: {which} ({self.reason})"
        if self.instead is None:
            over = f"{_tasks(self.taken)}; estimated {_time(self.taken)}; {self.reason}"
        elif not self.schedule:
            over = f"{_tasks(self.taken)}; estimated {_time(self.taken)}{self._next_best()}"
        else:
            instead = f"{_tasks(self.taken)} instead of {self.instead.tasks}"
            over = f"{instead}; estimated {_time(self.taken)} against {_time(self.instead)}{self._though_slower()}"
        return f"{self.place}: schedule: {which} ({over}{self._give_or_take()})"

    def _though_slower(self) -> str:
        assert self.taken is not None and self.instead is not None
        slower = self.taken.total > self.instead.total and _time(self.taken) != _time(self.instead)
        return f": {self.why}" if self.why and slower else ""

    def _next_best(self) -> str:
        """What would have been best among the others, if they did not gain enough."""
        fitting = [found for found in self.others if found[0].stages > (not found[0].chained) and found[1]]
        if not fitting:
            return ""
        best, settings = min(fitting, key=lambda found: found[0].total)
        faster = self.taken is not None and best.total < self.taken.total
        doubt = f", not taken: {self.why_not}" if faster else ""
        return f"; best of {len(self.others)} others: {_settings(settings)}, {_time(best)}{doubt}"

    def _give_or_take(self) -> str:
        assert self.taken is not None
        if round(self.taken.error, 2) <= self.usual:
            return ""
        assumed = f", assuming {', '.join(self.taken.assumed)}" if self.taken.assumed else ""
        return f"; give or take {self.taken.error:.0%}{assumed}"


def _settings(schedule: Mapping[str, str]) -> str:
    return ", ".join(f"{key} = {value}" for key, value in schedule.items())


def _tasks(found: Estimate) -> str:
    return f"{found.tasks} task{'s' * (found.tasks != 1)} for {found.sms} SMs"


def _time(found: Estimate) -> str:
    return duration(found.total)


def duration(nanoseconds: float) -> str:
    """A time in three digits: in milliseconds from 1000 us on, in seconds from 1000 ms on."""
    value, unit = nanoseconds / 1e3, "us"
    for larger in ("ms", "s"):
        if value >= 999.5:  # printed as 1000
            value, unit = value / 1e3, larger
    return f"{value:.3g} {unit}" if value < 999.5 else f"{value:.0f} {unit}"
