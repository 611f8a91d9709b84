"""`pkc trace`: a kernel on GPUs in which a thread of each warp role records what it does when."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import click
import numpy as np

from pkc import console
from pkc.cli.program import Chosen, CompileForGpus
from pkc.codegen.artifact import Trace
from pkc.driver.compiler import Compiled
from pkc.driver.hardware import PATIENCE, Call
from pkc.runtime.mesh import Mesh
from pkc.sim.draw import draw_inputs
from pkc.sim.run import resolve_dims
from pkc.timeline import chrome, table
from pkc.timeline.records import Words, decode, longest


@dataclass(frozen=True)
class Request:
    """What the command line asks for; the JSON shows `ctas` CTAs of each rank."""

    chosen: Chosen
    seed: int
    launches: int
    ctas: int
    output: Path | None


def execute(compiled: Compiled, request: Request, traced: CompileForGpus) -> None:
    """Run a kernel on GPUs, print where its time goes, and write the time line. Raises `PkcError`."""
    kernel, ranks = compiled.kernel, request.chosen.ranks
    settings = request.chosen.settings(kernel)
    mesh = Mesh.single_process(range(ranks))
    dims = resolve_dims(kernel, settings.dims, settings.scalars, ranks)
    with console.progress(f"compiling {kernel.sym_name.data}"):
        artifact = traced(dims=dims, ranks=ranks)
    with console.progress("drawing the inputs"):
        inputs = draw_inputs(compiled.module, ranks=ranks, dims=dims, seed=request.seed) | settings.scalars
    call = Call(artifact, mesh, dims, inputs)
    assert artifact.trace is not None
    with console.progress(f"running {artifact.name} on {ranks} GPUs"):
        events = decode(artifact.trace, run(call, mesh, artifact.trace, request.launches))
    mesh.close()
    chosen = ", ".join(f"{name}={value}" for name, value in dims.items())
    click.echo(
        f"{artifact.name} on {ranks} GPU{'s' * (ranks > 1)}, {chosen}: launch {request.launches} of"
        f" {request.launches} in a row. Times in us since the first CTA of the same GPU began.\n"
    )
    click.echo(table.text(events))
    if request.output is None:
        return
    with console.writing(request.output), request.output.open("w", encoding="utf-8") as file:
        chrome.write(events, file, request.ctas)


def run(call: Call, mesh: Mesh, trace: Trace, launches: int) -> list[Words]:
    """The records of each rank in the last of `launches` launches. A first run tells how many records there will be."""
    few = _launch(call, mesh, trace, 2, 1)
    return _launch(call, mesh, trace, max(map(longest, few)), launches)


def _launch(call: Call, mesh: Mesh, trace: Trace, records: int, launches: int) -> list[Words]:
    """Launch with room for `records` records in each row; what each rank has written."""
    ctas = call.kernel.grid
    dims = {trace.ctas: ctas, trace.records: records}
    shape = (ctas, len(trace.roles), records, 4)
    call.launch(dims=dims)  # allocates
    mesh.synchronize(PATIENCE)
    offset, count = call.kernel.scratch(trace.array, call.dims | dims), 4 * int(np.prod(shape))
    mesh.zero(offset, count)  # rows of roles that a CTA does not run stay empty
    for _ in range(launches):
        call.launch(dims=dims)
    mesh.synchronize(PATIENCE)
    return [mesh.read(rank, offset, count).view(np.int32).reshape(shape) for rank in mesh.local]
