"""`pkc check`: the derived protocol against the semantics of the program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import click

from pkc import console
from pkc.check.counterexample import (
    Alike,
    Counterexample,
    Exploration,
    counterexample,
    explore_small,
    follows_from,
    instance,
    same_as,
)
from pkc.check.parallel import first_that
from pkc.check.resources import resources
from pkc.check.run import Baseline, Trial, Trials, baseline_of
from pkc.check.static import Static, check_statically
from pkc.cli import errors
from pkc.cli.program import Chosen
from pkc.cli.settings import assignments
from pkc.diagnostics import Diagnostic, PkcError
from pkc.dialect.attributes import Role
from pkc.dialect.types import RANKS
from pkc.driver.compiler import Compiled
from pkc.location import NOWHERE
from pkc.sim.orders import Delay
from pkc.sim.run import resolve_dims
from pkc.sim.small import small_dims


@dataclass(frozen=True)
class Request:
    """What is to be checked, in how many seeded and at most how many explored orders, with which roles delayed."""

    chosen: Chosen
    seeds: int
    exhaustive: int
    delays: tuple[Delay, ...]


def delays_of(texts: Sequence[str], ranks: int) -> tuple[Delay, ...]:
    """What `--delay` asks for. Raises `PkcError`."""
    return tuple(_delay(text, ranks) for text in texts)


def execute(tile: Compiled, roles: Compiled, request: Request) -> bool:
    """Check statically, then simulate both levels; print what was checked and found. True if nothing was found."""
    ranks, settings = request.chosen.ranks, request.chosen.settings(tile.kernel)
    dims = resolve_dims(tile.kernel, small_dims(tile.kernel, ranks) | settings.dims, settings.scalars, ranks)
    for line in resources(roles.kernel, {**dims, RANKS: ranks}):
        click.echo(line)
    with console.progress(f"following every CTA of {ranks} ranks"):
        static = check_statically(roles.kernel, ranks=ranks, dims=dims)
    checked = _Checked(tile, roles, request, dims)
    if static.findings:
        console.diagnostics(static.findings)
        _show_run(checked, static.findings)
        return False
    click.echo(_static(static))
    if request.exhaustive and not _explore(checked):
        return False
    with console.progress(f"simulating {request.seeds} orders on {ranks} ranks"):
        try:
            baseline = baseline_of(tile, ranks=ranks, dims=dims)
        except PkcError as error:  # roles that an author wrote fail at the tile level already
            _show(checked, list(error.diagnostics), None)
            return False
        failed, found = _first_failure(checked, baseline)
    if found:
        _show(checked, found, failed)
        return False
    launches = len(baseline.inputs)
    sizes = "".join(f", {name} = {size}" for name, size in dims.items())
    click.echo(
        f"ok: {request.seeds} orders, {launches} launches each, on {ranks} ranks{sizes} give the bits that the program"
        " means"
    )
    return True


@dataclass(frozen=True)
class _Checked:
    """Both levels of a kernel, and the instance that is asked for."""

    tile: Compiled
    roles: Compiled
    request: Request
    dims: Mapping[str, int]

    @property
    def ranks(self) -> int:
        return self.request.chosen.ranks

    def instance(self) -> Baseline:
        return instance(self.tile, self.ranks, self.dims)


def _explore(checked: _Checked) -> bool:
    """Simulate every order of the smallest instance that has no mistakes of its own. True if nothing was found."""
    ranks, most = checked.ranks, checked.request.exhaustive
    exploration = None
    for few in range(min(2, ranks), ranks + 1):
        with console.progress("simulating every order of a small instance"):
            exploration = explore_small(checked.tile, checked.roles, few, most)
        if not exploration.found:
            click.echo(_explored(exploration, most))
            return True
        if exploration.is_found_on(ranks):
            _show(checked, exploration.found, None)
            return False
        failed, found = _first_failure(checked, checked.instance())
        if found:
            _show(checked, found, failed)
            return False
    assert exploration is not None
    first = exploration.found[0]
    click.echo(f"no order on {_where(exploration)}: it is too small ({first.code}: {first.fill(first.title)})")
    return True


def _first_failure(checked: _Checked, baseline: Baseline) -> tuple[Trial | None, list[Diagnostic]]:
    """The first of the seeds asked for that finds something, and what."""
    trials, request = Trials(checked.roles.kernel, baseline), checked.request
    first, *others = (Trial(1 + seed % 2, seed, request.delays) for seed in range(request.seeds))
    found = trials.check(first)
    if found:
        return first, found
    failed = first_that(lambda trial: bool(trials.check(trial)), others)
    return failed, [] if failed is None else trials.check(failed)


def _show(checked: _Checked, found: list[Diagnostic], failed: Trial | None) -> None:
    """Print what was found, as it is in the smallest run that shows the same."""
    example = _example(checked, failed, same_as(found[0]))
    console.diagnostics(found if example is None else example.found)
    if example is not None:
        console.lines(_run(example))


def _show_run(checked: _Checked, found: list[Diagnostic]) -> None:
    """Print a run that goes wrong because of what the static check has found, with its finding in short."""
    example = _example(checked, None, follows_from(found))
    if example is None:
        return
    first = example.found[0]
    console.lines([*_run(example), f"    {first.code}: {first.fill(first.title)}"])


def _example(checked: _Checked, failed: Trial | None, alike: Alike) -> Counterexample | None:
    with console.progress("looking for a small run that fails"):
        most = checked.request.exhaustive
        return counterexample(checked.tile, checked.roles, most, checked.instance(), failed, alike)


def _run(example: Counterexample) -> list[str]:
    return [f"  a run with {example.size}:", *(f"    {line}" for line in example.lines)]


def _static(static: Static) -> str:
    if static.undecided:
        return "static: what is signalled depends on what is computed; left to the simulation"
    return f"static: {static.warp_roles} warp roles with {static.events} events, in {static.seconds:.2f} s"


def _explored(exploration: Exploration, most: int) -> str:
    runs = " and ".join(str(explored.runs) for explored in exploration.explored)
    where = _where(exploration)
    steps = " and ".join(str(explored.steps) for explored in exploration.explored)
    if exploration.complete:
        return f"every order on {where}: {runs} runs with 1 and 2 CTAs for each role, of {steps} steps, stand for all"
    return f"not every order on {where}: {runs} runs with 1 and 2 CTAs for each role, the bound is {most}"


def _where(exploration: Exploration) -> str:
    sizes = "".join(f", {name} = {size}" for name, size in exploration.dims.items())
    return f"{exploration.ranks} ranks{sizes}" if exploration.ranks > 1 else f"1 rank{sizes}"


def _delay(text: str, ranks: int) -> Delay:
    example = "rank=1,role=storer"
    given = assignments("--delay", (text,), example=example, split=True)
    rank, role = given.pop("rank", None), given.pop("role", None)
    if given or (rank is not None and not (rank.isascii() and rank.isdecimal() and int(rank) < ranks)):
        raise PkcError(errors.BadDelay(NOWHERE, text, f"a rank is a number from 0 to {ranks - 1}"))
    known = [str(role) for role in Role]
    if role is not None and role not in known:
        raise PkcError(errors.BadDelay(NOWHERE, text, f"the roles are {', '.join(known)}"))
    return Delay(None if rank is None else int(rank), role)
