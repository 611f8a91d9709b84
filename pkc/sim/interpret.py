"""A kernel as a Python function that every rank calls.

Control flow is in `pkc.semantics.evaluate`, what operations compute in `pkc.dialect`, and what they access in
`accesses.py` and `channels.py`. This module distributes tasks to roles and CTAs.
"""

from __future__ import annotations

import math
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
from pkc.dialect.task_order import in_order, sharer
from pkc.dialect.types import ArrayType
from pkc.location import span_of
from pkc.semantics import tile_ops
from pkc.semantics.evaluate import Call, Evaluator
from pkc.sim import errors
from pkc.sim.accesses import ACCESSES
from pkc.sim.backing import TileFunction
from pkc.sim.channels import CHANNELS
from pkc.sim.conflicts import Task
from pkc.sim.inverse import SUMS_OF_ROWS
from pkc.sim.machine import Calls, Frame, Machine
from pkc.sim.mma import after
from pkc.sim.ordering import FENCES
from pkc.sim.prints import PRINTS
from pkc.sim.signals import SIGNALS
from pkc.sim.work import seconds_of_iteration

_CALLS: Calls = ACCESSES | SIGNALS | CHANNELS | FENCES | PRINTS | SUMS_OF_ROWS

Body: TypeAlias = Callable[..., None]
"""The body of a task, called with its indices."""


def compile_kernel(kernel: program.KernelOp, machine: Machine, tile_function: TileFunction) -> Callable[[Frame], None]:
    """The function that a rank runs in a launch."""
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
        with self.inside("def run(frame):"):
            for name, argument in kernel.arguments.items():
                if not isinstance(argument.type, ArrayType):
                    self.line(f"{self.name(argument)} = frame.scalars[{name!r}]")
            self.block(kernel.body.block)

    def leaf(self, op: Operation) -> bool:
        if isinstance(op, program.RoleOp):
            self._role_body(op)
        elif type(op) in _CALLS:
            self.assign(op.results, self.call(_CALLS[type(op)](op, self.machine), "frame"))
        elif tile_ops.is_tile_op(op):
            self.assign(op.results, self.call(Call(self._tile_function(op), *op.operands)))
        else:
            return isinstance(op, roles.ChannelOp)  # rings are made when they are first used
        return True

    def operation(self, op: Operation) -> None:
        super().operation(op)
        behind = after(op, self.machine)
        if behind is not None:
            self.line(self.call(Call(behind), "frame"))

    def begins(self, op: scf.ForOp) -> None:
        begin = partial(self.machine.work.begin, op, seconds_of_iteration(op.body.block))
        self.line(self.call(Call(begin, op.lb, op.ub, op.step)))

    def unknown(self, op: Operation) -> NoReturn:
        raise PkcError(errors.NotSimulated(span_of(op.location), op.name))

    def tasks(self, op: program.TasksOp) -> None:
        nested, self._in_tasks = self._in_tasks, True
        body = self._function(op.body.block)
        self._in_tasks = nested
        run = _Tasks(op, self.machine, self._role, nested=nested).runner()
        self.line(self.call(Call(run, op.counts), "frame", body))

    def _role_body(self, op: program.RoleOp) -> None:
        self._role = str(op.role.data)
        self.line(self.call(Call(_starter(op, self.machine)), "frame", self._function(op.body.block)))
        self._role = ""

    def _function(self, block: Block) -> str:
        """Write a function that runs a block, with the block's arguments; its name."""
        name = f"body{len(self._lines)}"
        with self.inside(f"def {name}({', '.join(('frame', *map(self.name, block.args)))}):"):
            self.block(block)
        return name


class _Tasks:
    """Runs tasks, given their body and counts."""

    def __init__(self, op: program.TasksOp, machine: Machine, role: str, *, nested: bool) -> None:
        self._op, self._machine, self._role, self._nested = op, machine, role, nested
        self._names = tuple(map(_name_of_index, op.body.block.args))
        self._ctas = machine.ctas_of(role)
        shares = len(self._ctas) if program.PER_CTA in op.attributes else 1
        self._seconds = seconds_of_iteration(op.body.block) / shares
        self._encloses = op.encloses_tasks

    def runner(self) -> Callable[[Frame, Body, Sequence[int]], None]:
        if program.PER_CTA not in self._op.attributes:
            return self._beside if self._role else self._in_turn
        if self._role != Role.CopyEngine or self._nested or self._machine.lanes == 1:
            return self._shared_out
        return self._in_lanes

    def _each(self, frame: Frame, counts: Sequence[int]) -> Iterator[Task]:
        outer, machine = frame.task, self._machine
        # Each CTA numbers all tasks, and runs its own.
        machine.work.spend(self._op, math.prod(counts), self._seconds)
        if machine.memory.ledger is not None and all(counts):
            machine.memory.ledger.begins(outer.rank, self._op)
        for chosen in in_order(counts, self._op.band(counts[-1])):
            machine.tasks += 1
            yield Task(outer.rank, machine.tasks, outer.indices + chosen, outer.names + self._names)

    def _enter(self, frame: Frame, body: Body, task: Task) -> None:
        frame.task = task
        body(frame, *task.indices[len(task.indices) - len(self._names) :])

    def _all_of(self, frame: Frame, body: Body, tasks: Sequence[Task]) -> None:
        for task in tasks:
            self._enter(frame, body, task)

    def _in_turn(self, frame: Frame, body: Body, counts: Sequence[int]) -> None:
        outer = frame.task
        for task in self._each(frame, counts):
            self._enter(frame, body, task)
        frame.task = outer
        if not self._nested:
            self._machine.end_phase()

    def _beside(self, frame: Frame, body: Body, counts: Sequence[int]) -> None:
        tasks, scheduler = list(self._each(frame, counts)), self._machine.scheduler
        at_once = self._machine.at_once(self._role, self._op)
        for number in range(min(at_once, len(tasks))):
            scheduler.spawn(frame.rank, self._role, partial(self._all_of, replace(frame), body, tasks[number::at_once]))
        scheduler.join()

    def _shared_out(self, frame: Frame, body: Body, counts: Sequence[int]) -> None:
        outer, ctas = frame.task, self._ctas
        if not self._nested:
            frame.tasks_seen = 0
        seen = frame.tasks_seen
        for number, task in enumerate(self._each(frame, counts)):
            if not self._encloses:
                share = sharer(number, counts, self._op.raster, len(ctas)) if self._op.back_and_forth else number
                if ctas[(seen + share) % len(ctas)] != frame.cta:
                    continue
            self._enter(frame, body, task)
        if not self._encloses:
            frame.tasks_seen = seen + math.prod(counts)
        frame.task = outer

    def _in_lanes(self, frame: Frame, body: Body, counts: Sequence[int]) -> None:
        machine, tasks, lanes = self._machine, list(self._each(frame, counts)), list[Any]()
        for number in range(min(machine.lanes, len(tasks))):
            lane, name = replace(frame), f"{self._role} of lane {number}"
            if machine.order is not None:
                lane.warp_role = machine.order.begin(lane.warp_role, name, (self._op, number), on_stream=True)
                lanes.append(lane.warp_role)
            of_lane = tasks[number :: machine.lanes]
            machine.scheduler.spawn(lane.rank, name, partial(self._all_of, lane, body, of_lane))
        machine.scheduler.join()
        if machine.order is not None:
            machine.order.join(frame.warp_role, lanes)


def _starter(op: program.RoleOp, machine: Machine) -> Callable[[Frame, Callable[[Frame], None]], None]:
    """What starts a role on all of its CTAs, each with its own frame."""
    role, on_stream = str(op.role.data), op.role.data is Role.CopyEngine
    ctas = machine.ctas_of(role)

    def start(frame: Frame, body: Callable[[Frame], None]) -> None:
        for cta in ctas:
            inner = replace(frame, cta=cta, deferred=[])
            name = role if len(ctas) == 1 else f"{role} of CTA {cta}"
            if machine.order is not None:
                inner.warp_role = machine.order.begin(inner.warp_role, name, (op, cta), on_stream=on_stream)
            machine.scheduler.spawn(inner.rank, name, partial(to_its_end, inner, body))

    def to_its_end(inner: Frame, body: Callable[[Frame], None]) -> None:
        body(inner)
        if machine.order is not None:
            machine.order.end(inner.warp_role)

    return start


def _name_of_index(index: SSAValue) -> str:
    name, is_block = task_variable(index)
    return f"{name} = {'block ' if is_block else ''}" if name else ""
