"""The pass `pk-stage-remote-reads`: operands of other ranks are fetched ahead, by a communicator."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IndexType, ModuleOp
from xdsl.ir import Block, BlockArgument, Operation, Region, SSAValue
from xdsl.passes import ModulePass

from pkc.diagnostics import PkcError
from pkc.dialect.access import LoadOp, RaiseOp, SignalAllOp, SignalOp, StoreOp, WaitOp, array_type
from pkc.dialect.attributes import Role, RoleAttr
from pkc.dialect.copies import CopyOp
from pkc.dialect.program import CtasOp, DimOp, KernelOp, RankOp, RingPeerOp, RoleOp, TasksOp
from pkc.dialect.tile import ClipOp
from pkc.dialect.types import RANKS, Layout, PGLType, PrivateType
from pkc.location import span_of
from pkc.passes import plan_errors as errors
from pkc.passes.cells import Cells, cells_along, constant, counter_ops, product_ops, repeats
from pkc.passes.dependence import ancestors, sources
from pkc.passes.derive import add_parameter, add_role, append, before, defined_in, wrap_in_role
from pkc.passes.edges import EDGE, Read, address, array_name, is_pushed, planned, remote_reads, shard_of
from pkc.passes.pushes import push_of
from pkc.passes.slices import CannotCopyError, Known, close_loops, copy_nest, copy_value, variables

_STAGED = ("inter_sm", "none", "copy_engine")


@dataclass(frozen=True)
class StageRemoteReads(ModulePass):
    """Give each remote operand that is fetched ahead a landing buffer, a communicator and readiness signals.

    The communicator runs the loops that the operand's address depends on, and no others: it fetches every tile once,
    stores it in the landing buffer and, when a cell is complete, raises its counter. The reader waits for the counter
    and reads the landing buffer. Cells: with `inter_sm` the tiles that agree in task indices and in the sharded
    dimension; with `none` there is one cell, signalled when everything has arrived. With `copy_engine` cells are those
    of `inter_sm`, but a copy engine brings each of them in one `pk.copy`, the own ones too.

    An operand with `direction = "push"` in its plan is sent instead: its owner's communicator loads each of its own
    tiles once and stores it in the landing buffers of all ranks, the next rank's first, and raises their counters.

    Before:

        pk.tasks (%i, %j) in (%rows, %columns) {
          ...
          %a = pk.load %A[%m, %k : ...] {edge = {overlap = "inter_sm", ...}} : !pk.pgl<[M, K], bf16, shard 0> -> ...

    After:

        pk.role communicator {
          pk.tasks (%i) in (%rows) {
            scf.for %s = %zero to %steps step %one {
              %a = pk.load %A[%m, %k : ...] : !pk.pgl<[M, K], bf16, shard 0> -> !pk.tile<128x64xbf16>
              pk.store %a, %A_landing[%m, %k : ...] : !pk.tile<128x64xbf16>, !pk.private<[M, K], bf16>
            }
            pk.raise %A_ready at %rank[%row] to %one : !pk.signal<[M by 128]>
        pk.role consumer {
          pk.tasks (%i, %j) in (%rows, %columns) {
            pk.wait %A_ready[%row] for %one : !pk.signal<[M by 128]>
            ...
              %a = pk.load %A_landing[%m, %k : ...] : !pk.private<[M, K], bf16> -> !pk.tile<128x64xbf16>
    """

    name = "pk-stage-remote-reads"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel in op.walk():
            if isinstance(kernel, KernelOp):
                _stage_kernel(kernel)


def _stage_kernel(kernel: KernelOp) -> None:
    reads = [op for op in remote_reads(kernel) if planned(op) in _STAGED and _role_of(op) is None]
    if not reads:
        return
    for read in reads:
        try:
            _stage(kernel, read)
        except CannotCopyError:
            raise PkcError(errors.CannotStage(span_of(read.location), array_name(read.array))) from None
    wrap_in_role(kernel, Role.Consumer)


def can_stage(read: Read) -> bool:
    """Whether a communicator can know the address of a read, and when a cell is complete."""
    scratch, known = Block(), Known()
    try:
        landing, places = _landing(read)
        loops = variables(read, address(read))
        _comes_back(_cells(read, landing, places, loops), places, loops)
        body = copy_nest(scratch, read, loops, known)
        for value in (*address(read), *places):
            copy_value(body, value, known)
    except CannotCopyError:
        return False
    finally:
        for op in list(scratch.ops):
            scratch.erase_op(op, safe_erase=False)
    return True


def _stage(kernel: KernelOp, read: Read) -> None:
    name = array_name(read.array)
    landing_type, places = _landing(read)
    loops = variables(read, address(read))
    cells = Cells((), ()) if planned(read) == "none" else _cells(read, landing_type, places, loops)
    pushed = is_pushed(read)
    if pushed:
        landing_type = PGLType(landing_type.dimensions, landing_type.element_type, Layout.Symmetric)
    landing = add_parameter(kernel, f"{name}.landing", landing_type, read.location)
    ready = add_parameter(kernel, f"{name}.ready", cells.type, read.location)
    bring = _push if pushed else _fetch
    bring(kernel, read, loops, cells, landing, ready, places)
    _await(read, cells, landing, ready, places)


def _landing(read: Read) -> tuple[PrivateType, tuple[SSAValue, ...]]:
    """The type of the landing buffer, and the indices at which the tile of `read` lies in it."""
    kind = array_type(read.array)
    if isinstance(read, LoadOp):
        return PrivateType(kind.dimensions, kind.element_type), tuple(read.indices)
    table = read.rows.owner
    while isinstance(table, ClipOp):
        table = table.tile.owner
    if not isinstance(table, LoadOp):
        raise CannotCopyError
    dims = (*array_type(table.array).dimensions, *kind.dimensions[1:])
    return PrivateType(dims, kind.element_type), (*table.indices, *read.indices)


def _cells(read: Read, landing: PrivateType, indices: tuple[SSAValue, ...], loops: list[SSAValue]) -> Cells:
    """The dimensions along which tiles are awaited one by one."""
    tasks = {v for v in loops if _is_task(v.owner)}
    sharded = shard_of(read.array) if isinstance(read, LoadOp) else None
    places: list[int] = []
    for place, index in enumerate(indices):
        varies = sources([index]) & set(loops)
        if varies and (place == sharded or varies <= tasks):
            places.append(place)
    return cells_along(landing.dimensions, indices, places)


def _is_task(owner: Operation | Block) -> bool:
    return isinstance(owner, Block) and isinstance(owner.parent_op(), TasksOp)


def _one_task(block: Block, read: Read) -> Block:
    """The body of a single task, so that one CTA fetches what depends on no task."""
    one = append(block, constant(1), read.location)
    body = Block(arg_types=[IndexType()])
    append(block, TasksOp([one.result], Region(body)), read.location)
    return body


def _fetch(
    kernel: KernelOp,
    read: Read,
    loops: list[SSAValue],
    cells: Cells,
    landing: BlockArgument,
    ready: BlockArgument,
    places: tuple[SSAValue, ...],
) -> None:
    """The communicator's part."""
    copied = planned(read) == "copy_engine"
    part = add_role(kernel, Role.CopyEngine if copied else Role.Communicator, read.location)
    known: Known = {}
    top = part if any(_is_task(v.owner) for v in loops) else _one_task(part, read)
    whole = planned(read) == "none"
    again = [] if whole else _comes_back(cells, places, loops)
    at_cell = copy_nest(top, read, [v for v in loops if v not in again], known)
    cell = [copy_value(at_cell, places[place], known) for place in cells.places]
    if copied:
        # A whole cell at once: everything along the dimensions that only the inner loops go through.
        inner = set(again)
        box = {
            place: copy_value(at_cell, index, known)
            for place, index in enumerate(places)
            if inner.isdisjoint(sources([index]))
        }
        append(at_cell, CopyOp(read.array, box, landing, box), read.location)
        _announce(at_cell, ready, cell, read, RaiseOp)
        close_loops(part)
        return
    body = copy_nest(at_cell, read, again, known)
    tile = copy_value(body, read.results[0], known)
    if isinstance(tile.owner, Operation):
        tile.owner.attributes.pop(EDGE, None)
    indices = [copy_value(body, index, known) for index in places]
    append(body, StoreOp(tile, landing, indices), read.location)
    if whole:
        _announce(part, ready, [], read, SignalOp)
    else:
        _announce(at_cell, ready, cell, read, RaiseOp)
    close_loops(part)


def _push(
    kernel: KernelOp,
    read: Read,
    loops: list[SSAValue],
    cells: Cells,
    landing: BlockArgument,
    ready: BlockArgument,
    places: tuple[SSAValue, ...],
) -> None:
    """The communicator's part of an owner, which sends its tiles to all ranks, the next one first."""
    part = add_role(kernel, Role.Communicator, read.location)
    rank = append(part, RankOp(), read.location).result
    known: Known = {}
    push = push_of(read, loops)
    push.enter(part, rank, known)
    own = push.loops(loops)
    top = part if any(_is_task(v.owner) for v in own) else _one_task(part, read)
    whole = planned(read) == "none"
    again = [] if whole else _comes_back(cells, places, loops)
    at_cell = copy_nest(top, read, [v for v in own if v not in again], known)
    push.inside(at_cell, rank, known)
    cell = [copy_value(at_cell, places[place], known) for place in cells.places]
    body = copy_nest(at_cell, read, again, known)
    tile = copy_value(body, read.results[0], known)
    if isinstance(tile.owner, Operation):
        tile.owner.attributes.pop(EDGE, None)
    indices = [copy_value(body, index, known) for index in places]
    inner, peer = _peers(body, read)
    append(inner, StoreOp(tile, landing, indices, peer), read.location)
    zero, one = constant(0), constant(1)
    if whole:
        for op in (zero, one, SignalAllOp(ready, (zero.result,), one)):
            append(part, op, read.location)
    else:
        inner, peer = _peers(at_cell, read)
        ops, counter = counter_ops(cell)
        for op in (*ops, one, RaiseOp(ready, counter, peer, one)):
            append(inner, op, read.location)
    close_loops(part)


def _peers(block: Block, read: Read) -> tuple[Block, SSAValue]:
    """A loop over all ranks, from the one after this to this one: its body, and the rank."""
    zero, one, ranks = (append(block, op, read.location) for op in (constant(0), constant(1), DimOp(RANKS)))
    inner = Block(arg_types=[IndexType()])
    append(block, scf.ForOp(zero.results[0], ranks.results[0], one.results[0], [], inner), read.location)
    after = constant(1)
    step = arith.AddiOp(inner.args[0], after.result)
    peer = RingPeerOp(step.result)
    for op in (after, step, peer):
        append(inner, op, read.location)
    return inner, peer.result


def _comes_back(cells: Cells, places: tuple[SSAValue, ...], loops: list[SSAValue]) -> list[SSAValue]:
    """The innermost loops, which all pieces of one cell are fetched by: only after them is the cell announced."""
    again = repeats(cells, places, loops)
    if loops[len(loops) - len(again) :] != again or any(_is_task(v.owner) for v in again):
        raise CannotCopyError
    return again


def _announce(
    block: Block, ready: BlockArgument, cell: list[SSAValue], read: Read, how: type[SignalOp] | type[RaiseOp]
) -> None:
    ops, counter = counter_ops(cell)
    rank, one = RankOp(), constant(1)
    for op in (*ops, rank, one, how(ready, counter, rank, one)):
        append(block, op, read.location)


def _await(
    read: Read,
    cells: Cells,
    landing: BlockArgument,
    ready: BlockArgument,
    places: tuple[SSAValue, ...],
) -> None:
    """The reader's part: wait as early as the cell is known, read the landing buffer."""
    awaited = [places[place] for place in cells.places]
    anchor = _earliest(read, awaited)
    ops, counter = counter_ops(awaited)
    # With one cell for all, each CTA of the communicator signals when its share is done; or of those of all ranks.
    made: list[Operation] = [CtasOp(RoleAttr(Role.Communicator)) if planned(read) == "none" else constant(1)]
    count = made[0].results[0]
    if planned(read) == "none" and is_pushed(read):
        made.append(DimOp(RANKS))
        product, count = product_ops([count, made[1].results[0]])
        made += product
    before(anchor, [*ops, *made, WaitOp(ready, counter, count)])
    load = LoadOp(landing, places)
    before(read, [load])
    load.result.name_hint = read.results[0].name_hint
    read.results[0].replace_all_uses_with(load.result)
    read.detach()
    read.erase()


def _earliest(read: Read, awaited: list[SSAValue]) -> Operation:
    """The outermost operation around `read`, inside its tasks, before which all that is awaited is known."""
    anchor: Operation = read
    for parent in ancestors(read):
        if isinstance(parent, TasksOp) or any(defined_in(value, parent) for value in awaited):
            return anchor
        anchor = parent
    return anchor


def _role_of(op: Operation) -> RoleOp | None:
    return next((parent for parent in ancestors(op) if isinstance(parent, RoleOp)), None)
