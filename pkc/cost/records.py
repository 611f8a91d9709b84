"""What is counted of a kernel: its phases, what their tasks do, and what is fetched for them."""

from __future__ import annotations

from dataclasses import dataclass, field


class UnknownWorkError(Exception):
    """A count that only the running kernel knows, or an operation whose cost has not been measured; says which."""


@dataclass(frozen=True)
class Mma:
    """One MMA of tiles: rows and columns of the result and the extent summed over, with elements of `size` bytes."""

    rows: int
    columns: int
    inner: int
    size: int
    width: int
    """Bytes of a row of the left operand in its stage."""
    computed: bool = False
    """Whether the left operand is in registers, where it was computed."""
    awaited: bool = False
    """Whether the iteration computes with the result, and so waits for it."""


@dataclass(frozen=True)
class Edge:
    """The last block of a dimension: the share of a box's rows that lie outside of the array, and of how many blocks it
    is the last."""

    outside: float
    blocks: float


@dataclass(frozen=True)
class Load:
    """A tile that is loaded into a stage: rows of at most 128 bytes that lie inside of its array, and outside."""

    array: str
    stage_bytes: int
    bytes: float
    rows: float
    outside: float
    chunks: float = 0.0
    """What each warp that copies it starts copies of, in chunks of 16 bytes for each of its threads."""
    lines: float = 0.0
    """Lines of the L2 cache that the rows of a tile touch, if it lies inside of the array."""
    box_rows: int = 0
    edges: tuple[Edge, ...] = ()
    """Of the dimensions that tasks go through."""
    once: bool = False
    """Whether it is the same for all tasks, which load it once (`pk-load-once`)."""
    elements: int = 0
    """Of the tile."""
    panels: int = 0
    """In which its columns lie in a stage, one behind the other."""
    tail: float = 0.0
    """The share of a box's rows that lie outside of the array in the last iteration of its loop."""


@dataclass(frozen=True)
class Store:
    """A tile that is stored, and how many bytes of it go to other ranks; with `summed` its owner adds it up, in so many
    chunks."""

    tile_bytes: int
    sent: float
    summed: bool
    chunks: int = 1
    written: float = 0.0
    """Bytes of it that memory of a rank takes."""
    shots: int = 0
    """Of what all ranks get: whether each rank adds it up (1), or its owner, who sends the sum to all (2)."""
    packets: bool = False
    """Whether it is sent in packets, which need no announcement; `sent` counts these."""
    lines: float = 0.0
    """Lines of the L2 cache that the rows of a tile touch, if it is stored as it is and lies inside of the array."""
    elements: int = 0
    """Of the tile."""
    panels: int = 0
    """In which its columns lie in a stage, one behind the other."""
    array: str = ""


@dataclass
class Iteration:
    """What one run of a block does, without the loops inside of it, and how often a task runs the block."""

    times: float
    loop: bool
    dependent: bool = False
    """Whether an MMA needs what is computed from another one of the same run."""
    lanes: float = 0.0
    """Instructions for single elements, and those of special-function units."""
    special: float = 0.0
    converted: float = 0.0
    """Instructions that compute operands of MMAs from what is loaded, before these can begin."""
    unsure: float = 0.0
    """Instructions that there may be beside these."""
    rows: int = 0
    """Of the largest tile that meets no MMA, and its columns."""
    columns: int = 0
    reduces: bool = False
    """Whether rows of tiles are reduced: then threads keep what they have of a row."""
    across: bool = False
    """Whether something else than reductions needs elements of other threads: then how long is not known so well."""
    mmas: list[Mma] = field(default_factory=list[Mma])
    loads: list[Load] = field(default_factory=list[Load])
    stores: list[Store] = field(default_factory=list[Store])


@dataclass
class Phase:
    """A `tasks` statement: how many tasks a rank has, and what each of them does."""

    tasks: float
    iterations: list[Iteration] = field(default_factory=list[Iteration])
    uncertain: float = 0.0
    """How many lists of blocks they go through whose lengths only the running kernel knows: `tasks` is the mean."""
    spread: float = 0.0
    """The standard deviation of how many blocks such a list has, as a share of the mean."""

    @property
    def reaches_memory(self) -> bool:
        """Whether its tasks load or store anything."""
        return any(iteration.loads or iteration.stores for iteration in self.iterations)


@dataclass(frozen=True)
class Fetched:
    """An operand that is fetched from other ranks before its use: bytes, and how these are copied.

    SMs copy `tiles`, through stages in shared memory; copy engines copy everything in so many `copies`.
    """

    bytes: float
    tiles: float
    stage_bytes: int
    copies: float = 0.0
    as_a_whole: bool = False
    """Whether no task begins before all has come."""
    by_rows: bool = False
    """Whether tables name the rows, so that threads copy them one by one."""


@dataclass
class Work:
    """A kernel: its phases, the bytes of each array that this rank reads from memory, and what is fetched."""

    phases: list[Phase] = field(default_factory=list[Phase])
    read: dict[str, float] = field(default_factory=dict[str, float])
    fetched: list[Fetched] = field(default_factory=list[Fetched])
    assumed: dict[str, None] = field(default_factory=dict[str, None])
    """What only the running kernel knows, and was assumed."""
    consumers: int = 0
    """Warpgroups that compute, if the schedule says how many."""
    stages: int = 0
    """Stages of loops, if the schedule says how many."""

    @property
    def multiplies(self) -> bool:
        """Whether it has MMAs."""
        return any(iteration.mmas for phase in self.phases for iteration in phase.iterations)
