"""`pkc check`: the derived protocol against the semantics of the program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import click

from pkc import console
from pkc.check.counterexample import Exploration, counterexample, explore_small, instance
from pkc.check.parallel import first_that
from pkc.check.resources import resources
from pkc.check.run import Trial, Trials, baseline_of
from pkc.check.static import Static, check_statically
from pkc.cli import errors
from pkc.cli.program import Chosen
from pkc.cli.settings import assignments
from pkc.diagnostics import PkcError
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
    if static.findings:
        console.diagnostics(static.findings)
        _show(tile, roles, request, dims, None, known=True)
        return False
    click.echo(_static(static))
    if request.exhaustive:
        with console.progress("simulating every order of a small instance"):
            exploration = explore_small(tile, roles, ranks, request.exhaustive)
        if exploration.found:
            _show(tile, roles, request, dims, None)
            return False
        click.echo(_explored(exploration, request.exhaustive))
    with console.progress(f"simulating {request.seeds} orders on {ranks} ranks"):
        baseline = baseline_of(tile, ranks=ranks, dims=dims)
        trials = Trials(roles.kernel, baseline)
        first, *others = (Trial(1 + seed % 2, seed, request.delays) for seed in range(request.seeds))
        failed = first if trials.check(first) else first_that(lambda trial: bool(trials.check(trial)), others)
    if failed is not None:
        _show(tile, roles, request, dims, failed)
        return False
    launches = len(baseline.inputs)
    sizes = "".join(f", {name} = {size}" for name, size in dims.items())
    click.echo(
        f"ok: {request.seeds} orders, {launches} launches each, on {ranks} ranks{sizes} give the bits that the program"
        " means"
    )
    return True


def _show(
    tile: Compiled,
    roles: Compiled,
    request: Request,
    dims: Mapping[str, int],
    failed: Trial | None,
    *,
    known: bool = False,
) -> None:
    """Print the counterexample and its findings; in short if these are `known` from the static check."""
    with console.progress("looking for a small run that fails"):
        baseline = instance(tile, request.chosen.ranks, dims)
        example = counterexample(tile, roles, request.exhaustive, baseline, failed)
    if example is None:
        return
    if not known:
        console.diagnostics(example.found)
    first = example.found[0]
    end = [f"    {first.code}: {first.fill(first.title)}"] if known else []
    console.lines([f"  a run with {example.size}:", *(f"    {line}" for line in example.lines), *end])


def _static(static: Static) -> str:
    if static.undecided:
        return "static: what is signalled depends on what is computed; left to the simulation"
    return f"static: {static.warp_roles} warp roles with {static.events} events, in {static.seconds:.2f} s"


def _explored(exploration: Exploration, most: int) -> str:
    runs = " and ".join(str(explored.runs) for explored in exploration.explored)
    sizes = "".join(f", {name} = {size}" for name, size in exploration.dims.items())
    where = f"{exploration.ranks} ranks{sizes}" if exploration.ranks > 1 else f"1 rank{sizes}"
    steps = " and ".join(str(explored.steps) for explored in exploration.explored)
    if exploration.complete:
        return f"every order on {where}: {runs} runs with 1 and 2 CTAs for each role, of {steps} steps, stand for all"
    return f"not every order on {where}: {runs} runs with 1 and 2 CTAs for each role, the bound is {most}"


def _delay(text: str, ranks: int) -> Delay:
    example = "rank=1,role=storer"
    given = assignments("--delay", (text,), example=example, split=True)
    rank, role = given.pop("rank", None), given.pop("role", None)
    if given or (rank is not None and not (rank.isdecimal() and int(rank) < ranks)):
        raise PkcError(errors.BadDelay(NOWHERE, text, f"a rank is a number from 0 to {ranks - 1}"))
    known = [str(role) for role in Role]
    if role is not None and role not in known:
        raise PkcError(errors.BadDelay(NOWHERE, text, f"the roles are {', '.join(known)}"))
    return Delay(None if rank is None else int(rank), role)
