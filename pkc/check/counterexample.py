"""The smallest run in which a kernel's protocol fails, in the user's lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pkc.check.run import Baseline, Replay, Trial, Trials, baseline_of
from pkc.diagnostics import Diagnostic, PkcError
from pkc.driver.compiler import Compiled
from pkc.sim.draw import draw_inputs
from pkc.sim.explore import Explored
from pkc.sim.small import small_dims
from pkc.sim.steps import steps_to

CTAS = (1, 2)
"""As many CTAs run each role when all orders are simulated."""

_SEEDS = 10
"""As many orders are tried of each instance that is smaller than the one that has failed."""


@dataclass(frozen=True)
class Exploration:
    """All orders of a small instance: how many runs that took, and whether these were all, for each number of CTAs."""

    ranks: int
    dims: Mapping[str, int]
    explored: tuple[Explored, ...]

    @property
    def complete(self) -> bool:
        return all(explored.complete for explored in self.explored)

    @property
    def found(self) -> list[Diagnostic]:
        """What one of the runs has found, if any."""
        return [finding for explored in self.explored for finding in explored.found]


@dataclass(frozen=True)
class Counterexample:
    """A run that ends with findings: how large it is, and what leads there, in lines."""

    size: str
    found: list[Diagnostic]
    lines: list[str]


def instance(tile: Compiled, ranks: int, dims: Mapping[str, int]) -> Baseline:
    """Inputs and right outputs of a kernel for some sizes; inputs only, where an author's roles fail already."""
    try:
        return baseline_of(tile, ranks=ranks, dims=dims)
    except PkcError:
        return Baseline(ranks, dims, [draw_inputs(tile.module, ranks=ranks, dims=dims, seed=0)], [])


def explore_small(tile: Compiled, roles: Compiled, ranks: int, most: int) -> Exploration:
    """Simulate every order of a small instance on at most two ranks; at most `most` runs for each number of CTAs."""
    ranks = min(ranks, 2)
    baseline = instance(tile, ranks, small_dims(tile.kernel, ranks))
    explored: list[Explored] = []
    for ctas in CTAS:
        explored.append(Trials(roles.kernel, baseline).explore(ctas, most))
        if explored[-1].found:
            break
    return Exploration(baseline.ranks, baseline.dims, tuple(explored))


def counterexample(
    tile: Compiled, roles: Compiled, most: int, baseline: Baseline, failed: Trial | None
) -> Counterexample | None:
    """The first run that fails, smaller instances first; `failed` is one that does, of the instance of `baseline`."""
    for smaller in _smaller(tile, baseline):
        trials = Trials(roles.kernel, smaller)
        for trial in _attempts(trials, most):
            found, trace = trials.replay(trial)
            if found:
                return Counterexample(
                    _size(smaller, trial), found, steps_to(trace, found[0], roles.kernel, smaller.ranks)
                )
    if failed is None:
        return None
    found, trace = Trials(roles.kernel, baseline).replay(failed)
    if not found:
        return None
    return Counterexample(_size(baseline, failed), found, steps_to(trace, found[0], roles.kernel, baseline.ranks))


def _smaller(tile: Compiled, baseline: Baseline) -> Iterator[Baseline]:
    for ranks in range(min(2, baseline.ranks), baseline.ranks + 1):
        yield instance(tile, ranks, small_dims(tile.kernel, ranks))


def _attempts(trials: Trials, most: int) -> Iterator[Trial | Replay]:
    """Orders that fail: one found by exploration, then some of seeds."""
    for ctas in CTAS:
        explored = trials.explore(ctas, most)
        if explored.found:
            yield Replay(ctas, explored.choices)
    for seed in range(_SEEDS):
        trial = Trial(1 + seed % 2, seed)
        if trials.check(trial):
            yield trial


def _size(baseline: Baseline, trial: Trial | Replay) -> str:
    sizes = "".join(f", {name} = {size}" for name, size in baseline.dims.items())
    ranks = "1 rank" if baseline.ranks == 1 else f"{baseline.ranks} ranks"
    ctas = "1 CTA" if trial.ctas == 1 else f"{trial.ctas} CTAs"
    return f"{ranks}, {ctas} for each role{sizes}"
