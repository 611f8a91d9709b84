"""The pass `pk-stage-sums`: sums over ranks become slots at the owner, added up in rank order."""

from __future__ import annotations

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IndexType, IntegerAttr, UnitAttr, i64
from xdsl.ir import Block, BlockArgument, Operation, Region, SSAValue

from pkc.diagnostics import PkcError
from pkc.dialect.access import AccumulateOp, LoadOp, StoreOp
from pkc.dialect.arrays import array_type, is_pgl
from pkc.dialect.attributes import Role
from pkc.dialect.coordinates import BlockCountOp, BlockOp, DimOp, OwnerOp, RankOp
from pkc.dialect.counters import RaiseOp, SignalAllOp, SignalOp, WaitOp
from pkc.dialect.elementwise import AddOp
from pkc.dialect.program import AFTER_ALL, PACKETS, KernelOp, TasksOp
from pkc.dialect.tile import CastOp, FullOp, block_type, tile_type
from pkc.dialect.types import FLOATS, RANKS, BlockType, Layout, PGLType, SignalType, TileType, f32
from pkc.location import span_of
from pkc.passes import plan_errors as errors
from pkc.passes.analysis.apart import are_all_summed, have_other_constants
from pkc.passes.analysis.covering import block_of, covers
from pkc.passes.analysis.dependence import differs_by_rank, enclosing_tasks, is_one, sources, task_count
from pkc.passes.build import (
    add_parameter,
    add_role,
    append,
    before,
    constant,
    mark,
    mark_fresh,
    product_ops,
    turn_ops,
    wrap_in_role,
)
from pkc.passes.kernel_pass import KernelPass
from pkc.passes.program_slices import Known, close_loops, copy_value
from pkc.passes.roles.plan_warps import comm_sms
from pkc.passes.roles.remote_accesses import (
    REMOTE,
    array_name,
    divided_along,
    idle_tasks,
    in_packets,
    is_one_shot,
    planned,
    sums,
)
from pkc.passes.roles.straddling import overlapping, straddles
from pkc.passes.tile_groups import TileGroups, counter_ops, groups_along
from pkc.remarks import missed
from pkc.targets.target import target_of

CHUNKS = "chunks"
"""The attribute of tasks that add up tiles: how many chunks of rows, each a task, a tile is divided into."""


class StageSums(KernelPass):
    """Give each sum over ranks slots at the owner, one for each rank, arrival signals and tasks that add the slots up.

    Every rank stores its contribution in its slot at the owner of the tile and signals the tile's counter there.
    A communicator of the owner waits for as many signals as there are ranks, adds the slots in f32 in rank order,
    rounds once and stores: to itself (reduce-scatter), or to every rank (all-reduce, the two-shot algorithm). So the
    result is bit-equal from run to run. With `all_reduce=one_shot` every rank has slots for all tiles of a replicated
    array and adds up all contributions itself: more bytes, and nothing to send back. Tiles of many rows are added up in
    chunks, each a task, unless the communicator has separate SMs: their many threads add up a whole tile for each wait.
    A replicated array is divided among the owners by its first dimension. With the plan `none` there is one counter for
    a rank's whole contribution. With `copy_engine`, which cannot add to counters, each rank has a counter for every
    tile, and the owner awaits them one after the other.

    Before:

        pk.accumulate %t, %C[%m, %n : ...] : !pk.tile<128x256xbf16>, !pk.pgl<[M, N], bf16, shard 0>

    After:

        pk.role communicator {
          pk.tasks (%i, %j) in (%local_rows, %columns) {
            pk.wait %C_arrived[%i, %j] for %ranks : !pk.signal<[M by 128, N by 256]>
            %sum = scf.for %r = %zero to %ranks ... { ... pk.load %C_slots[%r, %m, %n : ...] ... pk.add ... }
            pk.store %rounded, %C[%m, %n : ...] : ...
        pk.role consumer { ...
            pk.store %t, %C_slots[%rank, %m, %n : ...] : !pk.tile<128x256xbf16>, !pk.pgl<[ranks, M, N], bf16, shard 1>
            pk.signal %C_arrived at %owner[%i, %j] by %one : !pk.signal<[M by 128, N by 256]>
    """

    name = "pk-stage-sums"

    def run(self, kernel: KernelOp) -> None:
        if kernel.in_any_order:
            return
        staged = [op for op in sums(kernel) if isinstance(op, AccumulateOp) and planned(op)]
        if not staged:
            return
        for op in staged:
            _check(kernel, op)
        for op in staged:
            _stage(kernel, op)
        wrap_in_role(kernel, Role.Consumer)


def _stage(kernel: KernelOp, op: AccumulateOp) -> None:
    name = array_name(op.array)
    mark_fresh(kernel, op.array)
    split = divided_along(op)
    kind = array_type(op.array)
    indices = tuple(op.indices)
    whole = planned(op) == "none"
    places = () if whole else tuple(i for i, index in enumerate(indices) if _varies(index))
    groups = groups_along(kind.dimensions, indices, places)
    copied = planned(op) == "copy_engine"
    one_shot = is_one_shot(kernel, op)
    if split is None and not one_shot:
        raise _refused(name, op, "the dimension to divide among its owners has no blocks")
    if split is None and any(dim != 1 for dim in kind.dimensions):
        why = f"no index of `{name}` goes through blocks of a dimension that is no constant"
        missed(
            StageSums.name,
            op,
            f"every rank gets all contributions and adds them up, with no owner: {why}",
            of_ranks=True,
        )
    dims = (*(2,) * in_packets(op), RANKS, *kind.dimensions)
    first = len(dims) - len(kind.dimensions)
    layout = (Layout.Replicate, None) if split is None or one_shot else (Layout.Shard, first + split)
    slots = add_parameter(kernel, f"{name}.slots", PGLType(dims, kind.element_type, *layout), op.location)
    more = (RANKS,) * copied + (2,) * in_packets(op)
    arrived_type = SignalType((*more, *groups.type.extents)) if more else groups.type
    arrived = add_parameter(kernel, f"{name}.arrived", arrived_type, op.location)
    for parameter in (slots, arrived) if in_packets(op) else ():
        mark(kernel, parameter, PACKETS)
    _add_up(kernel, op, split, groups, slots, arrived)
    _contribute(op, split, groups, slots, arrived)


_HINTS = {
    "it is summed by more than one statement": "put both statements into the same `tasks`",
    "several tasks of a rank contribute to one tile": "add up in a loop inside of the task, and contribute once",
    "which tiles a rank contributes to depends on the rank": "`=` stores what one rank alone has",
    "it stands in a loop or branch": "make the loop `tasks`, which may be nested",
    "some tiles of it may get no contribution": "tasks over all blocks, with an `if`, which adds zeros else",
    "the dimension to divide among its owners has no blocks": "`blocks(...)` in place of single positions",
}
"""What else may be written, by the reason of a refusal."""


def _check(kernel: KernelOp, op: AccumulateOp) -> None:
    name, together = array_name(op.array), [use.operation for use in op.array.uses]
    others = [other for other in together if isinstance(other, AccumulateOp) and other is not op]
    if not all(have_other_constants(op.indices, other.indices) for other in others):
        raise _refused(name, op, "it is summed by more than one statement")
    if any(count is None or not is_one(count) for count in map(task_count, idle_tasks(op))):
        raise _refused(name, op, "several tasks of a rank contribute to one tile")
    counts = [count for tasks in enclosing_tasks(op) for count in tasks.counts]
    if any(differs_by_rank(value) for value in sources([*op.indices, *counts])):
        reason = "which tiles a rank contributes to depends on the rank"
        if f"{name}.shares" in kernel.arguments:  # several of its tasks contribute, of which only one could store
            hint = "in place of the tasks that add to one tile a loop inside of a task, and `=` behind it; or "
            raise PkcError(errors.CannotStageSum(span_of(op.location), name, reason, hint))
        raise _refused(name, op, reason)
    if not isinstance(op.parent_op(), TasksOp):
        raise _refused(name, op, "it stands in a loop or branch")
    indices = {index for tasks in enclosing_tasks(op) for index in tasks.body.block.args}
    reached = [index for at in op.indices for index in sources([at]) & indices]
    diagonal = len(set(reached)) < len(reached)
    covered = map(covers, op.indices, array_type(op.array).dimensions)
    if diagonal or not all(found or are_all_summed(kernel, op, place) for place, found in enumerate(covered)):
        raise _refused(name, op, "some tiles of it may get no contribution")


def _refused(name: str, op: AccumulateOp, reason: str) -> PkcError:
    return PkcError(errors.CannotStageSum(span_of(op.location), name, reason, f"{_HINTS[reason]}; or "))


def _varies(index: SSAValue) -> bool:
    return not isinstance(index.type, BlockType) or isinstance(index.type.of, str)


def _contribute(
    op: AccumulateOp, split: int | None, groups: TileGroups, slots: BlockArgument, arrived: BlockArgument
) -> None:
    """In place of the sum: store to this rank's slot at the owner, or at all ranks, and signal its counter there."""
    indices = tuple(op.indices)
    rank, one = RankOp(), constant(1)
    owners = [] if split is None else [OwnerOp(block_of(indices[split]))]
    address, counter = counter_ops([indices[place] for place in groups.places])
    turn = turn_ops() if in_packets(op) else []
    half = [made.results[0] for made in turn[-1:]]
    counter = [*half, *counter]
    store = StoreOp(op.tile, slots, (*half, rank.result, *indices))
    announce: Operation
    if split is None or is_pgl(slots, Layout.Replicate):
        announce = SignalAllOp(arrived, counter, one)
    elif straddles(indices[split]):
        last = OwnerOp(block_of(indices[split]), last=True)
        address.append(last)
        announce = SignalAllOp(arrived, counter, one, first=owners[0].result, last=last.result)
    elif planned(op) != "copy_engine":
        announce = SignalOp(arrived, counter, owners[0], one)
    else:
        # The copy engine that moves the tile announces it too: both get the plan.
        announce = RaiseOp(arrived, (rank.result, *counter), owners[0], one)
        store.attributes[REMOTE] = announce.attributes[REMOTE] = op.attributes[REMOTE]
    before(op, [rank, one, *owners, *turn, *address, store, announce])
    op.detach()
    op.erase()


def _add_up(
    kernel: KernelOp,
    op: AccumulateOp,
    split: int | None,
    groups: TileGroups,
    slots: BlockArgument,
    arrived: BlockArgument,
) -> None:
    """The communicator: wait for all contributions to a tile, add them up, store the sum."""
    role_body = add_role(kernel, Role.Communicator, op)
    role = role_body.parent_op()
    assert role is not None
    if not in_packets(op):  # these order nothing but what they hold
        role.attributes[AFTER_ALL] = UnitAttr()
    turn = turn_ops() if in_packets(op) else []
    location = op.location
    rank, zero, one = RankOp(), constant(0), constant(1)
    ranks = DimOp(RANKS)
    for made in (rank, zero, one, ranks, *turn):
        append(role_body, made, location)
    body, known, counts = tasks_of_owner(role_body, op, split, None if is_pgl(slots, Layout.Replicate) else rank.result)
    expected = _expected(role_body, op, groups, ranks.result, counts)
    tasks = append(role_body, TasksOp(list(counts.values()), Region(body)), location)
    indices = [copy_value(body, index, known) for index in op.indices]
    one_shot = is_pgl(slots, Layout.Replicate)
    straddling = split is not None and straddles(op.indices[split]) and not one_shot
    at_group = body
    half = [made.results[0] for made in turn[-1:]]
    counter = [] if straddling else [*half, *_counter(body, op, [indices[place] for place in groups.places])]
    chunks = 1 if comm_sms(kernel) or split is None else _chunks(op, split)
    if split is not None and chunks > 1:
        indices[split] = _in_chunks(tasks, indices[split], chunks)
    if split is not None and straddling:
        at_group, tile = _overlapped(body, op, split, indices)
        counter = _counter(at_group, op, [tile if place == split else indices[place] for place in groups.places])
    narrow = _chunk_type(tile_type(op.tile), chunks)
    wide = TileType(narrow.shape, f32 if narrow.element_type in FLOATS else narrow.element_type)
    inner = Block(arg_types=[IndexType(), wide])
    bounds = (zero.result, ranks.result, one.result)
    copied = planned(op) == "copy_engine"
    if copied:
        each = Block(arg_types=[IndexType()])
        append(each, WaitOp(arrived, (each.args[0], *counter), one), location)
        append(each, scf.YieldOp(), location)
        append(body, scf.ForOp(*bounds, [], each), location)
    else:
        append(at_group, WaitOp(arrived, counter, expected), location)
    close_loops(body)
    total = _sum(tasks, inner, narrow, LoadOp(slots, (*half, inner.args[0], *indices)), bounds)
    store = append(body, StoreOp(total, op.array, indices, rank.result if one_shot else None), location)
    if (copied or in_packets(op)) and is_pgl(op.array, Layout.Replicate) and not one_shot:
        store.attributes[REMOTE] = op.attributes[REMOTE]


def _counter(block: Block, op: AccumulateOp, group: list[SSAValue]) -> list[SSAValue]:
    """The indices of the counter of a tile group, computed at the end of a block."""
    address, counter = counter_ops(group)
    for made in address:
        append(block, made, op.location)
    return counter


def _overlapped(body: Block, op: AccumulateOp, split: int, indices: list[SSAValue]) -> tuple[Block, SSAValue]:
    """A loop over the blocks of contributions that overlap a local block: its body, and the block of an iteration."""
    kind = block_type(op.indices[split])
    ops, first, stop = overlapping(indices[split], kind)
    one, inner = constant(1), Block(arg_types=[IndexType()])
    for made in (*ops, one, scf.ForOp(first, stop, one.result, [], inner)):
        append(body, made, op.location)
    return inner, append(inner, BlockOp(inner.args[0], kind), op.location).result


def tasks_of_owner(
    role_body: Block, op: AccumulateOp | StoreOp, split: int | None, rank: SSAValue | None
) -> tuple[Block, Known, dict[BlockArgument, SSAValue]]:
    """The tasks of the tiles that a rank owns, or of all: their body, what stands there for the values of the
    contribution, and how many values each task index takes."""
    counts: dict[BlockArgument, SSAValue] = {}
    outside: Known = {}
    if split is None:
        for tasks in reversed(enclosing_tasks(op)):
            for index, count in zip(tasks.body.block.args, tasks.counts, strict=True):
                counts[index] = copy_value(role_body, count, outside)
        body = Block(arg_types=[IndexType()] * len(counts))
        return body, dict(zip(counts, body.args, strict=True)), counts
    made = block_of(op.indices[split]).owner
    assert isinstance(made, BlockOp) and isinstance(made.index, BlockArgument)
    kind, sharded = block_type(made.result), made.in_shard
    for tasks in reversed(enclosing_tasks(op)):
        for index, count in zip(tasks.body.block.args, tasks.counts, strict=True):
            if index is made.index:
                counts[index] = append(role_body, BlockCountOp(kind, shard=rank, sharded=sharded), op.location).result
            else:
                counts[index] = copy_value(role_body, count, outside)
    body = Block(arg_types=[IndexType()] * len(counts))
    known: Known = {index: number for index, number in zip(counts, body.args, strict=True) if index is not made.index}
    number = body.args[list(counts).index(made.index)]
    block = append(body, BlockOp(number, kind, shard=rank, sharded=sharded), op.location)
    block.result.name_hint = made.result.name_hint
    known[made.result] = block.result
    return body, known, counts


def _expected(
    role_body: Block, op: AccumulateOp, groups: TileGroups, ranks: SSAValue, counts: dict[BlockArgument, SSAValue]
) -> SSAValue:
    """How many signals a counter gets: one from each rank for each tile of its tile group that this rank owns."""
    known = sources([op.indices[place] for place in groups.places])
    ops, total = product_ops([ranks, *(count for index, count in counts.items() if index not in known)])
    for made in ops:
        append(role_body, made, op.location)
    return total


def _chunks(op: AccumulateOp, split: int) -> int:
    """How many tasks add up one tile, each a chunk of rows: CTAs then end together, though some have more tiles."""
    kind = tile_type(op.tile)
    rows = kind.shape[0] if kind.rank else 1
    some = target_of(op).tuning.summed_rows
    if rows <= some:
        return 1
    obstacle = _chunk_obstacle(op, split, rows, some)
    if obstacle:
        missed(
            StageSums.name, op, f"one task adds up all {rows} rows of a tile of `{array_name(op.array)}`: {obstacle}"
        )
    return 1 if obstacle else rows // some


def _chunk_obstacle(op: AccumulateOp, split: int, rows: int, some: int) -> str:
    """Why a tile cannot be added up in chunks of `some` of its rows; empty if it can."""
    index, made = op.indices[split], op.indices[split].owner
    if not isinstance(made, BlockOp) or not (made.sharded is not None or straddles(index)):
        return "its blocks are not those of a list over all shards"
    if any(isinstance(before.type, BlockType) for before in op.indices[:split]):
        return "the sharded dimension is not that of its rows"
    if tile_type(op.tile).rank != 2 or rows != block_type(index).extent:
        return "it is not one block of rows by one of columns"
    return f"these are not a multiple of {some}" if rows % some else ""


def _in_chunks(tasks: TasksOp, block: SSAValue, chunks: int) -> SSAValue:
    """Let each task have a chunk of a block in place of the whole; the chunk."""
    made = block.owner
    assert isinstance(made, BlockOp) and isinstance(made.index, BlockArgument)
    number, kind = made.index, BlockType(block_type(block).of, block_type(block).extent // chunks)
    count = tasks.counts[number.index].owner
    assert isinstance(count, BlockCountOp)
    finer = BlockCountOp(kind, shard=count.shard, sharded=count.sharded is not None)
    before(tasks, [finer])
    tasks.operands = [finer.result if at == number.index else old for at, old in enumerate(tasks.operands)]
    tasks.attributes[CHUNKS] = IntegerAttr(chunks, i64)
    each = constant(chunks)
    whole = arith.DivSIOp(number, each.result)
    before(made, [each, whole])
    made.operands = [whole.result if operand is number else operand for operand in made.operands]
    found = BlockOp(number, kind, shard=made.shard, sharded=made.sharded is not None)
    found.result.name_hint = block.name_hint
    return append(tasks.body.block, found, tasks.location).result


def _chunk_type(kind: TileType, chunks: int) -> TileType:
    return TileType((kind.shape[0] // chunks, *kind.shape[1:]), kind.element_type) if chunks > 1 else kind


def _sum(
    tasks: TasksOp, inner: Block, narrow: TileType, load: LoadOp, bounds: tuple[SSAValue, SSAValue, SSAValue]
) -> SSAValue:
    """The slots of one tile added in f32 in rank order by a loop that `inner` begins, in the array's type."""
    body, location, wide = tasks.body.block, tasks.location, tile_type(inner.args[1])
    start = append(body, FullOp(0, wide), location)
    value: SSAValue = append(inner, load, location).result
    if value.type != wide:
        value = append(inner, CastOp(value, wide.element_type), location).result
    total = append(inner, AddOp(inner.args[1], value), location)
    append(inner, scf.YieldOp(total), location)
    first, last, step = bounds
    loop = append(body, scf.ForOp(first, last, step, [start], inner), location)
    loop.results[0].name_hint = "total"
    if wide == narrow:
        return loop.results[0]
    return append(body, CastOp(loop.results[0], narrow.element_type), location).result
