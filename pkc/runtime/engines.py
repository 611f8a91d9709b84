"""What copy engines are to do in a launch: the integers of their parts, carried out for given dimensions and a rank."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, TypeAlias

from xdsl.dialects import scf
from xdsl.ir import Block as Body
from xdsl.ir import BlockArgument, Operation, SSAValue

from pkc.dialect import coordinates, copies, counters, program
from pkc.dialect.blocks import Block
from pkc.dialect.engines import engines, is_engine, parse_engines
from pkc.dialect.positions import position_function
from pkc.dialect.scalars import scalar
from pkc.dialect.task_order import in_order
from pkc.dialect.types import RANKS

Index: TypeAlias = Block | int


@dataclass(frozen=True)
class Box:
    """Elements of an array: positions along the dimensions that `indices` has, everything along the others."""

    array: str
    indices: Mapping[int, Index]


@dataclass(frozen=True)
class Copy:
    """A box of one array to a box of another."""

    source: Box
    target: Box


@dataclass(frozen=True)
class Wait:
    """Until a counter of this rank is at least `value`."""

    signal: str
    indices: tuple[int, ...]
    value: int


@dataclass(frozen=True)
class Raise:
    """A counter of a rank becomes `value`."""

    signal: str
    indices: tuple[int, ...]
    rank: int
    value: int


@dataclass(frozen=True)
class Reset:
    """All counters of a signal become zero on this rank."""

    signal: str


Step: TypeAlias = Copy | Wait | Raise | Reset

Strand: TypeAlias = list[Step]
"""Steps one behind the other."""

Section: TypeAlias = list[Strand]
"""One strand, or those of tasks, one for each: they do not wait for each other."""


class Engines:
    """The parts of copy engines of a kernel, as `Artifact.engines` has them."""

    def __init__(self, text: str) -> None:
        self._kernel = parse_engines(text)
        self.count = len(engines(self._kernel))
        """How many parts there are."""

    def sections(self, rank: int, dims: Mapping[str, int], scalars: Mapping[str, int | float]) -> list[list[Section]]:
        """What each part does: sections, one behind the other. `dims` has `ranks` too."""
        run = _Run(self._kernel, rank, dims, scalars)
        return [run.part(part) for part in engines(self._kernel)]


class _Run:
    """The integers of one rank. It is what positions depend on, too (`pkc.dialect.positions.Machine`)."""

    def __init__(
        self, kernel: program.KernelOp, rank: int, dims: Mapping[str, int], scalars: Mapping[str, int | float]
    ) -> None:
        self.ranks = dims[RANKS]
        self._rank, self._dims = rank, dims
        self._names = {argument: name for name, argument in kernel.arguments.items()}
        self._values: dict[SSAValue, Any] = {
            argument: scalars[name] for name, argument in kernel.arguments.items() if name in scalars
        }
        for op in kernel.body.block.ops:
            if not is_engine(op):
                self._compute(op)

    def part(self, part: program.RoleOp) -> list[Section]:
        found: list[Section] = []
        for item in self._body(part.body.block):
            if isinstance(item, list):
                found.append(item)
            elif found and len(found[-1]) == 1:
                found[-1][0].append(item)
            else:
                found.append([[item]])
        return found

    def size(self, dim: str | int) -> int:
        return dim if isinstance(dim, int) else self._dims[dim]

    def workers(self, role: str) -> range:
        raise AssertionError(f"a copy engine counts the CTAs of {role}")

    def check_part(self, op: Operation, rank: int) -> None:
        assert 0 <= rank < self.ranks, f"{op.name} of rank {rank}"

    # Operations

    def _body(self, body: Body) -> Iterator[Step | Section]:
        for op in body.ops:
            match op:
                case program.TasksOp():
                    yield from self._tasks(op)
                case scf.ForOp():
                    yield from self._for(op)
                case scf.IfOp():
                    yield from self._if(op)
                case scf.YieldOp():
                    pass
                case copies.CopyOp():
                    yield Copy(self._box(op.source, op.source_box), self._box(op.target, op.target_box))
                case counters.WaitOp():
                    yield Wait(self._name(op.signal), self._all(op.indices), self._values[op.count])
                case counters.RaiseOp():
                    rank = self._values[op.rank]
                    yield Raise(self._name(op.signal), self._all(op.indices), rank, self._values[op.value])
                case counters.ResetOp():
                    yield Reset(self._name(op.signal))
                case _:
                    self._compute(op)

    def _compute(self, op: Operation) -> None:
        match op:
            case coordinates.RankOp():
                result = self._rank
            case coordinates.RingPeerOp():
                result = (self._rank + self._values[op.step]) % self.ranks
            case _:
                function = position_function(op, self) or scalar(op)
                assert function is not None, f"a copy engine cannot do {op.name}"
                result = function(*self._all(op.operands))
        self._values[op.results[0]] = result

    def _all(self, values: Sequence[SSAValue]) -> tuple[Any, ...]:
        return tuple(self._values[value] for value in values)

    def _name(self, argument: SSAValue) -> str:
        assert isinstance(argument, BlockArgument)
        return self._names[argument]

    def _box(self, array: SSAValue, indices: Mapping[int, SSAValue]) -> Box:
        return Box(self._name(array), {number: self._values[index] for number, index in indices.items()})

    # Control flow

    def _tasks(self, op: program.TasksOp) -> Iterator[Step | Section]:
        """A strand for each task, in the order of their numbers; but single steps if no more than one does anything."""
        strands: Section = []
        for indices in in_order(self._all(op.counts), op.raster):
            self._values.update(zip(op.body.block.args, indices, strict=True))
            strands.append(list(_in_turn(self._body(op.body.block))))
        if sum(map(bool, strands)) > 1:
            yield strands
        else:
            yield from chain(*strands)

    def _for(self, op: scf.ForOp) -> Iterator[Step | Section]:
        variable, *carried = op.body.block.args
        found = self._all(op.iter_args)
        for number in range(*self._all((op.lb, op.ub, op.step))):
            self._values[variable] = number
            self._values.update(zip(carried, found, strict=True))
            yield from self._body(op.body.block)
            found = self._yielded(op.body.block)
        self._values.update(zip(op.results, found, strict=True))

    def _if(self, op: scf.IfOp) -> Iterator[Step | Section]:
        taken = op.true_region if self._values[op.cond] else op.false_region
        if not taken.blocks:
            return
        yield from self._body(taken.block)
        self._values.update(zip(op.results, self._yielded(taken.block), strict=True))

    def _yielded(self, body: Body) -> tuple[Any, ...]:
        last = body.last_op
        return self._all(last.operands) if isinstance(last, scf.YieldOp) else ()


def _in_turn(found: Iterable[Step | Section]) -> Iterator[Step]:
    """Steps of one task: tasks inside of it one after the other."""
    for item in found:
        if isinstance(item, list):
            yield from chain(*item)
        else:
            yield item
