"""Compiles what a command names: which kernel of a file, with which constants and schedule."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from pkc import cli_errors as errors
from pkc import report
from pkc.choice import Choice, choose
from pkc.cli_settings import Number, assignments, sort_settings
from pkc.compiler import Compiled, compile_program
from pkc.diagnostics import PkcError, listing, near
from pkc.frontend import tree
from pkc.location import NOWHERE
from pkc.sim.run import resolve_dims
from pkc.targets import DEFAULT


def find_kernel(program: tree.Program, path: str, name: str) -> tree.Kernel:
    """The kernel called `name`."""
    names = [kernel.name for kernel in program.kernels]
    if name not in names:
        raise PkcError(errors.UnknownKernel(NOWHERE, path, name, near(name, names, "it has ")))
    return program.kernels[names.index(name)]


def only_kernel(program: tree.Program, path: str) -> tree.Kernel:
    """The one kernel of a file."""
    first, *others = program.kernels
    if others:
        names = listing(kernel.name for kernel in program.kernels)
        raise PkcError(errors.KernelNotChosen(NOWHERE, path, len(program.kernels), names))
    return first


def constants_of(kernel: tree.Kernel) -> list[str]:
    """The names of the parameters that are given at compile time."""
    return [param.name for param in kernel.params if param.annotation.base == "const"]


def choices_of(schedule: Iterable[str]) -> dict[str, str]:
    """What `--schedule` says, by key."""
    return assignments("--schedule", schedule, example="overlap=intra_sm,stages=4", split=True)


def schedule_for(
    program: tree.Program,
    kernel: tree.Kernel,
    constants: Mapping[str, Number],
    sizes: Mapping[str, Number],
    schedule: Iterable[str],
    ranks: int,
    target: str = DEFAULT,
) -> Choice:
    """The schedule with which a kernel would run at these sizes."""
    choices = choices_of(schedule)
    compiled = compile_program(program, kernel=kernel.name, constants=constants, schedule=choices).kernel
    settings = sort_settings(compiled, sizes, constants_of(kernel))
    dims = resolve_dims(compiled, settings.dims, settings.scalars, ranks)
    return choose(
        program, dims=dims, ranks=ranks, kernel=kernel.name, constants=constants, schedule=choices, target=target
    )


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
    choices = choices_of(schedule)
    with report.progress(f"compiling {kernel or 'all kernels'}"):
        compiled = compile_program(
            program,
            kernel=kernel,
            constants=constants,
            schedule=choices,
            level=level,
            dump=None if dump is None else Path(dump),
            target=target,
        )
    if warn:
        report.diagnostics(compiled.warnings)
    return compiled
