"""The integers of each role as a Python function that lists its events.

def run(rank, cta, share, epoch, warp_role):
    out = warp_role.events
    v7 = g3(rank)
    for v8, in g4((share - seen) % ctas, ctas, (v7,), None):
        ...
        out.append((2, g5(rank, rank, (v9, v10)), v12, g6))
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass
from functools import partial
from typing import Any, NoReturn, cast

from xdsl.dialects import scf
from xdsl.ir import BlockArgument, Operation, OpResult, SSAValue

from pkc.check.trace import ADD, ARRIVE, ARRIVED, FORK, RAISE, RESET, WAIT, Counter, WarpRole
from pkc.dialect import access, coordinates, counters, program, roles
from pkc.dialect.deferred import SendDeferredOp, is_deferred
from pkc.dialect.tile import block_type
from pkc.dialect.types import TileType
from pkc.passes.analysis.dependence import ancestors, sources
from pkc.semantics.evaluate import Call, Evaluator
from pkc.sim.array import Array, reader
from pkc.sim.machine import Machine

_EVENTS = (counters.CounterOp, counters.ResetOp, SendDeferredOp, *roles.CHANNEL_OPS)

_ITERATION = 100e-6
"""Seconds of an iteration. Events are kept, so memory would end first if an hour of them were made."""

RoleFunction = Callable[[int, "int | None", int, int, WarpRole], None]


class DependsOnTilesError(Exception):
    """Raised when counts or branches around signals depend on what the kernel computes: they are not known ahead."""


@dataclass(frozen=True)
class Skeleton:
    """The roles of a kernel for given sizes, ranks and CTAs."""

    machine: Machine
    role_ops: Mapping[program.RoleOp, RoleFunction]
    shared_out: bool

    def warp_roles(self, epoch: int) -> list[WarpRole]:
        """Every warp role of one launch, with its events. Raises `PkcError` for a wrong index or rank."""
        made: list[WarpRole] = []
        for rank in range(self.machine.ranks):
            for role, run in self.role_ops.items():
                for share, cta in enumerate(self.machine.ctas_of(str(role.role.data))):
                    warp_role = WarpRole(rank, role, cta if self.shared_out else None)
                    run(rank, cta, share, epoch, warp_role)
                    made.append(warp_role)
        return made


def skeleton_of(
    kernel: program.KernelOp, machine: Machine, arrays: Mapping[str, Array], scalars: Mapping[str, int | float]
) -> Skeleton:
    """Compile the roles of a kernel.

    `arrays` are those whose elements decide about counts and branches, `scalars` the values of scalar parameters.
    Raises `DependsOnTilesError`.
    """
    role_ops = [op for op in kernel.body.block.ops if isinstance(op, program.RoleOp)]
    needed, picked = deciding(kernel), reordered(kernel)
    compiled = {
        role: _RoleEvents(kernel, role, machine, arrays, scalars, needed, picked).compile() for role in role_ops
    }
    return Skeleton(machine, compiled, any(program.PER_CTA in op.attributes for op in kernel.walk()))


def deciding(kernel: program.KernelOp) -> set[SSAValue]:
    """All values that decide what is signalled, awaited and passed on, how often, and which tasks are run."""
    wanted: list[SSAValue] = []
    for op in kernel.walk():
        if isinstance(op, counters.CounterOp):
            wanted += (value for value in op.operands if not isinstance(value.type, TileType))
        if isinstance(op, program.TasksOp):
            wanted += op.counts
        if isinstance(op, scf.ForOp | scf.IfOp) and any(isinstance(inner, _EVENTS) for inner in op.walk()):
            wanted += op.operands[:3] if isinstance(op, scf.ForOp) else op.operands[:1]
    return sources([*wanted, *reordered(kernel).values()])


def reordered(kernel: program.KernelOp) -> dict[SSAValue, SSAValue]:
    """The task indices that are reordered before they pick a block, and the number that does; of several, that of the
    smallest blocks."""
    found: dict[SSAValue, tuple[int, SSAValue]] = {}
    for tasks in kernel.walk():
        if not isinstance(tasks, program.TasksOp):
            continue
        for op in tasks.body.walk():
            if not isinstance(op, coordinates.BlockOp) or not _is_inside(op.index, tasks):
                continue
            variables = {value for value in sources([op.index]) if isinstance(value, BlockArgument)}
            if len(variables) == 1 and variables <= set(tasks.body.block.args):
                variable, extent = variables.pop(), block_type(op.result).extent
                if variable not in found or extent < found[variable][0]:
                    found[variable] = extent, op.index
    return {variable: number for variable, (_, number) in found.items() if number is not variable}


def _is_inside(number: SSAValue, tasks: program.TasksOp) -> bool:
    return number.owner is tasks.body.block or (isinstance(number, OpResult) and number.op.parent is tasks.body.block)


class _RoleEvents(Evaluator):
    """Writes the function of one role."""

    machine: Machine

    def __init__(
        self,
        kernel: program.KernelOp,
        role: program.RoleOp,
        machine: Machine,
        arrays: Mapping[str, Array],
        scalars: Mapping[str, int | float],
        needed: Set[SSAValue],
        picked: Mapping[SSAValue, SSAValue],
    ) -> None:
        super().__init__(machine)
        self._kernel, self._role, self._arrays = kernel, role, arrays
        self._needed, self._picked = needed, picked
        self._ctas = len(machine.ctas_of(str(role.role.data)))
        self._channels = [op for op in kernel.body.block.ops if isinstance(op, roles.ChannelOp)]
        self._path: list[program.TasksOp] = []
        for name, value in scalars.items():
            self.bind(kernel.arguments[name], value)

    def compile(self) -> RoleFunction:
        with self.inside("def run(rank, cta, share, epoch, warp_role):"):
            self.line("out, visits, seen, deferred = warp_role.events, warp_role.visits, 0, []")
            self.line("begun, turn = [], 0")
            for number in range(len(self._channels)):
                self.line(f"acquired{number} = consumed{number} = kept{number} = 0")
            around = self._kernel.body.block
            self.operations(op for op in around.ops if not isinstance(op, program.RoleOp | roles.ChannelOp))
            self.block(self._role.body.block)
        return self.compiled()

    # What is evaluated

    def needs(self, value: SSAValue) -> bool:
        return value in self._needed

    def enters(self, op: scf.ForOp | scf.IfOp) -> bool:
        return any(map(self.needs, op.results)) or any(isinstance(inner, _EVENTS) for inner in op.walk())

    def begins(self, op: scf.ForOp) -> None:
        self.line(self.call(Call(partial(self.machine.work.begin, op, _ITERATION), op.lb, op.ub, op.step)))

    def unknown(self, op: Operation) -> NoReturn:
        raise DependsOnTilesError

    def leaf(self, op: Operation) -> bool:
        match op:
            case _ if isinstance(op, roles.CHANNEL_OPS):
                self._channel(op)
            case SendDeferredOp():
                self._send_deferred(op)
            case counters.ResetOp():
                name = self._kernel.argument_name(cast(BlockArgument, op.signal))
                self._event(RESET, f"({name!r}, rank, ())", "0", op)
            case _ if isinstance(op, counters.CounterOp):
                self._counter(op)
            case access.ReadOp() if self.needs(op.result):
                self._read(op)
            case _:
                return False
        return True

    def _read(self, op: access.ReadOp) -> None:
        argument = op.array
        assert isinstance(argument, BlockArgument)
        array = self._arrays.get(self._kernel.argument_name(argument))
        if array is None:
            raise DependsOnTilesError
        self.line(f"{self.name(op.result)} = {self.call(Call(reader(op, array), op.rank, op.indices), 'rank')}")

    # Events

    def _event(self, kind: int, counter: str, number: str, op: Operation) -> None:
        where = "deferred" if is_deferred(op) else "out"
        self.line(f"{where}.append(({kind}, {counter}, {number}, {self.constant(op)}))")

    def _send_deferred(self, op: SendDeferredOp) -> None:
        with (
            self.inside(f"if len(deferred) >= {op.most}:"),
            self.inside(f"while len(deferred) > {op.left.value.data}:"),
        ):
            self.line("out.append(deferred.pop(0))")

    def _counter(self, op: Any) -> None:
        find = _finder(op, self.machine)

        def of(rank: str) -> str:
            return self.call(Call(find, op.indices), "rank", rank)

        match op:
            case counters.SignalOp():
                self._event(ADD, of(self.name(op.rank)), self.name(op.amount), op)
            case counters.RaiseOp():
                self._event(RAISE, of(self.name(op.rank)), self.name(op.value), op)
            case counters.WaitOp():
                self._event(WAIT, of("rank"), self.name(op.count), op)
            case counters.SignalAllOp():
                first = "0" if op.first is None else self.name(op.first)
                last = f"{self.machine.ranks - 1}" if op.last is None else self.name(op.last)
                with self.inside(f"for every in range({first}, {last} + 1):"):
                    self._event(ADD, of("every"), self.name(op.amount), op)
            case _:
                self._event(ARRIVE, of("rank"), "0", op)
                with self.inside(f"for every in range({self.machine.ranks}):"):
                    self._event(ADD, of("every"), "1", op)
                self._event(ARRIVED, of("rank"), "0", op)

    def _channel(self, op: Any) -> None:
        channel = roles.channel_of(op.channel)
        number = self._channels.index(channel)
        full, free = (f"({_stages(side, channel, number)!r}, rank, (cta,))" for side in ("full", "free"))
        match op:
            case roles.AcquireOp():
                self.line(f"acquired{number} += 1")
                with self.inside(f"if acquired{number} > {channel.depth}:"):
                    self._event(WAIT, free, f"acquired{number} - {channel.depth}", op)
            case roles.CommitOp():
                self._event(ADD, full, "1", op)
            case roles.ConsumeOp():
                self.line(f"consumed{number} += 1")
                self._event(WAIT, full, f"consumed{number}", op)
            case roles.ReleaseDeferredOp():
                with self.inside(f"for _ in range(kept{number}):"):
                    self._event(ADD, free, "1", op)
                self.line(f"kept{number} = 0")
            case _:
                self.line(f"kept{number} += 1")
                with self.inside(f"if kept{number} > {op.kept}:"):
                    self._event(ADD, free, "1", op)
                    self.line(f"kept{number} -= 1")

    # Tasks

    def tasks(self, op: program.TasksOp) -> None:
        shares = self._ctas if program.PER_CTA in op.attributes else 1
        self.line(self.call(Call(partial(self.machine.work.begin_tasks, op, _ITERATION / shares), op.counts)))
        if program.PER_CTA not in op.attributes:
            self._forked(op)
            return
        if not self._path:
            self.line("seen = 0")
        if op.encloses_tasks:
            with self.each_task(op):
                self._task(op)
            return
        with self.each_task(op, (f"(share - seen) % {self._ctas}", f"{self._ctas}")):
            self._task(op)
        self.line(f"seen += {' * '.join(map(self.name, op.counts))}")

    def _forked(self, op: program.TasksOp) -> None:
        """Each CTA that runs tasks is a warp role, which runs its share of them in their order."""
        outer, task = f"outer{len(self._path)}", self.constant(partial(WarpRole, role=self._role, cta=None))
        at_once = self.machine.at_once(str(self._role.role.data), op)
        self.line(f"{outer}, begun, turn = (warp_role, begun, turn), [], 0")
        with self.each_task(op):
            with self.inside(f"if len(begun) < {at_once}:"):
                self.line(f"begun.append({task}(rank))")
            self.line(f"warp_role, turn = begun[turn % {at_once}], turn + 1")
            self.line("out, visits = warp_role.events, warp_role.visits")
            self._task(op)
        self.line(f"children, (warp_role, begun, turn) = begun, {outer}")
        self.line("out, visits = warp_role.events, warp_role.visits")
        self.line("warp_role.children += children")
        self._event(FORK, "('tasks', rank, ())", "len(children)", op)

    def _task(self, op: program.TasksOp) -> None:
        self._path.append(op)
        self.block(op.body.block)
        if not op.encloses_tasks:
            # The iterations of loops around tasks are tasks of their own.
            indices = [loop.body.block.args[0] for loop in ancestors(self._path[0]) if isinstance(loop, scf.ForOp)]
            indices += [index for tasks in self._path for index in tasks.body.block.args]
            picked = [self._picked.get(index) for index in indices]
            numbers = ", ".join("None" if p is None else self.name(p) for p in picked)
            self.line(f"visits.append(({self.constant(op)}, {self.names(indices)}, ({numbers},)))")
        self._path.pop()


def _stages(side: str, channel: roles.ChannelOp, number: int) -> str:
    """The name of a count of stages; no two channels share one."""
    return f"{side} stages of {channel.label.data} (channel {number})"


def _finder(op: counters.CounterOp, machine: Machine) -> Callable[..., Counter]:
    """What finds a counter of a rank, given the rank that asks."""
    name, sizes = machine.names[op.signal], machine.counters(op.signal)
    known: dict[tuple[int, tuple[int, ...]], Counter] = {}

    def find(rank: int, owner: int, indices: tuple[int, ...]) -> Counter:
        found = known.get((owner, indices))
        if found is None:
            machine.check_rank(op, rank, owner)
            machine.check_indices(op, rank, indices, sizes)
            found = known[owner, indices] = name, owner, indices
        return found

    return find
