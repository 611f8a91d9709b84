"""Compiles the kernel that a command names, with its constants and schedule."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from pkc import console
from pkc.cli.options import Asked
from pkc.cli.settings import Number, Settings, assignments, numbers, sort_settings
from pkc.codegen.artifact import Artifact
from pkc.diagnostics import PkcError
from pkc.dialect.program import KernelOp
from pkc.driver.compiler import Compiled, compile_program, constants_of, default_constants
from pkc.driver.programs import find_kernel, load_program
from pkc.frontend import tree
from pkc.passes.machine.lower_tiles import LowerTiles
from pkc.remarks import Remark
from pkc.targets import DEFAULT

if TYPE_CHECKING:
    from pkc.driver.chosen import Autoschedule


class CompileForGpus(Protocol):
    """Machine code of the kernel for run-time dimensions and a number of ranks."""

    def __call__(self, *, dims: Mapping[str, int], ranks: int) -> Artifact: ...


@dataclass(frozen=True)
class Chosen:
    """The kernel that a command runs on ranks: its constants, and the values of its dimensions and scalars."""

    program: tree.Program
    kernel: tree.Kernel
    ranks: int
    constants: Mapping[str, Number]
    values: Mapping[str, Number]
    schedule: Mapping[str, str]

    def all_constants(self) -> dict[str, Number]:
        """The constants that are given, and the defaults of the others that are plain numbers."""
        return default_constants(self.kernel) | dict(self.constants)

    def compile(
        self,
        level: str = "tile",
        target: str = DEFAULT,
        *,
        warn: bool = True,
        divisors: Mapping[str, int] | None = None,
    ) -> Compiled:
        """The kernel at a level of IR; `divisors` as for `compile_program`. Prints warnings, if asked."""
        return compile_for(
            self.program,
            self.kernel.name,
            self.constants,
            self.schedule,
            level=level,
            target=target,
            warn=warn,
            divisors=divisors,
        )

    def for_gpus(self, target: str, instruments: Collection[str]) -> CompileForGpus:
        """What compiles it to machine code, with some of `INSTRUMENTS` of `pkc/passes`."""
        from pkc.driver.builder import artifact_for

        return partial(
            artifact_for,
            self.program,
            kernel=self.kernel.name,
            constants=self.constants,
            schedule=self.schedule,
            target=target,
            instruments=instruments,
        )

    def settings(self, kernel: KernelOp) -> Settings:
        """The values as dimensions and scalars of the compiled kernel. Raises `PkcError` for those that it has not."""
        return sort_settings(kernel, self.values, constants_of(self.kernel))


def choose(asked: Asked) -> Chosen:
    """The kernel that the command line asks for. Raises `PkcError`."""
    values = numbers("--set", asked.settings, example="M=1024,N=512")
    program = load_program(asked.file)
    kernel = find_kernel(program, asked.file, asked.kernel)
    constants = {name: values.pop(name) for name in constants_of(kernel) if name in values}
    return Chosen(program, kernel, asked.ranks, constants, values, schedule_options(asked.schedule))


def schedule_options(schedule: Iterable[str]) -> dict[str, str]:
    """The values of `--schedule`, by key."""
    return assignments("--schedule", schedule, example="overlap=intra_sm,stages=4", split=True)


def autoschedule_for(chosen: Chosen, target: str) -> Autoschedule:
    """The schedule with which a kernel would run at its values."""
    from pkc.driver.autoschedule import autoschedule
    from pkc.sim.run import resolve_dims

    program, name, options = chosen.program, chosen.kernel.name, chosen.schedule
    compiled = compile_program(program, kernel=name, constants=chosen.constants, schedule=options).kernel
    settings = chosen.settings(compiled)
    dims = resolve_dims(compiled, settings.dims, settings.scalars, chosen.ranks)
    return autoschedule(
        program,
        dims=dims,
        ranks=chosen.ranks,
        kernel=name,
        constants=chosen.constants,
        schedule=options,
        target=target,
    )


def compile_far(
    program: tree.Program,
    kernel: str | None,
    constants: Mapping[str, Number],
    schedule: Mapping[str, str],
    target: str = DEFAULT,
    divisors: Mapping[str, int] | None = None,
) -> Compiled:
    """As `compile_for`, to the lowest level that the target supports: the machine level, or else the roles level with
    a remark that says why."""
    compiled_to = partial(
        compile_for, program, kernel, constants, schedule, target=target, warn=False, divisors=divisors
    )
    try:
        return compiled_to(level="machine")
    except PkcError as error:
        compiled = compiled_to(level="roles")
        for found in error.diagnostics:
            compiled.remarks.append(Remark(LowerTiles.name, KernelOp.name, found.fill(found.title), found.span))
        return compiled


def compile_for(
    program: tree.Program,
    kernel: str | None,
    constants: Mapping[str, Number],
    schedule: Mapping[str, str],
    *,
    level: str = "tile",
    target: str = DEFAULT,
    dump: str | None = None,
    warn: bool = True,
    divisors: Mapping[str, int] | None = None,
) -> Compiled:
    """Compile one kernel, or all, to a level of IR; `divisors` as for `compile_program`. Prints warnings, if asked."""
    dumping = nullcontext() if dump is None else console.writing(dump)
    with console.progress(f"compiling {kernel or 'all kernels'}"), dumping:
        compiled = compile_program(
            program,
            kernel=kernel,
            constants=constants,
            schedule=schedule,
            level=level,
            dump=None if dump is None else Path(dump),
            target=target,
            divisors=divisors,
        )
    if warn:
        console.diagnostics(compiled.warnings)
    return compiled
