"""What `pkc check` looks at briefly: other sizes, and other numbers of ranks than were asked for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import click

from pkc import console
from pkc.check.counterexample import ADDRESSES
from pkc.check.grounds import Word, orders_text, simulated
from pkc.check.other_ranks import is_mistaken, seeds_on, sizes_on
from pkc.check.run import Trial, Trials
from pkc.check.static import check_statically
from pkc.cli.check_findings import in_short, show, show_run
from pkc.cli.check_instance import Checked, trial_of
from pkc.cli.check_request import Request
from pkc.diagnostics import Diagnostic, PkcError
from pkc.sim.orders import Delay
from pkc.sim.run import resolve_dims
from pkc.sim.small import small_dims

_AT_A_GLANCE = 5
"""As many orders are tried of the smallest instance on another number of ranks, one of each kind."""


def on_ranks(checked: Checked, request: Request, ranks: int) -> bool:
    """Look at another number of ranks, at the smallest sizes in several orders, each rank late in one of them, then
    briefly at more sizes. True if nothing was found but that a number names what is not there on so many."""
    chosen, kernel = replace(request.chosen, ranks=ranks), checked.tile.kernel
    settings = chosen.settings(kernel)
    asked, checked = checked.ranks, replace(checked, request=replace(request, chosen=chosen, delays=()), seed=0)
    try:
        dims = resolve_dims(kernel, small_dims(kernel, ranks) | settings.dims, settings.scalars, ranks)
    except PkcError as error:
        click.echo(f"no order on {ranks} rank{'s' * (ranks > 1)}: sizes do not fit ({in_short(error.diagnostics[0])})")
        return True
    trials = [trial_of(seed) for seed in range(_AT_A_GLANCE)]
    trials += [trial_of(rank, (Delay(rank),)) for rank in range(ranks if ranks > 1 else 0)]
    first = replace(checked, dims=dims)
    found = at_a_glance(first, trials)
    if found and _is_past_ranks(first, found):
        click.echo(f"no order on {first.where}: what a number names is not there ({in_short(found.findings[0])})")
    elif found:
        return _show_other(first, found, asked)
    else:
        click.echo(f"ok: {orders_text(len(trials))} on {first.where}")
        checked.grounds.append(simulated(checked.roles.kernel, Word.Sampled, orders_text(len(trials)), first.where))
    brief: list[Checked] = []
    others = [replace(checked, dims=sizes) for sizes in sizes_on(kernel, ranks, settings.dims, settings.scalars, dims)]
    others += [replace(first, seed=seed) for seed in seeds_on(kernel, ranks, dims)]
    for place, other in enumerate(others, start=1):
        found = at_a_glance(other, (trial_of(place),))
        if found and not _is_past_ranks(other, found):
            return _show_other(other, found, asked)
        brief += [] if found else [other]
    if brief:
        say_brief(checked, brief)
    return True


def _is_past_ranks(other: Checked, found: _Found) -> bool:
    """Whether what was found is only that a number names what is not there on so many ranks."""
    first = found.findings[0]
    return isinstance(first, ADDRESSES) and not is_mistaken(other.tile.kernel, first)


def _show_other(other: Checked, found: _Found, asked: int) -> bool:
    """Print what was found on another number of ranks, and that nothing was on those asked for. False."""
    click.echo(f"on {asked} rank{'s' * (asked > 1)} nothing was found; `--ranks {asked}` checks these alone")
    if found.trial is None:
        console.diagnostics(found.findings)
        show_run(other, list(found.findings))
    else:
        show(other, list(found.findings), found.trial)
    return False


def say_brief(checked: Checked, brief: Sequence[Checked]) -> None:
    sizes = "; ".join(dict.fromkeys(one.where for one in (brief[0], brief[-1])))
    what = "sizes or inputs" if any(one.seed for one in brief) else "sizes"
    how_many = f"{len(brief)} {what} more" if len(brief) > 1 else "1 size more"
    click.echo(f"ok: 1 order on each of {how_many}, from {sizes}")
    where = f"{how_many} on {brief[0].ranks} rank{'s' * (brief[0].ranks > 1)}"
    checked.grounds.append(simulated(checked.roles.kernel, Word.Sampled, "1 order", where))


@dataclass(frozen=True)
class _Found:
    """What was found at a glance, and in which order."""

    findings: Sequence[Diagnostic]
    trial: Trial | None = None
    """None if it was found statically."""


def at_a_glance(checked: Checked, trials: Iterable[Trial]) -> _Found | None:
    """What is found statically, on as few CTAs as go, or in the first order that finds something."""
    kernel = checked.roles.kernel
    static = check_statically(kernel, ranks=checked.ranks, dims=checked.dims, seed=checked.seed, briefly=True)
    if static.findings:
        return _Found(static.findings)
    try:
        tried = Trials(kernel, checked.baseline)
    except PkcError as error:
        return _Found(error.diagnostics, trial_of(0))
    for trial in trials:
        found = tried.check(trial)
        if found:
            return _Found(found, trial)
    return None
