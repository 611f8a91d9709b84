"""Launches of one kernel after another, without synchronisation: what back-to-back launches and graph replays do.

A rank begins its next launch as soon as it has finished one, however far the others are. At that moment its outputs
are taken away, its inputs overwritten with the next ones and its scratch memory is undefined, as if the caller had
gone on to other work at once. Counters keep their values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp

from pkc.diagnostics import PkcError
from pkc.dialect.numeric import Values, numpy_dtype
from pkc.sim import errors
from pkc.sim.array import Array, poison
from pkc.sim.backing import ELEMENTS, Backing
from pkc.sim.inputs import Data, Inputs, check_data
from pkc.sim.interpret import compile_kernel
from pkc.sim.ledger import Ledger
from pkc.sim.memory import MemoryState
from pkc.sim.ordering import memory_order
from pkc.sim.program import Program, find_kernel
from pkc.sim.run import make_arrays, make_machine, place, run_ranks
from pkc.sim.schedule import Order
from pkc.sim.trace import Trace
from pkc.sim.unread import Unread

Memory = Mapping[str, Values]
"""By array, what all its copies hold."""


@dataclass(frozen=True)
class Outcome:
    """What launches leave: the memory of their outputs, launch by launch."""

    memories: list[Memory]
    arrays: Mapping[str, Array]

    def outputs(self) -> list[dict[str, Values]]:
        """Outputs as callers see them, in their true types."""
        return [{name: self._exported(name, content) for name, content in memory.items()} for memory in self.memories]

    def _exported(self, name: str, content: Values) -> Values:
        array = self.arrays[name]
        return array.gathered(content).astype(numpy_dtype(array.place.element))


@dataclass(frozen=True)
class Launches:
    """A kernel that is split into roles, the data of its launches, and how many CTAs run each role.

    Unless `guarded`, arrays do not belong to the caller before and after each launch.
    """

    program: Program
    data: Sequence[Data]
    ctas: int
    guarded: bool = True

    def run(self, order: Order, backing: Backing = ELEMENTS, trace: Trace | None = None) -> Outcome:
        """Simulate them; what happens is noted in `trace`. Raises `PkcError`."""
        program, data = self.program, self.data
        arrays: dict[str, Array] = make_arrays(program, data[0], backing.make_array, is_global=False, again=True)
        memory = MemoryState(arrays, None)
        if program.counts_in_epochs:
            memory.ledger, memory.unread = Ledger(), Unread(arrays.values())
        machine = make_machine(program, data[0], memory, order)
        place(machine, program, self.ctas)
        machine.scheduler.trace = memory.trace = trace
        machine.order = memory_order(program.kernel, machine, program.written, guarded=self.guarded)
        body = compile_kernel(program.kernel, machine, backing.tile_function)
        results: list[Memory] = [
            {name: poison(arrays[name].value.shape, arrays[name].value.dtype) for name in program.outputs} for _ in data
        ]

        def start(rank: int) -> Callable[[], None]:
            def launch_all() -> None:
                for number, one in enumerate(data, start=1):
                    if number > 1:
                        memory.begin_launch(rank, number, one.arrays)
                    body(machine.frame(rank, one.scalars, number))
                    machine.end_launch(rank)
                    for name, taken in memory.end_launch(rank, number, program.outputs).items():
                        results[number - 1][name][rank] = taken

            return launch_all

        run_ranks(machine, start)
        if memory.ledger is not None:
            memory.ledger.check()
        return Outcome(results, arrays)


def launches_of(
    module: ModuleOp,
    *,
    ranks: int,
    dims: Mapping[str, int],
    launches: Sequence[Inputs],
    kernel: str | None = None,
    ctas: int = 2,
) -> Launches:
    """A kernel and the data of its launches, checked."""
    program = Program(find_kernel(module, kernel))
    if not program.has_roles or program.summed:
        raise PkcError(errors.NotRelaunched(program.span, program.name))
    return Launches(program, [check_data(program, dims, inputs, ranks) for inputs in launches], ctas)
