"""The pass `pk-order-scatters`: sums into rows that a table names get slots, which are added up in a fixed order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import arith, scf
from xdsl.dialects.arith import ConstantOp, MaxSIOp
from xdsl.dialects.builtin import IndexType, LocationAttr, StringAttr
from xdsl.ir import Block, BlockArgument, Operation, Region, SSAValue

from pkc.dialect.access import READING, ScatterAccumulateOp, StoreOp, array_type
from pkc.dialect.attributes import Predicate
from pkc.dialect.coordinates import BlockCountOp, BlockOp, DimOp, RankOp
from pkc.dialect.elementwise import CompareOp, SelectOp
from pkc.dialect.inverse import BOUNDS, InvertOp, SumRowsOp
from pkc.dialect.program import UNORDERED, KernelOp, TasksOp
from pkc.dialect.scalars import constant_of
from pkc.dialect.tile import FullOp, PositionsOp, SplatOp, block_type
from pkc.dialect.types import (
    RANKS,
    BlockType,
    Dim,
    Layout,
    PGLType,
    PrivateType,
    TileType,
    dtype_bytes,
    dtype_name,
    i32,
)
from pkc.passes.analysis.axes import block_of_axis
from pkc.passes.analysis.covering import covers
from pkc.passes.analysis.dependence import ancestors, sources, task_count
from pkc.passes.build import add_parameter, append, before, constant, is_constant, mark_fresh
from pkc.passes.kernel_pass import KernelPass
from pkc.passes.program_slices import CannotCopyError, Known, copy_value
from pkc.passes.splits import split_of
from pkc.remarks import missed
from pkc.targets.target import target_of


class OrderScatters(KernelPass):
    """Give each `+=` into rows that a table names a place for each entry of the table, and add these up in order.

    Tasks store their rows in slots of their own rank, in place of adding them: an entry has one slot, wherever its row
    goes. A phase before them stores what the table names to all ranks, -1 for the entries that no task visits. Of the
    two phases behind them, the first lists, for each row of this rank, the entries that name it, by rank and number; in
    the second the owner adds up, in f32, what the lists name, rounds once, and stores. So results are bit-equal from
    run to run, and nothing is zeroed. Slots take as many bytes as the table has entries, times a row; tables and lists
    four each for an entry of any rank.

    What is left, in no order and with `deterministic=False` alone, gets the reason (`unordered`) and a remark.

    Before:

        pk.tasks (%e, %i, %j) in (%experts, %blocks, %columns) {
          pk.scatter_accumulate %t, %O rows %rows[%n : ...] : ..., !pk.pgl<[T, N], bf16, shard 0>, !pk.tile<128xi32>

    After:

        pk.tasks (%e, %i) in (%experts, %all) {
          ... pk.store %visited, %O_named[%rank, %e, %p : ...] : !pk.tile<128xi32>, !pk.pgl<..., i32, replicate>
        }
        pk.tasks (%e, %i, %j) in (%experts, %blocks, %columns) {
          pk.store %t, %O_slots[%e, %p, %n : ...] : !pk.tile<128x256xbf16>, !pk.pgl<[E, P, N], bf16, symmetric>
        }
        pk.tasks (%i) in (%local_rows) {
          pk.invert %O_named of %O[%t] to %O_bounds, %O_order : ...
        }
        pk.tasks (%i, %j) in (%local_rows, %columns) {
          pk.sum_rows %O_slots by %O_bounds, %O_order to %O[%t, %n : ...] : ...
    """

    name = "pk-order-scatters"

    def run(self, kernel: KernelOp) -> None:
        if kernel.in_any_order:
            return
        for op in [op for op in kernel.walk() if isinstance(op, ScatterAccumulateOp)]:
            found, array = _read(kernel, op), op.array
            assert isinstance(array, BlockArgument)
            name = kernel.argument_name(array)
            if isinstance(found, str):
                op.attributes[UNORDERED] = StringAttr(found)
                missed(self.name, op, f"rows are added to `{name}` one by one, in no order: {found}")
                continue
            slots = _slots(op, found)
            how = f"through memory, {slots} of each rank, and from there to their owners, who add them up in order"
            missed(self.name, op, f"rows go {how}: `deterministic=False` adds them where they live, in no order")
            mark_fresh(kernel, array)
            _Ordered(kernel, op, found, name).run()


@dataclass(frozen=True)
class _Entries:
    """Which entry of the table a row of a tile is: the numbers of tasks and iterations, the block of the tile's rows,
    its stop, and the dimensions of both; what must hold, or must not, for it to be added; `split` is the dimension by
    which ranks share the array, `top` the tasks of the phase."""

    keys: list[SSAValue]
    dims: list[Dim]
    block: BlockOp
    conditions: list[tuple[SSAValue, bool]]
    split: int
    top: TasksOp

    @property
    def indices(self) -> list[SSAValue]:
        return [*self.keys, self.block.result]


def _read(kernel: KernelOp, op: ScatterAccumulateOp) -> _Entries | str:
    """What says which entry a row is; or why pkc cannot tell."""
    if kernel.roles:
        return "an author says when a role adds"
    around = [*ancestors(op)]
    if not around or not isinstance(top := around[-1], TasksOp):
        return "its tasks stand in a loop or branch"
    if dtype_bytes(array_type(op.array).element_type) == 1:
        return "its elements have 8 bits"
    if any(use.operation is not op and _comes_before(use.operation, top) for use in op.array.uses):
        return "the array is used by another statement, too"
    block = block_of_axis(op.rows, 0)
    if block is None or not isinstance(block.owner, BlockOp):
        return "the blocks of the table are not known"
    made = block.owner
    if made.shard is not None or made.sharded is not None or made.start is not None:
        return "the blocks of the table are not those from its beginning on"
    conditions = _conditions(op)
    named = [op.rows, *([made.stop] if made.stop else []), *(condition for condition, _ in conditions)]
    columns, table = sources(op.indices), sources(named)
    if any(_is_written(value.owner.array, top) for value in table if isinstance(value.owner, READING)):
        return "the same tasks write what names the rows"
    indices = _indices(around)
    keys = [index for index in indices if index not in columns and index is not made.index]
    of_columns = zip(op.indices, array_type(op.array).dimensions[1:], strict=True)
    if not all(covers(index, dim, _times) for index, dim in of_columns):
        return "some columns of a row may get no contribution"
    if any(index in columns and index in table for index in indices):
        return "which rows are added to differs from column to column"
    if not _is_copied(named, [*indices, block]):
        return "the table comes out of a loop or branch"
    if not _all_blocks(made):
        return "the blocks of the table are not those from its beginning on"
    dims = [_extent(index) for index in keys]
    known = [dim for dim in dims if dim is not None]
    if len(known) < len(dims):
        return "the number of tasks is not that of a dimension"
    return _Entries(keys, [*known, block_type(block).of], made, conditions, _split(op), top)


def _indices(around: Sequence[Operation]) -> list[SSAValue]:
    """The numbers of tasks and iterations that operations have, of which each is in the next."""
    found: list[SSAValue] = []
    for op in reversed(around):
        if isinstance(op, TasksOp):
            found += op.body.block.args
        elif isinstance(op, scf.ForOp):
            found.append(op.body.block.args[0])
    return found


def _conditions(op: Operation) -> list[tuple[SSAValue, bool]]:
    """What must hold, or must not, for an operation to be reached by the tasks and loops around it."""
    inside = zip([op, *ancestors(op)], ancestors(op), strict=False)
    return [
        (around.cond, inner.parent is around.true_region.block)
        for inner, around in inside
        if isinstance(around, scf.IfOp)
    ]


def _times(index: SSAValue) -> SSAValue | None:
    """How many values the number of a task takes, or of an iteration, from 0 up; None if that is not known."""
    loop = index.owner.parent_op() if isinstance(index, BlockArgument) else None
    if not isinstance(index, BlockArgument) or not isinstance(loop, scf.ForOp):
        return task_count(index)
    whole = index.index == 0 and split_of(loop) is None
    return loop.ub if whole and is_constant(loop.lb, 0) and is_constant(loop.step, 1) else None


def _all_blocks(made: BlockOp) -> bool:
    """Whether tasks or a loop have a block for each number of its list."""
    kind, times = block_type(made.result), _times(made.index)
    count = None if times is None else times.owner
    return kind.of == kind.extent or (isinstance(count, BlockCountOp) and count.block == kind)


def _slots(op: ScatterAccumulateOp, entries: _Entries) -> str:
    dims = (*entries.dims, *array_type(op.array).dimensions[1:])
    return " x ".join(map(str, (*dims, dtype_name(array_type(op.array).element_type))))


def _is_copied(values: Sequence[SSAValue], given: Sequence[SSAValue]) -> bool:
    """Whether other tasks can compute values, too, if they are given some."""
    scratch, known = Block(), dict(zip(given, given, strict=True))
    try:
        for value in values:
            copy_value(scratch, value, known)
    except CannotCopyError:
        return False
    finally:
        scratch.erase()
    return True


def _comes_before(op: Operation, top: TasksOp) -> bool:
    """Whether an operation belongs to the phase of some tasks, or to an earlier one."""
    around: Operation = op
    while around.parent is not top.parent:
        parent = around.parent_op()
        if parent is None:
            return True
        around = parent
    return around is top or around.is_before_in_block(top)


def _is_written(array: SSAValue, top: TasksOp) -> bool:
    """Whether tasks do more with an array than read it."""
    return any(top.is_ancestor(use.operation) and not isinstance(use.operation, READING) for use in array.uses)


def _split(op: ScatterAccumulateOp) -> int:
    """The dimension by which ranks share the sums: the sharded one, else the first that is no constant, else rows."""
    kind = array_type(op.array)
    if isinstance(kind, PGLType) and kind.shard_dim is not None:
        return kind.shard_dim
    return next((place for place, dim in enumerate(kind.dimensions) if isinstance(dim, str)), 0)


def _extent(index: SSAValue) -> Dim | None:
    """The dimension, or the constant, that a task index goes through; None if it is neither."""
    count = _times(index)
    made = None if count is None else count.owner
    if isinstance(made, DimOp):
        return made.dim.data
    if isinstance(made, ConstantOp):
        return constant_of(made.result)
    if isinstance(made, BlockCountOp) and not made.operands and made.sharded is None and made.block.extent == 1:
        return made.block.of
    return None


class _Ordered:
    """One statement, its memory and the tasks around it."""

    def __init__(self, kernel: KernelOp, op: ScatterAccumulateOp, entries: _Entries, name: str) -> None:
        self._kernel, self._op, self._entries, self._tuning = kernel, op, entries, target_of(kernel).tuning
        kind = array_type(op.array)
        self._rows = kind.dimensions[0]
        every, columns = (RANKS, *entries.dims), kind.dimensions[1:]
        bounds: PGLType | PrivateType = PrivateType((self._rows, BOUNDS), i32)
        if entries.split == 0 and isinstance(self._rows, str):
            bounds = PGLType((self._rows, BOUNDS), i32, Layout.Shard, 0)
        self._slots, self._named, self._bounds, self._order = (
            add_parameter(kernel, f"{name}.{what}", made, op.location)
            for what, made in (
                ("slots", PGLType((*entries.dims, *columns), kind.element_type, Layout.Symmetric)),
                ("named", PGLType(every, i32, Layout.Replicate)),
                ("bounds", bounds),
                ("order", PrivateType(every, i32)),
            )
        )

    def run(self) -> None:
        op, entries = self._op, self._entries
        behind = entries.top.next_op
        self._name(entries.top)
        store = StoreOp(op.tile, self._slots, [*entries.indices, *op.indices])
        store.location = op.location
        assert op.parent is not None
        op.parent.insert_op_before(store, op)
        op.detach()
        op.erase()
        self._invert(behind)
        self._sum(behind)

    def _name(self, anchor: Operation) -> None:
        """Tasks that store which row each entry names to all ranks; -1 for those that are not visited."""
        entries, made, location = self._entries, self._entries.block, self._op.location
        kind = block_type(made.result)
        outer, known = Block(), Known()
        counts = [copy_value(outer, _count_of(index), known) for index in entries.keys]
        counts.append(append(outer, BlockCountOp(kind), location).result)
        body = Block(arg_types=[IndexType()] * len(counts))
        known |= dict(zip(entries.keys, body.args, strict=False))
        block = append(body, BlockOp(body.args[-1], kind), location).result
        known[made.result] = block
        rows = copy_value(body, self._op.rows, known)
        stop = self._stop(body, known)
        if stop is not None:
            of = TileType((kind.extent,), i32)
            places = append(body, PositionsOp(block), location)
            inside = append(body, CompareOp(Predicate.Lt, places, append(body, SplatOp(stop, of), location)), location)
            none = append(body, FullOp(-1, of), location)
            rows = append(body, SelectOp(inside, rows, none), location).result
        rank = append(body, RankOp(), location).result
        append(body, StoreOp(rows, self._named, [rank, *(known[key] for key in entries.keys), block]), location)
        append(outer, TasksOp(counts, Region(body)), location)
        _move(outer, self._kernel, anchor)

    def _stop(self, body: Block, known: Known) -> SSAValue | None:
        """The position from which on no entry is visited: none of a block where a condition does not hold."""
        entries, location = self._entries, self._op.location
        stop = None if entries.block.stop is None else copy_value(body, entries.block.stop, known)
        for condition, holds in entries.conditions:
            end = stop or _size(body, entries.dims[-1], location)
            value, nothing = copy_value(body, condition, known), append(body, constant(0), location).result
            both = (end, nothing) if holds else (nothing, end)
            stop = append(body, arith.SelectOp(value, *both), location).result
        return stop

    def _invert(self, anchor: Operation | None) -> None:
        outer, location = Block(), self._op.location
        body, (rows,) = self._tasks(outer, [BlockType(self._rows, self._tuning.inverted_rows)])
        tasks = outer.last_op
        assert isinstance(tasks, TasksOp)
        one = constant(1)
        some = MaxSIOp(tasks.counts[0], one.result)  # a rank without rows has an empty block: it has the table, too
        before(tasks, [one, some])
        tasks.operands[0] = some.result
        append(body, InvertOp(self._named, self._op.array, rows, self._bounds, self._order), location)
        _move(outer, self._kernel, anchor)

    def _sum(self, anchor: Operation | None) -> None:
        outer, location = Block(), self._op.location
        kinds = [BlockType(self._rows, self._tuning.summed_rows)]
        for dim, index in zip(array_type(self._op.array).dimensions[1:], self._op.indices, strict=True):
            kinds.append(index.type if isinstance(index.type, BlockType) else BlockType(dim, 1))
        body, indices = self._tasks(outer, kinds)
        append(body, SumRowsOp(self._slots, self._bounds, self._order, self._op.array, indices), location)
        _move(outer, self._kernel, anchor)

    def _tasks(self, outer: Block, kinds: Sequence[BlockType]) -> tuple[Block, list[SSAValue]]:
        """Tasks over blocks of the first dimensions, of this rank's share alone: their body, and the blocks there."""
        location, split = self._op.location, self._entries.split
        rank = append(outer, RankOp(), location).result
        dim = kinds[split].of if split < len(kinds) else ""
        share = _part_of(outer, dim, rank, location) if isinstance(dim, int) else (rank, None, None)
        shares = [share if place == split else (None, None, None) for place in range(len(kinds))]
        counts = [
            append(outer, BlockCountOp(kind, shard=shard, start=start, stop=stop), location).result
            for kind, (shard, start, stop) in zip(kinds, shares, strict=True)
        ]
        body = Block(arg_types=[IndexType()] * len(kinds))
        blocks: list[SSAValue] = [
            append(body, BlockOp(number, kind, shard=shard, start=start, stop=stop), location).result
            for kind, (shard, start, stop), number in zip(kinds, shares, body.args, strict=True)
        ]
        append(outer, TasksOp(counts, Region(body)), location)
        return body, blocks


def _part_of(outer: Block, dim: int, rank: SSAValue, location: LocationAttr) -> tuple[None, SSAValue, SSAValue]:
    """Where the positions of a constant dimension begin and end that a rank adds up: as many as others, or fewer."""

    def made(op: Operation) -> SSAValue:
        return append(outer, op, location).results[0]

    end, ranks, less = made(constant(dim)), made(DimOp(RANKS)), made(constant(dim - 1))
    each = made(arith.AddiOp(made(arith.FloorDivSIOp(less, ranks)), made(constant(1))))
    start = made(arith.MinSIOp(made(arith.MuliOp(rank, each)), end))
    return None, start, made(arith.MinSIOp(made(arith.AddiOp(start, each)), end))


def _count_of(index: SSAValue) -> SSAValue:
    count = _times(index)
    assert count is not None
    return count


def _size(body: Block, dim: Dim, location: LocationAttr) -> SSAValue:
    return append(body, constant(dim) if isinstance(dim, int) else DimOp(dim), location).results[0]


def _move(ops: Block, kernel: KernelOp, anchor: Operation | None) -> None:
    """Operations to a place in the kernel: before another one, or to its end."""
    block = kernel.body.block
    for op in list(ops.ops):
        op.detach()
        if anchor is None:
            block.add_op(op)
        else:
            block.insert_op_before(op, anchor)
