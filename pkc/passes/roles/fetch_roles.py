"""The roles that fill receive buffers: communicators that pull or push, copy engines that copy."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IndexType, IntegerAttr, i64
from xdsl.ir import Block, Operation, Region, SSAValue

from pkc.dialect.access import StoreOp
from pkc.dialect.attributes import Role
from pkc.dialect.by_table import GatherOp
from pkc.dialect.coordinates import BlockOp, DimOp, OwnerOp, RankOp, RingPeerOp
from pkc.dialect.copies import CopyOp
from pkc.dialect.counters import RaiseOp, SignalAllOp, SignalOp
from pkc.dialect.fetch import FetchOp
from pkc.dialect.program import IN_ORDER, RASTER, KernelOp, TasksOp
from pkc.dialect.tile import block_type
from pkc.dialect.types import RANKS
from pkc.passes.analysis.dependence import sources
from pkc.passes.build import add_role, append, before, constant
from pkc.passes.program_slices import Known, close_loops, copy_nest, copy_value, iterations_of
from pkc.passes.roles.fetches import Fetch, is_task, read_of, split_index
from pkc.passes.roles.pushes import push_of
from pkc.passes.roles.remote_accesses import REMOTE, Read, is_pushed
from pkc.passes.roles.straddling import follow_shards, overlapping
from pkc.passes.roles.visits import is_visited, skipping_loop
from pkc.passes.tile_groups import counter_ops
from pkc.targets.target import target_of


def pull(kernel: KernelOp, fetch: Fetch) -> None:
    """A communicator goes through the loops of the reads, loads each tile once and stores it here."""
    role, body, counter, known = _loops(kernel, fetch, Role.Communicator)
    again = [variable for variable in fetch.again if variable not in fetch.spread]
    if isinstance(fetch.read, GatherOp) and sources([fetch.read.rows]).isdisjoint(again):
        copy_value(body, fetch.read.rows, known)  # once for all tiles of the rows
    inner = _in_group(body, fetch, known) if fetch.by_group else copy_nest(body, fetch.read, again, known)
    for op, tile in _tiles(inner, fetch, known):
        append(inner, StoreOp(tile, op.buffer, _copies(inner, op.places, known)), fetch.read.location)
    if fetch.straddling is not None:
        around = role.parent_op()
        assert around is not None
        # A copy is of one rank's rows, whoever reads them.
        follow_shards(around, block_type(fetch.straddling).of)
    if fetch.whole:
        _announce(role, fetch, [], SignalOp, known)
    elif fetch.straddling is not None:
        _announce_overlapping(body, fetch, counter, known)
    else:
        # Counters that several CTAs add to count; a single one says which launch it has seen.
        counted = (fetch.group and not fetch.by_group) or not set(fetch.again).isdisjoint(fetch.spread)
        _announce(body, fetch, counter, SignalOp if counted else RaiseOp, known)
    close_loops(role)


def copy(kernel: KernelOp, fetch: Fetch) -> None:
    """A copy engine copies all of a counter at once: everything along the dimensions that inner loops go through."""
    role, body, counter, known = _loops(kernel, fetch, Role.CopyEngine)
    again = set(fetch.again)
    for op in fetch.by_buffer:
        outer = {place: index for place, index in enumerate(op.places) if again.isdisjoint(sources([index]))}
        box = {place: copy_value(body, index, known) for place, index in outer.items()}
        append(body, CopyOp(read_of(op).array, box, op.buffer, box), read_of(op).location)
    _announce(body, fetch, counter, RaiseOp, known)
    close_loops(role)


def push(kernel: KernelOp, fetch: Fetch) -> None:
    """A communicator goes through the local tiles of the reads, and stores each in the buffers of all ranks."""
    role, body, counter, known = _loops(kernel, fetch, Role.Communicator)
    inner = copy_nest(body, fetch.read, fetch.again, known)
    for op, tile in _tiles(inner, fetch, known):
        indices = _copies(inner, op.places, known)
        each, peer = _peers(inner, fetch.read)
        append(each, StoreOp(tile, op.buffer, indices, peer), fetch.read.location)
    zero, one = constant(0), constant(1)
    if fetch.whole:
        for op in (zero, one, SignalAllOp(fetch.first.ready, (zero.result,), one)):
            append(role, op, fetch.read.location)
    else:
        each, peer = _peers(body, fetch.read)
        ops, indices = counter_ops(counter)
        for op in (*ops, one, RaiseOp(fetch.first.ready, indices, peer, one)):
            append(each, op, fetch.read.location)
    close_loops(role)


def _loops(kernel: KernelOp, fetch: Fetch, kind: Role) -> tuple[Block, Block, list[SSAValue], Known]:
    """A new role with the loops of the reads, up to where a counter is known: the role, there, the counter's indices,
    and what is known there. If local shards stay where they are, that is in a branch for the others; if only what tasks
    visit is fetched, in one for that."""
    role, known = add_role(kernel, kind, fetch.read), Known()
    loops, rank, ring = fetch.loops, None, fetch.listed_ring
    listed = push_of(fetch.read, loops) if is_pushed(fetch.read) else ring
    if listed is not None:
        rank = append(role, RankOp(), fetch.read.location).result if listed is not ring else None
        listed.enter(role, rank, known)
        loops = listed.loops(loops)
    spread = [variable for variable in fetch.spread if variable in loops]
    wanted = [variable for variable in loops if variable not in fetch.again or variable in spread]
    top = role if spread or any(map(is_task, loops)) else _one_task(role, fetch.read)
    body = copy_nest(top, fetch.read, wanted, known, spread)
    if listed is not None:
        listed.inside(body, rank, known)
    tasks = body.parent_op()
    if spread and isinstance(tasks, TasksOp):
        # A ring begins at this rank, as other orders of tasks do.
        in_order = len(spread) - (ring is not None)
        tasks.attributes |= {IN_ORDER: IntegerAttr(in_order, i64)} if in_order else {}
        if fetch.group and len(tasks.counts) == 2:
            tasks.attributes[RASTER] = IntegerAttr(target_of(kernel).tuning.fetched_rows, i64)
    if fetch.by_group and isinstance(tasks, TasksOp):
        _share_groups(tasks, fetch, known)
    counter = _copies(body, fetch.counter(fetch.first), known)
    if fetch.first.local is None:
        return role, _if_visited(body, fetch, known), counter, known
    left = set(fetch.again).difference(spread)
    _copies(body, [place for place in fetch.first.places if left.isdisjoint(sources([place]))], known)
    return role, _if_visited(_unless_local(body, fetch, known), fetch, known), counter, known


def _share_groups(tasks: TasksOp, fetch: Fetch, known: Known) -> None:
    """Give tasks one more index, for the groups of tiles of the innermost loop: first come the first ones of all that
    the other indices number. So tasks that wait for different rows, and share the other operand of a matmul, go on
    together."""
    scratch = Block()
    tiles, others = (
        append(scratch, constant(number), fetch.read.location) for number in (fetch.group, fetch.group - 1)
    )
    count = copy_value(scratch, iterations_of(fetch.again[-1]), known)
    most = append(scratch, arith.AddiOp(count, others.result), fetch.read.location)
    groups = append(scratch, arith.DivSIOp(most.result, tiles.result), fetch.read.location)
    for op in list(scratch.ops):
        op.detach()
        before(tasks, [op])
    tasks.operands = [groups.result, *tasks.counts]
    tasks.body.block.insert_arg(IndexType(), 0)


def _in_group(body: Block, fetch: Fetch, known: Known) -> Block:
    """A loop over the tiles of the group that the first index of the tasks numbers."""
    variable, location = fetch.again[-1], fetch.read.location
    inner = Block(arg_types=[IndexType()])
    zero, one, tiles = constant(0), constant(1), constant(fetch.group)
    for op in (zero, one, tiles):
        append(body, op, location)
    first = append(body, arith.MuliOp(body.args[0], tiles.result), location)
    left = append(body, arith.SubiOp(copy_value(body, iterations_of(variable), known), first.result), location)
    some = append(body, arith.MinSIOp(left.result, tiles.result), location)
    append(body, scf.ForOp(zero.result, some.result, one.result, [], inner), location)
    known[variable] = append(inner, arith.AddiOp(first.result, inner.args[0]), location).result
    return inner


def _unless_local(body: Block, fetch: Fetch, known: Known) -> Block:
    """A branch for blocks of other ranks."""
    index = split_index(fetch.first)
    assert index is not None
    owner, rank = OwnerOp(copy_value(body, index, known)), RankOp()
    foreign = arith.CmpiOp(owner.result, rank.result, "ne")
    for op in (owner, rank, foreign):
        append(body, op, fetch.read.location)
    return _branch(body, foreign.result, fetch)


def _if_visited(body: Block, fetch: Fetch, known: Known) -> Block:
    """A branch for tiles that a task of this rank visits, if others are not fetched."""
    loop = skipping_loop(fetch) if fetch.first.visited is not None else None
    return body if loop is None else _branch(body, is_visited(body, fetch, loop, known), fetch)


def _branch(body: Block, condition: SSAValue, fetch: Fetch) -> Block:
    branch = scf.IfOp(condition, [], Region(Block()), Region())
    return append(body, branch, fetch.read.location).true_region.block


def _copies(block: Block, values: Sequence[SSAValue], known: Known) -> list[SSAValue]:
    return [copy_value(block, value, known) for value in values]


def _one_task(block: Block, read: Read) -> Block:
    """The body of a single task, so that one CTA fetches what depends on no task."""
    one = append(block, constant(1), read.location)
    body = Block(arg_types=[IndexType()])
    append(block, TasksOp([one.result], Region(body)), read.location)
    return body


def _tiles(body: Block, fetch: Fetch, known: Known) -> list[tuple[FetchOp, SSAValue]]:
    """A fetch for each receive buffer, with the tile of its read, which is read anew."""
    found: list[tuple[FetchOp, SSAValue]] = []
    for op in fetch.by_buffer:
        tile = copy_value(body, op.tile, known)
        assert isinstance(tile.owner, Operation)
        tile.owner.attributes.pop(REMOTE, None)
        found.append((op, tile))
    return found


def _peers(block: Block, read: Read) -> tuple[Block, SSAValue]:
    """A loop over all ranks, from the one after this to this one: its body, and the rank."""
    inner = Block(arg_types=[IndexType()])
    zero, ranks, one = constant(0), DimOp(RANKS), constant(1)
    for op in (zero, ranks, one, scf.ForOp(zero.result, ranks.result, one.result, [], inner)):
        append(block, op, read.location)
    following = append(inner, constant(1), read.location)
    step = append(inner, arith.AddiOp(inner.args[0], following.result), read.location)
    return inner, append(inner, RingPeerOp(step.result), read.location).result


def _announce_overlapping(block: Block, fetch: Fetch, counter: list[SSAValue], known: Known) -> None:
    """Signal all blocks of the reader that a copy overlaps: they may straddle shards, and a copy does not."""
    straddling = fetch.straddling
    assert straddling is not None
    place = fetch.counter(fetch.first).index(straddling)
    ops, first, stop = overlapping(counter[place], block_type(straddling))
    one = constant(1)
    inner = Block(arg_types=[IndexType()])
    for op in (*ops, one, scf.ForOp(first, stop, one.result, [], inner)):
        append(block, op, fetch.read.location)
    reached = append(inner, BlockOp(inner.args[0], block_type(straddling)), fetch.read.location)
    _announce(inner, fetch, [*counter[:place], reached.result, *counter[place + 1 :]], SignalOp, known)


def _announce(
    block: Block, fetch: Fetch, counter: list[SSAValue], how: type[SignalOp] | type[RaiseOp], known: Known
) -> None:
    ops, indices = fetch.counter_ops(counter)
    rank, one = RankOp(), constant(1)
    ops += (rank, one)
    if fetch.group and fetch.again:
        if fetch.by_group:
            indices.append(block.args[0])
        else:
            tiles = constant(fetch.group)
            number = arith.DivSIOp(known[fetch.again[-1]], tiles.result)
            ops += (tiles, number)
            indices.append(number.result)
    for op in (*ops, how(fetch.first.ready, indices, rank, one)):
        append(block, op, fetch.read.location)
