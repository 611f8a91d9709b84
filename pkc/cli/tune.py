"""`pkc tune`: the schedules that seem best, measured on GPUs."""

from __future__ import annotations

from collections.abc import Mapping

import click

from pkc import console
from pkc.cli.program import Chosen
from pkc.driver import tuned
from pkc.driver.calibrate import calibrate, probes
from pkc.driver.compiler import compile_program
from pkc.driver.tune import Clock, table, tune
from pkc.frontend import tree
from pkc.sim.draw import draw_inputs
from pkc.sim.run import resolve_dims
from pkc.targets.target import lookup

_PERIOD = 1 << 20
"""Operands repeat after so many elements: to draw all takes longer than to measure."""


def execute(chosen: Chosen, target: str, seed: int, most: int, rounds: int) -> None:
    """Measure a kernel at its sizes, print what each schedule takes, and keep the fastest. Raises `PkcError`."""
    from pkc.driver.hardware import clock_of
    from pkc.runtime.mesh import Mesh

    compiled = chosen.compile()
    settings = chosen.settings(compiled.kernel)
    dims = resolve_dims(compiled.kernel, settings.dims, settings.scalars, chosen.ranks)
    name = chosen.kernel.name
    drawn = draw_inputs(compiled.module, ranks=chosen.ranks, dims=dims, seed=seed, kernel=name, period=_PERIOD)
    inputs = drawn | settings.scalars
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


def measure_rates(ranks: int, target: str) -> None:
    """Measure rates, print them beside those of the target, and keep them. Raises `PkcError`."""
    from pkc.driver.hardware import clock_of
    from pkc.runtime.mesh import Mesh

    meshes: list[Mesh] = []

    def clock_for(program: tree.Program, dims: Mapping[str, int]) -> Clock:
        while meshes:
            meshes.pop().close()
        count = ranks if any(probe.dims == dims and probe.ranks > 1 for probe in probes(ranks)) else 1
        meshes.append(Mesh.single_process(range(count)))
        inputs = draw_inputs(compile_program(program).module, ranks=count, dims=dict(dims), seed=0, period=_PERIOD)
        return clock_of(meshes[0], dims, inputs)

    with console.progress("measuring rates"):
        found = calibrate(clock_for, ranks, target=target)
    for mesh in meshes:
        mesh.close()
    record = lookup(target).rates
    for name, rate in found.items():
        click.echo(f"{name}: {rate:.4g} (of the target: {getattr(record, name):.4g})")
    click.echo(f"kept in {tuned.place()}")
