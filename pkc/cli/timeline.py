"""`pkc timeline`: what each role of a kernel should do when, without a GPU, beside what was measured."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import click

from pkc import console
from pkc.cli.program import Chosen
from pkc.driver.compiler import compile_program
from pkc.targets.target import lookup
from pkc.timeline import table
from pkc.timeline.forecast import Forecast, first_rank, forecast
from pkc.timeline.text import text


@dataclass(frozen=True)
class Request:
    """What the command line asks for; files show `ctas` CTAs of each rank one by one."""

    chosen: Chosen
    target: str
    ctas: int
    output: Path | None
    measured: Path | None


def predicted(chosen: Chosen, target: str) -> Forecast:
    """The predicted time line of the kernel that the command line names. Raises `PkcError`."""
    program, kernel, schedule = chosen.program, chosen.kernel.name, chosen.schedule
    tile = compile_program(program, kernel=kernel, constants=chosen.constants, schedule=schedule)
    chosen.settings(tile.kernel)
    given = {**chosen.constants, **chosen.values}
    with console.progress(f"predicting {kernel} on {chosen.ranks} GPUs"):
        return forecast(program, given, ranks=chosen.ranks, schedule=schedule, target=target, kernel=kernel)


def execute(request: Request) -> None:
    """Predict, print, and write what is asked for. Raises `PkcError`."""
    found = predicted(request.chosen, request.target)
    shown, until = found.timelines(request.measured, request.ctas)
    click.echo(f"{found.schedule}\n")
    click.echo(table.text(found.prediction.events, ends=found.prediction.ends))
    for one in shown:
        click.echo(f"\n{text(first_rank(one), until)}")
    launch = lookup(request.target).rates.launch / 1e3
    click.echo(f"\nTimes in us since the CTAs began; a launch takes {launch:.0f} us more. Lanes are those of rank 0.")
    if found.note:
        click.echo(f"\n{found.note}")
    if request.output is not None:
        found.save(request.output, measured=request.measured, ctas=request.ctas)
