"""What operations act on: the memory of all ranks, the scheduler, the sizes of dimensions."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from xdsl.ir import Operation, SSAValue

from pkc.diagnostics import PkcError
from pkc.dialect import blocks
from pkc.dialect.attributes import Role
from pkc.dialect.coordinates import BlockCountOp
from pkc.dialect.counters import CounterOp
from pkc.dialect.program import TasksOp
from pkc.dialect.scalars import constant_of
from pkc.dialect.types import BlockType, SignalType
from pkc.dialect.words import BEGINS, ENDS, LANES
from pkc.location import span_of
from pkc.semantics.errors import BoundOutOfRange, IndexOutOfRange, RankOutOfRange
from pkc.semantics.evaluate import Call
from pkc.sim import errors
from pkc.sim.array import Array
from pkc.sim.conflicts import Task
from pkc.sim.memory import MemoryState
from pkc.sim.order import MemoryOrder
from pkc.sim.schedule import Scheduler
from pkc.sim.work import Work


@dataclass(slots=True)
class Frame:
    """Where an operation runs: the first argument of every function that an operation becomes."""

    rank: int
    epoch: int
    scalars: Mapping[str, Any]
    """The scalar parameters of the launch."""
    warp_role: Any
    """The clocks of the warp role, if the order of accesses is checked."""
    task: Task
    cta: int = 0
    tasks_seen: int = 0
    """How many tasks of the phase have been numbered so far, those of other CTAs included."""
    deferred: list[Callable[[], None]] = field(default_factory=list[Callable[[], None]])
    """The deferred signals that are not yet sent."""


@dataclass
class Machine:
    """All ranks of one run."""

    sizes: dict[str, int]
    ranks: int
    memory: MemoryState
    scheduler: Scheduler
    orders_itself: bool
    interleaved: bool
    """Whether others may run at each access to an array of all ranks."""
    names: dict[SSAValue, str]
    """The names of the kernel's arguments."""
    ctas: int = 1
    """How many CTAs run each role; of roles that an author wrote, how many run its tasks."""
    comm_ctas: int = 0
    """How many more CTAs run the communicators; with 0, these run in the CTAs of the other roles."""
    per_cta: bool = True
    """Whether each CTA runs the whole role. If not, one coroutine of a rank does, and CTAs run its tasks."""
    resident: tuple[int, int] = (1, 0)
    """The CTAs that fit the GPU: those that compute, those that only communicate."""
    rings: dict[Any, Any] = field(default_factory=dict[Any, Any])
    """The channels in use, by rank, CTA and operation."""
    order: MemoryOrder | None = None
    """The check of the order of accesses; None without one."""
    tasks: int = 0
    say: Callable[[str], None] | None = None
    """Where `print` goes; nowhere without it."""
    work: Work = field(default_factory=Work)

    def frame(self, rank: int, scalars: Mapping[str, Any], epoch: int = 1) -> Frame:
        """What a rank begins a launch with."""
        warp_role = None if self.order is None else self.order.caller(rank)
        return Frame(rank, epoch, scalars, warp_role, Task(rank, 0, ()))

    def ctas_of(self, role: str) -> range:
        """The CTAs that run a role on each rank, by number; a copy engine counts as one."""
        if role == Role.CopyEngine or not self.per_cta:
            return range(1)
        if role == str(Role.Communicator) and self.comm_ctas:
            return range(self.ctas, self.ctas + self.comm_ctas)
        return range(self.ctas)

    def at_once(self, role: str, tasks: TasksOp) -> int:
        """How many tasks of a role that an author wrote run at once, each on a CTA: task n runs after task n less this.

        Where no more tasks than CTAs fit the GPU are written, these have a CTA each on any grid.
        """
        apart = role == str(Role.Communicator) and self.comm_ctas > 0
        resident = self.resident[apart]
        written = math.prod(constant_of(count) or resident + 1 for count in tasks.counts)
        if written <= resident:
            return resident
        return self.comm_ctas if apart else self.ctas

    @property
    def lanes(self) -> int:
        """On how many streams a copy engine runs its tasks.

        With one CTA for each role it is 1, as on a GPU without hardware queues for more. Otherwise it is such that two
        tasks share a lane only if they do with every number of lanes that a GPU may have.
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
        return self.memory.arrays[self.names[argument]]

    def check_rank(self, op: Operation, rank: int, found: int) -> None:
        """Refuse a rank that does not exist."""
        if not 0 <= found < self.ranks:
            raise PkcError(RankOutOfRange(span_of(op.location), found, rank, self.ranks - 1))

    def check_indices(self, op: CounterOp, rank: int, indices: Sequence[int], sizes: Sequence[int]) -> None:
        """Refuse a counter that does not exist; `sizes` are those of its signal."""
        for axis, (index, size) in enumerate(zip(indices, sizes, strict=True)):
            if not 0 <= index < size:
                name = self.names[op.signal]
                raise PkcError(IndexOutOfRange(span_of(op.location), index, axis, name, rank, size - 1))

    def check_shard(self, op: Operation, rank: int) -> None:
        """Refuse the shard of a rank that does not exist."""
        if not 0 <= rank < self.ranks:
            raise PkcError(errors.NoSuchShard(span_of(op.location), rank, self.ranks - 1))

    def refuse_bound(self, op: BlockCountOp, rank: int, bound: int, *, ends: bool) -> None:
        """Refuse a list that an array bounds outside of its dimension."""
        size, does = self.size(op.block.of), ENDS if ends else BEGINS
        raise PkcError(BoundOutOfRange(span_of(op.location), does, bound, str(op.block.of), size, rank))

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
            self.memory.add_contributions()
        self.scheduler.end_phase()


Calls: TypeAlias = "dict[type[Operation], Callable[[Any, Machine], Call]]"
"""What operations become: functions of a frame and their operands."""
