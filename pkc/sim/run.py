"""Runs a kernel on simulated ranks: every rank, role and task as a coroutine over numpy arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from pkc.dialect.numeric import Values
from pkc.dialect.transfers import FENCED
from pkc.dialect.types import PGLType
from pkc.semantics import tile_ops
from pkc.sim.array import Array, Placement
from pkc.sim.backing import MakeArray, TileFunction
from pkc.sim.inputs import Data, Inputs, check_data, resolve_dims
from pkc.sim.interpret import compile_kernel
from pkc.sim.machine import Machine
from pkc.sim.memory import MemoryState
from pkc.sim.ordering import memory_order
from pkc.sim.orders import order_of
from pkc.sim.program import Program, find_kernel
from pkc.sim.schedule import Order, Scheduler
from pkc.sim.threads import one_thread

__all__ = ["resolve_dims", "simulate"]


_COMM_CTAS = 2
"""As many CTAs at least are simulated for the SMs that only communicate."""


def simulate(
    module: ModuleOp,
    *,
    ranks: int,
    dims: Mapping[str, int],
    inputs: Inputs,
    kernel: str | None = None,
    seed: int = 0,
    ctas: int = 2,
    say: Callable[[str], None] | None = None,
) -> dict[str, Values]:
    """Every array that a kernel writes, in its true type.

    Private and symmetric arrays have a leading axis of ranks, sharded and replicated ones are the global array, scalars
    are Python numbers. `seed` decides the order in which roles and tasks run that wait for each other. `ctas`
    is how many CTAs of a rank run each role, once the kernel is split into roles. `say` is given what `print` prints.
    """
    program = Program(find_kernel(module, kernel))
    data = check_data(program, dims, inputs, ranks)
    arrays = make_arrays(program, data, Array, is_global=False)
    stored = None if program.has_roles else program.stored
    # A kernel without waits means the same in every order.
    machine = make_machine(
        program, data, MemoryState(arrays, stored), order_of(seed) if program.orders_itself else None
    )
    place(machine, program, ctas if program.per_cta else machine.resident[0])
    machine.say = say
    if program.has_roles:
        guarded = FENCED in program.kernel.attributes
        machine.order = memory_order(program.kernel, machine, program.written, guarded=guarded)
    execute(program, data, machine, tile_ops.value)
    return {name: arrays[name].export() for name in program.outputs}


def make_arrays(
    program: Program, data: Data, kind: MakeArray, *, is_global: bool, again: bool = False
) -> dict[str, Any]:
    """The memory of all array parameters, filled; with `again`, it can be filled anew."""
    made: dict[str, Array] = {}
    for name, array in program.arrays.items():
        layout = array.layout if isinstance(array, PGLType) else None
        shard = array.shard_dim if isinstance(array, PGLType) else None
        place = Placement(
            name,
            data.shape(program.in_memory(name)),
            array.element_type,
            layout,
            shard,
            data.ranks,
            is_global,
            name in program.scratch,
            isinstance(array, PGLType) and array.zigzag,
            name in program.kept,
            data.shape(array),
        )
        summed, frozen = name in program.summed, name not in program.written and not again
        made[name] = kind(place, data.arrays.get(name), summed=summed, frozen=frozen)
    return made


def make_machine(program: Program, data: Data, memory: MemoryState, order: Order | None) -> Machine:
    """All ranks, ready to run: interleaved in an order; without one, one after the other as far as waits allow."""
    names: dict[SSAValue, str] = {argument: name for name, argument in program.kernel.arguments.items()}
    scheduler = Scheduler(order)
    machine = Machine(data.sizes, data.ranks, memory, scheduler, program.orders_itself, order is not None, names)
    machine.per_cta, machine.resident = program.per_cta, program.resident
    return machine


def place(machine: Machine, program: Program, ctas: int) -> None:
    """Give each role so many CTAs, at least as many as it needs, at most as many as fit."""
    computing, communicating = machine.resident
    machine.ctas = min(max(ctas, program.needed[0]), computing)
    apart = max(_COMM_CTAS, ctas) if program.per_cta else ctas
    machine.comm_ctas = min(max(apart, program.needed[1]), communicating)


def execute(program: Program, data: Data, machine: Machine, tile_function: TileFunction) -> None:
    """Run a kernel on every rank, to its end."""
    body = compile_kernel(program.kernel, machine, tile_function)

    def start(rank: int) -> Callable[[], None]:
        def launch() -> None:
            body(machine.frame(rank, data.scalars))
            machine.end_launch(rank)

        return launch

    run_ranks(machine, start)


def run_ranks(machine: Machine, start: Callable[[int], Callable[[], None]]) -> None:
    """Run what each rank starts with, to the end of all."""
    with np.errstate(all="ignore"), one_thread():
        for rank in range(machine.ranks):
            machine.scheduler.spawn(rank, "", start(rank))
        machine.scheduler.run(machine.memory.end_phase)
