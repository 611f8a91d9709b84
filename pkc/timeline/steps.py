"""What each warp role of a kernel does, in order: its integers as a Python generator that yields its steps.

def run(rank, cta, share, step):
    for v1, v2 in g0(share, step, (v3, v4), 8):
        yield g1                # begins a task
        yield (3, g2, (v5, v6), None)
        ...
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, NoReturn, TypeAlias

from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import BlockArgument, Operation, SSAValue

from pkc.diagnostics import PkcError
from pkc.dialect import access, copies, counters, fences, program, roles
from pkc.dialect.deferred import SendDeferredOp
from pkc.dialect.inverse import InvertOp, SumRowsOp
from pkc.dialect.positions import EPOCH, RANK
from pkc.dialect.tile import AnyMmaOp, MmaIssueOp, MmaWaitOp
from pkc.dialect.types import PGLType, TileType
from pkc.location import span_of
from pkc.passes.analysis.dependence import enclosing_tasks, sources
from pkc.semantics.evaluate import Call, Evaluator
from pkc.sim.array import Array, Placement, reader
from pkc.sim.draw import draw_inputs
from pkc.sim.machine import Machine
from pkc.sim.program import Program
from pkc.timeline.errors import NotPredicted

(
    TASK,
    OVER,
    ACQUIRE,
    COMMIT,
    CONSUME,
    RELEASE,
    RELEASE_ALL,
    LOAD,
    STORE,
    MMA,
    MMA_WAIT,
    WORK,
    DRAIN,
    SIGNAL,
    RAISE,
    WAIT,
    SEND,
) = range(17)
"""Kinds of steps."""

Step: TypeAlias = tuple[Any, ...]
"""A kind, the operation, and what of its operands the machine has to know."""

RoleSteps: TypeAlias = Callable[[int, int, int, int], Iterator[Step]]
"""The steps of a warp role: its rank, its CTA, and which tasks it runs: the first one, and how many to go on by."""

_ACCESSES = (access.LoadOp, access.GatherOp, access.StoreOp, access.AddToArrayOp, copies.CopyOp)
_TIMED = (
    *_ACCESSES,
    counters.CounterOp,
    *roles.CHANNEL_OPS,
    SendDeferredOp,
    fences.DrainOp,
    AnyMmaOp,
    MmaWaitOp,
    access.ScatterStoreOp,
    access.AddByTableOp,
    InvertOp,
    SumRowsOp,
)
_CHANNEL_STEPS: dict[type[Operation], int] = {
    roles.AcquireOp: ACQUIRE,
    roles.CommitOp: COMMIT,
    roles.ConsumeOp: CONSUME,
    roles.ReleaseOp: RELEASE,
    roles.ReleaseDeferredOp: RELEASE_ALL,
}


def role_steps(
    called: Program,
    machine: Machine,
    dims: Mapping[str, int],
    seed: int,
    takes: Callable[[program.RoleOp, Operation], float],
) -> dict[program.RoleOp, RoleSteps]:
    """The steps of each role of a kernel; `takes` are the nanoseconds in which its threads compute a tile.

    Integers that decide about the steps are drawn. Raises `PkcError`.
    """
    kernel = called.kernel
    needed = _needed(kernel)
    arrays, scalars = _drawn(called, needed, dims, machine.ranks, seed)
    return {
        op: _Steps(called, op, machine, needed, arrays, scalars, partial(takes, op)).compile()
        for op in kernel.body.block.ops
        if isinstance(op, program.RoleOp)
    }


def _needed(kernel: program.KernelOp) -> set[SSAValue]:
    """All integers that decide what is moved where, how often, and who waits for what."""
    wanted: list[SSAValue] = []
    for op in kernel.walk():
        if isinstance(op, program.TasksOp):
            wanted += op.counts
        if isinstance(op, scf.ForOp | scf.IfOp) and _is_timed(op):
            wanted += op.operands[:3] if isinstance(op, scf.ForOp) else op.operands[:1]
        if isinstance(op, (*_ACCESSES, counters.CounterOp)):
            wanted += (value for value in op.operands if not isinstance(value.type, TileType | PGLType))
    return {value for value in sources(wanted) if not isinstance(value.type, TileType)}


def _gives_tiles(op: Operation) -> bool:
    return bool(op.results) and all(isinstance(result.type, TileType) for result in op.results)


def _is_timed(op: Operation) -> bool:
    return any(
        isinstance(inner, _TIMED) or any(isinstance(result.type, TileType) for result in inner.results)
        for inner in op.walk()
        if inner is not op
    )


def _drawn(
    called: Program, needed: set[SSAValue], dims: Mapping[str, int], ranks: int, seed: int
) -> tuple[dict[str, Array], dict[str, Any]]:
    """The arrays whose elements decide, and the scalars."""
    reads = {op.array: op for op in called.kernel.walk() if isinstance(op, access.ReadOp) and op.result in needed}
    names = {name: reads[argument] for name, argument in called.kernel.arguments.items() if argument in reads}
    for name, op in names.items():
        if name not in called.inputs or name in called.written:
            raise _unknown(op, called.name)
    module = called.kernel.parent_op()
    assert isinstance(module, ModuleOp)
    inputs = draw_inputs(module, ranks=ranks, dims=dims, seed=seed, only=(*names, *called.scalars))
    arrays: dict[str, Array] = {}
    for name in names:
        kind = called.arrays[name]
        layout, shard, zigzag = (
            (kind.layout, kind.shard_dim, kind.zigzag) if isinstance(kind, PGLType) else (None, None, False)
        )
        sizes = tuple(
            dims[dim] if isinstance(dim, str) and dim in dims else _extent(dim, ranks) for dim in kind.dimensions
        )
        place = Placement(name, sizes, kind.element_type, layout, shard, ranks, False, False, zigzag)
        arrays[name] = Array(place, inputs[name], summed=False, frozen=True)
    return arrays, {name: inputs[name] for name in called.scalars}


def _extent(dim: str | int, ranks: int) -> int:
    return dim if isinstance(dim, int) else ranks


def _unknown(op: Operation, kernel: str) -> PkcError:
    return PkcError(NotPredicted(span_of(op.location), kernel, "what it does is known only when it runs"))


class _Steps(Evaluator):
    """Writes the generator of one role."""

    context = {RANK: "rank", EPOCH: "1"}
    machine: Machine

    def __init__(
        self,
        called: Program,
        role: program.RoleOp,
        machine: Machine,
        needed: set[SSAValue],
        arrays: Mapping[str, Array],
        scalars: Mapping[str, Any],
        takes: Callable[[Operation], float],
    ) -> None:
        super().__init__(machine)
        self._takes = takes
        self._worked = "", 0.0
        self._called, self._kernel, self._role = called, called.kernel, role
        self._needed, self._arrays = needed, arrays
        self._ranks = machine.ranks
        for name, value in scalars.items():
            self.bind(self._kernel.arguments[name], value)

    def compile(self) -> RoleSteps:
        with self.inside("def run(rank, cta, share, step):"):
            around = self._kernel.body.block
            self.operations(op for op in around.ops if not isinstance(op, program.RoleOp | roles.ChannelOp))
            self.block(self._role.body.block)
            self.line("return")
            self.line("yield")
        return self.compiled()

    # What is evaluated

    def needs(self, value: SSAValue) -> bool:
        return value in self._needed

    def enters(self, op: scf.ForOp | scf.IfOp) -> bool:
        return any(map(self.needs, op.results)) or _is_timed(op)

    def unknown(self, op: Operation) -> NoReturn:
        raise _unknown(op, self._called.name)

    def leaf(self, op: Operation) -> bool:
        kind = _CHANNEL_STEPS.get(type(op))
        if kind is not None:
            self._step(kind, op)
        elif isinstance(op, access.ReadOp):
            if self.needs(op.result):
                self._read(op)
        elif isinstance(op, access.GatherOp):
            boxes = [index for index in op.indices if not isinstance(index.type, TileType)]
            self._step(LOAD, op, self.names(boxes), "None")
        elif isinstance(op, access.LoadOp):
            self._step(LOAD, op, self.names(op.indices), self._rank(op.rank))
        elif isinstance(op, access.StoreOp | access.AddToArrayOp):
            self._step(STORE, op, self.names(op.indices), self._rank(op.rank))
        elif isinstance(op, access.Scatter):
            self._step(STORE, op, "()", "None")
        elif isinstance(op, copies.CopyOp):
            self._step(STORE, op, self.names(op.source_indices), "None", self.names(op.target_indices))
        elif isinstance(op, AnyMmaOp):
            self._step(MMA, op)
        elif isinstance(op, MmaWaitOp):
            self._step(MMA_WAIT, op)
        elif isinstance(op, fences.DrainOp):
            self._step(DRAIN, op)
        elif isinstance(op, SendDeferredOp):
            self._step(SEND, op)
        elif isinstance(op, counters.CounterOp):
            self._counter(op)
        elif isinstance(op, InvertOp | SumRowsOp) or _gives_tiles(op):
            self._work(op)
        else:
            return False
        return True

    def _rank(self, rank: SSAValue | None) -> str:
        return "None" if rank is None else self.name(rank)

    def _read(self, op: access.ReadOp) -> None:
        assert isinstance(op.array, BlockArgument)
        array = self._arrays[self._kernel.argument_name(op.array)]
        self.line(f"{self.name(op.result)} = {self.call(Call(reader(op, array), op.rank, op.indices), 'rank')}")

    # Steps

    def _step(self, kind: int, op: Operation, *more: str) -> None:
        if not more:
            self.line(f"yield {self.constant((kind, op))}")
            return
        self.line(f"yield ({kind}, {self.constant(op)}, {', '.join(more)})")

    def _work(self, op: Operation) -> None:
        """What follows each other without anything in between is one step."""
        takes = self._takes(op)
        if not takes:
            return
        issued = op.parent is not None and any(isinstance(other, MmaIssueOp) for other in op.parent.ops)
        last, before = self._worked
        if self._lines[-1] == last and self._indentation(last) == self._depth:
            takes += before
            self._lines.pop()
        self.line(f"yield ({WORK}, {takes!r}, {not issued})")
        self._worked = self._lines[-1], takes

    def _indentation(self, line: str) -> int:
        """How deep a line stands; behind a block that has ended, less deep ones follow."""
        return (len(line) - len(line.lstrip())) // 4

    def _counter(self, op: Any) -> None:
        name = self.constant(self.machine.names[op.signal])
        indices = self.names(op.indices)
        match op:
            case counters.SignalOp():
                self._step(SIGNAL, op, f"({name}, {self.name(op.rank)}, {indices})", self.name(op.amount))
            case counters.RaiseOp():
                self._step(RAISE, op, f"({name}, {self.name(op.rank)}, {indices})", self.name(op.value))
            case counters.SignalAllOp():
                first = "0" if op.first is None else self.name(op.first)
                last = f"{self._ranks - 1}" if op.last is None else self.name(op.last)
                with self.inside(f"for every in range({first}, {last} + 1):"):
                    self._step(SIGNAL, op, f"({name}, every, {indices})", self.name(op.amount))
            case counters.WaitOp():
                if counters.EARLIER not in op.attributes:
                    self._step(WAIT, op, f"({name}, rank, {indices})", self.name(op.count))
            case _:
                with self.inside(f"for every in range({self._ranks}):"):
                    self._step(SIGNAL, op, f"({name}, every, {indices})", "1")
                self._step(WAIT, op, f"({name}, rank, {indices})", f"{self._ranks}")

    # Tasks

    def tasks(self, op: program.TasksOp) -> None:
        if not enclosing_tasks(op):
            self.line("seen = 0")  # numbers of tasks go on inside of one set alone: roles may leave out other sets
        if op.encloses_tasks:
            with self.each_task(op):
                self.block(op.body.block)
            return
        shares = program.PER_CTA in op.attributes
        with self.each_task(op, ("(share - seen) % step", "step") if shares else None):
            self.line(f"yield {self.constant((TASK, op))}")
            self.block(op.body.block)
        self.line(f"yield {self.constant((OVER, op))}")
        if shares:
            self.line(f"seen += {' * '.join(map(self.name, op.counts))}")
