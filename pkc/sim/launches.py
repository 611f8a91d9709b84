"""Launches of one kernel after another, without synchronisation: what back-to-back launches and graph replays do.

A rank begins its next launch as soon as it has finished one, however far the others are. At that moment its outputs
are taken away, its inputs overwritten with the next ones and its scratch memory is undefined, as if the caller had
gone on to other work at once. Counters keep their values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from xdsl.dialects.builtin import ModuleOp

from pkc.diagnostics import PkcError
from pkc.dialect import meaning
from pkc.dialect.numeric import Values, numpy_dtype
from pkc.sim import errors
from pkc.sim.array import Array, poison
from pkc.sim.inputs import Inputs, check_data
from pkc.sim.interpret import compile_kernel, new_registers
from pkc.sim.ordering import memory_order
from pkc.sim.program import Program, find_kernel
from pkc.sim.run import make_arrays, make_machine, run_ranks
from pkc.sim.world import World


def simulate_launches(
    module: ModuleOp,
    *,
    ranks: int,
    dims: Mapping[str, int],
    launches: Sequence[Inputs],
    kernel: str | None = None,
    seed: int = 0,
    ctas: int = 2,
) -> list[dict[str, Values]]:
    """The outputs of each launch; `launches` are their inputs. The kernel must be split into roles."""
    program = Program(find_kernel(module, kernel))
    if not program.has_roles or program.summed:
        raise PkcError(errors.NotRelaunched(program.span, program.name))
    data = [check_data(program, dims, inputs, ranks) for inputs in launches]
    arrays: dict[str, Array] = make_arrays(program, data[0], Array, is_global=False, again=True)
    machine = make_machine(program, data[0], World(arrays, None), seed)
    machine.ctas = ctas if program.per_cta else 1
    machine.order = memory_order(program.kernel, machine, program.written, again=True)
    body = compile_kernel(program.kernel, machine, meaning.value)
    scalars = [{program.kernel.arguments[name]: value for name, value in one.scalars.items()} for one in data]
    results = [
        {name: poison(arrays[name].place.shape, arrays[name].dtype) for name in program.outputs} for _ in launches
    ]

    def start(rank: int) -> Callable[[], None]:
        def launch_all() -> None:
            for number, one in enumerate(data):
                if number:
                    for name, array in arrays.items():
                        array.begin_launch(rank, one.arrays.get(name))
                body(new_registers(machine, rank, scalars[number], number + 1))
                machine.end_launch(rank)
                for name, result in results[number].items():
                    machine.world.settle(arrays[name], rank)
                    result[rank] = arrays[name].value[rank]

        return launch_all

    run_ranks(machine, start)
    return [{name: _exported(arrays[name], memory) for name, memory in result.items()} for result in results]


def _exported(array: Array, memory: Values) -> Values:
    return array.gathered(memory).astype(numpy_dtype(array.place.element))
