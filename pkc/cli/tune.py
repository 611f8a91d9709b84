"""`pkc tune`: the schedules that seem best, measured on GPUs."""

from __future__ import annotations

import click

from pkc import console
from pkc.cli.program import Chosen
from pkc.driver import tuned
from pkc.driver.tune import table, tune
from pkc.sim.draw import draw_inputs
from pkc.sim.run import resolve_dims


def execute(chosen: Chosen, target: str, seed: int, most: int, rounds: int) -> None:
    """Measure a kernel at its sizes, print what each schedule takes, and keep the fastest. Raises `PkcError`."""
    from pkc.driver.hardware import clock_of
    from pkc.runtime.mesh import Mesh

    compiled = chosen.compile()
    settings = chosen.settings(compiled.kernel)
    dims = resolve_dims(compiled.kernel, settings.dims, settings.scalars, chosen.ranks)
    name = chosen.kernel.name
    inputs = draw_inputs(compiled.module, ranks=chosen.ranks, dims=dims, seed=seed, kernel=name) | settings.scalars
    mesh = Mesh.single_process(range(chosen.ranks))
    with console.progress(f"measuring {name}"):
        found = tune(
            chosen.program,
            clock_of(mesh, dims, inputs),
            dims=dims,
            ranks=chosen.ranks,
            kernel=name,
            constants=chosen.constants,
            schedule=chosen.schedule,
            target=target,
            most=most,
            rounds=rounds,
        )
    mesh.close()
    click.echo(table(found))
    click.echo(f"kept in {tuned.place()}")
