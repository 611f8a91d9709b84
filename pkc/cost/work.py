"""What the tasks of a kernel do, counted from its tile-level IR for given dimensions: MMAs, bytes, iterations."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import prod

from xdsl.dialects import scf
from xdsl.ir import Block, Operation, SSAValue

from pkc.cost.lists import bytes_listed, entries_seen, spread_of_count
from pkc.cost.operations import (
    converted,
    depends_on_task,
    elements_of,
    is_awaited,
    is_dependent,
    is_free,
    makers_of_operands,
    note_tiles,
    of_integers,
    rate_of,
)
from pkc.cost.positions import Placed, Positions
from pkc.cost.records import Edge, Fetched, Iteration, Load, Mma, Phase, Store, UnknownWorkError, Work
from pkc.cost.stream import lines_of
from pkc.dialect.access import READING, AccumulateOp, AllReduceOp, LoadOp, ReduceOp, StoreAddOp, StoreOp
from pkc.dialect.arrays import array_type, is_pgl
from pkc.dialect.by_table import ByTable, GatherOp, ScatterAccumulateOp, ScatterStoreAddOp, ScatterStoreOp
from pkc.dialect.coordinates import BlockCountOp, BlockOp, RankOp, RingPeerOp
from pkc.dialect.inverse import InvertOp, SumRowsOp
from pkc.dialect.program import COMM_SMS, CONSUMERS, STAGES, KernelOp, RoleOp, TasksOp
from pkc.dialect.tile import (
    MmaOp,
    tile_type,
)
from pkc.dialect.transfers import TMA
from pkc.dialect.types import BlockType, Layout, PGLType, dtype_bytes
from pkc.passes.analysis.boxed_rows import boxes_of
from pkc.passes.analysis.dependence import sources
from pkc.passes.program_slices import iterations_of
from pkc.passes.roles.fetches import comes_by_lists
from pkc.passes.roles.remote_accesses import array_name, idle_tasks, in_packets, is_one_shot, planned
from pkc.passes.roles.stage_rows import whole_rows
from pkc.targets.arch import Rate
from pkc.targets.layout import CHUNK, SharedLayout
from pkc.targets.target import Target


def count_work(kernel: KernelOp, dims: Mapping[str, int], ranks: int, target: Target) -> Work:
    """The work of an average rank. Remote accesses must be planned. Raises `UnknownWorkError`."""
    return _Counter(kernel, dims, ranks, target).count()


class _Counter(Placed):
    def __init__(self, kernel: KernelOp, dims: Mapping[str, int], ranks: int, target: Target) -> None:
        super().__init__(dims, ranks)
        self._kernel, self._target = kernel, target
        self._blocks: dict[SSAValue, Positions] = {}
        self._uncertain: dict[SSAValue, float] = {}
        """The numbers of blocks, outside of tasks, that are known only when the kernel runs, and their spread."""
        self._work = Work(
            consumers=kernel.scheduled_number(CONSUMERS) or 0,
            stages=kernel.scheduled_number(STAGES) or 0,
            assumed=self._assumed,
        )
        self._makers = makers_of_operands(kernel)
        self._iteration = Iteration(1.0, loop=False)
        self._iterations: dict[Block, Iteration] = {}
        self._loaded = defaultdict[int, list[LoadOp]](list)
        """By iteration; what is loaded twice is loaded once (`pk-cse`)."""

    def count(self) -> Work:
        alone = False
        for op in self._kernel.body.block.ops:
            if isinstance(op, RoleOp):
                raise UnknownWorkError("it says itself who does what")
            if isinstance(op, TasksOp):
                self._work.phases.append(Phase(1))
                alone = False
            elif not alone and not of_integers(op):
                # Statements outside of tasks are a phase of one task.
                alone, self._iteration = True, Iteration(1.0, loop=False)
                self._work.phases.append(Phase(1, [self._iteration]))
            self.operation(op)
        # Constants of tasks are no phase.
        self._work.phases = [phase for phase in self._work.phases if phase.tasks != 1 or phase.reaches_memory]
        for phase in self._work.phases:
            phase.tasks = round(phase.tasks)
        return self._work

    # Control flow

    def tasks(self, op: TasksOp) -> None:
        for count in op.counts:
            if count in self._uncertain:
                self._phase.uncertain, self._phase.spread = 1.0, self._uncertain[count]
        self._phase.tasks *= max(0.0, prod(self._value(count) for count in op.counts))
        # Loops may end where a task is: the middle one has the mean work.
        for index, count in zip(op.body.block.args, op.counts, strict=True):
            self.bind(index, int(self._value(count)) // 2)
        self._once(op.body.block, 1.0, loop=False)

    def loop(self, op: scf.ForOp) -> None:
        iterations = max(0, self._value(op.ub) - self._value(op.lb)) / max(1, self._value(op.step))
        self.bind(op.body.block.args[0], 0)
        self._once(op.body.block, self._iteration.times * iterations, loop=True)

    def branch(self, op: scf.IfOp) -> None:
        for region in op.regions:
            for block in region.blocks:
                self.block(block)
        if not all(of_integers(inner) or is_free(inner) for inner in op.walk() if inner is not op):
            self._assume("both branches of an `if`")

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
            assumed = self._assumed_block(op)
            if assumed is not None:
                self.bind(op.result, assumed)
            return assumed is not None
        elif type(op) is BlockCountOp:
            found, _, covered = self._list(op.block.of, op.block.extent, op)
            if any(map(self._is_unknown, (op.start, op.stop))):
                self._know_later(op, spread_of_count(covered, op.block.extent) if self._ranks == 1 else _SPREAD)
            self.bind(op.result, found)
        elif of_integers(op):
            return False
        elif type(op) is LoadOp:
            iteration = self._loading(op)
            if not any(_is_same(op, other) for other in self._loaded[id(iteration)]):
                iteration.loads.append(self._load(op, self._phase.tasks * iteration.times))
                self._loaded[id(iteration)].append(op)
        elif type(op) is GatherOp:
            self._gather(op)
        elif isinstance(op, ReduceOp | AllReduceOp):
            self._reduce(op)
        elif isinstance(op, InvertOp):
            iteration.across = True
            seen = entries_seen(op, self._extent, self._target.arch.warp)
            self._computing(self._target.per_element(op.name), seen)
        elif isinstance(op, SumRowsOp):
            self._sum_rows(op)
        elif isinstance(op, _WRITES):
            iteration.stores.append(self._store(op))
        elif type(op) is MmaOp:
            left, right = tile_type(op.a), tile_type(op.b)
            rows, inner = left.shape
            dependent, found = is_dependent(op), converted(op)
            size, width = dtype_bytes(left.element_type), self._target.shared_layout(left).width
            computed = dependent or op.a in found
            iteration.mmas.append(Mma(rows, right.shape[1], inner, size, width, computed, is_awaited(op)))
            iteration.dependent |= dependent
            # A right operand is written to a stage, too.
            moved = sum(prod(tile_type(one).shape) * (1 if one is op.a else 2) for one in found)
            iteration.converted += self._target.rates.converted * moved
        else:
            rate, elements = rate_of(op, self._target, looped=self._iteration.loop), elements_of(op)
            if op in self._makers:
                iteration.converted += rate.lanes * elements
                rate = replace(rate, lanes=0.0)
            self._computing(rate, elements)
            note_tiles(op, iteration)
        return True

    def _know_later(self, op: BlockCountOp, spread: float) -> None:
        """A list whose end memory has: there are as many as tasks around it."""
        if op.parent is self._kernel.body.block:
            self._uncertain[op.result] = spread
        else:
            self._phase.uncertain, self._phase.spread = max(1.0, self._phase.tasks), spread

    def _computing(self, rate: Rate, elements: float) -> None:
        iteration = self._iteration
        iteration.lanes += rate.lanes * elements
        iteration.special += rate.special * elements
        iteration.unsure += rate.error * (rate.lanes + rate.special) * elements

    def _loading(self, op: LoadOp) -> Iteration:
        """Where a tile is loaded: outside of the loops that its address does not depend on (`pk-hoist-loads`)."""
        found = sources(op.indices)
        block = op.parent
        while block is not None and isinstance(block.parent_op(), scf.ForOp) and found.isdisjoint(block.args):
            block = block.parent_block()
        return self._iteration if block is None else self._iterations.get(block, self._iteration)

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
        looped = overlap == "intra_sm" and any(map(_is_looped, op.indices))
        if looped:
            self._assume("that the link brings what every iteration fetches")
        if looped or (op.rank is not None and not overlap):
            sent = data * exists * self._away(op.rank)
            self._iteration.stores.append(Store(0, sent, summed=False))
        if overlap and overlap != "intra_sm":
            # A list of one rank's blocks has those of one shard.
            tiles = max(prod(self._tiles(op, position) for position in range(len(op.indices))), whole / data)
            away = (self._ranks - 1) / self._ranks
            copied = overlap == "copy_engine"
            groups = prod(self._tiles(op, place) for place, index in enumerate(op.indices) if not _is_looped(index))
            staged = 0 if copied else layout.bytes
            self._work.fetched.append(Fetched(whole * away, tiles * away, staged, copied * groups * away))
        panel = layout.bytes // rows // size
        edges = tuple(self._edges(op, panel)) if self._ranks == 1 else ()
        tail = sum(edge.outside for edge in self._edges(op, panel, looped=True))
        lines = self._touched(layout, self._extent(kind.dimensions[-1]) * size)
        inside, outside = rows * exists, rows * (1 - exists)
        tiles = (lines, rows, edges, not depends_on_task(op.indices), prod(tile.shape), layout.panels, tail)
        return Load(name, layout.bytes, data * exists, inside, outside, 0.0, *tiles)

    def _away(self, rank: SSAValue | None) -> float:
        """How many times the link of a rank takes what each of them moves to or from `rank`: others have most of it. If
        all ranks name the same one, its link takes that of all others."""
        return (self._ranks - 1) / (1 if rank is not None and _is_for_all(rank) else self._ranks)

    def _touched(self, layout: SharedLayout, pitch: int) -> float:
        """Lines of the L2 cache that the rows of a tile touch, of an array whose rows are `pitch` bytes apart."""
        rows = layout.rows * layout.panels
        return rows * lines_of(layout.bytes // rows, pitch, self._target.arch.cache_line)

    def _edges(self, op: LoadOp, panel: int, *, looped: bool = False) -> Iterator[Edge]:
        """The last blocks of the dimensions that tasks, or loops, go through; of a row, whose boxes have `panel`
        elements, only whole boxes lie outside."""
        for position, index in enumerate(op.indices):
            found = self._blocks.get(index)
            if found is None or _is_looped(index) != looped or found.extent < 2:
                continue
            if not float(found.count).is_integer():  # an average
                yield Edge(1 - found.valid / found.extent, 1.0)
                continue
            outside = round(found.count * (found.extent - found.valid))
            boxes = min(panel, found.extent) if position == len(op.indices) - 1 else 1
            yield Edge(outside // boxes * boxes / found.extent, found.count)

    def _tiles(self, op: LoadOp, position: int) -> float:
        found = self._blocks.get(op.indices[position])
        return found.count if found is not None else self._extent(array_type(op.array).dimensions[position])

    def _gather(self, op: GatherOp) -> None:
        """A row of the table for each row of the tile, from whichever rank has it."""
        kind, tile = array_type(op.array), tile_type(op.result)
        layout, data = self._target.shared_layout(tile), prod(tile.shape) * dtype_bytes(tile.element_type)
        name, iteration = array_name(op.array), self._iteration
        if comes_by_lists(op):
            self._gather_ahead(op, name, layout.bytes, data)
            return
        # Beside communicators there is room for one warp.
        alone = planned(op) == "inter_sm" and not self._kernel.scheduled_number(COMM_SMS)
        warps = 1 if alone else self._target.tuning.carriers
        each = CHUNK if op.ends_in_block else dtype_bytes(tile.element_type)
        boxed = TMA in self._target.transfers and boxes_of(op) is not None
        chunks = 0.0 if boxed else data / each / (warps * self._target.arch.warp)
        iteration.loads.append(Load(name, layout.bytes, data, 0.0, 0.0, chunks))
        self._work.read[name] = self._work.read.get(name, 0.0) + self._phase.tasks * iteration.times * data
        if planned(op) in ("inter_sm", "copy_engine") and not whole_rows(op):
            whole = prod(map(self._extent, kind.dimensions)) * dtype_bytes(kind.element_type)
            away, copied = (self._ranks - 1) / self._ranks, planned(op) == "copy_engine"
            blocks = self._extent(kind.dimensions[0]) / tile.shape[0]
            staged = 0 if copied else layout.bytes
            tiles, copies = whole / data * away, copied * blocks * away
            self._work.fetched.append(Fetched(whole * away, tiles, staged, copies, as_a_whole=True))
        elif isinstance(kind, PGLType) and kind.layout is not Layout.Replicate:
            iteration.stores.append(Store(0, data * (self._ranks - 1) / self._ranks, summed=False))

    def _gather_ahead(self, op: GatherOp, name: str, staged: int, data: int) -> None:
        """Rows that a table names, fetched once for all tasks that have the same ones, and loaded like any tile."""
        times, iteration = self._phase.tasks * self._iteration.times, self._iteration
        iteration.loads.append(Load(name, staged, data, 0.0, 0.0, 0.0))
        self._work.read[name] = self._work.read.get(name, 0.0) + times * data
        again = prod(self._value(iterations_of(index)) for index in idle_tasks(op))
        away = (self._ranks - 1) / self._ranks
        self._work.fetched.append(Fetched(times / again * data * away, times / again, staged, by_rows=True))

    def _sum_rows(self, op: SumRowsOp) -> None:
        """Rows of slots, from whichever rank has them."""
        name, kind = array_name(op.slots), array_type(op.array)
        size, others = dtype_bytes(kind.element_type), self._ranks - 1
        listed = bytes_listed(op, self._extent)
        written = prod(index.type.extent for index in op.indices if isinstance(index.type, BlockType)) * size
        self._assume("tables all of whose entries name a row")
        self._work.read[name] = self._work.read.get(name, 0.0) + self._phase.tasks * listed
        self._iteration.loads.append(Load(name, 0, listed, 0.0, 0.0))
        sent = listed * others / self._ranks
        sent += written * others * (isinstance(kind, PGLType) and kind.layout is Layout.Replicate)
        self._iteration.stores.append(Store(0, sent, summed=False, written=written))
        self._computing(self._target.per_element(op.name), listed / size)

    def _reduce(self, op: ReduceOp | AllReduceOp) -> None:
        """A tile of all ranks, added up here, and with `pk.all_reduce` stored to all."""
        kind = array_type(op.array)
        elements = prod(index.type.extent for index in op.indices if isinstance(index.type, BlockType))
        ways = 2 if isinstance(op, AllReduceOp) else 1
        sent = elements * dtype_bytes(kind.element_type) * (self._ranks - 1) * ways
        self._iteration.stores.append(Store(0, sent, summed=False))
        self._computing(self._target.per_element(op.combine.name), elements * self._ranks)

    def _store(self, op: _WRITES) -> Store:
        kind, tile = array_type(op.array), tile_type(op.tile)
        size = prod(tile.shape) * dtype_bytes(tile.element_type)
        found = [self._blocks[index] for index in op.indices if index in self._blocks]
        data = size * prod(block.valid / block.extent for block in found)
        others = self._ranks - 1
        sent = 0.0
        if isinstance(kind, PGLType) and (kind.layout is Layout.Shard or _names_a_rank(op)):
            sent = data * self._away(None if isinstance(op, AccumulateOp | ScatterAccumulateOp) else op.rank)
        elif isinstance(kind, PGLType) and kind.layout is Layout.Replicate:
            sent = data * others
        packets = in_packets(op)
        # Twice the bytes, and short rows leave room on the link.
        row = 2 * tile.shape[-1] * dtype_bytes(tile.element_type) if tile.rank else 1
        times = 2 * (1 + self._target.rates.packet_row / row) if packets else 1
        if not isinstance(op, AccumulateOp):
            elements, name = prod(tile.shape), array_name(op.array)
            found = Store(size, sent * times, False, written=data, packets=packets, elements=elements, array=name)
            if not tile.rank or self._ranks > 1:
                return found
            layout, pitch = self._target.shared_layout(tile), self._extent(kind.dimensions[-1])
            lines = self._touched(layout, pitch * dtype_bytes(tile.element_type))
            return replace(found, lines=lines, panels=layout.panels)
        shots = 0
        if is_pgl(op.array, Layout.Replicate):
            shots = 1 if is_one_shot(self._kernel, op) else 2
        if shots == 2:  # to its owner, and from there to all
            sent = 2 * data * others / self._ranks
        chunks = max(1, tile.shape[0] // self._target.tuning.summed_rows) if tile.rank == 2 else 1
        return Store(size, sent * times, True, chunks, written=data, shots=shots, packets=packets)


_WRITES = StoreOp | AccumulateOp | StoreAddOp | ScatterAccumulateOp | ScatterStoreOp | ScatterStoreAddOp

_SPREAD = 3**-0.5
"""The standard deviation of the length of a list that may have any length, as a share of its mean."""


def _is_same(load: LoadOp, other: LoadOp) -> bool:
    return load.array is other.array and tuple(load.indices) == tuple(other.indices)


def _names_a_rank(op: Operation) -> bool:
    if isinstance(op, ByTable) and op.names_ranks:
        return True
    return isinstance(op, StoreOp | StoreAddOp | ScatterStoreOp | ScatterStoreAddOp) and op.rank is not None


def _is_for_all(rank: SSAValue) -> bool:
    """Whether a number is the same on all ranks and in all tasks: one of constants, sizes and scalars."""
    made = [value.owner for value in sources([rank])]
    inside = (owner.parent_op() for owner in made if isinstance(owner, Block))
    return not any(isinstance(owner, (RankOp, RingPeerOp, *READING)) for owner in made) and all(
        isinstance(around, KernelOp) for around in inside
    )


def _is_looped(index: SSAValue) -> bool:
    """Whether a loop in a task goes through the blocks or positions of an index, or through what it is computed of."""
    arguments = (value.owner for value in sources([index]) if isinstance(value.owner, Block))
    return any(isinstance(block.parent_op(), scf.ForOp) for block in arguments)
