"""Which of several estimated schedules is taken."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pkc.cost.estimate import Estimate
from pkc.driver.chosen import Found
from pkc.targets.arch import Tuning
from pkc.targets.target import Target

_SAME = 1.001
"""Times of streams that differ by less than this factor have the same limit, memory or power: rounding aside."""


def better(
    now: Found,
    others: Sequence[Found],
    compiles: Callable[[Estimate, Mapping[str, str]], bool],
    tuning: Tuning,
    gain: float,
    *,
    launch: float = 0.0,
) -> Found:
    """The best of `others` that compiles, if it takes at most `gain` of the time of `now`, `launch` aside; or `now`."""
    if now[0].streamed:
        return _best_stream([*([now] if now[0].stages or not others else []), *others], now, compiles, tuning, launch)
    enough = (found for found in others if found[0].stages > (not found[0].chained))
    worth = [found for found in enough if found[0].total - launch <= gain * (now[0].total - launch)]
    return next((found for found in sorted(worth, key=_cheapest(worth, tuning)) if compiles(*found)), now)


def _best_stream(
    several: Sequence[Found],
    now: Found,
    compiles: Callable[[Estimate, Mapping[str, str]], bool],
    tuning: Tuning,
    launch: float,
) -> Found:
    """The fastest that compiles; among times as good as equal, as where memory is the limit, the one whose SMs are busy
    for the least time; then the one with the smallest stages: more of these hide what loads take when they are late.
    If it has as few stages as are enough, the same tiles with a shorter step have more of them: the shortest in as good
    as equal time. `now` is taken as it is."""
    best = _SAME * min(found.total - launch for found, _ in several)
    least = tuning.as_busy_streams * min(found.busy for found, _ in several if found.total - launch <= best)

    def preferred(one: Found) -> tuple[float, float, int, float]:
        found = one[0]
        return max(found.total - launch, best), max(found.busy, least), found.stage, found.total

    def fits(one: Found) -> bool:
        return one is now or compiles(*one)

    taken = next(filter(fits, sorted(several, key=preferred)), now)
    if taken[0].stages > tuning.stream_stages:
        return taken
    most = tuning.equal * (taken[0].total - launch)
    shorter = [one for one in several if _shortens(one, taken) and one[0].total - launch <= most]
    return next(filter(fits, sorted(shorter, key=lambda one: one[0].stage)), taken)


def _shortens(one: Found, other: Found) -> bool:
    """Whether a schedule differs from another one in one key alone, has as many tasks, and smaller stages: its loops
    have a shorter step."""
    (found, settings), (instead, given) = one, other
    changed = [key for key in settings.keys() | given.keys() if given.get(key) != settings.get(key)]
    return found.tasks == instead.tasks and found.stage < instead.stage and len(changed) == 1


def best_flow(
    now: Found,
    others: Sequence[Found],
    compiles: Callable[[Estimate, Mapping[str, str]], bool],
    tuning: Tuning,
    gain: float,
    *,
    launch: float,
) -> Found:
    """The fastest that compiles of what only goes through threads; among times as good as equal, as where memory is the
    limit, the one whose tiles have the most stages: these hide what is late. `now` is taken as it is, and not if others
    need at most `gain` of its time."""
    fitting = [found for found in others if found[0].stages]
    fastest = min((found.total - launch for found, _ in fitting), default=float("inf"))
    stays = now[0].stages and fastest > gain * (now[0].total - launch)
    several = [now, *fitting] if stays or not fitting else fitting
    best = tuning.equal * min(found.total - launch for found, _ in several)

    def preferred(one: Found) -> tuple[bool, int, float]:
        time = one[0].total - launch
        return time > best, -one[0].stages * (time <= best), time

    return next((one for one in sorted(several, key=preferred) if one is now or compiles(*one)), now)


def _cheapest(worth: Sequence[Found], tuning: Tuning) -> Callable[[Found], tuple[float, float, int, float]]:
    """The order of preference: among times as good as equal the least work for SMs, then the largest tiles."""
    best = tuning.equal * min((found.total for found, _ in worth), default=0.0)
    least = tuning.as_busy * min((found.busy for found, _ in worth if found.total <= best), default=0.0)
    return lambda found: (
        max(found[0].total, best),
        max(found[0].busy, least),
        found[0].tasks,
        found[0].iterations,
    )


def has_stages(found: Estimate) -> bool:
    """Whether there is room for the stages without which any other tiles are better: one, or two where MMAs that need
    one another are pipelined."""
    return found.stages > found.chained


def careful(gain: float, doubt: float, target: Target) -> float:
    """The share of the time that is enough of a gain: less, the less sure estimates are."""
    usual = target.rates.error_of_mmas
    return gain * (1 + usual) / (1 + max(usual, doubt))
