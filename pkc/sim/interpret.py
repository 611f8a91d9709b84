"""A kernel as a Python function that every rank calls.

How control goes through it is in `pkc.semantics.evaluate`, what operations compute in `pkc.dialect`, what they touch in
`accesses.py` and `channels.py`. Here is who runs which tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NoReturn, TypeAlias

from xdsl.dialects import scf
from xdsl.ir import Block, Operation, SSAValue

from pkc.diagnostics import PkcError
from pkc.dialect import program, roles
from pkc.dialect.attributes import Role
from pkc.dialect.names import task_variable
from pkc.dialect.positions import EPOCH, RANK
from pkc.dialect.task_order import in_order
from pkc.dialect.types import ArrayType
from pkc.location import span_of
from pkc.semantics import meaning
from pkc.semantics.evaluate import Call, Evaluator
from pkc.sim import errors
from pkc.sim.accesses import ACCESSES
from pkc.sim.backing import TileFunction
from pkc.sim.channels import CHANNELS
from pkc.sim.conflicts import Task
from pkc.sim.machine import Calls, Frame, Machine
from pkc.sim.mma import after
from pkc.sim.ordering import FENCES
from pkc.sim.signals import SIGNALS

_CALLS: Calls = ACCESSES | SIGNALS | CHANNELS | FENCES

Body: TypeAlias = Callable[..., None]
"""What a task does, with its indices."""


def compile_kernel(kernel: program.KernelOp, machine: Machine, tile_function: TileFunction) -> Callable[[Frame], None]:
    """What a rank does in a launch."""
    return _Kernel(kernel, machine, tile_function).compiled()


class _Kernel(Evaluator):
    """Writes the function of a kernel; roles and tasks are functions inside of it, which see the values around them."""

    context = {RANK: "frame.rank", EPOCH: "frame.epoch"}
    machine: Machine

    def __init__(self, kernel: program.KernelOp, machine: Machine, tile_function: TileFunction) -> None:
        super().__init__(machine)
        self._tile_function = tile_function
        self._role = ""
        self._in_tasks = False
        self._machine = self.constant(machine)
        with self.inside("def run(frame):"):
            for name, argument in kernel.arguments.items():
                if not isinstance(argument.type, ArrayType):
                    self.line(f"{self.name(argument)} = frame.scalars[{name!r}]")
            self.block(kernel.body.block)

    def block(self, block: Block) -> None:
        count = sum(not isinstance(op, scf.YieldOp) for op in block.ops)
        self.line(f"{self._machine}.operations += {count}")
        super().block(block)

    def leaf(self, op: Operation) -> bool:
        if isinstance(op, program.RoleOp):
            self._role_part(op)
        elif type(op) in _CALLS:
            self.assign(op.results, self.call(_CALLS[type(op)](op, self.machine), "frame"))
        elif meaning.is_tile_op(op):
            self.assign(op.results, self.call(Call(self._tile_function(op), *op.operands)))
        else:
            return isinstance(op, roles.ChannelOp)  # rings are made when they are first used
        return True

    def operation(self, op: Operation) -> None:
        super().operation(op)
        behind = after(op, self.machine)
        if behind is not None:
            self.line(self.call(Call(behind), "frame"))

    def unknown(self, op: Operation) -> NoReturn:
        raise PkcError(errors.NotSimulated(span_of(op.location), op.name))

    def tasks(self, op: program.TasksOp) -> None:
        nested, self._in_tasks = self._in_tasks, True
        body = self._function(op.body.block)
        self._in_tasks = nested
        self.line(self.call(Call(_runner(op, self.machine, self._role, nested=nested), op.counts), "frame", body))

    def _role_part(self, op: program.RoleOp) -> None:
        self._role = str(op.role.data)
        self.line(self.call(Call(_starter(op, self.machine)), "frame", self._function(op.body.block)))
        self._role = ""

    def _function(self, block: Block) -> str:
        """The name of a function that does a block, with its arguments."""
        name = f"body{len(self._lines)}"
        with self.inside(f"def {name}({', '.join(('frame', *map(self.name, block.args)))}):"):
            self.block(block)
        return name


def _runner(
    op: program.TasksOp, machine: Machine, role: str, *, nested: bool
) -> Callable[[Frame, Body, Sequence[int]], None]:
    """What runs tasks, of which the body and the counts are given."""
    names = tuple(map(_name_of_index, op.body.block.args))

    def each(frame: Frame, counts: Sequence[int]) -> Iterator[Task]:
        outer = frame.task
        for chosen in in_order(counts, op.raster):
            machine.tasks += 1
            yield Task(outer.rank, machine.tasks, outer.indices + chosen, outer.names + names)

    def enter(frame: Frame, body: Body, task: Task) -> None:
        frame.task = task
        body(frame, *task.indices[len(task.indices) - len(names) :])

    def in_turn(frame: Frame, body: Body, counts: Sequence[int]) -> None:
        outer = frame.task
        for task in each(frame, counts):
            enter(frame, body, task)
        frame.task = outer
        if not nested:
            machine.end_phase()

    def at_once(frame: Frame, body: Body, counts: Sequence[int]) -> None:
        for task in each(frame, counts):
            machine.scheduler.spawn(frame.rank, role, partial(enter, replace(frame), body, task))
        machine.scheduler.join()

    workers = machine.workers(role)
    enclosing = op.encloses_tasks

    def own_share(frame: Frame, body: Body, counts: Sequence[int]) -> None:
        outer = frame.task
        if not nested:
            frame.turn = 0
        for task in each(frame, counts):
            if not enclosing:
                turn = frame.turn
                frame.turn = turn + 1
                if workers[turn % len(workers)] != frame.cta:
                    continue
            enter(frame, body, task)
        frame.task = outer

    if program.PER_CTA not in op.attributes:
        return at_once if role else in_turn
    if role != Role.CopyEngine or nested or machine.lanes == 1:
        return own_share

    def in_lanes(frame: Frame, body: Body, counts: Sequence[int]) -> None:
        tasks, workers = list(each(frame, counts)), list[Any]()
        for number in range(min(machine.lanes, len(tasks))):
            own, name = replace(frame), f"{role} of lane {number}"
            if machine.order is not None:
                own.worker = machine.order.begin(own.worker, name, (op, number), on_stream=True)
                workers.append(own.worker)
            machine.scheduler.spawn(own.rank, name, partial(all_of, own, body, tasks[number :: machine.lanes]))
        machine.scheduler.join()
        if machine.order is not None:
            machine.order.join(frame.worker, workers)

    def all_of(frame: Frame, body: Body, tasks: Sequence[Task]) -> None:
        for task in tasks:
            enter(frame, body, task)

    return in_lanes


def _starter(op: program.RoleOp, machine: Machine) -> Callable[[Frame, Callable[[Frame], None]], None]:
    """What lets all workers of a role begin, each with a frame of its own."""
    role, on_stream = str(op.role.data), op.role.data is Role.CopyEngine
    workers = machine.workers(role)

    def start(frame: Frame, body: Callable[[Frame], None]) -> None:
        for cta in workers:
            own = replace(frame, cta=cta, holding=[])
            name = role if len(workers) == 1 else f"{role} of CTA {cta}"
            if machine.order is not None:
                own.worker = machine.order.begin(own.worker, name, (op, cta), on_stream=on_stream)
            machine.scheduler.spawn(own.rank, name, partial(to_its_end, own, body))

    def to_its_end(own: Frame, body: Callable[[Frame], None]) -> None:
        body(own)
        if machine.order is not None:
            machine.order.end(own.worker)

    return start


def _name_of_index(index: SSAValue) -> str:
    name, is_block = task_variable(index)
    return f"{name} = {'block ' if is_block else ''}" if name else ""
