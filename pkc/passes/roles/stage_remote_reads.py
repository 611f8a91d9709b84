"""The pass `pk-stage-remote-reads`: operands of other ranks are fetched ahead, by a communicator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, BlockArgument, Operation, SSAValue
from xdsl.passes import ModulePass

from pkc.diagnostics import PkcError
from pkc.dialect.access import LoadOp, array_type
from pkc.dialect.attributes import Role, RoleAttr
from pkc.dialect.coordinates import CtasOp, DimOp
from pkc.dialect.counters import WaitOp
from pkc.dialect.program import KernelOp, RoleOp, TasksOp
from pkc.dialect.tile import ClipOp, block_type
from pkc.dialect.types import RANKS, Layout, PGLType, PrivateType
from pkc.location import span_of
from pkc.passes import plan_errors as errors
from pkc.passes.analysis.dependence import ancestors, sources
from pkc.passes.cells import Cells, cells_along, constant, counter_ops, product_ops
from pkc.passes.derive import add_parameter, before, defined_in, wrap_in_role
from pkc.passes.roles.bring import Staging, comes_back, copy, fetch, is_task, push
from pkc.passes.roles.program_slices import CannotCopyError, Known, copy_nest, copy_value, variables
from pkc.passes.roles.remote_accesses import Read, address, array_name, is_pushed, planned, remote_reads, shard_of
from pkc.passes.roles.straddling import overlapping

_STAGED = ("inter_sm", "none", "copy_engine")


@dataclass(frozen=True)
class StageRemoteReads(ModulePass):
    """Give each remote operand that is fetched ahead a landing buffer, a communicator and readiness signals.

    The communicator runs the loops that the operand's address depends on, and no others: it fetches every tile once,
    stores it in the landing buffer and, when a cell is complete, raises its counter. The reader waits for the counter
    and reads the landing buffer. Cells: with `inter_sm` the tiles that agree in task indices and in the sharded
    dimension; with `none` there is one cell, signalled when everything has arrived. With `copy_engine` cells are those
    of `inter_sm`, but a copy engine brings each of them in one `pk.copy`, the own ones too.

    Operands that are read side by side at the same place, as K and V of attention, are brought together: by one part,
    with one counter for both.

    An operand with `direction = "push"` in its plan is sent instead: its owner's communicator loads each of its own
    tiles once and stores it in the landing buffers of all ranks, the next rank's first, and raises their counters.

    Before:

        pk.tasks (%i, %j) in (%rows, %columns) {
          ...
          %a = pk.load %A[%m, %k : ...] {remote = {overlap = "inter_sm", ...}} : !pk.pgl<[M, K], bf16, shard 0> -> ...

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
    for together in _alike(reads):
        try:
            _stage(kernel, together)
        except CannotCopyError:
            read = together[0]
            raise PkcError(errors.CannotStage(span_of(read.location), array_name(read.array))) from None
    wrap_in_role(kernel, Role.Consumer)


def _alike(reads: Sequence[Read]) -> list[list[Read]]:
    """Reads that one part brings with one counter: of the same tiles of arrays alike, side by side."""
    groups: list[list[Read]] = []
    for read in reads:
        for group in groups:
            if _is_alike(group[0], read):
                group.append(read)
                break
        else:
            groups.append([read])
    return groups


def _is_alike(one: Read, other: Read) -> bool:
    if not isinstance(one, LoadOp) or not isinstance(other, LoadOp) or one.array is other.array:
        return False
    same_place = one.parent is other.parent and tuple(one.indices) == tuple(other.indices)
    return same_place and shard_of(one.array) == shard_of(other.array) and planned(one) == planned(other)


def can_stage(read: Read) -> bool:
    """Whether a communicator can know the address of a read, and when a cell is complete."""
    scratch, known = Block(), Known()
    try:
        landing, places = _landing(read)
        loops = variables(read, address(read))
        comes_back(_cells(read, landing, places, loops), places, loops)
        body = copy_nest(scratch, read, loops, known)
        for value in (*address(read), *places):
            copy_value(body, value, known)
    except CannotCopyError:
        return False
    finally:
        for op in list(scratch.ops):
            scratch.erase_op(op, safe_erase=False)
    return True


def _stage(kernel: KernelOp, reads: Sequence[Read]) -> None:
    first = reads[0]
    kind, places = _landing(first)
    loops = variables(first, address(first))
    cells = Cells((), ()) if planned(first) == "none" else _cells(first, kind, places, loops)
    landings: list[BlockArgument] = []
    for read in reads:
        kind, _ = _landing(read)
        if is_pushed(read):
            kind = PGLType(kind.dimensions, kind.element_type, Layout.Symmetric)
        landings.append(add_parameter(kernel, f"{array_name(read.array)}.landing", kind, read.location))
    names = "_".join(array_name(read.array) for read in reads)
    ready = add_parameter(kernel, f"{names}.ready", cells.type, first.location)
    staging = Staging(reads, landings, places, loops, cells, ready)
    bring = push if is_pushed(first) else copy if planned(first) == "copy_engine" else fetch
    bring(kernel, staging)
    _await(staging)


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
    tasks = set(filter(is_task, loops))
    sharded = shard_of(read.array) if isinstance(read, LoadOp) else None
    places: list[int] = []
    for place, index in enumerate(indices):
        varies = sources([index]) & set(loops)
        if varies and (place == sharded or varies <= tasks):
            places.append(place)
    return cells_along(landing.dimensions, indices, places)


def _await(staging: Staging) -> None:
    """The reader's part: wait as early as the cell is known, read the landing buffers."""
    first = staging.first
    awaited = [staging.places[place] for place in staging.cells.places]
    ops, counter = counter_ops(awaited)
    # With one cell for all, each CTA of the communicator signals when its share is done; or of those of all ranks.
    made: list[Operation] = [CtasOp(RoleAttr(Role.Communicator)) if staging.whole else constant(1)]
    count = made[0].results[0]
    if staging.spanning is not None and not staging.whole:
        # One signal of each piece that a rank owns, which follow the parts.
        found, begin, end = overlapping(staging.spanning, block_type(staging.spanning), sharded=True)
        pieces = arith.SubiOp(end, begin)
        made, count = [*found, pieces], pieces.result
    if staging.whole and is_pushed(first):
        made.append(DimOp(RANKS))
        product, count = product_ops([count, made[1].results[0]])
        made += product
    before(_earliest(first, awaited), [*ops, *made, WaitOp(staging.ready, counter, count)])
    for read, landing in zip(staging.reads, staging.landings, strict=True):
        load = LoadOp(landing, staging.places)
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
