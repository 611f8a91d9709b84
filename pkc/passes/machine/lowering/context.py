"""What the lowering of one role knows: its threads, its channels, and what each value has become."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field

from xdsl.ir import Block, Operation, SSAValue

from pkc.dialect.counters import Order
from pkc.dialect.program import KernelOp, RoleOp
from pkc.dialect.roles import ChannelOp
from pkc.dialect.types import RANKS, TileType
from pkc.passes.analysis.row_lanes import Lanes
from pkc.passes.machine.emit import Emitter
from pkc.passes.machine.lowering.blocks import Dimensions, Placed
from pkc.targets.arch import Arch
from pkc.targets.layout import SharedLayout


@dataclass(frozen=True)
class Ring:
    """A channel in shared memory: `depth` stages from `offset` on, and two barriers for each from `barriers` on.

    `filling` and `emptying` count the arrivals that complete a phase; `by_bytes` is what arrives in one stage if TMA
    fills it all. Else each thread arrives, and each load by TMA announces its bytes.
    """

    channel: ChannelOp
    offset: int
    barriers: int
    depth: int
    slots: tuple[int, ...]
    stage_bytes: int
    filling: int
    emptying: int
    by_bytes: int

    def full(self, stage: SSAValue, emit: Emitter, base: SSAValue) -> SSAValue:
        return emit.plus(emit.plus(base, self.barriers), emit.times(stage, emit.target.arch.mbarrier_bytes))

    def empty(self, stage: SSAValue, emit: Emitter, base: SSAValue) -> SSAValue:
        return emit.plus(
            emit.plus(base, self.barriers + self.depth * emit.target.arch.mbarrier_bytes),
            emit.times(stage, emit.target.arch.mbarrier_bytes),
        )


@dataclass
class Place:
    """Where a role is in a ring: registers with its stage, unless there is only one, with its phase, and, if its
    releases are deferred, with the number of stages it keeps; if it looks ahead, with whether the stage is filled."""

    stage: SSAValue | None
    phase: SSAValue
    kept: SSAValue | None = None
    filled: SSAValue | None = None


@dataclass(frozen=True)
class Queue:
    """The deferred signals of a role, the youngest last: registers with their addresses, with their amounts unless all
    are the constant `amount`, and with their number; `verb` is what they do to their counters, `order` their memory
    order."""

    length: int
    addresses: SSAValue
    amounts: SSAValue | None
    count: SSAValue
    verb: str
    amount: int | None
    order: Order


@dataclass(frozen=True)
class TaskQueue:
    """Where CTAs take their tasks from: `counter` has the number of tasks that were taken behind the first ones.

    The first thread of the role `taker` takes the next number ahead, and tells all roles: by a ring of `places` numbers
    in shared memory, with two barriers for each, from `offset` on. `readers` arrivals free a place.
    """

    counter: SSAValue
    offset: int
    places: int
    taker: RoleOp
    readers: int


@dataclass(eq=False)
class Staged:
    """A tile in a stage: its address; `transposed` if it is used as its transpose. Rows that came with what lies around
    them begin where `shifts` says: bytes from the first one's place to the first one, and as many more, modulo 16, for
    each further row. Nothing reads one whose stage is `free` again."""

    address: SSAValue
    type: TileType
    layout: SharedLayout
    ring: Ring
    transposed: bool = False
    shifts: tuple[SSAValue, SSAValue] | None = None
    free: bool = False


@dataclass
class Threads:
    """The threads of a role: `warps` from `first` on; `one` of them alone, or all. Each has so many `registers`."""

    first: int
    warps: int
    one: bool
    thread: SSAValue
    lane: SSAValue
    warp: SSAValue
    barrier: int
    arch: Arch
    registers: int = 0
    flat: bool = False
    """Whether they go over tiles in chunks, instead of having fragments of whole tiles."""
    lanes: Lanes | None = None
    """How they share rows, if their tiles meet no MMA."""

    @property
    def count(self) -> int:
        return 1 if self.one else self.arch.warp * self.warps

    @property
    def start(self) -> int:
        """The number of their first thread in the CTA."""
        return self.arch.warp * self.first

    @property
    def sync(self) -> str:
        """The instruction with which they wait for each other."""
        return "sync_warp" if self.warps == 1 else f"sync_{self.barrier}_of_{self.count}"

    @property
    def warpgroups(self) -> int:
        return self.warps // self.arch.warpgroup


@dataclass
class Launch:
    """What all roles of a kernel share: by group of CTAs, this CTA's number in it and how many it has."""

    kernel: KernelOp
    rings: Mapping[SSAValue, Ring]
    base: SSAValue
    epoch: SSAValue
    cta_of: Mapping[str, SSAValue]
    ctas: Mapping[str, SSAValue]
    group_of: Mapping[str, str]
    cluster: int = 1
    """How many CTAs of the GPU take tasks together, as one."""
    part: SSAValue | None = None
    """This one's number among them."""
    tasks: TaskQueue | None = None
    """Where its CTAs take their tasks from, unless each has an equal share."""


@dataclass
class WarpRole:
    """One role: integers in `known`, blocks in `blocks`, tiles in `tiles`."""

    launch: Launch
    emit: Emitter
    dims: Dimensions
    threads: Threads
    rank: SSAValue
    group: str
    axes: Mapping[SSAValue, tuple[int, ...]]
    folded: Mapping[SSAValue, int] = field(default_factory=dict[SSAValue, int])
    """Tiles that are read across their stage and folded beside MMAs, by the lanes that share a row."""
    takes_tasks: bool = False
    """Whether it takes tasks from the queue for all roles of its CTA."""
    known: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    blocks: dict[SSAValue, Placed] = field(default_factory=dict[SSAValue, Placed])
    tiles: dict[SSAValue, object] = field(default_factory=dict[SSAValue, object])
    held: dict[tuple[SSAValue, Block], object] = field(default_factory=dict[tuple[SSAValue, Block], object])
    """Staged rows and columns that are in registers, by the block that loads them."""
    carried: set[SSAValue] = field(default_factory=set[SSAValue])
    """Tiles that this role's threads have put into the stage that they are committed to."""
    ahead: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    """Of gathered tiles: registers with the addresses of the rows that this thread copies, one a chunk; 0 for none."""
    step: int | None = None
    """Of the chunks of a tile that a thread copies: which one."""
    filling: list[SSAValue] = field(default_factory=list[SSAValue])
    """Channels whose stages this role fills."""
    places: dict[SSAValue, Place] = field(default_factory=dict[SSAValue, Place])
    counted_later: set[Operation] = field(default_factory=set[Operation])
    """Operations behind which the role is at the next stage, which a later one counts for several channels."""
    pending_fences: list[str] = field(default_factory=list[str])
    begun: SSAValue | None = None
    """Within tasks that enclose others: the register with the number, modulo the CTAs, of the next one inside."""
    chunk: SSAValue | None = None
    """Within a loop over the chunks of a tile: which one; in a role without warpgroups."""
    chunked: tuple[int, ...] = ()
    """The shape of that tile."""
    chunks: int = 1
    """How many chunks a thread works on at once: this one, and those that lie as many threads further each."""
    vectors: bool = False
    """Whether each chunk exists wholly or not at all, and is aligned to 16 bytes."""
    anywhere: bool = False
    """Whether chunks that are loaded may begin anywhere, or end with their row: they lie in two of 16 bytes. Those that
    are stored are aligned, and have room to their end."""
    together: tuple[int, ...] = ()
    """Of a loop inside that one: how many iterations load before the first of them computes; then, of those that are
    left, how many do."""
    words: int = 0
    """Where in shared memory its warps hand each other what they have of a row."""
    rows: int = 0
    """Of clusters: how many rows at most its warps reduce at a time."""
    exchanged: SSAValue | None = None
    """Of clusters: the register with how many times their CTAs have handed each other what they have of rows."""
    queue: Queue | None = None
    """The deferred signals."""


def first_thread(role: WarpRole) -> AbstractContextManager[object]:
    """A branch for what one thread of the role does for all."""
    if role.threads.one:
        return nullcontext()
    return role.emit.when(role.emit.compare("eq", role.threads.thread, role.threads.start))


def first_warp(role: WarpRole) -> AbstractContextManager[object]:
    """A branch for the warp with `first_thread`."""
    if role.threads.one or role.threads.warps == 1:
        return nullcontext()
    return role.emit.when(role.emit.compare("eq", role.threads.warp, role.threads.first))


@contextmanager
def round_the_ranks(role: WarpRole) -> Generator[SSAValue]:
    """A loop over all ranks, in which neighbouring ranks and CTAs begin with different ones: all have as much to
    receive at any time, so that no link is idle while another one has a queue."""
    emit, ranks = role.emit, role.dims.extent(RANKS)
    first = emit.plus(emit.plus(role.rank, 1), role.launch.cta_of[role.group])
    with emit.loop(0, ranks) as step:
        yield emit.modulo(emit.plus(first, step), ranks)


def warpgroup(role: WarpRole) -> SSAValue:
    """The number of this thread's warpgroup among those of the role."""
    threads = role.threads
    return role.emit.over(role.emit.minus(threads.warp, threads.first), threads.arch.warpgroup)


def spare_barrier(role: WarpRole, number: int) -> int:
    """A named barrier of a role of several warps, behind the one for all of these."""
    return role.threads.barrier + 1 + number


def warp_of_group(role: WarpRole) -> SSAValue:
    """The number of this thread's warp in its warpgroup, each of which begins at a multiple of its warps."""
    warps = role.threads.arch.warpgroup
    return role.emit.bit_and(role.threads.warp, warps - 1) if warps > 1 else role.emit.const(0)
