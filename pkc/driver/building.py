"""What the cache lacks: the compiler, all of which this module imports."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from pkc import cache
from pkc.codegen import stored
from pkc.codegen.artifact import Artifact
from pkc.codegen.build import build
from pkc.codegen.kernel_parameters import interface_of
from pkc.codegen.nvrtc import release
from pkc.driver import kept
from pkc.driver.autoschedule import autoschedule, sets_tiles
from pkc.driver.compiler import compile_program, refuse_unknown, say_divisors
from pkc.driver.divisors import lengths_of
from pkc.driver.kept import Number
from pkc.driver.lengths import Lengths
from pkc.driver.outlines import Outline, Warned
from pkc.frontend import tree
from pkc.frontend.elaborate import build_module
from pkc.passes.cse import Cse
from pkc.passes.run import print_ir, run_pipeline
from pkc.passes.tile.check_program import CheckProgram
from pkc.passes.tile.shift_blocks import ShiftBlocks
from pkc.sim.program import Program
from pkc.sim.run import resolve_dims


def outlined(
    program: tree.Program, constants: Mapping[str, Number], schedule: Mapping[str, str], target: str
) -> Outline:
    """The outline of the only kernel of a program, compiled to the tile level. Raises `PkcError`."""
    compiled = compile_program(program, constants=constants, schedule=schedule, target=target)
    kernel = compiled.kernel
    interface = interface_of(kernel)
    # Which arrays other ranks reach, machine code says; tensors in place of these are refused when it is there.
    arrays = (replace(each, local=each.layout != "private") for each in interface.arrays)
    interface = replace(interface, arrays=tuple(arrays))
    warnings = (Warned(str(found), found.span.source.name, found.span.line) for found in compiled.warnings)
    return Outline(interface, sets_tiles(kernel), lengths_of([kernel]), tuple(warnings))


def sizes_of(
    program: tree.Program, dims: Mapping[str, Any], constants: Mapping[str, Number], schedule: Mapping[str, str]
) -> Mapping[str, int]:
    """The run-time dimensions of the only kernel of a program: what is wrong with them has the kernel's lines. Raises
    `PkcError`."""
    kernel = compile_program(program, constants=constants, schedule=schedule).kernel
    refuse_unknown(program.kernels[0].name, dims, Program(kernel).dims)
    return resolve_dims(kernel, dims, {}, 1)


def chosen(
    program: tree.Program,
    kernel: str,
    dims: Mapping[str, int],
    ranks: int,
    constants: Mapping[str, Number] | None,
    schedule: Mapping[str, str] | None,
    target: str,
) -> Mapping[str, str]:
    """The schedule for given sizes. Raises `PkcError`."""
    return autoschedule(
        program, dims=dims, ranks=ranks, kernel=kernel, constants=constants, schedule=schedule, target=target
    ).schedule


_WITH_SHIFTED_BLOCKS = (CheckProgram(), Cse(), ShiftBlocks())
"""The passes after which shifted blocks are no tables: what the cache has is found without all others."""


def lengths(
    program: tree.Program,
    kernel: str,
    constants: Mapping[str, Number] | None,
    schedule: Mapping[str, str] | None,
) -> Lengths:
    """What the machine code of a kernel depends on of its sizes. Raises `PkcError`."""
    module = build_module(program, kernel=kernel, constants=constants, options=schedule)
    run_pipeline(module, _WITH_SHIFTED_BLOCKS, verify=False)
    return lengths_of(module.ops)


def built(
    program: tree.Program,
    kernel: str,
    constants: Mapping[str, Number] | None,
    schedule: Mapping[str, str] | None,
    target: str,
    instruments: Collection[str],
    divisors: Mapping[str, int],
) -> tuple[str, Artifact]:
    """The machine code of a kernel, and its name in the cache: that of the program's IR. Raises `PkcError`."""
    module = build_module(program, kernel=kernel, constants=constants, options=schedule)
    if divisors:
        say_divisors(module, divisors)
    added = ",".join(sorted(instruments))
    key = cache.key("artifact 3", cache.compiler(), release(), target, kernel, added, print_ir(module, locations=True))
    known = kept.get(key, target)
    if known is not None:
        return key, stored.unpack(known)
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
    kept.put(key, stored.pack(artifact), target)
    return key, artifact
