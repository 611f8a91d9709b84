"""`pkc explain`: what pkc makes of a kernel at given sizes, in the terminal and as one page."""

from __future__ import annotations

from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from pkc import console
from pkc.cli.program import Chosen, compile_far
from pkc.cli.timeline import predicted
from pkc.codegen.build import build_kernel, resources
from pkc.diagnostics import PkcError
from pkc.driver.compiler import Compiled, compile_program
from pkc.driver.planned import planned
from pkc.timeline import diagram, differences, page
from pkc.timeline.errors import NotPredicted
from pkc.timeline.forecast import Forecast, first_rank
from pkc.timeline.lanes import Timeline
from pkc.timeline.text import text


def execute(chosen: Chosen, target: str, path: Path | None) -> None:
    """Print roles, channels and overlap, and write the page. Raises `PkcError`."""
    try:
        found = predicted(chosen, target)
    except PkcError as error:
        (why, *more) = error.diagnostics
        if more or path is not None or not isinstance(why, NotPredicted):
            raise
        _without_timeline(chosen, target, why)
        return
    shown, until = found.timelines()
    click.echo(f"{found.schedule}\n")
    click.echo("\n".join(diagram.text(found.compiled.kernel)))
    click.echo(f"\n{text(first_rank(shown[0]), until)}")
    if found.note:
        click.echo(f"\n{found.note}")
    if path is None:
        return
    with console.progress("compiling for the page"), TemporaryDirectory() as folder:
        body = _body(chosen, target, found, shown, until, Path(folder))
    with console.writing(str(path)):
        path.write_text(page.page(found.title, body), encoding="utf-8")
    click.echo(f"\n{path.resolve()}")


def _without_timeline(chosen: Chosen, target: str, why: NotPredicted) -> None:
    """Print what is known of a kernel whose steps only memory knows."""
    given = {**chosen.constants, **chosen.values}
    found = planned(
        chosen.program,
        given,
        ranks=chosen.ranks,
        schedule=chosen.schedule,
        target=target,
        kernel=chosen.kernel.name,
    )
    click.echo(f"{found.schedule}\n")
    click.echo("\n".join(diagram.text(found.compiled.kernel)))
    click.echo(f"\n{why.fill(why.title)}; {why.help}")


def _body(chosen: Chosen, target: str, found: Forecast, shown: list[Timeline], until: float, folder: Path) -> str:
    compiled = compile_far(chosen.program, chosen.kernel.name, chosen.constants, found.options, target, found.divisors)
    compile_program(
        chosen.program,
        kernel=chosen.kernel.name,
        constants=chosen.constants,
        schedule=found.options,
        level="roles",
        target=target,
        dump=folder,
        divisors=found.divisors,
    )
    source = chosen.program.span.source.text
    parts = [
        f"<h2>Source</h2><pre>{escape(source)}</pre>",
        f"<h2>Roles</h2>{diagram.svg(found.compiled.kernel)}",
        "<p>Solid: a channel through shared memory of one SM. Dashed: a signal, of this rank or another.</p>",
        f"<h2>Time</h2><p>{escape(str(found.schedule))}</p>",
        page.drawing(shown, until),
        f"<p>{escape(found.note)}</p>",
        _listed("What was decided", [str(found.schedule), *map(str, compiled.explanations)]),
        _listed("What was not optimised", list(map(str, compiled.remarks)) or ["Nothing that pkc knows of."]),
        _listed("Resources", _resources(compiled)),
        f"<h2>Passes</h2><p>Those that changed the IR, down to the roles.</p>{differences.html(folder)}",
    ]
    return "\n".join(parts)


def _listed(title: str, lines: list[str]) -> str:
    items = "".join(f"<li>{escape(line)}</li>" for line in lines)
    return f"<h2>{title}</h2><ul>{items}</ul>"


def _resources(compiled: Compiled) -> list[str]:
    """What the machine code takes, if it can be made here."""
    try:
        built = build_kernel(compiled.kernel)
    except PkcError as error:
        return [found.fill(found.title) for found in error.diagnostics]
    return [resources(built)]
