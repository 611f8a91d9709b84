"""`pkc check`: the derived protocol against the semantics of the program."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import click

from pkc import console
from pkc.check.counterexample import (
    ADDRESSES,
    STEPS,
    Alike,
    Counterexample,
    Exploration,
    Search,
    counterexample,
    explore_small,
    follows_from,
    instance,
    same_as,
)
from pkc.check.grounds import Ground, Word, explored, followed, instance_text, orders_text, proved, simulated
from pkc.check.instances import FEW, other_instances, too_small
from pkc.check.other_ranks import is_mistaken, other_ranks, sizes_on
from pkc.check.parallel import first_that
from pkc.check.resources import resources
from pkc.check.run import Baseline, Trial, Trials, baseline_of, explained, launches_until_reuse, wide_trials
from pkc.check.static import Static, check_statically, waits_for_later_tasks
from pkc.check.unwritten import Unwritten, unwritten
from pkc.cli.check_request import Request
from pkc.cli.program import Chosen
from pkc.diagnostics import Diagnostic, PkcError, listing
from pkc.dialect.types import RANKS
from pkc.driver.compiler import Compiled
from pkc.sim.draw import given_to, say_given, tables_given_to
from pkc.sim.inputs import dims_of
from pkc.sim.orders import Delay
from pkc.sim.run import resolve_dims
from pkc.sim.small import small_dims

_AT_A_GLANCE = 5
"""As many orders are tried of the smallest instance on another number of ranks, one of each kind."""


def levels_of(chosen: Chosen, target: str) -> tuple[Compiled, Compiled]:
    """The tile level of a kernel, which says what it means, and its roles level. Where tiles did not fit, both have
    the smaller ones, whose sums round otherwise. Raises `PkcError`."""
    tile, roles = chosen.compile(), _roles_of(chosen, target)
    if roles.schedule != tile.schedule:
        tile = replace(chosen, schedule=roles.schedule).compile(warn=False)
    return tile, roles


def _roles_of(chosen: Chosen, target: str) -> Compiled:
    """The roles level of a kernel. Roles that an author wrote and the target cannot run are taken as they are: what
    they mean can be checked all the same."""
    try:
        return chosen.compile("roles", target, warn=False)
    except PkcError as error:
        try:
            written = chosen.compile("written", target, warn=False)
        except PkcError:
            raise error from None
        if not chosen.compile(warn=False).kernel.roles:
            raise
        reasons = "; ".join(f"{found.code}: {found.fill(found.title)}" for found in error.diagnostics)
        click.echo(f"checked as it is written, with no code for {target} ({reasons})")
        return written


def execute(tile: Compiled, roles: Compiled, request: Request) -> bool:
    """Check statically, then simulate both levels; print what was checked and found. True if nothing was found."""
    ranks, settings = request.chosen.ranks, request.chosen.settings(tile.kernel)
    tables = request.given(tile.kernel)
    for level in (tile, roles):
        say_given(level.kernel, settings.scalars, tables)
    small = small_dims(tile.kernel, ranks) | dims_of(tile.kernel, tables, ranks)
    dims = resolve_dims(tile.kernel, small | settings.dims, settings.scalars | tables, ranks)
    for line in resources(roles.kernel, {**dims, RANKS: ranks}):
        click.echo(line)
    checked = _Checked(tile, roles, request, dims, list(proved(roles.kernel)))
    if tables:
        names = listing(tables)
        click.echo(f"{names} as given: no other sizes, numbers of ranks or small instances are looked at")
    if not _check(checked):
        return False
    if tables:
        return _conclude(checked)
    few = replace(request, seeds=min(request.seeds, FEW), exhaustive=0)
    others = other_instances(tile.kernel, ranks, settings.dims, settings.scalars, dims)
    brief: list[_Checked] = []
    alike = 0
    for one in others:
        grounds = [] if one.dims == dims else checked.grounds
        other = replace(checked, dims=one.dims, seed=one.seed, request=few, grounds=grounds)
        past = too_small(tile.kernel, other.mean, least=one.least)
        if past is not None and not one.brief:
            click.echo(f"no order on {other.where}: it is too small ({_in_short(past)})")
        if past is not None:
            continue
        if one.brief and not _at_a_glance(other, (_trial(0),)):
            brief += [] if one.alike else [other]
            alike += one.alike
        elif not _check(other):
            return False
    if alike:
        click.echo(f"ok: 1 order with each of {alike} inputs more, in which the elements of arrays are alike")
    if brief:
        _say_brief(checked, brief)
    numbers = other_ranks(tile.kernel) if request.other_ranks and tile.kernel.roles else []
    if not all(_on_ranks(checked, few, count) for count in numbers):
        return False
    return _conclude(checked)


def _conclude(checked: _Checked) -> bool:
    """Say what was proved, checked and sampled."""
    for ground in sorted(checked.grounds, key=lambda ground: list(Word).index(ground.word)):
        click.echo(str(ground))
    return True


def _check(checked: _Checked) -> bool:
    """Check an instance in all layers. True if nothing was found."""
    static = _follow(checked)
    small = checked.request.exhaustive and not checked.request.tables
    if static is None or (small and not _explore(checked)):
        return False
    return _simulate(checked, static.spread)


def _on_ranks(checked: _Checked, request: Request, ranks: int) -> bool:
    """Look at another number of ranks, at the smallest sizes in several orders, each rank late in one of them, then
    briefly at more sizes. True if nothing was found but that a number names what is not there on so many."""
    chosen, kernel = replace(request.chosen, ranks=ranks), checked.tile.kernel
    settings = chosen.settings(kernel)
    asked, checked = checked.ranks, replace(checked, request=replace(request, chosen=chosen, delays=()), seed=0)
    try:
        dims = resolve_dims(kernel, small_dims(kernel, ranks) | settings.dims, settings.scalars, ranks)
    except PkcError as error:
        click.echo(f"no order on {ranks} ranks: sizes do not fit ({_in_short(error.diagnostics[0])})")
        return True
    trials = [_trial(seed) for seed in range(_AT_A_GLANCE)]
    trials += [_trial(rank, (Delay(rank),)) for rank in range(ranks if ranks > 1 else 0)]
    first = replace(checked, dims=dims)
    found = _at_a_glance(first, trials)
    if found and _is_past_ranks(first, found):
        click.echo(f"no order on {first.where}: what a number names is not there ({_in_short(found.findings[0])})")
    elif found:
        return _show_other(first, found, asked)
    else:
        click.echo(f"ok: {orders_text(len(trials))} on {first.where}")
        checked.grounds.append(simulated(checked.roles.kernel, Word.Sampled, orders_text(len(trials)), first.where))
    brief: list[_Checked] = []
    for place, sizes in enumerate(sizes_on(kernel, ranks, settings.dims, settings.scalars, dims), start=1):
        other = replace(checked, dims=sizes)
        found = _at_a_glance(other, (_trial(place),))
        if found and not _is_past_ranks(other, found):
            return _show_other(other, found, asked)
        brief += [] if found else [other]
    if brief:
        _say_brief(checked, brief)
    return True


def _is_past_ranks(other: _Checked, found: _Found) -> bool:
    """Whether what was found is only that a number names what is not there on so many ranks."""
    first = found.findings[0]
    return isinstance(first, ADDRESSES) and not is_mistaken(other.tile.kernel, first)


def _show_other(other: _Checked, found: _Found, asked: int) -> bool:
    """Print what was found on another number of ranks, and that nothing was on those asked for. False."""
    click.echo(f"on {asked} ranks nothing was found; `--ranks {asked}` checks these alone")
    if found.trial is None:
        console.diagnostics(found.findings)
        _show_run(other, list(found.findings))
    else:
        _show(other, list(found.findings), found.trial)
    return False


def _say_brief(checked: _Checked, brief: Sequence[_Checked]) -> None:
    sizes = "; ".join(dict.fromkeys(one.where for one in (brief[0], brief[-1])))
    how_many = f"{len(brief)} sizes more" if len(brief) > 1 else "1 size more"
    click.echo(f"ok: 1 order on each of {how_many}, from {sizes}")
    where = f"{how_many} on {brief[0].ranks} ranks"
    checked.grounds.append(simulated(checked.roles.kernel, Word.Sampled, "1 order", where))


def _in_short(found: Diagnostic) -> str:
    return f"{found.code}: {found.fill(found.title)}"


@dataclass(frozen=True)
class _Found:
    """What was found at a glance, and in which order."""

    findings: Sequence[Diagnostic]
    trial: Trial | None = None
    """None if it was found statically."""


def _at_a_glance(checked: _Checked, trials: Iterable[Trial]) -> _Found | None:
    """What is found statically, on as few CTAs as go, or in the first order that finds something."""
    kernel = checked.roles.kernel
    static = check_statically(kernel, ranks=checked.ranks, dims=checked.dims, seed=checked.seed, briefly=True)
    if static.findings:
        return _Found(static.findings)
    try:
        tried = Trials(kernel, checked.baseline)
    except PkcError as error:
        return _Found(error.diagnostics, _trial(0))
    for trial in trials:
        found = tried.check(trial)
        if found:
            return _Found(found, trial)
    return None


def _trial(seed: int, delays: tuple[Delay, ...] = ()) -> Trial:
    return Trial(1 + seed % 2, seed, delays)


def _follow(checked: _Checked) -> Static | None:
    """Check an instance statically; None if something was found."""
    with console.progress(f"following every CTA of {checked.ranks} ranks"):
        static = check_statically(checked.roles.kernel, ranks=checked.ranks, dims=checked.dims, seed=checked.seed)
    if static.findings:
        console.diagnostics(static.findings)
        _show_run(checked, static.findings)
        return None
    found = _later_tasks(checked)
    if found:
        console.diagnostics(found)
        return None
    click.echo(_static(static))
    checked.grounds.extend(followed(checked.roles.kernel, static, checked.where))
    return static


def _later_tasks(checked: _Checked) -> list[Diagnostic]:
    """Tasks of an author's roles that wait for later ones than fit, whatever roles pkc has made of these."""
    if not checked.tile.kernel.roles:
        return []
    written = checked.request.chosen.compile("written", checked.request.target, warn=False)
    say_given(written.kernel, given_to(checked.tile.kernel), tables_given_to(checked.tile.kernel))
    return waits_for_later_tasks(written.kernel, ranks=checked.ranks, dims=checked.dims)


def _simulate(checked: _Checked, spread: int) -> bool:
    """Compare both levels of an instance in some orders; roles that an author wrote also on as many CTAs as have tasks
    on the target. True if nothing was found; outputs that lack elements are warned of."""
    seeds, ranks = checked.request.seeds, checked.ranks
    with console.progress(f"simulating {seeds} orders on {ranks} ranks"):
        try:
            baseline = checked.baseline
        except PkcError as error:  # roles that an author wrote fail at the tile level already
            _show(checked, list(error.diagnostics), _trial(0))
            return False
        wide = wide_trials(checked.tile.kernel, spread, seeds)
        failed, found = _first_failure(checked, baseline, wide)
    if found:
        _show(checked, found, failed)
        return False
    console.diagnostics(checked.warn(unwritten(checked.tile.kernel, baseline)))
    orders, launches = orders_text(seeds + len(wide)), len(baseline.inputs)
    where = f"{checked.where}, inputs from seed {checked.seed}" if checked.seed else checked.where
    click.echo(f"ok: {orders}, {launches} launches each, on {where} give the bits that the program means")
    checked.grounds.append(simulated(checked.roles.kernel, Word.Sampled, orders, checked.where))
    return True


@dataclass(frozen=True)
class _Checked:
    """Both levels of a kernel, and the instance that is asked for."""

    tile: Compiled
    roles: Compiled
    request: Request
    dims: Mapping[str, int]
    grounds: list[Ground]
    """Of what was found right so far."""
    warned: set[str] = field(default_factory=set[str])
    """The arrays that an instance before has left unwritten."""
    seed: int = 0
    """Of the first inputs that are drawn."""

    def warn(self, found: Iterable[Unwritten]) -> list[Diagnostic]:
        """Those about other arrays than before."""
        new = [each for each in found if each.array not in self.warned]
        self.warned.update(each.array for each in new)
        return [*new]

    @property
    def where(self) -> str:
        """The instance, in words."""
        return instance_text(self.ranks, self.dims)

    @property
    def ranks(self) -> int:
        return self.request.chosen.ranks

    @cached_property
    def baseline(self) -> Baseline:
        """Inputs and right outputs of the instance. Raises `PkcError`."""
        launches = launches_until_reuse(self.roles.kernel)
        return baseline_of(self.tile, ranks=self.ranks, dims=self.dims, launches=launches, seed=self.seed)

    def mean(self) -> Baseline:
        """The same, as a call."""
        return self.baseline

    def instance(self) -> Baseline:
        return instance(self.tile, self.ranks, self.dims, self.seed)


def _explore(checked: _Checked) -> bool:
    """Simulate every order of the smallest instance that has no mistakes of its own. True if nothing was found."""
    ranks, most = checked.ranks, checked.request.exhaustive
    exploration = None
    for few in range(min(2, ranks), ranks + 1):
        with console.progress("simulating every order of a small instance"):
            exploration = explore_small(checked.tile, checked.roles, few, most)
        if not exploration.found:
            click.echo(_explored(exploration, most))
            checked.grounds.append(explored(checked.roles.kernel, exploration))
            return True
        if exploration.is_found_on(ranks):
            _show(checked, exploration.found, None)
            return False
        failed, found = _first_failure(checked, checked.instance())
        if found:
            _show(checked, found, failed)
            return False
    assert exploration is not None
    first, where = exploration.found[0], instance_text(exploration.ranks, exploration.dims)
    click.echo(f"no order on {where}: it is too small ({_in_short(first)})")
    return True


def _first_failure(
    checked: _Checked, baseline: Baseline, wide: Sequence[Trial] = ()
) -> tuple[Trial | None, list[Diagnostic]]:
    """The first of the seeds asked for that finds something, and what; behind them come `wide` ones."""
    trials, request = Trials(checked.roles.kernel, baseline), checked.request
    first, *others = (_trial(seed, request.delays) for seed in range(request.seeds))
    others += wide
    found = trials.check(first)
    if found:
        trial, found = explained(trials, others, found)
        return trial or first, found
    failed = first_that(lambda trial: bool(trials.check(trial)), others)
    return failed, [] if failed is None else trials.check(failed)


def _show(checked: _Checked, found: list[Diagnostic], failed: Trial | None) -> None:
    """Print what was found, as it is in the smallest run that shows the same."""
    search = Search()
    example = _example(checked, failed, same_as(found[0]), search)
    console.diagnostics(found if example is None else example.found)
    console.lines([f"  on {checked.where}"] if example is None else _run(example))
    console.lines(_stopped(search))


def _show_run(checked: _Checked, found: list[Diagnostic]) -> None:
    """Print a run that goes wrong because of what the static check has found, with its finding in short."""
    search = Search()
    example = _example(checked, None, follows_from(found), search)
    if example is None:
        console.lines([f"  on {checked.where}", *_stopped(search)])
        return
    first = example.found[0]
    console.lines([*_run(example), f"    {_in_short(first)}"])


def _example(checked: _Checked, failed: Trial | None, alike: Alike, search: Search) -> Counterexample | None:
    with console.progress("looking for a small run that fails"):
        most = checked.request.exhaustive
        return counterexample(checked.tile, checked.roles, most, checked.instance(), failed, alike, search)


def _stopped(search: Search) -> list[str]:
    """What is said of a search that had too little time."""
    said = f"  smaller runs that fail were looked for during {search.seconds:g} s, and not all"
    return [said] if search.stopped else []


def _run(example: Counterexample) -> list[str]:
    return [f"  a run with {example.size}:", *(f"    {line}" for line in example.lines)]


def _static(static: Static) -> str:
    if static.undecided:
        return "static: what is signalled depends on what is computed; left to the simulation"
    return f"static: {static.warp_roles} warp roles with {static.events} events, in {static.seconds:.2f} s"


def _explored(exploration: Exploration, most: int) -> str:
    runs = " and ".join(str(each.runs) for each in exploration.explored)
    where = instance_text(exploration.ranks, exploration.dims)
    steps = " and ".join(str(each.steps) for each in exploration.explored)
    if exploration.complete:
        return f"every order on {where}: {runs} runs with 1 and 2 CTAs for each role, of {steps} steps, stand for all"
    tried = f"{runs} runs with 1 and 2 CTAs for each role, of {steps} steps"
    bound = f"{most} runs or {most * STEPS} steps for each number of CTAs"
    return f"not every order on {where}: {tried}; the bound is {bound}"
