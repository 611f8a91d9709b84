"""The pass `pk-stage-remote-stores`: a copy engine sends tiles to other ranks from a local buffer."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import scf
from xdsl.dialects.builtin import IndexType, UnitAttr
from xdsl.ir import Block, BlockArgument, SSAValue

from pkc.dialect.access import StoreOp
from pkc.dialect.arrays import array_type
from pkc.dialect.attributes import Role
from pkc.dialect.coordinates import BlockCountOp, BlockOp, RankOp
from pkc.dialect.copies import CopyOp
from pkc.dialect.counters import RaiseOp, WaitOp
from pkc.dialect.program import AFTER_ALL, KernelOp, TasksOp
from pkc.dialect.types import PrivateType
from pkc.passes.analysis.dependence import role_around, sources
from pkc.passes.build import add_parameter, add_role, append, before, constant, wrap_in_role
from pkc.passes.kernel_pass import KernelPass
from pkc.passes.program_slices import Known, close_loops, copy_nest, copy_value, variables
from pkc.passes.roles.remote_accesses import REMOTE, array_name, planned
from pkc.passes.tile_groups import counter_ops, groups_along
from pkc.remarks import missed


class StageRemoteStores(KernelPass):
    """Let a copy engine send the tiles of each store planned `copy_engine`.

    The task stores its tile in a local buffer and raises the tile's counter there. The copy engine goes
    through the same tasks: it waits for the counter, copies the tile and, if the store was announced to its reader,
    announces the copy. Where the tasks of a row of tiles go through all of its dimension, it waits for the whole row,
    copies that at once and announces each tile: a copy takes microseconds to begin, a tile less to move.

    Before:

        pk.tasks (%i, %j) in (%rows, %columns) {
          ...
          pk.store %t, %Y[%m, %n : ...] {remote = {overlap = "copy_engine", ...}} : ..., !pk.pgl<[M, N], f32, replicate>

    After:

        pk.role copy_engine {
          pk.tasks (%i) in (%rows) {
            scf.for %j = %zero to %columns step %one {
              pk.wait %Y_computed[%row, %column] for %one : !pk.signal<[M by 128, N by 256]>
            }
            pk.copy %Y_staged[%m : ...] along [0] to %Y[%m : ...] along [0] : ...
        pk.role consumer {
          pk.tasks (%i, %j) in (%rows, %columns) {
            ...
            pk.store %t, %Y_staged[%m, %n : ...] : !pk.tile<128x256xf32>, !pk.private<[M, N], f32>
            pk.raise %Y_computed at %rank[%row, %column] to %one : !pk.signal<[M by 128, N by 256]>
    """

    name = "pk-stage-remote-stores"

    def run(self, kernel: KernelOp) -> None:
        stores = [op for op in kernel.walk() if isinstance(op, StoreOp) and planned(op) == "copy_engine"]
        if not stores:
            return
        for store in stores:
            _stage(kernel, store)
        wrap_in_role(kernel, Role.Consumer)


def _stage(kernel: KernelOp, store: StoreOp) -> None:
    name, kind, location = array_name(store.array), array_type(store.array), store.location
    # A dimension of slots has an index for each rank, and the buffer is local.
    kept = [place for place, index in enumerate(store.indices) if not isinstance(index.owner, RankOp)]
    dims = [kind.dimensions[place] for place in kept]
    indices = [store.indices[place] for place in kept]
    groups = groups_along(dims, indices, range(len(indices)))
    staged = add_parameter(kernel, f"{name}.staged", PrivateType(dims, kind.element_type), location)
    computed = add_parameter(kernel, f"{name}.computed", groups.type, location)

    role_body = add_role(kernel, Role.CopyEngine, store)
    around = role_around(store)
    engine = role_body.parent_op()
    if around is not None and engine is not None and AFTER_ALL in around.attributes:
        engine.attributes[AFTER_ALL] = UnitAttr()  # each copy follows what the role around the store has done
    announced = _announcement(store)
    row = _row(store, announced)
    known: Known = {}
    places = [place for place in range(len(store.indices)) if row is None or place != row.place]
    wanted = variables(store, [store.indices[place] for place in places])
    body = copy_nest(role_body, store, wanted, known)
    target = {place: copy_value(body, store.indices[place], known) for place in places}
    source = {number: target[place] for number, place in enumerate(kept) if place in target}

    one = append(body, constant(1), location).result
    inner, inside = _columns(body, store, row, known)
    tile = [copy_value(inner, index, inside) for index in indices]
    address, counter = counter_ops(tile)
    for op in (*address, WaitOp(computed, counter, one)):
        append(inner, op, location)
    append(body, CopyOp(staged, source, store.array, target), location)
    if announced is not None:
        inner, inside = _columns(body, store, row, known)
        where = [copy_value(inner, value, inside) for value in announced.indices]
        rank, value = (copy_value(inner, value, inside) for value in (announced.rank, announced.value))
        append(inner, RaiseOp(announced.signal, where, rank, value), location)
        announced.detach()
        announced.erase()
    close_loops(role_body)

    rank, value = RankOp(), constant(1)
    address, counter = counter_ops(indices)
    local = StoreOp(store.tile, staged, indices)
    before(store, [local, rank, value, *address, RaiseOp(computed, counter, rank, value)])
    store.detach()
    store.erase()


@dataclass(frozen=True)
class _Row:
    """The last dimension of a store whose tasks go through all of it: its place, task index, and number of blocks."""

    place: int
    index: BlockArgument
    count: SSAValue


def _row(store: StoreOp, announced: RaiseOp | None) -> _Row | None:
    """The row of tiles that a tile belongs to, if all its tiles are stored and differ only in their place."""
    place = len(store.indices) - 1
    block, tasks = store.indices[place].owner, store.parent_op()
    index = block.index if isinstance(block, BlockOp) else None
    if not isinstance(index, BlockArgument) or not isinstance(tasks, TasksOp):
        return _tile_by_tile(store, "its last index is no block that a task index numbers")
    if index.owner is not tasks.body.block or len(tasks.counts) < 2:
        return _tile_by_tile(store, "its tasks have no other index within which they go through a row")
    count = tasks.counts[index.index]
    length = count.owner
    assert isinstance(block, BlockOp)
    bounds = (block.shard, block.start, block.stop)
    whole = isinstance(length, BlockCountOp) and length.block == block.result.type and not length.operands
    if not whole or block.sharded is not None or any(bound is not None for bound in bounds):
        return _tile_by_tile(store, "its tasks do not go through whole rows")
    others = [*store.indices[:place], *(() if announced is None else (announced.rank, announced.value))]
    if index in sources(others):
        return _tile_by_tile(store, "where a tile goes depends on its place in the row")
    return _Row(place, index, count)


def _tile_by_tile(store: StoreOp, reason: str) -> None:
    missed(
        StageRemoteStores.name, store, f"a copy for each tile of `{array_name(store.array)}`, not for a row: {reason}"
    )


def _columns(body: Block, store: StoreOp, row: _Row | None, known: Known) -> tuple[Block, Known]:
    """The body of a loop over the tiles of a row, and what is known in it; without a row, where the copy is."""
    if row is None:
        return body, known
    zero, one = (append(body, constant(number), store.location).result for number in (0, 1))
    inner = Block(arg_types=[IndexType()])
    append(body, scf.ForOp(zero, copy_value(body, row.count, known), one, [], inner), store.location)
    return inner, {**known, row.index: inner.args[0]}


def _announcement(store: StoreOp) -> RaiseOp | None:
    """The operation that announces a store to its reader, and is planned with it."""
    op = store.next_op
    while op is not None and not isinstance(op, StoreOp):
        if isinstance(op, RaiseOp) and op.attributes.get(REMOTE) is not None:
            return op
        op = op.next_op
    return None
