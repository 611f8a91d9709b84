"""Runs a kernel on simulated ranks: every rank, role and task as a coroutine over numpy arrays."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from pkc.diagnostics import PkcError
from pkc.dialect import meaning
from pkc.dialect.numeric import Values
from pkc.dialect.types import Layout, PGLType
from pkc.location import span_of
from pkc.sim import errors
from pkc.sim.array import Array, Placement
from pkc.sim.inputs import Data, Inputs, check_data, resolve_dims
from pkc.sim.interpret import TileFunction, compile_kernel, new_registers
from pkc.sim.machine import Machine
from pkc.sim.program import Program, find_kernel
from pkc.sim.schedule import Scheduler
from pkc.sim.threads import one_thread
from pkc.sim.world import World

__all__ = ["Run", "resolve_dims", "run", "simulate"]


@dataclass(frozen=True)
class Run:
    """What a simulation gives: arrays by name, how many operations it carried out and in how many seconds."""

    outputs: dict[str, Values]
    operations: int
    seconds: float


def simulate(
    module: ModuleOp,
    *,
    ranks: int,
    dims: Mapping[str, int],
    inputs: Inputs,
    kernel: str | None = None,
    seed: int = 0,
) -> dict[str, Values]:
    """Every array that a kernel writes, in its true type.

    Private and symmetric arrays have a leading axis of ranks, sharded and replicated ones are the global array, scalars
    are Python numbers. `seed` decides the order in which roles and tasks run that wait for each other.
    """
    return run(module, ranks=ranks, dims=dims, inputs=inputs, kernel=kernel, seed=seed).outputs


def run(
    module: ModuleOp,
    *,
    ranks: int,
    dims: Mapping[str, int],
    inputs: Inputs,
    kernel: str | None = None,
    seed: int = 0,
) -> Run:
    """As `simulate`, with statistics."""
    began = time.perf_counter()
    program = Program(find_kernel(module, kernel))
    data = check_data(program, dims, inputs, ranks)
    arrays = make_arrays(program, data, Array, is_global=False)
    stored = None if program.has_roles else program.stored
    # A kernel whose parts do not wait for each other means the same in every order.
    machine = make_machine(program, data, World(arrays, stored), seed if program.orders_itself else None)
    execute(program, data, machine, meaning.value)
    outputs = {name: _checked_copies(program, arrays[name]).export() for name in program.outputs}
    return Run(outputs, machine.operations, time.perf_counter() - began)


def make_arrays(program: Program, data: Data, kind: type[Array], *, is_global: bool) -> dict[str, Any]:
    """The memory of all array parameters, filled."""
    made: dict[str, Array] = {}
    for name, array in program.arrays.items():
        layout = array.layout if isinstance(array, PGLType) else None
        shard = array.shard_dim if isinstance(array, PGLType) else None
        place = Placement(
            name, data.shape(array), array.element_type, layout, shard, data.ranks, is_global, name in program.scratch
        )
        summed, frozen = name in program.summed, name not in program.written
        made[name] = kind(place, data.arrays.get(name), summed=summed, frozen=frozen)
    return made


def make_machine(program: Program, data: Data, world: World, seed: int | None) -> Machine:
    """All ranks, ready to run: with a seed interleaved at random, without one after the other as far as that goes."""
    names: dict[SSAValue, str] = {argument: name for name, argument in program.kernel.arguments.items()}
    scheduler = Scheduler(seed)
    return Machine(data.sizes, data.ranks, world, scheduler, program.orders_itself, seed is not None, names)


def execute(program: Program, data: Data, machine: Machine, tile_function: TileFunction) -> None:
    """Run a kernel on every rank, to its end."""
    body = compile_kernel(program.kernel, machine, tile_function)
    scalars = {program.kernel.arguments[name]: value for name, value in data.scalars.items()}

    def start(rank: int) -> Callable[[], None]:
        registers = new_registers(machine, rank, scalars)
        return lambda: body(registers)

    with np.errstate(all="ignore"), one_thread():
        for rank in range(data.ranks):
            machine.scheduler.spawn(rank, "", start(rank))
        machine.scheduler.run(machine.world.end_phase)


def _checked_copies(program: Program, array: Array) -> Array:
    if array.place.layout is not Layout.Replicate:
        return array
    for rank in range(1, array.place.copies):
        same = array.value[rank] == array.value[0]
        if array.is_float:
            same |= np.isnan(array.value[rank]) & np.isnan(array.value[0])
        if not same.all():
            element = str([int(i) for i in np.argwhere(~same)[0]])
            raise PkcError(errors.CopiesDiffer(span_of(program.kernel.location), array.name, rank, element))
    return array
