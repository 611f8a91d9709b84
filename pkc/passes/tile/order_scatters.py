"""The pass `pk-order-scatters`: sums into rows that a table names get slots, which are added up in a fixed order."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects import arith
from xdsl.dialects.arith import MaxSIOp
from xdsl.dialects.builtin import DictionaryAttr, IndexType, IntegerAttr, LocationAttr, StringAttr
from xdsl.ir import Block, BlockArgument, Operation, Region, SSAValue

from pkc.dialect.access import AccumulateOp, AddToArrayOp, LoadOp, ReadOp, StoreOp
from pkc.dialect.arrays import array_type
from pkc.dialect.attributes import Predicate
from pkc.dialect.by_table import ScatterAccumulateOp
from pkc.dialect.coordinates import BlockCountOp, BlockOp, BlockPositionOp, DimOp, RankOp, RingPeerOp
from pkc.dialect.elementwise import CompareOp, SelectOp
from pkc.dialect.inverse import BOUNDS, InvertOp, SumRowsOp
from pkc.dialect.program import DETERMINISTIC, UNORDERED, KernelOp, TasksOp
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
    dtype_name,
    i1,
    i32,
)
from pkc.passes.build import add_parameter, append, before, constant, mark_fresh
from pkc.passes.entries import Entries, Parts, count_of, entries_of
from pkc.passes.kernel_pass import KernelPass
from pkc.passes.program_slices import Known, copy_value
from pkc.passes.tile.named_rows import name_rows
from pkc.remarks import missed
from pkc.targets.target import target_of


class OrderScatters(KernelPass):
    """Give each `+=` into rows that a table names a place for each entry of the table, and add these up in order.

    Tasks store their rows in slots of their own rank, in place of adding them: an entry has one slot, wherever its row
    goes. A phase before them stores what the table names to all ranks, -1 for the entries that no task visits. Of the
    two phases behind them, the first lists, for each row of this rank, the entries that name it, by rank and number; in
    the second the owner adds up, in f32, what the lists name, rounds once, and stores. So results are bit-equal from
    run to run, and nothing is zeroed. Slots take as many bytes as the table has entries, times a row; tables and lists
    four each for an entry of any rank. Parts of a table that tasks list have entries for all of it each, unless they
    cannot overlap. Numbers that memory bounds are positions of the table, which has entries for all of these. Rows that
    one element names, and beside tables those of blocks, have tables, too. Of several statements the entries of the
    first one come first on each rank.

    Integers have the same sum in any order. Where a kernel's sums are all of i32, as in histograms, they are added
    where they live, as with `deterministic=False`, and no memory is needed; unless the schedule says otherwise.

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
        if _needs_no_order(kernel):
            kernel.attributes["schedule"] = DictionaryAttr({**kernel.schedule, DETERMINISTIC: IntegerAttr(0, i1)})
            return
        if not kernel.roles:
            name_rows(kernel)
        added: dict[SSAValue, list[ScatterAccumulateOp]] = {}
        for op in kernel.walk():
            if isinstance(op, ScatterAccumulateOp):
                added.setdefault(op.array, []).append(op)
        for array, ops in added.items():
            assert isinstance(array, BlockArgument)
            found, name = entries_of(kernel, ops), kernel.argument_name(array)
            if isinstance(found, str):
                for op in ops:
                    op.attributes[UNORDERED] = StringAttr(found)
                    missed(self.name, op, f"rows are added to `{name}` one by one, in no order: {found}")
                continue
            for op, entries in zip(ops, found, strict=True):
                slots = _slots(op, entries)
                how = f"through memory, {slots} of each rank, and from there to their owners, who add them up in order"
                if entries.block.start is not None and entries.parts is None:
                    how += " (parts from `i * P` to `i * P + min(..., P)` cannot overlap, and take less)"
                missed(self.name, op, f"rows go {how}: `deterministic=False` adds them where they live, in no order")
            mark_fresh(kernel, array)
            _Ordered(kernel, ops, found, name).run()


def _needs_no_order(kernel: KernelOp) -> bool:
    """Whether a kernel's sums are all of integers at places that tables name, and the schedule leaves their order
    open."""
    added = [op for op in kernel.walk() if isinstance(op, AccumulateOp | AddToArrayOp | ScatterAccumulateOp)]
    kinds = [array_type(op.array) for op in added if isinstance(op, ScatterAccumulateOp)]
    return (
        all(kind.element_type == i32 for kind in kinds)
        and 0 < len(kinds) == len(added)
        and DETERMINISTIC not in kernel.schedule
    )


def _slots(op: ScatterAccumulateOp, entries: Entries) -> str:
    dims = (*entries.dims, *array_type(op.array).dimensions[1:])
    return " x ".join(map(str, (*dims, dtype_name(array_type(op.array).element_type))))


class _Ordered:
    """The statements that add to one array, their memory and the tasks around them."""

    def __init__(
        self, kernel: KernelOp, ops: Sequence[ScatterAccumulateOp], entries: Sequence[Entries], name: str
    ) -> None:
        self._kernel, self._ops, self._entries, self._tuning = kernel, ops, entries, target_of(kernel).tuning
        (op, first), kind = (ops[0], entries[0]), array_type(ops[0].array)
        self._rows, self._split, self._location = kind.dimensions[0], first.split, op.location
        dims = (*([len(ops)] if len(ops) > 1 else []), *first.dims)
        every, columns = (RANKS, *dims), kind.dimensions[1:]
        bounds: PGLType | PrivateType = PrivateType((self._rows, BOUNDS), i32)
        if first.split == 0 and isinstance(self._rows, str):
            bounds = PGLType((self._rows, BOUNDS), i32, Layout.Shard, 0)
        self._slots, self._named, self._bounds, self._order = (
            add_parameter(kernel, f"{name}.{what}", made, op.location)
            for what, made in (
                ("slots", PGLType((*dims, *columns), kind.element_type, Layout.Symmetric)),
                ("named", PGLType(every, i32, Layout.Replicate)),
                ("bounds", bounds),
                ("order", PrivateType(every, i32)),
            )
        )

    def run(self) -> None:
        behind = self._entries[-1].top.next_op
        for number, (op, entries) in enumerate(zip(self._ops, self._entries, strict=True)):
            self._name(number, op, entries)
            for key in entries.partial:
                self._leave_out(number, op, entries, key)
            if entries.block.shard is not None:
                self._leave_out_shards(number, op, entries)
            block = op.parent
            assert block is not None
            which = self._which(number, lambda made, block=block, op=op: block.insert_op_before(made, op))
            store = StoreOp(op.tile, self._slots, [*which, *entries.indices, *op.indices])
            store.location = op.location
            block.insert_op_before(store, op)
        self._invert(behind)
        self._sum(behind)
        for op in self._ops:
            op.detach()
            op.erase()

    def _which(self, number: int, add: Callable[[Operation], object]) -> list[SSAValue]:
        """The index of a statement among those that add to the array, if there are others."""
        if len(self._ops) == 1:
            return []
        made = constant(number)
        made.location = self._location
        add(made)
        return [made.result]

    def _name(self, number: int, op: ScatterAccumulateOp, entries: Entries) -> None:
        """Tasks that store which row each entry names to all ranks; -1 for those that are not visited."""
        location, kind = op.location, block_type(entries.block.result)
        outer, known = Block(), Known()
        counts = [
            copy_value(outer, count_of(key), known) if key not in entries.bounds else _size(outer, dim, location)
            for key, dim in zip(entries.keys, entries.dims, strict=False)
        ]
        shard = None if entries.block.shard is None else append(outer, RankOp(), location).result
        whole = entries.block.sharded is not None
        counts.append(append(outer, BlockCountOp(kind, shard=shard, sharded=whole), location).result)
        body = Block(arg_types=[IndexType()] * len(counts))
        known |= dict(zip(entries.keys, body.args, strict=False))
        block = append(body, BlockOp(body.args[-1], kind, shard=shard, sharded=whole), location).result
        known[entries.block.result] = block
        if entries.parts is not None:
            known[entries.parts.number] = _part_of_table(body, entries.parts, block, known, location)
        rows = copy_value(body, op.rows, known)
        start = None if entries.block.start is None else copy_value(body, entries.block.start, known)
        for bound, seen in ((self._stop(body, entries, known), Predicate.Lt), (start, Predicate.Ge)):
            if bound is not None:
                of = TileType((kind.extent,), i32)
                places = append(body, PositionsOp(block), location)
                inside = append(body, CompareOp(seen, places, append(body, SplatOp(bound, of), location)), location)
                none = append(body, FullOp(-1, of), location)
                rows = append(body, SelectOp(inside, rows, none), location).result
        self._store(body, number, rows, [*(known[key] for key in entries.keys), block])
        if entries.conditions or entries.bounds:
            _clamp(body)
        append(outer, TasksOp(counts, Region(body)), location)
        _move(outer, self._kernel, entries.top)

    def _leave_out(self, number: int, op: ScatterAccumulateOp, entries: Entries, key: SSAValue) -> None:
        """Tasks that store -1 for the values of a dimension that a key does not take. Keys before it take theirs."""
        location, kind = op.location, block_type(entries.block.result)
        outer, known, at = Block(), Known(), entries.keys.index(key)
        zero = append(outer, constant(0), location).result
        counts = [
            copy_value(outer, count_of(each), known) if each not in entries.bounds else _size(outer, dim, location)
            for each, dim in zip(entries.keys[: at + 1], entries.dims, strict=False)
        ]
        taken = counts[at] = append(outer, MaxSIOp(counts[at], zero), location).result
        counts += [_size(outer, dim, location) for dim in entries.dims[at + 1 : -1]]
        counts[at] = append(outer, arith.SubiOp(_size(outer, entries.dims[at], location), taken), location).result
        counts.append(append(outer, BlockCountOp(kind), location).result)
        body = Block(arg_types=[IndexType()] * len(counts))
        indices: list[SSAValue] = [*body.args]
        indices[at] = append(body, arith.AddiOp(body.args[at], taken), location).result
        indices[-1] = append(body, BlockOp(body.args[-1], kind), location).result
        self._store(body, number, append(body, FullOp(-1, TileType((kind.extent,), i32)), location).result, indices)
        append(outer, TasksOp(counts, Region(body)), location)
        _move(outer, self._kernel, entries.top)

    def _leave_out_shards(self, number: int, op: ScatterAccumulateOp, entries: Entries) -> None:
        """Tasks that store -1 for what is of other ranks' shards."""
        location, kind, outer = op.location, block_type(entries.block.result), Block()
        one = append(outer, constant(1), location).result
        others = append(outer, arith.SubiOp(append(outer, DimOp(RANKS), location), one), location).result
        counts = [_size(outer, dim, location) for dim in entries.dims[:-1]]
        body, inner = Block(arg_types=[IndexType()] * (len(counts) + 1)), Block(arg_types=[IndexType()])
        shard = append(body, RingPeerOp(append(body, arith.AddiOp(body.args[-1], one), location)), location).result
        count = append(body, BlockCountOp(kind, shard=shard), location).result
        block = append(inner, BlockOp(inner.args[0], kind, shard=shard), location).result
        none = append(inner, FullOp(-1, TileType((kind.extent,), i32)), location).result
        self._store(inner, number, none, [*body.args[:-1], block])
        append(body, TasksOp([count], Region(inner)), location)
        append(outer, TasksOp([*counts, others], Region(body)), location)
        _move(outer, self._kernel, entries.top)

    def _store(self, body: Block, number: int, rows: SSAValue, indices: Sequence[SSAValue]) -> None:
        rank = append(body, RankOp(), self._location).result
        which = self._which(number, body.add_op)
        append(body, StoreOp(rows, self._named, [rank, *which, *indices]), self._location)

    def _stop(self, body: Block, entries: Entries, known: Known) -> SSAValue | None:
        """The position from which on no entry is visited: none of a block where a condition does not hold."""
        location = self._location
        stop = None if entries.block.stop is None else copy_value(body, entries.block.stop, known)
        conditions = [(copy_value(body, condition, known), holds) for condition, holds in entries.conditions]
        for key, bounds in entries.bounds.items():
            for bound, kept in zip(bounds, ("sge", "slt"), strict=True):
                if bound is not None:
                    within = arith.CmpiOp(known[key], copy_value(body, bound, known), kept)
                    conditions.append((append(body, within, location).result, True))
        for condition, holds in conditions:
            end = stop or _size(body, entries.dims[-1], location)
            nothing = append(body, constant(0), location).result
            both = (end, nothing) if holds else (nothing, end)
            stop = append(body, arith.SelectOp(condition, *both), location).result
        return stop

    def _invert(self, anchor: Operation | None) -> None:
        outer, location = Block(), self._location
        body, (rows,) = self._tasks(outer, [BlockType(self._rows, self._tuning.inverted_rows)])
        tasks = outer.last_op
        assert isinstance(tasks, TasksOp)
        one = constant(1)
        some = MaxSIOp(tasks.counts[0], one.result)  # a rank without rows has an empty block: it has the table, too
        before(tasks, [one, some])
        tasks.operands[0] = some.result
        append(body, InvertOp(self._named, self._ops[0].array, rows, self._bounds, self._order), location)
        _move(outer, self._kernel, anchor)

    def _sum(self, anchor: Operation | None) -> None:
        outer, location = Block(), self._location
        kinds = [BlockType(self._rows, self._tuning.summed_rows)]
        array, indices = self._ops[0].array, self._ops[0].indices
        for dim, index in zip(array_type(array).dimensions[1:], indices, strict=True):
            kinds.append(index.type if isinstance(index.type, BlockType) else BlockType(dim, 1))
        body, places = self._tasks(outer, kinds)
        append(body, SumRowsOp(self._slots, self._bounds, self._order, array, places), location)
        _move(outer, self._kernel, anchor)

    def _tasks(self, outer: Block, kinds: Sequence[BlockType]) -> tuple[Block, list[SSAValue]]:
        """Tasks over blocks of the first dimensions, of this rank's share alone: their body, and the blocks there."""
        location, split = self._location, self._split
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


def _clamp(body: Block) -> None:
    """Keep inside of their arrays what is read for entries that a condition leaves out: they name no row anyway."""
    for op in [op for op in body.ops if isinstance(op, LoadOp | ReadOp)]:
        for index, dim in zip(op.indices, array_type(op.array).dimensions, strict=True):
            if (
                not isinstance(index.type, IndexType)
                or isinstance(index, BlockArgument)
                or constant_of(index) is not None
            ):
                continue
            ends = Block()
            last = append(
                ends, arith.SubiOp(_size(ends, dim, op.location), append(ends, constant(1), op.location)), op.location
            )
            kept = append(ends, arith.MinSIOp(index, last), op.location)
            kept = append(ends, MaxSIOp(kept, append(ends, constant(0), op.location)), op.location).result
            made = list(ends.ops)
            for each in made:
                each.detach()
            before(op, made)
            op.operands = [kept if operand is index else operand for operand in op.operands]


def _part_of_table(body: Block, parts: Parts, block: SSAValue, known: Known, location: LocationAttr) -> SSAValue:
    """Which part of a table a block is of; the last one behind all of them, which has ended there."""

    def made(op: Operation) -> SSAValue:
        return append(body, op, location).results[0]

    number = made(arith.FloorDivSIOp(made(BlockPositionOp(block)), made(constant(parts.length))))
    last = made(arith.SubiOp(copy_value(body, count_of(parts.number), known), made(constant(1))))
    return made(arith.MinSIOp(number, last))


def _part_of(outer: Block, dim: int, rank: SSAValue, location: LocationAttr) -> tuple[None, SSAValue, SSAValue]:
    """Where the positions of a constant dimension begin and end that a rank adds up: as many as others, or fewer."""

    def made(op: Operation) -> SSAValue:
        return append(outer, op, location).results[0]

    end, ranks, less = made(constant(dim)), made(DimOp(RANKS)), made(constant(dim - 1))
    each = made(arith.AddiOp(made(arith.FloorDivSIOp(less, ranks)), made(constant(1))))
    start = made(arith.MinSIOp(made(arith.MuliOp(rank, each)), end))
    return None, start, made(arith.MinSIOp(made(arith.AddiOp(start, each)), end))


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
