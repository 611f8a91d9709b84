"""`pkc check`: the derived protocol against the meaning of the program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import click

from pkc import report
from pkc.checker import Trial, check_roles, meaning_of
from pkc.cli_settings import Number, sort_settings
from pkc.compiler import Compiled
from pkc.dialect.types import RANKS
from pkc.sim.run import resolve_dims
from pkc.static.check import Static, check_statically
from pkc.static.resources import resources


def execute(
    tile: Compiled,
    roles: Compiled,
    ranks: int,
    values: Mapping[str, Number],
    constants: Sequence[str],
    seeds: int,
) -> bool:
    """Check statically, then simulate both levels; print what was checked and found; whether nothing was found."""
    settings = sort_settings(tile.kernel, values, constants)
    dims = resolve_dims(tile.kernel, settings.dims, settings.scalars, ranks)
    for line in resources(roles.kernel, {**dims, RANKS: ranks}):
        click.echo(line)
    with report.progress(f"following every CTA of {ranks} ranks"):
        static = check_statically(roles.kernel, ranks=ranks, dims=dims)
    report.diagnostics(static.findings)
    if static.findings:
        return False
    click.echo(_static(static))
    trials = [Trial(1 + seed % 2, seed) for seed in range(seeds)]
    with report.progress(f"simulating {seeds} orders on {ranks} ranks"):
        meaning = meaning_of(tile, ranks=ranks, dims=dims)
        found = check_roles(roles, meaning, trials)
    report.diagnostics(found)
    if found:
        return False
    launches = len(meaning.inputs)
    click.echo(f"ok: {seeds} orders, {launches} launches each, on {ranks} ranks give the bits that the program means")
    return True


def _static(static: Static) -> str:
    if static.undecided:
        return "static: what is signalled depends on what is computed; left to the simulation"
    return f"static: {static.workers} workers with {static.events} events, in {static.seconds:.2f} s"
