"""`pkc timeline`: what each role of a kernel should do when, without a GPU, beside what was measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import click

from pkc import console
from pkc.cli.program import Chosen, autoschedule_for
from pkc.driver.chosen import Autoschedule
from pkc.driver.compiler import Compiled, compile_program
from pkc.driver.divisors import divisors_of
from pkc.sim.run import resolve_dims
from pkc.targets.target import lookup
from pkc.timeline import chrome, page, png, table
from pkc.timeline.lanes import Timeline, end_of, read, timeline
from pkc.timeline.predict import Prediction, predict
from pkc.timeline.text import text


@dataclass(frozen=True)
class Request:
    """What the command line asks for; files show `ctas` CTAs of each rank one by one."""

    chosen: Chosen
    target: str
    ctas: int
    output: Path | None
    measured: Path | None


@dataclass(frozen=True)
class Predicted:
    """A kernel as it would run at its sizes: its schedule, its IR at the roles level, its time line."""

    schedule: Autoschedule
    options: Mapping[str, str]
    compiled: Compiled
    dims: Mapping[str, int]
    ranks: int
    divisors: Mapping[str, int]
    prediction: Prediction

    @property
    def title(self) -> str:
        """One line: kernel, ranks, sizes and how long it takes."""
        sizes = ", ".join(f"{name}={size}" for name, size in self.dims.items())
        part = "" if self.prediction.ends else ", its first part"
        gpus = f"{self.ranks} GPU{'s' * (self.ranks > 1)}"
        name = self.compiled.kernel.sym_name.data
        return f"{name} on {gpus}, {sizes}: predicted, {self.prediction.nanoseconds / 1e3:.1f} us{part}"


def predicted(chosen: Chosen, target: str) -> Predicted:
    """Compile the kernel with the schedule that it would run with, and predict its time line. Raises `PkcError`."""
    found = autoschedule_for(chosen, target)
    options = {**chosen.schedule, **found.schedule}
    program, name, constants = chosen.program, chosen.kernel.name, chosen.constants
    tile = compile_program(program, kernel=name, constants=constants, schedule=options).kernel
    settings = chosen.settings(tile)
    dims = resolve_dims(tile, settings.dims, settings.scalars, chosen.ranks)
    divisors = divisors_of([tile], dims, chosen.ranks)
    compiled = compile_program(
        program, kernel=name, constants=constants, schedule=options, level="roles", target=target, divisors=divisors
    )
    with console.progress(f"predicting {name} on {chosen.ranks} GPUs"):
        prediction = predict(compiled.kernel, ranks=chosen.ranks, dims=dims)
    return Predicted(found, options, compiled, dims, chosen.ranks, divisors, prediction)


def timelines(found: Predicted, measured: Path | None, ctas: int = 4) -> tuple[list[Timeline], float]:
    """The predicted time line, and the measured one on the same axis; when that ends."""
    prediction = found.prediction
    every = prediction.events.sms.shape[1]
    events = [list(chrome.listed(prediction.events, every, prediction.used))]
    titles = [found.title]
    if measured is not None:
        events.append(read(measured))
        titles.append(f"measured: {measured.name}, {end_of(events[1]):.1f} us")
    until = max(map(end_of, events))
    return [timeline(title, one, until, ctas) for title, one in zip(titles, events, strict=True)], until


def execute(request: Request) -> None:
    """Predict, print, and write what is asked for. Raises `PkcError`."""
    found = predicted(request.chosen, request.target)
    shown, until = timelines(found, request.measured, request.ctas)
    click.echo(f"{found.schedule}\n")
    click.echo(table.text(found.prediction.events))
    for one in shown:
        click.echo(f"\n{text(first_rank(one), until)}")
    launch = lookup(request.target).rates.launch / 1e3
    click.echo(f"\nTimes in us since the CTAs began; a launch takes {launch:.0f} us more. Lanes are those of rank 0.")
    if request.output is not None:
        write(found, shown, until, request.output, request.ctas)


def first_rank(one: Timeline) -> Timeline:
    """The lanes of rank 0 alone."""
    return Timeline(one.title, one.end, tuple(lane for lane in one.lanes if lane.rank == 0), ())


def write(found: Predicted, shown: list[Timeline], until: float, path: Path, ctas: int) -> None:
    """Write a PNG, a page or a file for viewers, by the end of its name. Raises `PkcError`."""
    with console.writing(str(path)):
        if path.suffix == ".png":
            png.draw(shown, until, path)
        elif path.suffix == ".html":
            path.write_text(page.page(found.title, page.drawing(shown, until)), encoding="utf-8")
        else:
            with path.open("w", encoding="utf-8") as file:
                chrome.write(found.prediction.events, file, ctas, found.prediction.used)
