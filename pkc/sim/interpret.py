"""From IR to Python functions: each operation becomes a step on a list of registers, one register for each SSA value.

What the steps compute is in `pkc.dialect` (`meaning`, `scalars`, `positions`), what they touch in `accesses.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from xdsl.dialects import scf
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from pkc.diagnostics import PkcError
from pkc.dialect import program
from pkc.dialect.attributes import Role
from pkc.dialect.names import task_variable
from pkc.dialect.positions import position_function
from pkc.dialect.scalars import scalar
from pkc.dialect.task_order import in_order
from pkc.location import span_of
from pkc.semantics import meaning
from pkc.sim import errors
from pkc.sim.accesses import access_step
from pkc.sim.backing import TileFunction
from pkc.sim.channels import channel_step
from pkc.sim.conflicts import Task
from pkc.sim.machine import CTA, EPOCH, FIRST, HOLDING, RANK, TASK, TURN, WORKER, Machine, Registers, Step
from pkc.sim.mma import with_products
from pkc.sim.ordering import fence_step


def compile_kernel(kernel: program.KernelOp, machine: Machine, tile_function: TileFunction) -> Step:
    """The body of a kernel as one step of a rank."""
    values: list[SSAValue] = list(kernel.body.block.args)
    for op in kernel.walk():
        values += op.results
        for region in op.regions:
            values += [arg for block in region.blocks for arg in block.args]
    machine.slots = {value: slot for slot, value in enumerate(dict.fromkeys(values), FIRST)}
    return _Compiler(machine, tile_function).block(kernel.body.block)


def new_registers(machine: Machine, rank: int, arguments: Mapping[BlockArgument, Any], epoch: int = 1) -> Registers:
    """The registers with which a rank begins a launch."""
    registers: Registers = [None] * (len(machine.slots) + FIRST)
    registers[RANK], registers[TASK] = rank, Task(rank, 0, ())
    registers[CTA] = registers[TURN] = 0
    registers[EPOCH] = epoch
    registers[WORKER] = None if machine.order is None else machine.order.caller(rank)
    for argument, value in arguments.items():
        registers[machine.slots[argument]] = value
    return registers


class _Compiler:
    def __init__(self, machine: Machine, tile_function: TileFunction) -> None:
        self._machine = machine
        self._tile_function = tile_function
        self._role = ""
        self._in_tasks = False

    def block(self, block: Block) -> Step:
        steps = tuple(self._operation(op) for op in block.ops if not isinstance(op, scf.YieldOp))
        machine, count = self._machine, len(steps)

        def run(registers: Registers) -> None:
            machine.operations += count
            for step in steps:
                step(registers)

        return run

    def _operation(self, op: Operation) -> Step:
        return with_products(op, self._machine, self._step(op))

    def _step(self, op: Operation) -> Step:
        match op:
            case program.TasksOp():
                return self._tasks(op)
            case program.RoleOp():
                return self._role_part(op)
            case scf.ForOp():
                return self._for(op)
            case scf.IfOp():
                return self._if(op)
            case _:
                steps = (find(op, self._machine) for find in (access_step, channel_step, fence_step))
                return next(filter(None, steps), None) or self._pure(op)

    # Operations without effects

    def _pure(self, op: Operation) -> Step:
        function = self._function(op)
        if function is None:
            raise PkcError(errors.NotSimulated(span_of(op.location), op.name))
        slots, result = self._slots(op.operands), self._slots(op.results)[0]
        if len(slots) == 1:
            (only,) = slots

            def one(registers: Registers) -> None:
                registers[result] = function(registers[only])

            return one
        if len(slots) == 2:
            left, right = slots

            def two(registers: Registers) -> None:
                registers[result] = function(registers[left], registers[right])

            return two

        def many(registers: Registers) -> None:
            registers[result] = function(*[registers[slot] for slot in slots])

        return many

    def _function(self, op: Operation) -> Callable[..., Any] | None:
        if meaning.is_tile_op(op):
            return self._tile_function(op)
        return position_function(op, self._machine) or scalar(op)

    def _slots(self, values: Sequence[SSAValue]) -> tuple[int, ...]:
        return tuple(self._machine.slots[value] for value in values)

    # Control flow

    def _for(self, op: scf.ForOp) -> Step:
        first, last, stride = self._slots((op.lb, op.ub, op.step))
        counter, *carried = self._slots(op.body.block.args)
        starts, results = self._slots(op.iter_args), self._slots(op.results)
        yielded = self._yielded(op.body.block)
        body = self.block(op.body.block)

        def run(registers: Registers) -> None:
            values = [registers[slot] for slot in starts]
            for position in range(registers[first], registers[last], registers[stride]):
                registers[counter] = position
                for slot, value in zip(carried, values, strict=True):
                    registers[slot] = value
                body(registers)
                values = [registers[slot] for slot in yielded]
            for slot, value in zip(results, values, strict=True):
                registers[slot] = value

        return run

    def _if(self, op: scf.IfOp) -> Step:
        (condition,), results = self._slots((op.cond,)), self._slots(op.results)
        regions = (op.false_region, op.true_region)
        bodies = [self.block(region.block) if region.blocks else _nothing for region in regions]
        yielded = [self._yielded(region.block) if region.blocks else () for region in regions]

        def run(registers: Registers) -> None:
            chosen = bool(registers[condition])
            bodies[chosen](registers)
            values = [registers[slot] for slot in yielded[chosen]]
            for slot, value in zip(results, values, strict=True):
                registers[slot] = value

        return run

    def _yielded(self, block: Block) -> tuple[int, ...]:
        last = block.last_op
        return self._slots(last.operands) if isinstance(last, scf.YieldOp) else ()

    def _tasks(self, op: program.TasksOp) -> Step:
        machine, role, nested = self._machine, self._role, self._in_tasks
        counts, indices = self._slots(op.counts), self._slots(op.body.block.args)
        names, rows = tuple(map(_name_of_index, op.body.block.args)), op.raster
        self._in_tasks = True
        body = self.block(op.body.block)
        self._in_tasks = nested

        def each(registers: Registers) -> Iterator[Task]:
            outer: Task = registers[TASK]
            for chosen in in_order([registers[slot] for slot in counts], rows):
                machine.tasks += 1
                yield Task(outer.rank, machine.tasks, outer.indices + chosen, outer.names + names)

        def enter(registers: Registers, task: Task) -> None:
            registers[TASK] = task
            for slot, index in zip(indices, task.indices[len(task.indices) - len(indices) :], strict=True):
                registers[slot] = index

        def in_turn(registers: Registers) -> None:
            outer = registers[TASK]
            for task in each(registers):
                enter(registers, task)
                body(registers)
            registers[TASK] = outer
            if not nested:
                machine.end_phase()

        def at_once(registers: Registers) -> None:
            for task in each(registers):
                own = registers.copy()
                enter(own, task)
                machine.scheduler.spawn(own[RANK], role, lambda own=own: body(own))
            machine.scheduler.join()

        workers = machine.workers(role)
        enclosing = op.encloses_tasks

        def own_share(registers: Registers) -> None:
            outer = registers[TASK]
            if not nested:
                registers[TURN] = 0
            for task in each(registers):
                if not enclosing:
                    turn = registers[TURN]
                    registers[TURN] = turn + 1
                    if workers[turn % len(workers)] != registers[CTA]:
                        continue
                enter(registers, task)
                body(registers)
            registers[TASK] = outer

        if program.PER_CTA not in op.attributes:
            return at_once if role else in_turn
        if role != Role.CopyEngine or nested or machine.lanes == 1:
            return own_share

        def in_lanes(registers: Registers) -> None:
            tasks, workers = list(each(registers)), list[Any]()
            for number in range(min(machine.lanes, len(tasks))):
                own, name = registers.copy(), f"{role} of lane {number}"
                if machine.order is not None:
                    own[WORKER] = machine.order.begin(own[WORKER], name, (op, number), on_stream=True)
                    workers.append(own[WORKER])
                lane = tasks[number :: machine.lanes]
                machine.scheduler.spawn(own[RANK], name, lambda own=own, lane=lane: all_of(own, lane))
            machine.scheduler.join()
            if machine.order is not None:
                machine.order.join(registers[WORKER], workers)

        def all_of(registers: Registers, tasks: Sequence[Task]) -> None:
            for task in tasks:
                enter(registers, task)
                body(registers)

        return in_lanes

    def _role_part(self, op: program.RoleOp) -> Step:
        machine, role, on_stream = self._machine, str(op.role.data), op.role.data is Role.CopyEngine
        self._role = role
        body = self.block(op.body.block)
        self._role = ""
        workers = machine.workers(role)

        def run(registers: Registers) -> None:
            for cta in workers:
                own = registers.copy()
                own[CTA], own[HOLDING] = cta, []
                name = role if len(workers) == 1 else f"{role} of CTA {cta}"
                if machine.order is None:
                    machine.scheduler.spawn(own[RANK], name, lambda own=own: body(own))
                else:
                    own[WORKER] = machine.order.begin(own[WORKER], name, (op, cta), on_stream=on_stream)
                    machine.scheduler.spawn(own[RANK], name, lambda own=own: in_order(own))

        def in_order(own: Registers) -> None:
            body(own)
            if machine.order is not None:
                machine.order.end(own[WORKER])

        return run


def _name_of_index(index: SSAValue) -> str:
    name, is_block = task_variable(index)
    return f"{name} = {'block ' if is_block else ''}" if name else ""


def _nothing(registers: Registers) -> None:
    """The branch that is not there."""
