"""From a program to machine code, from the cache if the program was compiled before."""

from __future__ import annotations

import functools
import importlib.metadata
from collections.abc import Collection, Mapping
from pathlib import Path

from pkc import cache
from pkc.codegen import stored
from pkc.codegen.artifact import Artifact
from pkc.codegen.build import build
from pkc.codegen.nvrtc import version
from pkc.driver.autoschedule import autoschedule
from pkc.driver.compiler import Number, compile_program
from pkc.frontend import tree
from pkc.frontend.elaborate import build_module
from pkc.passes.run import print_ir
from pkc.targets import BUILT_IN, DEFAULT


def artifact_for(
    program: tree.Program,
    *,
    dims: Mapping[str, int],
    ranks: int,
    kernel: str | None = None,
    constants: Mapping[str, Number] | None = None,
    schedule: Mapping[str, str] | None = None,
    target: str = DEFAULT,
    instruments: Collection[str] = (),
) -> Artifact:
    """The machine code that runs a kernel with these dimensions on so many ranks; the first kernel unless it is named.

    Everything that launches kernels compiles them here. `dims` has a value for every run-time dimension of the
    parameters, without `ranks`. Calls that get equal artifacts may share one `LoadedKernel`. Raises `PkcError`.
    """
    # Machine code serves all sizes and numbers of ranks, but with the schedule that is best for these.
    best = autoschedule(
        program, dims=dims, ranks=ranks, kernel=kernel, constants=constants, schedule=schedule, target=target
    )
    chosen = {**(schedule or {}), **best.schedule}
    return build_program(
        program, kernel=kernel, constants=constants, schedule=chosen, target=target, instruments=instruments
    )


def build_program(
    program: tree.Program,
    *,
    kernel: str | None = None,
    constants: Mapping[str, Number] | None = None,
    schedule: Mapping[str, str] | None = None,
    target: str = DEFAULT,
    instruments: Collection[str] = (),
) -> Artifact:
    """The machine code of a kernel, which serves all sizes. It depends on the program's IR, the target and pkc."""
    kernel = kernel or program.kernels[0].name
    module = build_module(program, kernel=kernel, constants=constants, options=schedule)
    added = ",".join(sorted(instruments))
    key = cache.key("artifact 3", _compiler(), version(), target, kernel, added, print_ir(module, locations=True))
    # The key has no sources of targets that are not built in.
    cached = target in BUILT_IN
    kept = cache.get(key) if cached else None
    if kept is not None:
        return stored.unpack(kept)
    compiled = compile_program(
        program,
        kernel=kernel,
        constants=constants,
        schedule=schedule,
        level="machine",
        instruments=instruments,
        target=target,
    )
    artifact = build(compiled.module, kernel=kernel)
    if cached:
        cache.put(key, stored.pack(artifact))
    return artifact


@functools.cache
def _compiler() -> str:
    """A key of all sources that turn IR into machine code: those of pkc, and the version of xDSL."""
    root = Path(__file__).parents[1]
    files = [path for package in ("dialect", "targets", "passes", "codegen") for path in (root / package).rglob("*")]
    sources = [path.read_bytes() for path in sorted(files) if path.suffix == ".py"]
    return cache.key(importlib.metadata.version("xdsl"), *sources)
