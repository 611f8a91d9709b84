"""What the steps of a program act on: the memory of all ranks, the scheduler, the sizes of dimensions."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from xdsl.ir import Operation, SSAValue

from pkc.diagnostics import PkcError
from pkc.dialect import blocks
from pkc.dialect.attributes import Role
from pkc.dialect.counters import CounterOp
from pkc.dialect.engines import LANES
from pkc.dialect.types import BlockType, SignalType
from pkc.location import span_of
from pkc.semantics.evaluate import Call
from pkc.sim import errors
from pkc.sim.array import Array
from pkc.sim.conflicts import Task
from pkc.sim.memory import MemoryState
from pkc.sim.order import MemoryOrder
from pkc.sim.schedule import Scheduler


@dataclass(slots=True)
class Frame:
    """Who runs an operation: the first argument of every function that an operation becomes."""

    rank: int
    epoch: int
    scalars: Mapping[str, Any]
    """The scalar parameters of the launch."""
    worker: Any
    """What `MemoryOrder` knows of the worker, if anything is checked."""
    task: Task
    cta: int = 0
    turn: int = 0
    """How many tasks the role has come by."""
    holding: list[Callable[[], None]] = field(default_factory=list[Callable[[], None]])
    """The signals that the worker holds back."""


@dataclass
class Machine:
    """All ranks of one run."""

    sizes: dict[str, int]
    ranks: int
    world: MemoryState
    scheduler: Scheduler
    orders_itself: bool
    interleaved: bool
    """Whether others may run at each access to an array of all ranks."""
    names: dict[SSAValue, str]
    """The names of the kernel's arguments."""
    ctas: int = 1
    """How many CTAs run each role that works through its tasks in turn."""
    comm_ctas: int = 0
    """How many more CTAs run the communicators; with none, these run beside the other roles."""
    rings: dict[Any, Any] = field(default_factory=dict[Any, Any])
    """The channels in use, by rank, CTA and operation."""
    order: MemoryOrder | None = None
    """What is checked of the order of accesses, if anything."""
    operations: int = 0
    tasks: int = 0

    def frame(self, rank: int, scalars: Mapping[str, Any], epoch: int = 1) -> Frame:
        """What a rank begins a launch with."""
        worker = None if self.order is None else self.order.caller(rank)
        return Frame(rank, epoch, scalars, worker, Task(rank, 0, ()))

    def workers(self, role: str) -> range:
        """Who runs a role on each rank: CTAs by their numbers, or a copy engine."""
        if role == Role.CopyEngine:
            return range(1)
        if role == str(Role.Communicator) and self.comm_ctas:
            return range(self.ctas, self.ctas + self.comm_ctas)
        return range(self.ctas)

    @property
    def lanes(self) -> int:
        """On how many streams a copy engine does its tasks.

        With one CTA for each role one, as where a GPU has no hardware queue for more. Otherwise as many as leave in
        turn only tasks that are so with every number of lanes that there may be.
        """
        return 1 if self.ctas == 1 else math.lcm(*range(1, LANES + 1))

    def size(self, dim: str | int) -> int:
        return dim if isinstance(dim, int) else self.sizes[dim]

    def counters(self, signal: SSAValue) -> tuple[int, ...]:
        """How many counters a signal has along each of its dimensions."""
        assert isinstance(signal.type, SignalType)
        return tuple(
            blocks.numbers(self.size(extent.of), self.ranks, extent.extent)
            if isinstance(extent, BlockType)
            else self.size(extent)
            for extent in signal.type.extents
        )

    def array(self, argument: SSAValue) -> Array:
        """The memory of an array that is an argument of the kernel."""
        return self.world.arrays[self.names[argument]]

    def check_rank(self, op: Operation, own: int, found: int) -> None:
        """Refuse a rank that does not exist."""
        if not 0 <= found < self.ranks:
            raise PkcError(errors.RankOutOfRange(span_of(op.location), found, own, self.ranks - 1))

    def check_indices(self, op: CounterOp, own: int, indices: Sequence[int], sizes: Sequence[int]) -> None:
        """Refuse a counter that does not exist; `sizes` are those of its signal."""
        for axis, (index, size) in enumerate(zip(indices, sizes, strict=True)):
            if not 0 <= index < size:
                name = self.names[op.signal]
                raise PkcError(errors.IndexOutOfRange(span_of(op.location), index, axis, name, own, size - 1))

    def check_shard(self, op: Operation, rank: int) -> None:
        """Refuse the part of a rank that does not exist."""
        if not 0 <= rank < self.ranks:
            raise PkcError(errors.NoSuchShard(span_of(op.location), rank, self.ranks - 1))

    def pause(self) -> None:
        """Let others run, if the ranks are interleaved."""
        if self.interleaved:
            self.scheduler.pause()

    def end_launch(self, rank: int) -> None:
        """Wait for the end of all that a rank has launched."""
        self.scheduler.join()
        if self.order is not None:
            self.order.end_launch(rank)

    def end_phase(self) -> None:
        """The end of a phase, seen from one rank."""
        if not self.orders_itself:
            # Ranks come here in their order; so the sums are in rank order, and need not be kept.
            self.world.add_contributions()
        self.scheduler.end_phase()


Calls: TypeAlias = "dict[type[Operation], Callable[[Any, Machine], Call]]"
"""What operations become: functions of a frame and their operands."""
