"""The smallest run in which a kernel's protocol fails, in the user's lines."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from pkc.check.run import Baseline, Replay, Trial, Trials, baseline_of
from pkc.diagnostics import Diagnostic, PkcError
from pkc.driver.compiler import Compiled
from pkc.semantics.errors import BoundOutOfRange, IndexOutOfRange, RankOutOfRange
from pkc.sim import errors
from pkc.sim.draw import draw_inputs, tables_given_to
from pkc.sim.explore import Explored
from pkc.sim.small import small_dims
from pkc.sim.steps import steps_to
from pkc.sim.work import TooLongError

CTAS = (1, 2)
"""As many CTAs run each role when all orders are simulated."""

STEPS = 100
"""As many steps of a run of average length, by which the number of steps of an exploration is bounded too."""

SECONDS = 10.0
"""How long smaller runs that fail are looked for."""

_MOST_STEPS = 20_000
"""As many steps at most are explored of each instance that is looked at."""

_SEEDS = 10
"""As many orders are tried of each instance that is smaller than the one that has failed."""

ADDRESSES = (IndexOutOfRange, RankOutOfRange, BoundOutOfRange, errors.NoSuchShard)
"""What a program may do for the sizes of a small instance alone, if its text or its data have other sizes in mind."""


@dataclass(frozen=True)
class Exploration:
    """All orders of a small instance: how many runs that took, and whether these were all, for each number of CTAs."""

    ranks: int
    dims: Mapping[str, int]
    explored: tuple[Explored, ...]
    meant: bool = True
    """Whether the program, without what is derived of it, makes sense for these sizes."""

    @property
    def complete(self) -> bool:
        return all(explored.complete for explored in self.explored)

    @property
    def runs(self) -> int:
        return sum(explored.runs for explored in self.explored)

    @property
    def found(self) -> list[Diagnostic]:
        """What one of the runs has found, if any."""
        return [finding for explored in self.explored for finding in explored.found]

    def is_found_on(self, ranks: int) -> bool:
        """Whether what was found is wrong on so many ranks too, and not for want of ranks or elements.

        It is if some orders are without findings. Otherwise only an instance of so many ranks can tell; and no small
        one, if dimensions of the program depend on each other in a way that its text does not say.
        """
        if not self.meant:
            return False
        in_every_order = bool(self.explored[0].found) and self.explored[0].runs == 1
        return not in_every_order or not (self.ranks < ranks or isinstance(self.found[0], ADDRESSES))


@dataclass(frozen=True)
class Counterexample:
    """A run that ends with findings: how large it is, and what leads there, in lines."""

    size: str
    found: list[Diagnostic]
    lines: list[str]


@dataclass
class Search:
    """How long a smaller run that fails may be looked for, and whether that was too short."""

    seconds: float = SECONDS
    stopped: bool = False
    began: float = field(default_factory=time.monotonic)

    def goes_on(self) -> bool:
        """Whether there is time left; if not, the search was stopped."""
        self.stopped = self.stopped or time.monotonic() - self.began > self.seconds
        return not self.stopped


Alike: TypeAlias = Callable[[Counterexample], bool]
"""Whether a run shows what has been found elsewhere."""


def instance(tile: Compiled, ranks: int, dims: Mapping[str, int], seed: int = 0) -> Baseline:
    """Inputs and right outputs of a kernel for some sizes; inputs only, where an author's roles fail already."""
    try:
        return baseline_of(tile, ranks=ranks, dims=dims, seed=seed)
    except TooLongError:
        raise
    except PkcError:
        inputs = draw_inputs(tile.module, ranks=ranks, dims=dims, seed=seed, both_sides=True)
        return Baseline(ranks, dims, [inputs], [], seed)


def explore_small(tile: Compiled, roles: Compiled, ranks: int, most: int) -> Exploration:
    """Simulate every order of a small instance; at most `most` runs for each number of CTAs, of `STEPS` steps each on
    average."""
    baseline = instance(tile, ranks, small_dims(tile.kernel, ranks, few_tasks=True))
    explored: list[Explored] = []
    for ctas in CTAS:
        explored.append(Trials(roles.kernel, baseline).explore(ctas, most, most * STEPS))
        if explored[-1].found:
            break
    meant = bool(baseline.outputs) or bool(tile.kernel.roles)
    return Exploration(baseline.ranks, baseline.dims, tuple(explored), meant)


def same_as(wanted: Diagnostic) -> Alike:
    """A finding of the same kind about the same line. Of two accesses either may come second."""
    lines = _lines(wanted)
    return lambda example: example.found[0].code == wanted.code and bool(_lines(example.found[0]) & lines)


def follows_from(wanted: Iterable[Diagnostic]) -> Alike:
    """A finding of any kind, in a run that comes through a line that one of `wanted` is about; but not that the run is
    too small."""
    wanted = list(wanted)
    lines = frozenset[tuple[str, int]]().union(*map(_lines, wanted))
    codes = {finding.code for finding in wanted}
    places = [re.compile(rf"\b{re.escape(Path(name).name)}:{line}\b") for name, line in lines]

    def follows(example: Counterexample) -> bool:
        if isinstance(example.found[0], ADDRESSES) and example.found[0].code not in codes:
            return False
        through = any(place.search(step) for place in places for step in example.lines)
        return through or bool(_lines(example.found[0]) & lines)

    return follows


def _lines(found: Diagnostic) -> frozenset[tuple[str, int]]:
    return frozenset((span.source.name, span.line) for span in (found.span, *(label.span for label in found.also)))


def counterexample(
    tile: Compiled,
    roles: Compiled,
    most: int,
    baseline: Baseline,
    failed: Trial | None,
    alike: Alike,
    search: Search | None = None,
) -> Counterexample | None:
    """The first run that is `alike`, smaller instances first, as long as the search goes on; `failed` is one of the
    instance of `baseline`."""
    search = search or Search()
    for smaller in _smaller(tile, baseline):
        trials = Trials(roles.kernel, smaller)
        for trial in _attempts(trials, most, search):
            example = _replayed(trials, roles, smaller, trial)
            if example is not None and alike(example):
                return example
        if not search.goes_on():
            break
    if failed is None:
        return None
    example = _replayed(Trials(roles.kernel, baseline), roles, baseline, failed)
    return example if example is not None and alike(example) else None


def _replayed(trials: Trials, roles: Compiled, baseline: Baseline, trial: Trial | Replay) -> Counterexample | None:
    found, trace = trials.replay(trial)
    if not found:
        return None
    return Counterexample(_size(baseline, trial), found, steps_to(trace, found[0], roles.kernel, baseline.ranks))


def _smaller(tile: Compiled, baseline: Baseline) -> Iterator[Baseline]:
    """Smaller instances; or this one, if a caller says what is in its tables."""
    if tables_given_to(tile.kernel):
        yield baseline
        return
    for ranks in range(min(2, baseline.ranks), baseline.ranks + 1):
        yield instance(tile, ranks, small_dims(tile.kernel, ranks, few_tasks=True), baseline.seed)


def _attempts(trials: Trials, most: int, search: Search) -> Iterator[Trial | Replay]:
    """Orders that fail: one found by exploration, then some of seeds, as long as the search goes on."""
    for ctas in CTAS:
        if not search.goes_on():
            return
        explored = trials.explore(ctas, most, _MOST_STEPS)
        if explored.found:
            yield Replay(ctas, explored.choices)
    for seed in range(_SEEDS):
        trial = Trial(1 + seed % 2, seed)
        if search.goes_on() and trials.check(trial):
            yield trial


def _size(baseline: Baseline, trial: Trial | Replay) -> str:
    sizes = "".join(f", {name} = {size}" for name, size in baseline.dims.items())
    ranks = "1 rank" if baseline.ranks == 1 else f"{baseline.ranks} ranks"
    ctas = "1 CTA" if trial.ctas == 1 else f"{trial.ctas} CTAs"
    return f"{ranks}, {ctas} for each role{sizes}"
