"""From a program to machine code, from the cache if the program was compiled before."""

from __future__ import annotations

import functools
import json
from collections.abc import Collection, Mapping

from pkc import cache
from pkc.codegen import stored
from pkc.codegen.artifact import Artifact
from pkc.codegen.build import build
from pkc.codegen.nvrtc import version
from pkc.driver import tuned
from pkc.driver.autoschedule import autoschedule
from pkc.driver.compiler import Number, compile_program, say_divisors
from pkc.driver.divisors import divisors_of
from pkc.frontend import tree
from pkc.frontend.elaborate import build_module
from pkc.passes.run import print_ir
from pkc.targets import BUILT_IN, DEFAULT
from pkc.targets.arch import hardware_queues


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
    kernel, options = kernel or program.kernels[0].name, dict(schedule or {})
    # The tree has no positions, on which no schedule depends.
    arguments = repr(
        (program, sorted(dims.items()), ranks, kernel, sorted((constants or {}).items()), sorted(options.items()))
    )
    rates = repr(sorted(tuned.rates_of(target).items()))
    key = cache.key("schedule 2", _compiler(), target, str(hardware_queues()), rates, arguments)
    measured = tuned.look_up(tuned.key(program, kernel, target, ranks, dims, constants or {}, options))
    kept = _kept(key, target) if measured is None else None
    # Machine code serves all sizes and numbers of ranks, but with the schedule that is best for these.
    best: Mapping[str, str]
    if measured is not None:
        best = measured.schedule
    elif kept is not None:
        best = json.loads(kept)
    else:
        best = autoschedule(
            program, dims=dims, ranks=ranks, kernel=kernel, constants=constants, schedule=schedule, target=target
        ).schedule
        if target in BUILT_IN:
            cache.put(key, json.dumps(dict(best)).encode())
    chosen = {**options, **best}
    return build_program(
        program,
        kernel=kernel,
        constants=constants,
        schedule=chosen,
        target=target,
        instruments=instruments,
        sizes=(dims, ranks),
    )


def build_program(
    program: tree.Program,
    *,
    kernel: str | None = None,
    constants: Mapping[str, Number] | None = None,
    schedule: Mapping[str, str] | None = None,
    target: str = DEFAULT,
    instruments: Collection[str] = (),
    sizes: tuple[Mapping[str, int], int] | None = None,
) -> Artifact:
    """The machine code of a kernel, which serves all sizes; with `sizes`, dimensions and ranks, all that suit TMA as
    these do. It depends on the program's IR, the target and pkc."""
    kernel = kernel or program.kernels[0].name
    module = build_module(program, kernel=kernel, constants=constants, options=schedule)
    divisors = divisors_of(module.ops, *sizes) if sizes is not None else {}
    if divisors:
        say_divisors(module, divisors)
    added = ",".join(sorted(instruments))
    key = cache.key("artifact 3", _compiler(), version(), target, kernel, added, print_ir(module, locations=True))
    kept = _kept(key, target)
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
        divisors=divisors,
    )
    artifact = build(compiled.module, kernel=kernel)
    if target in BUILT_IN:
        cache.put(key, stored.pack(artifact))
    return artifact


def _kept(key: str, target: str) -> bytes | None:
    """Nothing for targets that are not built in: keys have no sources of them."""
    return cache.get(key) if target in BUILT_IN else None


_compiler = functools.cache(cache.compiler)
"""Of this process: its sources do not change."""
