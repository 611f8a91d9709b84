"""The integers of each part as a Python function that lists its events.

def part(rank, cta, share, epoch, worker):
    out = worker.events
    v7 = f3(rank)
    for t in range((share - turn) % ctas, v7, ctas):
        ...
        out.append((WAIT, c0(rank, rank, v9, v10), v12, o4))
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass
from typing import Any, cast

from xdsl.dialects import arith, scf
from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue

from pkc.diagnostics import PkcError
from pkc.dialect import access, blocks, coordinates, counters, program, roles
from pkc.dialect.held import SendHeldOp, is_held
from pkc.dialect.positions import position_function
from pkc.dialect.scalars import scalar
from pkc.dialect.task_order import banded, in_order
from pkc.dialect.tile import block_type
from pkc.dialect.types import BlockType, SignalType
from pkc.location import span_of
from pkc.passes.dependence import sources
from pkc.sim import errors as sim_errors
from pkc.sim.array import Array
from pkc.sim.machine import Machine
from pkc.static import trace
from pkc.static.trace import Counter, Worker

_COUNTER_OPS = (counters.SignalOp, counters.SignalAllOp, counters.RaiseOp, counters.WaitOp, counters.BarrierOp)
_EVENTS = (*_COUNTER_OPS, counters.ResetOp, SendHeldOp, *roles.CHANNEL_OPS)
_KINDS = ("ADD", "RAISE", "WAIT", "FORK", "ARRIVE", "ARRIVED", "RESET")
_INFIX: dict[type[Operation], str] = {arith.AddiOp: "+", arith.SubiOp: "-", arith.MuliOp: "*"}

PartFunction = Callable[[int, "int | None", int, int, Worker], None]


class DependsOnTilesError(Exception):
    """Whether or how often something is signalled depends on what the kernel computes, so it is not known before."""


@dataclass(frozen=True)
class Skeleton:
    """The parts of a kernel for given sizes, ranks and CTAs."""

    machine: Machine
    parts: Mapping[program.RoleOp, PartFunction]
    shared_out: bool

    def workers(self, epoch: int) -> list[Worker]:
        """Every worker of one launch, with its events. Raises `PkcError` for an index or a rank that is not there."""
        made: list[Worker] = []
        for rank in range(self.machine.ranks):
            for part, run in self.parts.items():
                for share, cta in enumerate(self.machine.workers(str(part.role.data))):
                    worker = Worker(rank, part, cta if self.shared_out else None)
                    run(rank, cta, share, epoch, worker)
                    made.append(worker)
        return made


def skeleton_of(
    kernel: program.KernelOp, machine: Machine, arrays: Mapping[str, Array], scalars: Mapping[str, int | float]
) -> Skeleton:
    """Compile the parts of a kernel.

    `arrays` are those whose elements decide about counts and branches, `scalars` the values of scalar parameters.
    Raises `DependsOnTilesError`.
    """
    parts = [op for op in kernel.body.block.ops if isinstance(op, program.RoleOp)]
    given: dict[SSAValue, str] = {kernel.arguments[name]: repr(value) for name, value in scalars.items()}
    needed, picked = deciding(kernel), reordered(kernel)
    compiled = {part: _Part(kernel, part, machine, arrays, given, needed, picked).compile() for part in parts}
    return Skeleton(machine, compiled, any(program.PER_CTA in op.attributes for op in kernel.walk()))


def deciding(kernel: program.KernelOp) -> set[SSAValue]:
    """All values that decide what is signalled, awaited and passed on, how often, and which tasks are run."""
    wanted: list[SSAValue] = []
    for op in kernel.walk():
        if isinstance(op, _COUNTER_OPS):
            wanted += op.operands
        if isinstance(op, program.TasksOp):
            wanted += op.counts
        if isinstance(op, scf.ForOp | scf.IfOp) and any(isinstance(inner, _EVENTS) for inner in op.walk()):
            wanted += op.operands[:3] if isinstance(op, scf.ForOp) else op.operands[:1]
    return sources([*wanted, *reordered(kernel).values()])


def reordered(kernel: program.KernelOp) -> dict[SSAValue, SSAValue]:
    """The task indices that do not pick blocks as they are, and what picks them instead: of several, the smallest."""
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


class _Part:
    """Writes the function of one part."""

    def __init__(
        self,
        kernel: program.KernelOp,
        part: program.RoleOp,
        machine: Machine,
        arrays: Mapping[str, Array],
        names: Mapping[SSAValue, str],
        needed: Set[SSAValue],
        picked: Mapping[SSAValue, SSAValue],
    ) -> None:
        self._kernel, self._part, self._machine, self._arrays = kernel, part, machine, arrays
        self._lines: list[str] = []
        self._globals: dict[str, Any] = {kind: getattr(trace, kind) for kind in _KINDS}
        self._globals |= {"Worker": Worker, "part": part}
        self._names = dict(names)
        self._needed, self._picked = needed, picked
        self._channels = [op for op in kernel.body.block.ops if isinstance(op, roles.ChannelOp)]
        self._path: list[program.TasksOp] = []

    def compile(self) -> PartFunction:
        self._line(0, "def run(rank, cta, share, epoch, worker):")
        self._line(1, "out, visits, turn, holding = worker.events, worker.visits, 0, []")
        for number in range(len(self._channels)):
            self._line(1, f"acquired{number} = consumed{number} = kept{number} = 0")
        around = self._kernel.body.block
        self._ops(1, (op for op in around.ops if not isinstance(op, program.RoleOp | roles.ChannelOp)))
        self._block(1, self._part.body.block)
        exec("\n".join(self._lines), self._globals)
        return self._globals["run"]

    # Text

    def _line(self, depth: int, text: str) -> None:
        self._lines.append("    " * depth + text)

    def _name(self, value: SSAValue) -> str:
        return self._names.setdefault(value, f"v{len(self._names)}")

    def _global(self, value: Any) -> str:
        name = f"g{len(self._globals)}"
        self._globals[name] = value
        return name

    def _list(self, values: Iterable[SSAValue]) -> str:
        return ", ".join(map(self._name, values))

    # Operations

    def _block(self, depth: int, block: Block) -> None:
        before = len(self._lines)
        self._ops(depth, block.ops)
        if len(self._lines) == before:
            self._line(depth, "pass")

    def _ops(self, depth: int, ops: Iterable[Operation]) -> None:
        for op in ops:
            match op:
                case program.TasksOp():
                    self._tasks(depth, op)
                case scf.ForOp():
                    self._for(depth, op)
                case scf.IfOp():
                    self._if(depth, op)
                case _ if isinstance(op, roles.CHANNEL_OPS):
                    self._channel(depth, op)
                case SendHeldOp():
                    self._send_held(depth, op)
                case counters.ResetOp():
                    name = self._kernel.argument_name(cast(BlockArgument, op.signal))
                    self._event(depth, "RESET", f"({name!r}, rank, ())", "0", op)
                case _ if isinstance(op, _COUNTER_OPS):
                    self._counter(depth, op)
                case _ if any(result in self._needed for result in op.results):
                    self._line(depth, f"{self._name(op.results[0])} = {self._integer(op)}")
                case _:
                    pass

    def _integer(self, op: Operation) -> str:
        match op:
            case coordinates.RankOp():
                return "rank"
            case coordinates.EpochOp():
                return "epoch"
            case coordinates.RingPeerOp():
                return f"(rank + {self._name(op.step)}) % {self._machine.ranks}"
            case access.ReadOp():
                return self._read(op)
            case _:
                pass
        infix = _INFIX.get(type(op))
        if infix and all(str(operand.type) == "index" for operand in op.operands):
            return f"{self._name(op.operands[0])} {infix} {self._name(op.operands[1])}"
        function = position_function(op, self._machine) or scalar(op)
        if function is None:
            raise DependsOnTilesError
        if not op.operands:
            return self._global(function())
        return f"{self._global(function)}({self._list(op.operands)})"

    def _read(self, op: access.ReadOp) -> str:
        argument = op.array
        assert isinstance(argument, BlockArgument)
        array = self._arrays.get(self._kernel.argument_name(argument))
        if array is None:
            raise DependsOnTilesError

        def read(rank: int, at: int | None, *indices: int) -> int:
            return int(array.value[array.locate(op, rank, indices, at)])

        at = "None" if op.rank is None else self._name(op.rank)
        return f"{self._global(read)}(rank, {at}, {self._list(op.indices)})"

    # Events

    def _event(self, depth: int, kind: str, counter: str, number: str, op: Operation) -> None:
        where = "holding" if is_held(op) else "out"
        self._line(depth, f"{where}.append(({kind}, {counter}, {number}, {self._global(op)}))")

    def _send_held(self, depth: int, op: SendHeldOp) -> None:
        self._line(depth, f"if len(holding) >= {op.most}:")
        self._line(depth + 1, f"while len(holding) > {op.left.value.data}:")
        self._line(depth + 2, "out.append(holding.pop(0))")

    def _counter(self, depth: int, op: Any) -> None:
        find = self._global(_finder(op, self._kernel.argument_name(op.signal), self._machine))
        indices = self._list(op.indices)
        match op:
            case counters.SignalOp():
                self._event(depth, "ADD", f"{find}(rank, {self._name(op.rank)}, {indices})", self._name(op.amount), op)
            case counters.RaiseOp():
                self._event(depth, "RAISE", f"{find}(rank, {self._name(op.rank)}, {indices})", self._name(op.value), op)
            case counters.WaitOp():
                self._event(depth, "WAIT", f"{find}(rank, rank, {indices})", self._name(op.count), op)
            case counters.SignalAllOp():
                first = "0" if op.first is None else self._name(op.first)
                last = str(self._machine.ranks - 1) if op.last is None else self._name(op.last)
                self._line(depth, f"for every in range({first}, {last} + 1):")
                self._event(depth + 1, "ADD", f"{find}(rank, every, {indices})", self._name(op.amount), op)
            case _:
                self._event(depth, "ARRIVE", f"{find}(rank, rank, {indices})", "0", op)
                self._line(depth, f"for every in range({self._machine.ranks}):")
                self._event(depth + 1, "ADD", f"{find}(rank, every, {indices})", "1", op)
                self._event(depth, "ARRIVED", f"{find}(rank, rank, {indices})", "0", op)

    def _channel(self, depth: int, op: Any) -> None:
        channel = roles.channel_of(op.channel)
        number = self._channels.index(channel)
        full, free = (f"({_stages(side, channel, number)!r}, rank, (cta,))" for side in ("full", "free"))
        match op:
            case roles.AcquireOp():
                self._line(depth, f"acquired{number} += 1")
                self._line(depth, f"if acquired{number} > {channel.depth}:")
                self._event(depth + 1, "WAIT", free, f"acquired{number} - {channel.depth}", op)
            case roles.CommitOp():
                self._event(depth, "ADD", full, "1", op)
            case roles.ConsumeOp():
                self._line(depth, f"consumed{number} += 1")
                self._event(depth, "WAIT", full, f"consumed{number}", op)
            case roles.ReleaseHeldOp():
                self._line(depth, f"for _ in range(kept{number}):")
                self._event(depth + 1, "ADD", free, "1", op)
                self._line(depth, f"kept{number} = 0")
            case _:
                self._line(depth, f"kept{number} += 1")
                self._line(depth, f"if kept{number} > {op.kept}:")
                self._event(depth + 1, "ADD", free, "1", op)
                self._line(depth + 1, f"kept{number} -= 1")

    # Control flow

    def _matters(self, op: Operation) -> bool:
        return any(result in self._needed for result in op.results) or any(
            isinstance(inner, _EVENTS) for inner in op.walk()
        )

    def _for(self, depth: int, op: scf.ForOp) -> None:
        if not self._matters(op):
            return
        variable, *carried = op.body.block.args
        kept = [i for i, argument in enumerate(carried) if argument in self._needed or op.results[i] in self._needed]
        last = op.body.block.last_op
        assert isinstance(last, scf.YieldOp)
        for i in kept:
            self._line(depth, f"{self._name(carried[i])} = {self._name(op.iter_args[i])}")
        bounds = self._list((op.lb, op.ub, op.step))
        self._line(depth, f"for {self._name(variable)} in range({bounds}):")
        self._block(depth + 1, op.body.block)
        if kept:
            ends = ", ".join(self._name(last.operands[i]) for i in kept)
            self._line(depth + 1, f"{', '.join(self._name(carried[i]) for i in kept)} = {ends}")
        for i in kept:
            self._line(depth, f"{self._name(op.results[i])} = {self._name(carried[i])}")

    def _if(self, depth: int, op: scf.IfOp) -> None:
        if not self._matters(op):
            return
        kept = [i for i, result in enumerate(op.results) if result in self._needed]
        for head, region in ((f"if {self._name(op.cond)}:", op.true_region), ("else:", op.false_region)):
            self._line(depth, head)
            if not region.blocks:
                self._line(depth + 1, "pass")
                continue
            self._block(depth + 1, region.block)
            last = region.block.last_op
            for i in kept:
                assert isinstance(last, scf.YieldOp)
                self._line(depth + 1, f"{self._name(op.results[i])} = {self._name(last.operands[i])}")

    def _tasks(self, depth: int, op: program.TasksOp) -> None:
        indices = [self._name(index) for index in op.body.block.args]
        counts = [self._name(count) for count in op.counts]
        shared = program.PER_CTA in op.attributes
        if not shared:
            self._line(depth, "begun = []")
        elif not self._path:
            self._line(depth, "turn = 0")
        if shared and not op.encloses_tasks:
            workers = len(self._machine.workers(str(self._part.role.data)))
            self._line(depth, f"total = {' * '.join(counts)}")
            self._line(depth, f"for task in range((share - turn) % {workers}, total, {workers}):")
            self._numbered(depth + 1, op, indices, counts)
            self._task(depth + 1, op)
            self._line(depth, f"turn += {' * '.join(counts)}")
            return
        every = f"{self._global(in_order)}([{', '.join(counts)}], {op.raster})"
        self._line(depth, f"for {', '.join(indices)}, in {every}:")
        depth, outer = depth + 1, depth
        if shared:
            self._task(depth, op)
            return
        held = f"held{len(self._path)}"
        self._line(depth, f"{held}, worker = (worker, begun), Worker(rank, part, None)")
        self._line(depth, "out, visits = worker.events, worker.visits")
        self._task(depth, op)
        self._line(depth, f"child, (worker, begun) = worker, {held}")
        self._line(depth, "out, visits = worker.events, worker.visits")
        self._line(depth, "begun.append(child)")
        self._line(outer, "worker.children += begun")
        self._event(outer, "FORK", "('tasks', rank, ())", "len(begun)", op)

    def _numbered(self, depth: int, op: program.TasksOp, indices: list[str], counts: list[str]) -> None:
        """The indices of a task from its number."""
        if op.raster is None:
            for index, count in reversed(list(zip(indices[1:], counts[1:], strict=True))):
                self._line(depth, f"task, {index} = divmod(task, {count})")
            self._line(depth, f"{indices[0]} = task")
            return
        self._line(depth, f"{', '.join(indices)} = {self._global(banded)}(task, {', '.join(counts)}, {op.raster})")

    def _task(self, depth: int, op: program.TasksOp) -> None:
        self._path.append(op)
        self._block(depth, op.body.block)
        if not op.encloses_tasks:
            indices = [index for tasks in self._path for index in tasks.body.block.args]
            picked = [self._picked.get(index) for index in indices]
            numbers, blocks = self._list(indices), ", ".join("None" if p is None else self._name(p) for p in picked)
            self._line(depth, f"visits.append(({self._global(op)}, ({numbers},), ({blocks},)))")
        self._path.pop()


def _stages(side: str, channel: roles.ChannelOp, number: int) -> str:
    """The name of a count of stages; no two channels share one."""
    return f"{side} stages of {channel.label.data} (channel {number})"


def _finder(op: Any, name: str, machine: Machine) -> Callable[..., Counter]:
    """What finds a counter of a rank, given the rank that asks."""
    assert isinstance(op.signal.type, SignalType)
    sizes = [_extent(extent, machine) for extent in op.signal.type.extents]

    known: dict[tuple[int, tuple[int, ...]], Counter] = {}

    def find(rank: int, owner: int, *indices: int) -> Counter:
        found = known.get((owner, indices))
        if found is None:
            found = known[owner, indices] = checked(rank, owner, indices)
        return found

    def checked(rank: int, owner: int, indices: tuple[int, ...]) -> Counter:
        machine.check_rank(op, rank, owner)
        for axis, (index, size) in enumerate(zip(indices, sizes, strict=True)):
            if not 0 <= index < size:
                span = span_of(op.location)
                raise PkcError(sim_errors.IndexOutOfRange(span, index, axis, name, rank, size - 1))
        return name, owner, indices

    return find


def _extent(extent: int | str | BlockType, machine: Machine) -> int:
    if not isinstance(extent, BlockType):
        return machine.size(extent)
    return blocks.numbers(machine.size(extent.of), machine.ranks, extent.extent)
