"""Compiles the kernel that a command names, with its constants and schedule."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from pkc import console
from pkc.cli.settings import Number, assignments, sort_settings
from pkc.diagnostics import PkcError
from pkc.dialect.program import KernelOp
from pkc.driver.autoschedule import Autoschedule, autoschedule
from pkc.driver.compiler import Compiled, compile_program
from pkc.frontend import tree
from pkc.passes.machine.lower_tiles import LowerTiles
from pkc.remarks import Remark
from pkc.sim.run import resolve_dims
from pkc.targets import DEFAULT


def constants_of(kernel: tree.Kernel) -> list[str]:
    """The names of the parameters that are given at compile time."""
    return [param.name for param in kernel.params if param.annotation.base == "const"]


def schedule_options(schedule: Iterable[str]) -> dict[str, str]:
    """The values of `--schedule`, by key."""
    return assignments("--schedule", schedule, example="overlap=intra_sm,stages=4", split=True)


def schedule_for(
    program: tree.Program,
    kernel: tree.Kernel,
    constants: Mapping[str, Number],
    sizes: Mapping[str, Number],
    schedule: Iterable[str],
    ranks: int,
    target: str = DEFAULT,
) -> Autoschedule:
    """The schedule with which a kernel would run at these sizes."""
    options = schedule_options(schedule)
    compiled = compile_program(program, kernel=kernel.name, constants=constants, schedule=options).kernel
    settings = sort_settings(compiled, sizes, constants_of(kernel))
    dims = resolve_dims(compiled, settings.dims, settings.scalars, ranks)
    return autoschedule(
        program, dims=dims, ranks=ranks, kernel=kernel.name, constants=constants, schedule=options, target=target
    )


def compile_far(
    program: tree.Program,
    kernel: str | None,
    constants: Mapping[str, Number],
    schedule: Sequence[str],
    target: str = DEFAULT,
) -> Compiled:
    """As `compile_for`, to the lowest level that the target supports: the machine level, or else the roles level with
    a remark that says why."""
    try:
        return compile_for(program, kernel, constants, schedule, level="machine", target=target, warn=False)
    except PkcError as error:
        compiled = compile_for(program, kernel, constants, schedule, level="roles", target=target, warn=False)
        for found in error.diagnostics:
            compiled.remarks.append(Remark(LowerTiles.name, KernelOp.name, found.fill(found.title), found.span))
        return compiled


def compile_for(
    program: tree.Program,
    kernel: str | None,
    constants: Mapping[str, Number],
    schedule: Iterable[str],
    *,
    level: str = "tile",
    target: str = DEFAULT,
    dump: str | None = None,
    warn: bool = True,
) -> Compiled:
    """Compile one kernel, or all, to a level of IR; `schedule` as on the command line. Prints warnings, if asked."""
    options = schedule_options(schedule)
    with console.progress(f"compiling {kernel or 'all kernels'}"):
        compiled = compile_program(
            program,
            kernel=kernel,
            constants=constants,
            schedule=options,
            level=level,
            dump=None if dump is None else Path(dump),
            target=target,
        )
    if warn:
        console.diagnostics(compiled.warnings)
    return compiled
