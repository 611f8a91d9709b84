"""The pass `pk-plan-transfers`: how each tile moves between memory and the role that accesses it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

from xdsl.dialects.builtin import DictionaryAttr, ModuleOp, StringAttr
from xdsl.ir import Operation, SSAValue

from pkc.dialect.access import AddToArrayOp, AllReduceOp, LoadOp, ReadOp, ReduceOp, StoreOp
from pkc.dialect.arrays import array_type
from pkc.dialect.attributes import Role
from pkc.dialect.by_table import ByTable, GatherOp, ScatterAddOp, ScatterStoreAddOp, ScatterStoreOp
from pkc.dialect.coordinates import BlockOp
from pkc.dialect.machine import MAP_DIMENSIONS
from pkc.dialect.program import DIVISORS, WRITTEN, KernelOp, RoleOp, kernel_of, packed
from pkc.dialect.roles import CommitOp
from pkc.dialect.tile import block_type, tile_type
from pkc.dialect.transfers import ASYNC, REGISTER, TMA, TRANSFER, boxes, moves_by_tma, stage_of, transfer, unread_axes
from pkc.dialect.types import BlockType, PGLType, PrivateType, dtype_bytes, f32, row_of
from pkc.dialect.words import begin_of, every_shard
from pkc.location import describe
from pkc.passes.analysis.boxed_rows import boxes_of
from pkc.passes.analysis.computed_rows import computed
from pkc.passes.analysis.dependence import ancestors
from pkc.passes.analysis.multiples import cut_blocks, position_multiple
from pkc.passes.analysis.row_lengths import between_rows, divisor
from pkc.passes.kernel_pass import KernelPass
from pkc.passes.roles.around import comes_with_more
from pkc.passes.roles.boxed import why_no_boxes
from pkc.passes.roles.remote_accesses import array_name, reached
from pkc.passes.roles.straddling import on_several_ranks
from pkc.remarks import missed
from pkc.targets.layout import BOX
from pkc.targets.target import target_of

_OTHERS: dict[type[Operation], str] = {
    ReadOp: "one element",
    GatherOp: "rows that the table leaves out are zero, which no copy writes",
    ReduceOp: "added up where it is read",
    ScatterStoreOp: "each row goes where the table says",
    ScatterStoreAddOp: "each element is added at its place",
    ScatterAddOp: "each element is added at its place",
    AllReduceOp: "added up where it is read",
}
"""Accesses that ordinary instructions carry out, and why."""

_LAST_BLOCK = "; by threads the last block, which may end inside of the array"

_GRANULE = 16
"""Bytes that a row of a TMA box must be a multiple of (CUDA driver API: cuTensorMapEncodeTiled)."""

_ELEMENT = 4
"""Bytes of an element that threads start a copy of (PTX ISA: cp.async)."""


class PlanTransfers(KernelPass):
    """Write on each access of a derived kernel how it moves its tile: by `tma`, `async`, or through a `register`.

    What goes through untouched goes by TMA: loads into the stages of a channel, stores of what lies in a stage, copies
    from one array to another. What is computed with or made where it is accessed has to be in registers. So has what
    TMA cannot express: short rows, rows that a table names, unless some in a row lie behind each other
    (`pk-plan-boxes`); and everything on a target without TMA. Other rows that a table names and that go into their
    stage as they are go there `async`: threads start copies of 16 bytes and go on, and so do single elements and rows
    of 4 bytes each that are no box, or that begin where TMA finds none. A block may end inside of its array, where TMA
    does not stop: such a tile is loaded by TMA if nothing reads what lies past the end (`pk-plan-padding`), and stored
    from its stage by TMA where the block is whole, else by threads.

    A tile that leaves its stage for another rank goes a few `rows` at a time, each read before the next is begun: an SM
    carries out its copies in order, so that the loads for the next tile would wait until the link has taken all of it.

    Before:

        %a = pk.load %A[%m, %k : ...] : ...
        pk.commit %0, %a : ...

    After:

        %a = pk.load %A[%m, %k : ...] {transfer = {by = "tma", why = "goes into its stage as it is"}} : ...
        pk.commit %0, %a : ...
    """

    name = "pk-plan-transfers"
    ONLY_DERIVED = True

    def run(self, kernel: KernelOp) -> None:
        ops = list(kernel.walk())
        for op in ops:
            if isinstance(op, LoadOp):
                anywhere = comes_with_more(op)
                by, why = (TMA, f"each row with what lies around it: {_too_much(op)}") if anywhere else _of_load(op)
                whole = by == TMA and bool(cut_blocks(op, unread_axes(op)))
                op.attributes[TRANSFER] = transfer(
                    by, f"{why}{_LAST_BLOCK}" if whole else why, whole=whole, anywhere=anywhere
                )
                if whole:
                    _remark_last_block(op, "load")
            if isinstance(op, GatherOp) and boxes(op) is not None and not _no_boxes(op):
                op.attributes[TRANSFER] = transfer(TMA, "some of its rows lie behind each other, and a box has them")
                continue
            if type(op) in _OTHERS:
                copied = isinstance(op, GatherOp) and _is_copied(op)
                op.attributes[TRANSFER] = transfer(ASYNC if copied else REGISTER, _by_threads(op))
            if isinstance(op, ByTable):
                reason = f"rows of `{array_name(op.array)}` do not move by TMA: {_by_threads(op)}"
                missed(PlanTransfers.name, op, reason)
        remote = {op for op, _ in reached(kernel)}
        for op in ops:
            if isinstance(op, AddToArrayOp):
                op.attributes[TRANSFER] = transfer(*_of_addition(op, op in remote))
        for op in ops:  # what is stored may be a load's
            if isinstance(op, StoreOp):
                by, why = _of_store(op)
                whole = by == TMA and stage_of(op.tile) is not None and bool(cut_blocks(op))
                if whole:
                    why = f"{why}{_LAST_BLOCK}"
                    _remark_last_block(op, "store")
                rows = _rows_at_a_time(op) if by == TMA and op in remote and not whole else None
                if rows is not None:
                    why = f"{why}, {rows} rows at a time: loads of the same SM wait behind it"
                op.attributes[TRANSFER] = transfer(by, why, rows, whole=whole)


def _no_boxes(op: GatherOp) -> str:
    """Why TMA does not bring the boxes that were found (`pk-plan-boxes`); empty if it does."""
    found = boxes_of(op)
    return "its tables are others now" if found is None else why_no_boxes(op, found)


def _by_threads(op: Operation) -> str:
    """Why ordinary instructions carry out an access."""
    if isinstance(op, GatherOp) and boxes(op) is not None:
        return _no_boxes(op)
    found = computed(op.rows) if isinstance(op, GatherOp) else ""
    if not found:
        return _OTHERS[type(op)]
    return f"`{found}` is computed for each position, and threads load what it names: TMA copies boxes"


def _of_load(op: LoadOp) -> tuple[str, str]:
    users = [use.operation for use in op.result.uses]
    stores = [user for user in users if isinstance(user, StoreOp)]
    if packed(op):
        return REGISTER, "each element comes with the epoch"
    if stores and all(map(packed, users)):
        return REGISTER, "its threads make packets of it"
    if len(stores) < len(users) and not all(isinstance(user, CommitOp) for user in users):
        return REGISTER, "used where it is loaded"
    if stores and _is_written(op):
        reason = "its role does more than copy, so that its threads carry the tile"
        _remark(op, "copied", reason)
        return REGISTER, reason
    for access in (op, *stores):
        if reason := _too_much(access):
            _remark(op, "loaded", reason)
            return ASYNC if _is_copied(op) else REGISTER, reason
    return TMA, "stored as it is: through shared memory" if stores else "goes into its stage as it is"


def _is_copied(op: LoadOp | GatherOp) -> bool:
    """Whether threads that move tiles put one into its stage as it is, 16 bytes at once, or 4 of what is no box of
    TMA, and need not wait for it."""
    kind, target = tile_type(op.result), target_of(op)
    *_, role = ancestors(op)
    moves = isinstance(role, RoleOp) and role.role.data in (Role.Loader, Role.Communicator)
    size = dtype_bytes(kind.element_type)
    if isinstance(op, GatherOp):
        fits = bool(kind.shape) and kind.shape[-1] * size % _GRANULE == 0 and size > 1
        fits = fits if op.of_rows or op.ends_in_block else size == _ELEMENT
    else:
        fits = size == _ELEMENT and (kind.rank < 2 or not _begins_aligned(op))
    users = [use.operation for use in op.result.uses]
    return ASYNC in target.transfers and moves and fits and len(users) == 1 and isinstance(users[0], CommitOp)


def _is_written(op: Operation) -> bool:
    """Whether an operation stands in a role of an author; what only copies has been split by now."""
    kernel = kernel_of(op)
    return kernel is not None and WRITTEN in kernel.attributes


def _of_store(op: StoreOp) -> tuple[str, str]:
    if packed(op):
        return REGISTER, "each element goes with the epoch"
    if isinstance(op.tile.owner, LoadOp):
        by = TMA if moves_by_tma(op.tile.owner) else REGISTER
        return by, "takes the way of the load"
    if stage_of(op.tile) is None:
        return REGISTER, "made where it is stored"
    if reason := _too_much(op):
        _remark(op, "stored", reason)
        return REGISTER, reason
    return TMA, "leaves its stage as it is"


def _of_addition(op: AddToArrayOp, remote: bool) -> tuple[str, str]:
    by_threads = "each element is added at its place"
    if stage_of(op.tile) is None or remote or tile_type(op.tile).element_type != f32:
        return REGISTER, by_threads
    if reason := _too_much(op):
        _remark(op, "added", reason)
        return REGISTER, f"{by_threads}: {reason}"
    return TMA, "added from its stage as it is"


def _rows_at_a_time(op: StoreOp) -> int | None:
    """How many rows of a staged tile make a chunk; nothing if it moves as a whole."""
    kind = tile_type(op.tile)
    if stage_of(op.tile) is None or kind.rank != 2:
        return None
    target = target_of(op)
    width = target.shared_layout(kind).width
    rows = target.tuning.store_bytes // width
    fits = rows and kind.shape[0] > rows and kind.shape[0] % rows == 0 and rows * width % BOX == 0
    return rows if fits else None


def _remark(op: LoadOp | StoreOp | AddToArrayOp, what: str, reason: str) -> None:
    """Say of a tile that it does not go by TMA; a row is little to move."""
    if tile_type(op.result if isinstance(op, LoadOp) else op.tile).rank > 1:
        missed(PlanTransfers.name, op, f"`{array_name(op.array)}` is not {what} by TMA: {reason}")


def _remark_last_block(op: LoadOp | StoreOp, verb: str) -> None:
    """Say that threads move one of the blocks."""
    reason = "which may end inside of the array, where TMA does not stop"
    missed(PlanTransfers.name, op, f"threads {verb} the last block of `{array_name(op.array)}`, {reason}")


def _too_much(op: LoadOp | StoreOp | AddToArrayOp) -> str:
    """What TMA cannot do about an access; empty if there is nothing."""
    target = target_of(op)
    if TMA not in target.transfers:
        return f"{target.name} has no TMA"
    array = array_type(op.array)
    last = op.indices[-1].type
    row = dtype_bytes(array.element_type) * (last.extent if isinstance(last, BlockType) else 1)
    if row % _GRANULE:
        return f"rows of {row} bytes: TMA moves multiples of {_GRANULE}"
    if reason := rows_apart(op):
        return reason
    if target.shared_layout(tile_type(op.result if isinstance(op, LoadOp) else op.tile)).spare:
        return "beside rows that begin anywhere it lies in its stage as they do"
    if not isinstance(op, LoadOp) and tile_type(op.tile).rank == 1 and (reason := _row_by_threads(op)):
        return reason
    owners = ((axis, index.owner) for axis, index in enumerate(op.indices))
    blocks = [(axis, block) for axis, block in owners if isinstance(block, BlockOp)]
    if cut_blocks(op, unread_axes(op)) and (isinstance(op, AddToArrayOp) or not _is_staged(op)):
        return "the last block may end inside of the array, where TMA does not stop"
    if on_several_ranks(op):
        return "its rows go to several ranks, and no TMA store begins before an array"
    in_shards = {axis for axis, block in blocks if block.in_shard and not _fills_shards(op, block)}
    read_on = _read_on(op) if isinstance(op, LoadOp) else set[int]()
    sharded = in_shards - read_on | _shards(op.array)
    if len(sharded) > 1:
        return "follows the shards of two dimensions, a tensor map those of one"
    if not _begins_aligned(op):
        return f"its blocks may begin where no multiple of {_GRANULE} bytes is, which TMA needs"
    copies = isinstance(array, PGLType) and array.shard_dim is None
    dims = len(array.dimensions) + copies + any(block.in_shard for _, block in blocks)
    return f"{dims} dimensions: a tensor map has {MAP_DIMENSIONS}" if dims > MAP_DIMENSIONS else ""


def _begins_aligned(op: LoadOp | StoreOp | AddToArrayOp) -> bool:
    """Whether the first element of each row of a tile lies at a multiple of what TMA moves, for all sizes and ranks.

    Else hardware ends with an illegal instruction. Rows of an array begin so (`Array`), shards of rows as well.
    """
    block, array = op.indices[-1].owner, array_type(op.array)
    if not isinstance(block, BlockOp):
        return True
    of_shard = isinstance(array, PGLType) and array.shard_dim == len(array.dimensions) - 1
    kind = block_type(block.result)
    if not block.in_shard:
        begins = position_multiple(block, partial(_size_multiple, op))
    else:
        begins = kind.extent if of_shard else math.gcd(kind.extent, divisor(op, every_shard(kind.of)) or 1)
    return begins * dtype_bytes(array.element_type) % _GRANULE == 0


def _is_staged(op: LoadOp | StoreOp) -> bool:
    """Whether threads could move the tile of an access into its stage, or out of it, too."""
    if tile_type(op.result if isinstance(op, LoadOp) else op.tile).rank < 2:
        return False
    if isinstance(op, StoreOp):
        return stage_of(op.tile) is not None
    return all(isinstance(use.operation, CommitOp) for use in op.result.uses)


def _read_on(op: LoadOp) -> set[int]:
    """The dimensions of an array along which a load may go on past the end of its block."""
    dims = [dim for dim, index in enumerate(op.indices) if isinstance(index.type, BlockType)]
    return {dims[axis] for axis in unread_axes(op)}


def rows_apart(op: LoadOp | StoreOp | AddToArrayOp) -> str:
    """Whether the rows of an array begin where TMA finds none, and where they do."""
    between = between_rows(op)
    if between % _GRANULE == 0:
        return ""
    return f"its rows begin {between} bytes, or a multiple of that, behind each other, and with TMA {_GRANULE}"


def _fills_shards(op: LoadOp | StoreOp | AddToArrayOp, block: BlockOp) -> bool:
    """Whether blocks end where shards do, so that none of them reaches into the next shard."""
    kind = block_type(block.result)
    each = divisor(op, every_shard(kind.of))
    return each is not None and each % kind.extent == 0


def _size_multiple(op: Operation, dim: str) -> int:
    """What a size at whose multiples blocks of rows begin is surely a multiple of: what the launch says, for nothing
    checks it, as tensor maps check the lengths of rows."""
    return divisor(op, begin_of(dim)) or 1


def _row_by_threads(op: StoreOp | AddToArrayOp) -> str:
    """Why TMA cannot store a row, whatever it begins with; empty if it can.

    The launch says what lengths of rows are multiples of, if arrays that it gets have such rows. Of those that passes
    add alone nothing is known, nor of any without a launch.
    """
    array = array_type(op.array)
    *outer, last = array.dimensions
    size = dtype_bytes(array.element_type)
    padded = isinstance(array, PrivateType) and array.padded
    if not outer or padded or (isinstance(last, int) and last * size % _GRANULE == 0):
        return ""
    if _is_written(op):
        return "an author says in which order rows are stored, which TMA does not keep"
    kernel = kernel_of(op)
    assert kernel is not None
    given = [arg.type for arg in kernel.body.block.args if not kernel.is_scratch(arg)]
    arrays = (kind for kind in given if isinstance(kind, PGLType | PrivateType))
    alike = (kind for kind in arrays if kind.rank > 1 and row_of(array) in (kind.dimensions[-1], row_of(kind)))
    said = DIVISORS in kernel.attributes and any(dtype_bytes(kind.element_type) <= size for kind in alike)
    # What is said is no multiple was refused before (`rows_apart`).
    if said or divisor(op, row_of(array)) is not None:
        return ""
    return f"rows of the array may begin where no multiple of {_GRANULE} bytes is, which TMA needs"


def _shards(array: SSAValue) -> set[int]:
    kind = array_type(array)
    return {kind.shard_dim} if isinstance(kind, PGLType) and kind.shard_dim is not None else set()


@dataclass(frozen=True)
class TransferPlan:
    """How one access moves its tile, and why."""

    place: str
    access: str
    array: str
    by: str
    why: str

    def __str__(self) -> str:
        return f"{self.place}: {self.access} of `{self.array}`: by {self.by} ({self.why})"


def explain_transfers(module: ModuleOp) -> list[TransferPlan]:
    """What the pass decided, for each access that moves a tile."""
    found: list[TransferPlan] = []
    for op in module.walk():
        plan = op.attributes.get(TRANSFER)
        if isinstance(plan, DictionaryAttr) and isinstance(op, LoadOp | StoreOp):
            by, why = plan.data["by"], plan.data["why"]
            assert isinstance(by, StringAttr) and isinstance(why, StringAttr)
            access = "load" if isinstance(op, LoadOp) else "store"
            found.append(TransferPlan(describe(op.location), access, array_name(op.array), by.data, why.data))
    return found
