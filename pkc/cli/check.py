"""`pkc check`: the derived protocol against the semantics of the program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import click
from xdsl.dialects.builtin import ModuleOp

from pkc import console
from pkc.check.counterexample import STEPS, Exploration, explore_small
from pkc.check.grounds import Word, explored, followed, instance_text, orders_text, proved, simulated
from pkc.check.instances import FEW, other_instances, too_small
from pkc.check.other_ranks import other_ranks
from pkc.check.parallel import first_that
from pkc.check.resources import resources
from pkc.check.run import Baseline, Trial, Trials, explained, wide_trials
from pkc.check.static import Static, check_statically, waits_for_later_tasks
from pkc.check.unwritten import unwritten
from pkc.cli.check_elsewhere import at_a_glance, on_ranks, say_brief
from pkc.cli.check_findings import in_short, show, show_run
from pkc.cli.check_instance import Checked, trial_of
from pkc.cli.check_request import Request
from pkc.cli.program import Chosen
from pkc.diagnostics import Diagnostic, PkcError, listing
from pkc.dialect.program import GROUP, KernelOp
from pkc.dialect.types import RANKS
from pkc.driver.compiler import Compiled
from pkc.driver.divisors import divisors_of
from pkc.location import describe
from pkc.passes import MACHINE_PIPELINE
from pkc.passes.run import run_pipeline
from pkc.sim.draw import given_to, say_given, tables_given_to
from pkc.sim.inputs import dims_of
from pkc.sim.run import resolve_dims
from pkc.sim.small import small_dims


def levels_of(chosen: Chosen, target: str) -> tuple[Compiled, Compiled]:
    """The tile level of a kernel, which says what it means, and its roles level. Where tiles did not fit, both have
    the smaller ones, whose sums round otherwise. The latter is what runs with the sizes that are given: lengths of rows
    say how tiles move. Raises `PkcError`."""
    tile = chosen.compile()
    divisors = divisors_of([tile.kernel], chosen.settings(tile.kernel).dims, chosen.ranks)
    roles = _roles_of(chosen, target, divisors)
    if roles.schedule != tile.schedule:
        tile = replace(chosen, schedule=roles.schedule).compile(warn=False)
    return tile, roles


def _roles_of(chosen: Chosen, target: str, divisors: Mapping[str, int]) -> Compiled:
    """The roles level of a kernel. Roles that an author wrote and the target cannot run are taken as they are: what
    they mean can be checked all the same."""
    try:
        return chosen.compile("roles", target, warn=False, divisors=divisors)
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
    checked = Checked(tile, roles, request, dims, list(proved(roles.kernel)))
    if tables:
        names = listing(tables)
        click.echo(f"{names} as given: no other sizes, numbers of ranks or small instances are looked at")
    if not _check(checked):
        return False
    if tables:
        return _conclude(checked)
    few = replace(request, seeds=min(request.seeds, FEW), exhaustive=0)
    others = other_instances(tile.kernel, ranks, settings.dims, settings.scalars, dims)
    brief: list[Checked] = []
    alike = 0
    for one in others:
        grounds = [] if one.dims == dims else checked.grounds
        other = replace(checked, dims=one.dims, seed=one.seed, request=few, grounds=grounds)
        past = too_small(tile.kernel, other.mean, least=one.least)
        if past is not None and not one.brief:
            click.echo(f"no order on {other.where}: it is too small ({in_short(past)})")
        if past is not None:
            continue
        if one.brief and not at_a_glance(other, (trial_of(0),)):
            brief += [] if one.alike else [other]
            alike += one.alike
        elif not _check(other):
            return False
    if alike:
        click.echo(f"ok: 1 order with each of {alike} inputs more, in which the elements of arrays are alike")
    if brief:
        say_brief(checked, brief)
    numbers = other_ranks(tile.kernel) if request.other_ranks and tile.kernel.roles else []
    if not all(on_ranks(checked, few, count) for count in numbers):
        return False
    return _conclude(checked)


def _conclude(checked: Checked) -> bool:
    """Say what was proved, checked and sampled."""
    for ground in sorted(checked.grounds, key=lambda ground: list(Word).index(ground.word)):
        click.echo(str(ground))
    for found in _refused(checked.roles.kernel):
        place = describe(found.span.location())
        click.echo(f"no code for {checked.request.target}, which refuses what is right: {in_short(found)} ({place})")
    return True


def _refused(roles: KernelOp) -> Sequence[Diagnostic]:
    """Why a kernel whose roles are right has no code for its target; of roles as they are written it has been said."""
    if not any(GROUP in role.attributes for role in roles.roles):
        return ()
    try:
        run_pipeline(ModuleOp([roles.clone()]), MACHINE_PIPELINE, verify_each=False)
    except PkcError as error:
        return error.diagnostics
    return ()


def _check(checked: Checked) -> bool:
    """Check an instance in all layers. True if nothing was found."""
    static = _follow(checked)
    small = checked.request.exhaustive and not checked.request.tables
    if static is None or (small and not _explore(checked)):
        return False
    return _simulate(checked, static.spread)


def _follow(checked: Checked) -> Static | None:
    """Check an instance statically; None if something was found."""
    with console.progress(f"following every CTA of {checked.ranks} rank{'s' * (checked.ranks > 1)}"):
        static = check_statically(checked.roles.kernel, ranks=checked.ranks, dims=checked.dims, seed=checked.seed)
    if static.findings:
        console.diagnostics(static.findings)
        show_run(checked, static.findings)
        return None
    found = _later_tasks(checked)
    if found:
        console.diagnostics(found)
        return None
    click.echo(_static(static))
    checked.grounds.extend(followed(checked.roles.kernel, static, checked.where))
    return static


def _later_tasks(checked: Checked) -> list[Diagnostic]:
    """Tasks of an author's roles that wait for later ones than fit, whatever roles pkc has made of these."""
    if not checked.tile.kernel.roles:
        return []
    written = checked.request.chosen.compile("written", checked.request.target, warn=False)
    say_given(written.kernel, given_to(checked.tile.kernel), tables_given_to(checked.tile.kernel))
    return waits_for_later_tasks(written.kernel, ranks=checked.ranks, dims=checked.dims)


def _simulate(checked: Checked, spread: int) -> bool:
    """Compare both levels of an instance in some orders; roles that an author wrote also on as many CTAs as have tasks
    on the target. True if nothing was found; outputs that lack elements are warned of."""
    seeds, ranks = checked.request.seeds, checked.ranks
    with console.progress(f"simulating {seeds} orders on {ranks} rank{'s' * (ranks > 1)}"):
        try:
            baseline = checked.baseline
        except PkcError as error:  # roles that an author wrote fail at the tile level already
            show(checked, list(error.diagnostics), trial_of(0))
            return False
        wide = wide_trials(checked.tile.kernel, spread, seeds)
        failed, found = _first_failure(checked, baseline, wide)
    if found:
        show(checked, found, failed)
        return False
    console.diagnostics(checked.warn(unwritten(checked.tile.kernel, baseline)))
    orders, launches = orders_text(seeds + len(wide)), len(baseline.inputs)
    where = f"{checked.where}, inputs from seed {checked.seed}" if checked.seed else checked.where
    click.echo(f"ok: {orders}, {launches} launches each, on {where} give the bits that the program means")
    checked.grounds.append(simulated(checked.roles.kernel, Word.Sampled, orders, checked.where))
    return True


def _explore(checked: Checked) -> bool:
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
            show(checked, exploration.found, None)
            return False
        failed, found = _first_failure(checked, checked.instance())
        if found:
            show(checked, found, failed)
            return False
    assert exploration is not None
    first, where = exploration.found[0], instance_text(exploration.ranks, exploration.dims)
    click.echo(f"no order on {where}: it is too small ({in_short(first)})")
    return True


def _first_failure(
    checked: Checked, baseline: Baseline, wide: Sequence[Trial] = ()
) -> tuple[Trial | None, list[Diagnostic]]:
    """The first of the seeds asked for that finds something, and what; behind them come `wide` ones."""
    trials, request = Trials(checked.roles.kernel, baseline), checked.request
    first, *others = (trial_of(seed, request.delays) for seed in range(request.seeds))
    others += wide
    found = trials.check(first)
    if found:
        trial, found = explained(trials, others, found)
        return trial or first, found
    failed = first_that(lambda trial: bool(trials.check(trial)), others)
    return failed, [] if failed is None else trials.check(failed)


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
