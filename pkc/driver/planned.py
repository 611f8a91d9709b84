"""A kernel as it would run at given sizes: with the schedule that pkc chooses for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from pkc.driver.autoschedule import as_compiled, autoschedule
from pkc.driver.chosen import Autoschedule
from pkc.driver.compiler import Compiled, Number, compile_program, constants_of, refuse_unknown
from pkc.driver.divisors import divisors_of
from pkc.frontend import tree
from pkc.sim.program import Program
from pkc.sim.run import resolve_dims


@dataclass(frozen=True, repr=False)
class Planned:
    """A kernel at its sizes: its schedule and its IR."""

    schedule: Autoschedule
    options: Mapping[str, str]
    compiled: Compiled
    dims: Mapping[str, int]
    ranks: int
    divisors: Mapping[str, int]


def planned(
    program: tree.Program,
    given: Mapping[str, Number],
    *,
    ranks: int,
    schedule: Mapping[str, str],
    target: str,
    kernel: str | None = None,
    level: str = "roles",
) -> Planned:
    """Compile a kernel to a level with the schedule that it would run with.

    `given` are constants, scalars and dimensions by name. Raises `PkcError`.
    """
    source = next(one for one in program.kernels if kernel in (None, one.name))
    constants = {name: given[name] for name in constants_of(source) if name in given}
    tile = compile_program(program, kernel=source.name, constants=constants, schedule=schedule).kernel
    called = Program(tile)
    known = [*constants_of(source), *called.dims, *called.scalars, "ranks"]
    refuse_unknown(source.name, given, known)
    sizes = {name: given[name] for name in called.dims if name in given}
    dims = resolve_dims(tile, sizes, {}, ranks)  # pyright: ignore[reportArgumentType]
    choose = partial(
        autoschedule, program, dims=dims, ranks=ranks, kernel=source.name, constants=constants, target=target
    )
    chosen = choose(schedule=schedule)
    options = {**schedule, **chosen.schedule}
    divisors = divisors_of([tile], dims, ranks)
    compiled = compile_program(
        program,
        kernel=source.name,
        constants=constants,
        schedule=options,
        level=level,
        target=target,
        divisors=divisors,
    )
    chosen = as_compiled(chosen, compiled.schedule, lambda more: choose(schedule={**schedule, **more}))
    return Planned(chosen, options, compiled, dims, ranks, divisors)
