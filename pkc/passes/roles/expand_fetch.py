"""The pass `pk-expand-fetch`: the roles that fetch, their signals, and what the readers wait for."""

from __future__ import annotations

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import FunctionType
from xdsl.ir import Block, BlockArgument, Operation, Region, SSAValue
from xdsl.rewriter import Rewriter

from pkc.dialect.access import LoadOp
from pkc.dialect.attributes import Role, RoleAttr
from pkc.dialect.coordinates import CtasOp, DimOp, FirstVisitedOp, OwnerOp, RankOp
from pkc.dialect.counters import WaitOp
from pkc.dialect.fetch import FetchOp
from pkc.dialect.program import WRITTEN, KernelOp, RoleOp
from pkc.dialect.tile import block_type
from pkc.dialect.types import RANKS, SignalType
from pkc.passes.analysis.effects import is_side_effect_free
from pkc.passes.build import append, before, constant, product_ops, wrap_in_role
from pkc.passes.kernel_pass import KernelPass
from pkc.passes.program_slices import copy_value, iterations_of
from pkc.passes.roles.fetch_roles import copy, pull, push
from pkc.passes.roles.fetches import (
    Fetch,
    await_before,
    fetches,
    grouped_place,
    in_shard,
    loop_of,
    read_of,
    split_index,
)
from pkc.passes.roles.remote_accesses import is_pushed, planned
from pkc.passes.roles.straddling import overlapping
from pkc.passes.splits import split_of


class ExpandFetch(KernelPass):
    """Make of each transfer the role that fetches its tiles, the signals, and the readers' waits and loads.

    The role runs the loops that the tiles depend on, and no others. A communicator loads every tile once and stores it
    in the receive buffer, or every one that a task of this rank visits. It raises a counter when all of its tiles have
    arrived, or adds to it where CTAs share them. A copy engine fetches all tiles of a counter in one `pk.copy`. An
    owner that pushes stores in the buffers of all ranks. A reader waits as early as its tiles are known; for tiles in
    groups at the first one of each. A local shard is neither fetched nor awaited.

    Before:

        pk.tasks (%i, %j) in (%rows, %columns) {
          ...
          scf.for %s = %zero to %steps step %one {
            %0 = pk.load %A[%m, %k : ...] {remote = {overlap = "inter_sm", ...}} : ...
            %a = pk.fetch %0 into %A_fetched[%m, %k : ...] ready %A_ready local spread 1 group 8 : ...

    After:

        pk.role communicator {
          pk.tasks (%i, %s) in (%rows, %steps) attributes {in_order = 1, raster = 16} {
            %foreign = arith.cmpi ne, %owner, %rank : index
            scf.if %foreign {
              %a = pk.load %A[%m, %k : ...] : !pk.pgl<[M, K], bf16, shard 0> -> !pk.tile<128x64xbf16>
              pk.store %a, %A_fetched[%m, %k : ...] : !pk.tile<128x64xbf16>, !pk.private<[M, K], bf16>
              %group = arith.divsi %s, %eight : index
              pk.signal %A_ready at %rank[%row, %group] by %one : !pk.signal<[M by 128, K by 512]>
        pk.role consumer {
          pk.tasks (%i, %j) in (%rows, %columns) {
            scf.for %s = %zero to %steps step %one {
              scf.if %first_of_foreign_group {
                pk.wait %A_ready[%row, %group] for %needed : !pk.signal<[M by 128, K by 512]>
              }
              %a = pk.load %A_fetched local %A [%m, %k : ...] : !pk.private<[M, K], bf16> -> !pk.tile<128x64xbf16>
    """

    name = "pk-expand-fetch"

    def run(self, kernel: KernelOp) -> None:
        found = fetches(kernel)
        for fetch in found:
            _expand(kernel, fetch)
        # There may be roles of `pk-stage-rows`. Integers beside roles that an author wrote are for all of these.
        beside = [op for op in kernel.body.block.ops if not isinstance(op, RoleOp)]
        written = WRITTEN in kernel.attributes or all(map(is_side_effect_free, beside))
        if found or (kernel.roles and not written):
            wrap_in_role(kernel, Role.Consumer)


def _expand(kernel: KernelOp, fetch: Fetch) -> None:
    read = fetch.read
    expand = push if is_pushed(read) else copy if planned(read) == "copy_engine" else pull
    expand(kernel, fetch)
    for site in fetch.sites:
        _await(fetch, site[0])
    if fetch.group:
        _count_groups(kernel, fetch)
    for op in fetch.ops:
        _read_buffer(op)


def _count_groups(kernel: KernelOp, fetch: Fetch) -> None:
    """A counter for each group of tiles."""
    ready, place = fetch.first.ready, grouped_place(fetch)
    assert isinstance(ready, BlockArgument) and isinstance(ready.type, SignalType) and place is not None
    longer, extents = fetch.longer(block_type(fetch.first.places[place])), list(ready.type.extents)
    if fetch.again:
        extents.append(longer)
    else:
        extents[fetch.groups.places.index(place)] = longer
    kind = SignalType(extents)
    Rewriter.replace_value_with_new_type(ready, kind)
    kernel.function_type = FunctionType.from_lists([arg.type for arg in kernel.body.block.args], [])


def _read_buffer(op: FetchOp) -> None:
    read = read_of(op)
    load = LoadOp(op.buffer, list(op.places), local=read.array if op.local is not None else None)
    before(op, [load])
    load.result.name_hint = op.result.name_hint
    op.result.replace_all_uses_with(load.result)
    for done in (op, read):
        done.detach()
        done.erase()


def _await(fetch: Fetch, op: FetchOp) -> None:
    """Wait for the tiles that `op` reads, as early as it is known which."""
    awaited = fetch.counter(op)
    anchor = await_before(op, awaited)
    numbers, counter = ([], []) if fetch.group else fetch.counter_ops(awaited)
    signals, count = _signals(fetch)
    before(anchor, [*numbers, *signals])
    local: SSAValue | None = None
    if op.local is not None:
        index = split_index(op)
        assert index is not None
        owner, rank = OwnerOp(index), RankOp()
        mine = arith.CmpiOp(owner.result, rank.result, "eq")
        before(anchor, [owner, rank, mine])
        local = mine.result
    if fetch.group:
        _await_groups(fetch, op, anchor, count, local)
        return
    scratch = Block()
    shared = [variable for variable in fetch.again if variable in fetch.spread]
    lengths = [copy_value(scratch, iterations_of(variable), {}) for variable in shared]
    made: list[Operation] = list(scratch.ops)
    for each in made:
        each.detach()
    if lengths:
        multiply, count = product_ops([count, *lengths])
        made += multiply
    if local is not None:
        zero = constant(0)
        needed = arith.SelectOp(local, zero.result, count)
        made += (zero, needed)
        count = needed.result
    before(anchor, [*made, WaitOp(op.ready, counter, count)])


def _signals(fetch: Fetch) -> tuple[list[Operation], SSAValue]:
    """How many signals a counter gets in a launch; for each tile, if CTAs share them."""
    # With one counter for all, each CTA of the communicator signals when its share is done; or those of all ranks.
    made: list[Operation] = [CtasOp(RoleAttr(Role.Communicator)) if fetch.whole else constant(1)]
    if fetch.straddling is not None and not fetch.whole:
        # One signal for each block of a shard that overlaps the reader's block.
        found, begin, end = overlapping(fetch.straddling, block_type(fetch.straddling), sharded=True)
        made = [*found, arith.SubiOp(end, begin)]
    if fetch.whole and is_pushed(fetch.read):
        ranks = DimOp(RANKS)
        made += (ranks, arith.MuliOp(made[0].results[0], ranks.result))
    return made, made[-1].results[0]


def _await_groups(fetch: Fetch, op: FetchOp, outermost: Operation, each: SSAValue, local: SSAValue | None) -> None:
    """Wait in the loop that reads the tiles, at the first one of each group. `outermost` is the first operation around
    `op` before which it is known which are awaited (`await_before`)."""
    place = grouped_place(fetch)
    index = op.places[place] if place is not None else None
    loop = loop_of(index) if index is not None else None
    assert index is not None and loop is not None
    body, rows = loop.body.block, bool(fetch.again)
    inside_first = split_of(loop) is not None or isinstance(loop.lb.owner, FirstVisitedOp)
    anchor = body.first_op if rows else outermost
    assert anchor is not None
    numbers, counter = fetch.counter_ops(fetch.counter(op))
    if rows:
        before(outermost, numbers)
    number, count, ops = (body.args[0], iterations_of(body.args[0]), []) if rows else in_shard(index)
    tiles, zero = constant(fetch.group), constant(0)
    group, inside = arith.DivSIOp(number, tiles.result), arith.RemSIOp(number, tiles.result)
    ops += [tiles, zero, group, inside, arith.CmpiOp(inside.result, zero.result, "eq")]
    if inside_first:
        # A split, or what a task visits, may begin inside a group, whose other tiles are signalled too.
        enters = arith.CmpiOp(body.args[0], loop.lb, "eq")
        ops += [enters, arith.OrIOp(ops[-1].results[0], enters.result)]
    if local is not None:
        yes = arith.ConstantOp.from_int_and_width(1, 1)
        foreign = arith.XOrIOp(local, yes.result)
        ops += [yes, foreign, arith.AndIOp(ops[-1].results[0], foreign.result)]
    branch = scf.IfOp(ops[-1].results[0], [], Region(Block()), Region())
    before(anchor, [*ops, branch])
    needed: list[Operation] = [] if rows else list(numbers)
    if fetch.by_group:
        needed.append(constant(1))
    else:
        first = number
        if inside_first:
            needed.append(arith.MuliOp(group.result, tiles.result))
            first = needed[-1].results[0]
        needed.append(arith.SubiOp(count, first))
        needed.append(arith.MinSIOp(needed[-1].results[0], tiles.result))
        if fetch.straddling is not None:
            needed.append(arith.MuliOp(each, needed[-1].results[0]))
    counters = [*counter, *([group.result] if rows else [])]
    needed += [WaitOp(op.ready, counters, needed[-1].results[0]), scf.YieldOp()]
    for inner in needed:
        append(branch.true_region.block, inner, loop.location)
