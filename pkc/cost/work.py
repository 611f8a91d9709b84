"""What the tasks of a kernel do, counted from its tile-level IR for given dimensions: MMAs, bytes, iterations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod

from xdsl.dialects import scf
from xdsl.ir import Block, Operation, SSAValue

from pkc.dialect import blocks
from pkc.dialect.access import AccumulateOp, LoadOp, StoreOp, array_type
from pkc.dialect.coordinates import BlockCountOp, BlockOp
from pkc.dialect.elementwise import AddOp, Binary, CompareOp, MulOp, SelectOp, SubOp, Unary
from pkc.dialect.positions import RANK, Sizes
from pkc.dialect.program import KernelOp, TasksOp
from pkc.dialect.reductions import RowReduction
from pkc.dialect.tile import (
    BroadcastOp,
    CastOp,
    ClipOp,
    FullOp,
    MmaOp,
    PositionsOp,
    SplatOp,
    TransposeOp,
    block_type,
    tile_type,
)
from pkc.dialect.types import RANKS, Dim, Layout, PGLType, TileType, dtype_bytes
from pkc.passes.analysis.dependence import sources
from pkc.passes.roles.remote_accesses import array_name, planned
from pkc.passes.roles.stage_sums import ROWS
from pkc.semantics.evaluate import Evaluator
from pkc.targets.target import Target


class UnknownWorkError(Exception):
    """A count that only the running kernel knows, or an operation whose cost has not been measured; says which."""


@dataclass(frozen=True)
class Mma:
    """One MMA of tiles: rows and columns of the result and the extent summed over, with elements of `size` bytes."""

    rows: int
    columns: int
    inner: int
    size: int
    computed: bool = False
    """Whether the left operand is in registers, where it was computed from another MMA."""


@dataclass(frozen=True)
class Load:
    """A tile that is loaded into a stage: rows of at most 128 bytes that lie inside of its array, and outside."""

    array: str
    stage_bytes: int
    bytes: float
    rows: float
    outside: float


@dataclass(frozen=True)
class Store:
    """A tile that is stored, and how many bytes of it go to other ranks; with `summed` its owner adds it up, in so many
    chunks."""

    tile_bytes: int
    sent: float
    summed: bool
    chunks: int = 1


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
    mmas: list[Mma] = field(default_factory=list[Mma])
    loads: list[Load] = field(default_factory=list[Load])
    stores: list[Store] = field(default_factory=list[Store])


@dataclass
class Phase:
    """A `tasks` statement: how many tasks a rank has, and what each of them does."""

    tasks: int
    iterations: list[Iteration] = field(default_factory=list[Iteration])


@dataclass(frozen=True)
class Fetched:
    """An operand that is fetched from other ranks before its use: bytes, and how these are copied.

    SMs copy `tiles`, through stages in shared memory; copy engines copy everything in so many `copies`.
    """

    bytes: float
    tiles: float
    stage_bytes: int
    copies: float = 0.0


@dataclass
class Work:
    """A kernel: its phases, the bytes of each array that this rank reads from memory, and what is fetched."""

    phases: list[Phase] = field(default_factory=list[Phase])
    read: dict[str, float] = field(default_factory=dict[str, float])
    fetched: list[Fetched] = field(default_factory=list[Fetched])


def count_work(kernel: KernelOp, dims: Mapping[str, int], ranks: int, target: Target) -> Work:
    """The work of an average rank. Remote accesses must be planned. Raises `UnknownWorkError`."""
    return _Counter(kernel, dims, ranks, target).count()


@dataclass(frozen=True)
class _Positions:
    """A block of an average task: its valid positions, and those of its box that lie inside of an array that is not
    sharded."""

    dim: Dim
    extent: int
    count: int
    valid: float
    inside: float


class _Counter(Evaluator):
    """Evaluates each block once, with the middle task and the first index of each loop on rank 0. It compiles
    nothing."""

    fixed = {RANK: 0}

    def __init__(self, kernel: KernelOp, dims: Mapping[str, int], ranks: int, target: Target) -> None:
        super().__init__(Sizes({**dims, RANKS: ranks}))
        self._kernel, self._extent, self._ranks, self._target = kernel, self.machine.size, ranks, target
        self._blocks: dict[SSAValue, _Positions] = {}
        self._work = Work()
        self._iteration = Iteration(1.0, loop=False)
        self._iterations: dict[Block, Iteration] = {}
        self._computes = ""
        """An operation that computes with tiles other than a matmul, its sum and its result."""

    def count(self) -> Work:
        for op in self._kernel.body.block.ops:
            if isinstance(op, TasksOp):
                self._work.phases.append(Phase(1))
            elif op.regions:
                raise UnknownWorkError("it says itself who does what")
            if isinstance(op, TasksOp) or _of_integers(op):
                self.operation(op)
        chained = any(iteration.dependent for phase in self._work.phases for iteration in phase.iterations)
        if self._computes and not chained:
            raise UnknownWorkError(f"no rate is known for `{self._computes}` beside MMAs that do not need one another")
        return self._work

    # Control flow

    def tasks(self, op: TasksOp) -> None:
        self._phase.tasks *= max(0, int(prod(self._value(count) for count in op.counts)))
        # Loops may end where a task is: the middle one has the mean work.
        for index, count in zip(op.body.block.args, op.counts, strict=True):
            self.bind(index, int(self._value(count)) // 2)
        self._once(op.body.block, 1.0, loop=False)

    def loop(self, op: scf.ForOp) -> None:
        iterations = max(0, self._value(op.ub) - self._value(op.lb)) / max(1, self._value(op.step))
        self.bind(op.body.block.args[0], 0)
        self._once(op.body.block, self._iteration.times * iterations, loop=True)

    def branch(self, op: scf.IfOp) -> None:
        if not _of_integers(op) and not all(
            _of_integers(inner) or _free(inner) for inner in op.walk() if inner is not op
        ):
            raise UnknownWorkError(f"no rate is known for `{op.name}`")

    def _once(self, block: Block, times: float, *, loop: bool) -> None:
        around, self._iteration = self._iteration, Iteration(times, loop)
        self._phase.iterations.append(self._iteration)
        self._iterations[block] = self._iteration
        self.block(block)
        self._iteration = around

    @property
    def _phase(self) -> Phase:
        return self._work.phases[-1]

    # Operations

    def leaf(self, op: Operation) -> bool:
        iteration = self._iteration
        if type(op) is BlockOp:
            self._blocks[op.result] = self._positions(op)
            return False
        elif type(op) is BlockCountOp:
            self.bind(op.result, self._list(op.block.of, op.block.extent, op)[0])
        elif _of_integers(op):
            return False
        elif type(op) is LoadOp:
            iteration = self._loading(op)
            iteration.loads.append(self._load(op, self._phase.tasks * iteration.times))
        elif isinstance(op, StoreOp | AccumulateOp):
            iteration.stores.append(self._store(op))
        elif type(op) is MmaOp:
            left, right = tile_type(op.a), tile_type(op.b)
            rows, inner = left.shape
            computed = is_dependent(op)
            iteration.mmas.append(Mma(rows, right.shape[1], inner, dtype_bytes(left.element_type), computed))
            iteration.dependent |= computed
        else:
            if not _of_matmul(op):
                self._computes = op.name
            lanes, special = self._instructions(op)
            elements = prod(max((tile_type(value).shape for value in _tiles_of(op)), key=prod, default=()))
            iteration.lanes += lanes * elements
            iteration.special += special * elements
        return True

    def _loading(self, op: LoadOp) -> Iteration:
        """Where a tile is loaded: outside of the loops that its address does not depend on (`pk-hoist-loads`)."""
        found = sources(op.indices)
        block = op.parent
        while block is not None and isinstance(block.parent_op(), scf.ForOp) and found.isdisjoint(block.args):
            block = block.parent_block()
        return self._iteration if block is None else self._iterations.get(block, self._iteration)

    def _instructions(self, op: Operation) -> tuple[float, float]:
        """Instructions for each element that an operation computes, and those of special-function units."""
        if _free(op) and not (isinstance(op, CastOp) and self._iteration.loop):
            return 0.0, 0.0
        if isinstance(op, MulOp) and all(_adds_only(use.operation) for use in op.result.uses):
            return 0.0, 0.0  # multiplied and added at once
        if isinstance(op, RowReduction):
            return self._target.per_element(op.COMBINE.name)
        if isinstance(op, Unary | Binary | CompareOp | SelectOp | CastOp):
            return self._target.per_element(op.name)
        raise UnknownWorkError(f"no rate is known for `{op.name}`")

    def unknown(self, op: Operation) -> None:
        """Nothing yet: it may be that nothing depends on it."""

    def _value(self, value: SSAValue) -> int:
        known = self.known(value)
        if known is None:
            raise UnknownWorkError("how much there is to do is known only when it runs")
        return known

    def _list(self, dim: Dim, size: int, op: BlockOp | BlockCountOp) -> tuple[int, int, int]:
        """Blocks of a list, the positions that they cover, and the length of the ranges that no block straddles."""
        extent = self._extent(dim)
        if op.start is not None or op.stop is not None:
            first = 0 if op.start is None else int(self._value(op.start))
            last = extent if op.stop is None else int(self._value(op.stop))
            covered = max(0, min(last, extent) - max(first, 0))
            return blocks.count(0, covered, size), covered, covered
        length = blocks.shard_length(extent, self._ranks)
        if op.shard is not None:
            return blocks.count(0, length, size), length, length
        if op.sharded is not None:
            return blocks.sharded_count(extent, self._ranks, size), extent, length
        return blocks.count(0, extent, size), extent, extent

    def _positions(self, op: BlockOp) -> _Positions:
        kind = block_type(op.result)
        count, covered, piece = self._list(kind.of, kind.extent, op)
        valid = covered / count if count else 0.0
        # In arrays that are not sharded, the box of a shorter block reaches into the next range. The last block has the
        # fewest positions, and where tasks are few, the SMs that run its tasks run no others.
        extent = self._extent(kind.of)
        starts = [*range(0, extent, min(piece, kind.extent) or 1)][:_LOOKED_AT]
        worst = min((min(kind.extent, extent - start) for start in starts), default=0)
        return _Positions(kind.of, kind.extent, count, valid, worst if piece < kind.extent else valid)

    # Accesses

    def _load(self, op: LoadOp, times: float) -> Load:
        kind, tile = array_type(op.array), tile_type(op.result)
        layout, size = self._target.shared_layout(tile), dtype_bytes(tile.element_type)
        name = array_name(op.array)
        shard = kind.shard_dim if isinstance(kind, PGLType) else None
        exists = 1.0
        for position, index in enumerate(op.indices):
            found = self._blocks.get(index)
            if found is not None:
                exists *= (found.valid if position == shard else found.inside) / found.extent
        rows = layout.rows * layout.panels
        data = prod(tile.shape) * size
        whole = prod(map(self._extent, kind.dimensions)) * size
        overlap = planned(op)
        if shard is not None and not overlap:
            whole /= self._ranks
        self._work.read[name] = min(whole, self._work.read.get(name, 0.0) + times * data * exists)
        if overlap == "intra_sm" and any(map(_is_looped, op.indices)):
            raise UnknownWorkError("no rate is known for operands that every iteration fetches from other ranks")
        if overlap and overlap != "intra_sm":
            # A list of one rank's blocks has those of one shard.
            tiles = max(prod(self._tiles(op, position) for position in range(len(op.indices))), whole / data)
            away = (self._ranks - 1) / self._ranks
            copied = overlap == "copy_engine"
            groups = prod(self._tiles(op, place) for place, index in enumerate(op.indices) if not _is_looped(index))
            staged = 0 if copied else layout.bytes
            self._work.fetched.append(Fetched(whole * away, tiles * away, staged, copied * groups * away))
        return Load(name, layout.bytes, data * exists, rows * exists, rows * (1 - exists))

    def _tiles(self, op: LoadOp, position: int) -> float:
        found = self._blocks.get(op.indices[position])
        return found.count if found is not None else self._extent(array_type(op.array).dimensions[position])

    def _store(self, op: StoreOp | AccumulateOp) -> Store:
        kind, tile = array_type(op.array), tile_type(op.tile)
        size = prod(tile.shape) * dtype_bytes(tile.element_type)
        found = [self._blocks[index] for index in op.indices if index in self._blocks]
        data = size * prod(block.valid / block.extent for block in found)
        others = self._ranks - 1
        sent = 0.0
        if isinstance(kind, PGLType) and kind.layout is Layout.Shard:
            sent = data * others / self._ranks
        elif isinstance(kind, PGLType) and kind.layout is Layout.Replicate:
            # A sum goes to its owner and from there to all.
            sent = data * (2 * others / self._ranks if isinstance(op, AccumulateOp) else others)
        if isinstance(op, AccumulateOp):
            return Store(size, sent, True, max(1, tile.shape[0] // ROWS) if tile.rank == 2 else 1)
        return Store(size, sent, False)


_LOOKED_AT = 64
"""The most blocks of a dimension that are looked at for the shortest one."""


def _is_looped(index: SSAValue) -> bool:
    """Whether a loop in a task goes through the blocks of an index."""
    block = index.owner
    number = block.index if isinstance(block, BlockOp) else index
    return isinstance(number.owner, Block) and isinstance(number.owner.parent_op(), scf.ForOp)


def _of_integers(op: Operation) -> bool:
    """Whether an operation gives integers or blocks."""
    return bool(op.results) and not any(isinstance(value.type, TileType) for value in op.results)


def _free(op: Operation) -> bool:
    """Whether an operation takes no extra time: it belongs to an MMA, or is done while others load."""
    if isinstance(op, AddOp):
        return any(isinstance(value.owner, MmaOp) for value in op.operands)
    return isinstance(op, (CastOp, ClipOp, scf.YieldOp, *_UNMADE))


_UNMADE = (FullOp, SplatOp, BroadcastOp, PositionsOp, TransposeOp)
"""Operations on tiles that are made where they are used."""


def _of_matmul(op: Operation) -> bool:
    """Whether an operation belongs to a matmul, as those do of which times were measured."""
    return _free(op) and not isinstance(op, SplatOp | BroadcastOp | PositionsOp | TransposeOp)


def _adds_only(op: Operation) -> bool:
    """Whether an operation adds or subtracts, and not to an MMA, which does so by itself."""
    return isinstance(op, AddOp | SubOp) and not _free(op)


def _tiles_of(op: Operation) -> list[SSAValue]:
    return [value for value in (*op.operands, *op.results) if isinstance(value.type, TileType)]


def is_dependent(mma: MmaOp) -> bool:
    """Whether an operand is computed from the result of another MMA of the same block."""
    found = sources((mma.a, mma.b))
    return any(other is not mma and other.result in found for other in _mmas(mma.parent))


def _mmas(block: Block | None) -> list[MmaOp]:
    return [op for op in (block.ops if block is not None else ()) if isinstance(op, MmaOp)]
