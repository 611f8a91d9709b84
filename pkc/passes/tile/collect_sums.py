"""The pass `pk-collect-sums`: what several tasks of a rank contribute to one tile is added up in a phase of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import scf
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Block, BlockArgument, Operation, Region, SSAValue

from pkc.dialect.access import AccumulateOp, LoadOp, ReadOp, StoreOp
from pkc.dialect.arrays import array_type
from pkc.dialect.coordinates import BlockCountOp, BlockOp
from pkc.dialect.elementwise import AddOp
from pkc.dialect.program import KernelOp, TasksOp
from pkc.dialect.reductions import RowSumOp
from pkc.dialect.scalars import constant_of
from pkc.dialect.tile import CastOp, ClipOp, FullOp, TransposeOp, tile_type
from pkc.dialect.types import FLOATS, BlockType, Dim, PrivateType, TileType, dtype_name
from pkc.passes.analysis.apart import have_other_constants
from pkc.passes.analysis.dependence import defined_outside, enclosing_tasks, is_one, sources, task_count
from pkc.passes.build import add_parameter, append, before, constant
from pkc.passes.kernel_pass import KernelPass
from pkc.passes.program_slices import Known, can_copy, copy_value
from pkc.passes.tile.lift_sums import unrounded
from pkc.passes.tile.split_loops import most
from pkc.remarks import missed
from pkc.targets.layout import NEIGHBOURS

_TOGETHER = 1024
"""Numbers that are added up at once, where each task contributes one."""

_ROWS, _ELEMENTS = 64, 8192
"""The most vectors that are, and the most elements that these have: a few such tiles fit into shared memory."""

_COLUMNS = 64
"""The most elements of a row of a whole dimension whose shares one task adds up, so that there are several tasks."""


class CollectSums(KernelPass):
    """Let each rank contribute once to each tile of a sum over ranks, however many of its tasks have a share of it, and
    however many statements contribute to an array's only tile.

    A task stores its share in f32, or i32, in memory of its rank, which has a place for each task. A phase behind it
    adds up the shares of each tile, in the order of the tasks, and contributes the sum. So results are bit-equal from
    run to run. Shares of one number each lie side by side, and are added up as rows; those of a vector each are added
    up many at once, too. Rows of a whole dimension are added up in blocks, each by a task.

    What is left, for whoever derives roles to refuse, or to add in no order: shares in loops and branches, and tasks
    whose number has no dimension for a bound, or follows from tasks that have other tiles.

    Before:

        pk.tasks (%i, %j) in (%rows, %columns) {
          pk.accumulate %t, %S[%n : !pk.block<N by 64>] : !pk.tile<64xf32>, !pk.pgl<[N], f32, replicate>
        }

    After:

        pk.tasks (%i, %j) in (%rows, %columns) {
          pk.store %t, %S_shares[%i, %n : ...] : !pk.tile<64xf32>, !pk.private<[M, N], f32>
        }
        pk.tasks (%j) in (%columns) {
          %sum = scf.for %k = %zero to %parts step %one iter_args(%total = %zeros) -> (!pk.tile<64xf32>) {
            %m = pk.block[%k] to %rows : !pk.block<M by 64>
            %shares = pk.load %S_shares[%m, %n : ...] : ...
            ... %part = pk.row_sum %transposed : !pk.tile<64x64xf32> -> !pk.tile<64xf32>
            %next = pk.add %total, %part : !pk.tile<64xf32>
            scf.yield %next : !pk.tile<64xf32>
          }
          pk.accumulate %sum, %S[%n : !pk.block<N by 64>] : ...
        }
    """

    name = "pk-collect-sums"

    def run(self, kernel: KernelOp) -> None:
        if kernel.in_any_order or kernel.roles:
            return
        arrays: dict[SSAValue, list[AccumulateOp]] = {}
        for op in [op for op in kernel.walk() if isinstance(op, AccumulateOp)]:
            arrays.setdefault(op.array, []).append(op)
        for ops in [group for of_array in arrays.values() for group in _groups(of_array)]:
            found = [shares for op in ops if (shares := _shares(op)) is not None]
            if len(found) == len(ops) and (_is_shared(found[0]) if len(ops) == 1 else _is_one_tile(found)):
                _collect(kernel, found)


def _groups(ops: Sequence[AccumulateOp]) -> list[list[AccumulateOp]]:
    """The statements that add to an array, by elements that constants tell apart."""
    groups: list[list[AccumulateOp]] = []
    for op in ops:
        meeting = [group for group in groups if not all(have_other_constants(op.indices, one.indices) for one in group)]
        together = {op, *(one for group in meeting for one in group)}
        groups = [group for group in groups if group not in meeting] + [[one for one in ops if one in together]]
    return groups


@dataclass(frozen=True)
class _Shares:
    """What contributes to a tile: the task indices by which its shares differ, with a dimension that is at least as
    long as each has values; those that say which tile it is; the outermost tasks."""

    op: AccumulateOp
    keys: list[BlockArgument]
    dims: list[Dim]
    others: list[BlockArgument]
    top: TasksOp


def _shares(op: AccumulateOp) -> _Shares | None:
    """Who contributes to a tile; None if they cannot be told apart."""
    tasks = enclosing_tasks(op)
    if not tasks or op.parent_op() is not tasks[0]:
        return None
    known = sources(op.indices)
    indices = [index for around in reversed(tasks) for index in around.body.block.args]
    keys = [index for index in indices if index not in known and not is_one(_count(index))]
    dims = [most(_count(index)) for index in keys]
    found = [dim for dim in dims if dim is not None]
    if len(found) < len(dims):
        return None
    others = [index for index in indices if index in known]
    # Whoever adds up counts the tiles in front of its tasks, and the shares of each tile in them.
    if not can_copy([_count(index) for index in others], []) or not can_copy(map(_count, keys), others):
        return None
    return _Shares(op, keys, found, others, tasks[-1])


_ADDED = 8
"""What the length of rows is a multiple of that are added where they live."""


def _is_shared(shares: _Shares) -> bool:
    """Whether several tasks contribute to a tile."""
    return bool(shares.keys)


def _is_one_tile(found: Sequence[_Shares]) -> bool:
    """Whether several statements contribute to one tile, which nothing reads between them."""
    ops, tops, block = [shares.op for shares in found], [shares.top for shares in found], found[0].top.parent
    if block is None or any(shares.others or shares.top.parent is not block for shares in found):
        return False
    if any(not _is_at_once(ops[0].indices, op.indices) for op in ops):
        return False
    others = [use.operation for use in ops[0].array.uses if not _adds_elsewhere(use.operation, ops)]
    users = [block.find_ancestor_op_in_block(op) for op in others]
    last = max(map(block.get_operation_index, tops))
    return all(user is not None and block.get_operation_index(user) > last for user in users)


def _adds_elsewhere(other: Operation, ops: Sequence[AccumulateOp]) -> bool:
    """Whether a use of an array is one of these sums, or surely of other elements."""
    if other in ops:
        return True
    if not isinstance(other, AccumulateOp | ReadOp | LoadOp | StoreOp):
        return False
    return all(have_other_constants(op.indices, other.indices) for op in ops)


def _is_at_once(indices: Sequence[SSAValue], others: Sequence[SSAValue]) -> bool:
    """Whether indices without task indices are the same numbers, or the same blocks."""
    for one, other in zip(indices, others, strict=True):
        if isinstance(one.owner, BlockOp) and isinstance(other.owner, BlockOp):
            if one.type != other.type or not _is_at_once(one.owner.operands, other.owner.operands):
                return False
        elif one is not other and (constant_of(one) is None or constant_of(one) != constant_of(other)):
            return False
    return True


def _count(index: BlockArgument) -> SSAValue:
    count = task_count(index)
    assert count is not None
    return count


def _count_in(block: Block, index: BlockArgument, known: Known, top: TasksOp) -> SSAValue:
    """The number of values of a task index, counted again if that stands in tasks."""
    count = _count(index)
    return count if defined_outside(count, top) else copy_value(block, count, known)


def _collect(kernel: KernelOp, found: Sequence[_Shares]) -> None:
    """Let tasks store their shares of a tile, and others behind the last of them add these up."""
    memories = [_store(kernel, shares, number) for number, shares in enumerate(found)]
    _add_up(found, memories)
    for shares in found:
        shares.op.detach()
        shares.op.erase()


def _store(kernel: KernelOp, shares: _Shares, number: int) -> SSAValue:
    """The memory to which the tasks of a statement store their shares."""
    op, array = shares.op, shares.op.array
    assert isinstance(array, BlockArgument)
    share = unrounded(op, op)
    kind, name = tile_type(share), kernel.argument_name(array)
    of_array = array_type(array).dimensions
    dims = (*shares.dims, *of_array) if kind.rank else (*of_array, *shares.dims)
    label = f"{name}.shares_{number}" if number else f"{name}.shares"
    memory = add_parameter(kernel, label, PrivateType(dims, kind.element_type), op.location)
    size = " x ".join(map(str, (*dims, dtype_name(kind.element_type))))
    how = f"each task stores its share of `{name}`, {size} of each rank in all, which a phase adds up in order"
    # Threads add rows of eight elements at a time where they live.
    anyhow = kind.rank and kind.shape[-1] % _ADDED == 0
    missed(CollectSums.name, op, f"{how}: `deterministic=False` adds them where they live" if anyhow else how)
    at = [*shares.keys, *op.indices] if kind.rank else [*op.indices, *shares.keys]
    before(op, [StoreOp(share, memory, at)])
    return memory


def _add_up(found: Sequence[_Shares], memories: Sequence[SSAValue]) -> None:
    """Tasks, one for each tile, that add up its shares, of one statement after the other, and contribute the sum."""
    first, last = found[0], found[-1]
    op, columns = first.op, _columns(first.op)
    shape = list(tile_type(op.tile).shape)
    location, outer = op.location, Block()
    counts = [_count_in(outer, index, {}, first.top) for index in first.others]
    if columns is not None:
        shape[-1] = columns.extent
        counts.append(append(outer, BlockCountOp(columns), location).result)
    kind = TileType(shape, array_type(memories[0]).element_type)
    counts = counts or [append(outer, constant(1), location).result]
    body = Block(arg_types=[IndexType()] * len(counts))
    known: Known = dict(zip(first.others, body.args, strict=False))
    if columns is not None:
        known[op.indices[-1]] = append(body, BlockOp(body.args[-1], columns), location).result
    indices = [copy_value(body, index, known) for index in op.indices]
    total = append(body, FullOp(0 if kind.element_type not in FLOATS else 0.0, kind), location).result
    for shares, memory in zip(found, memories, strict=True):
        counted = [_count_in(body, key, known, shares.top) for key in shares.keys]
        total = _Nest(shares.op, memory, indices, kind, shares.dims).sum(body, counted, [], total)
    stored = tile_type(op.tile).element_type
    if stored != kind.element_type:
        total = append(body, CastOp(total, stored), location).result
    append(body, AccumulateOp(total, op.array, indices), location)
    append(outer, TasksOp(counts, Region(body)), location)
    around = last.top.parent
    assert around is not None
    for made in reversed(list(outer.ops)):
        made.detach()
        around.insert_op_after(made, last.top)


def _columns(op: AccumulateOp) -> BlockType | None:
    """The blocks in which the last dimension of a tile is added up, if the tile has all of it."""
    kind = op.indices[-1].type
    if not isinstance(kind, BlockType) or not isinstance(kind.of, int) or kind.of != kind.extent:
        return None
    size = min(_COLUMNS, -(-kind.of // NEIGHBOURS) * NEIGHBOURS)
    return BlockType(kind.of, size) if size != kind.of else None


@dataclass(frozen=True)
class _Nest:
    """The loops over the shares of one tile that a statement has, which lies at `indices`."""

    op: AccumulateOp
    memory: SSAValue
    indices: Sequence[SSAValue]
    kind: TileType
    dims: Sequence[Dim]

    def sum(self, block: Block, counts: Sequence[SSAValue], at: Sequence[SSAValue], total: SSAValue) -> SSAValue:
        """Append to a block what adds to a total all shares of the first keys that `at` has; the new total."""
        location = self.op.location
        if not counts:
            share = append(block, LoadOp(self.memory, [*at, *self.indices]), location)
            return append(block, AddOp(total, share.result), location).result
        if len(counts) == 1 and self.kind.rank < 2:
            return self._many(block, counts[0], at, total)
        body = Block(arg_types=[IndexType(), self.kind])
        inner = self.sum(body, counts[1:], [*at, body.args[0]], body.args[1])
        return self._loop(block, counts[0], body, inner, total)

    def _many(self, block: Block, count: SSAValue, at: Sequence[SSAValue], total: SSAValue) -> SSAValue:
        """The same of numbers, which lie side by side, and of vectors: many at once."""
        location, dim, vectors = self.op.location, self.dims[-1], bool(self.kind.rank)
        most = max(1, min(_ROWS, _ELEMENTS // self.kind.shape[0])) if vectors else _TOGETHER
        kind = BlockType(dim, min(dim, most) if isinstance(dim, int) else most)
        number = append(block, BlockCountOp(kind, stop=count), location)
        body = Block(arg_types=[IndexType(), self.kind])
        place = append(body, BlockOp(body.args[0], kind, stop=count), location).result
        indices = [*at, place, *self.indices] if vectors else [*self.indices, *at, place]
        shares = append(body, LoadOp(self.memory, indices), location).result
        shares = append(body, ClipOp(shares, place, 0, 0.0 if self.kind.element_type in FLOATS else 0), location).result
        if vectors:
            shares = append(body, TransposeOp(shares), location).result
        added = append(body, AddOp(body.args[1], append(body, RowSumOp(shares), location).result), location)
        return self._loop(block, number.result, body, added.result, total)

    def _loop(self, block: Block, count: SSAValue, body: Block, inner: SSAValue, total: SSAValue) -> SSAValue:
        location = self.op.location
        append(body, scf.YieldOp(inner), location)
        zero, one = (append(block, constant(value), location).result for value in (0, 1))
        return append(block, scf.ForOp(zero, count, one, [total], body), location).results[0]
