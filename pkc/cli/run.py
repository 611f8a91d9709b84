"""`pkc run`: inputs, simulation, reference, comparison."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import click
import numpy as np

from pkc import console
from pkc.cli import errors as cli_errors
from pkc.cli.arrays import check_names, check_written, load_inputs, save_outputs
from pkc.cli.program import Chosen, CompileForGpus
from pkc.codegen.artifact import Artifact
from pkc.diagnostics import PkcError
from pkc.dialect.types import RANKS
from pkc.driver import results
from pkc.driver.compiler import Compiled
from pkc.driver.references import Reference, computed, expected_by, references_of
from pkc.location import NOWHERE
from pkc.sim.draw import draw_inputs
from pkc.sim.program import Program
from pkc.sim.reference import Comparison, Expected, compare, reference
from pkc.sim.run import resolve_dims, simulate
from pkc.sim.small import small_dims


@dataclass(frozen=True)
class Request:
    """What the command line asks for; files by array."""

    chosen: Chosen
    seed: int
    inputs: Mapping[str, str]
    outputs: Mapping[str, str]
    references: Sequence[str] = ()

    def asked(self, kernel: str, written: Sequence[str]) -> list[Reference]:
        """The references of the command line, or else that of the program. Raises `PkcError`."""
        own = self.chosen.kernel
        if self.references or own.reference is None:
            return references_of(self.references, kernel, written)
        return references_of([own.reference], kernel, written, own.span)


def execute(compiled: Compiled, request: Request, on_gpus: CompileForGpus | None = None) -> bool:
    """Run a kernel on simulated ranks, or on GPUs if `on_gpus` compiles it for them, and print how the results compare
    with the reference. True if all are right."""
    try:
        return _execute(compiled, request, on_gpus)
    except MemoryError as error:
        raise PkcError(cli_errors.OutOfMemory(NOWHERE, str(error))) from None


def _execute(compiled: Compiled, request: Request, on_gpus: CompileForGpus | None) -> bool:
    kernel, module, ranks, seed = compiled.kernel, compiled.module, request.chosen.ranks, request.seed
    name = kernel.sym_name.data
    settings = request.chosen.settings(kernel)
    check_names(kernel, "--in", request.inputs)
    check_names(kernel, "--out", request.outputs)
    called = Program(kernel)
    check_written(kernel, request.outputs, called.outputs)
    references = request.asked(name, called.outputs)

    given = load_inputs(kernel, request.inputs) | settings.scalars
    sizes = settings.dims
    if called.dims and not sizes and not request.inputs:
        sizes = small_dims(kernel, ranks)
        click.echo("no size is set: small ones are taken, whose last blocks are short")
    dims = resolve_dims(kernel, sizes, given, ranks)
    inputs = draw_inputs(module, ranks=ranks, dims=dims, seed=seed, kernel=name, both_sides=True) | given
    wanted = computed(references, called, inputs, request.chosen.all_constants() | dims | {RANKS: ranks})
    if on_gpus is not None:
        with console.progress(f"compiling {name} for GPUs"):
            artifact = on_gpus(dims=dims, ranks=ranks)
        found = _on_gpus(artifact, ranks, dims, inputs, kernel.in_any_order)
        everything = [{name: outputs[name] for name in called.outputs} for outputs in found]
    else:
        with console.progress(f"simulating {name} on {ranks} rank{'s' * (ranks > 1)}"):
            everything = [
                simulate(module, ranks=ranks, dims=dims, inputs=inputs, kernel=name, seed=seed, say=click.echo)
            ]
    with console.progress("computing the float64 reference"):
        meant = partial(reference, module, ranks=ranks, dims=dims, inputs=inputs, kernel=name)
        expected = meant(probable=True)
        around = meant(as_written=True) if references else expected
        compared = _worst(everything, expected)
    others = [
        (asked.name, _worst(everything, expected_by(asked, found, around, called)))
        for asked, found in zip(references, wanted, strict=True)
    ]

    values = [*dims.items(), *((scalar, _shown(inputs[scalar], kind)) for scalar, kind in called.scalars.items())]
    chosen = "".join(f", {given}={value}" for given, value in values)
    where = f"{'simulated rank' if on_gpus is None else 'GPU'}{'s' * (ranks > 1)}"
    click.echo(f"{name} on {ranks} {where}{chosen}, seed {seed}")
    click.echo(results.comparison_table(expected, compared))
    save_outputs(kernel, request.outputs, everything[0])
    doubtful = results.doubtful(expected, compared)
    for warning in [*results.unwritten(expected), *results.improbable(compared), *doubtful]:
        click.echo(warning)
    for other, items in others:
        click.echo(f"against {other}:")
        click.echo(results.short_table(expected, items))
        for warning in results.doubtful(expected, items):
            click.echo(warning)
    click.echo(results.verdict(compared, others))
    return all(item.ok for item in [*compared, *(item for _, items in others for item in items)])


def _worst(everything: Sequence[Mapping[str, Any]], expected: Mapping[str, Expected]) -> list[Comparison]:
    """How the outputs compare with what is expected; of several copies of an array, that which fits least."""
    found = zip(*(compare(outputs, expected) for outputs in everything), strict=True)
    return [
        max(copies, key=lambda item: (bool(item.problem), item.unjudged, item.doubted, item.worst_ratio))
        for copies in found
    ]


def _on_gpus(
    artifact: Artifact, ranks: int, dims: Mapping[str, int], inputs: Mapping[str, Any], in_any_order: bool
) -> list[dict[str, Any]]:
    from pkc.driver.hardware import run_on_gpus
    from pkc.runtime.mesh import Mesh

    mesh = Mesh.single_process(range(ranks))
    with console.progress(f"running {artifact.name} on {ranks} GPUs"):
        found = run_on_gpus(artifact, mesh, dims, inputs, in_any_order=in_any_order)
    mesh.close()
    return found


def _shown(value: Any, kind: str) -> str:
    """A scalar with the fewest digits that give it exactly."""
    return str(np.float32(value)) if kind == "f32" else str(value)
