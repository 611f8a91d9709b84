"""The pass `pk-align-rows`: operands of MMAs whose rows begin anywhere are copied first, to rows that TMA moves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.dialects.builtin import BoolAttr, IndexType, StringAttr
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.traits import is_side_effect_free

from pkc.dialect.access import LoadOp, StoreOp
from pkc.dialect.arrays import array_type
from pkc.dialect.attributes import Role, RoleAttr
from pkc.dialect.blocks import padded_length
from pkc.dialect.coordinates import BlockCountOp, BlockOp, DimOp
from pkc.dialect.program import KernelOp, TasksOp
from pkc.dialect.tile import AnyMmaOp, tile_type
from pkc.dialect.transfers import TMA
from pkc.dialect.types import BlockType, Dim, PrivateType, dtype_bytes
from pkc.passes.analysis.clusters import cluster_of
from pkc.passes.analysis.covering import covers
from pkc.passes.analysis.dependence import enclosing_tasks, sources, written_arrays
from pkc.passes.analysis.row_lengths import between_rows
from pkc.passes.build import add_parameter, append, before, constant
from pkc.passes.entries import times
from pkc.passes.kernel_pass import KernelPass
from pkc.passes.roles.assign_roles import ROLE
from pkc.passes.roles.remote_accesses import array_name, remote_stores, sums
from pkc.remarks import missed
from pkc.targets.layout import CHUNK
from pkc.targets.target import Operands, target_of

ALIGNED_COPIES = "aligned_copies"
"""The key of the schedule."""

_AXES, _MOST_ROWS = 2, 256
"""Axes of what a task copies, and the most rows: those of a box of TMA."""


class AlignRows(KernelPass):
    """Copy arrays whose rows begin anywhere to scratch memory whose rows begin at multiples of 32 bytes, before tasks
    that load the same operands of MMAs again and again.

    TMA moves no rows that begin elsewhere. Threads do, and are several times as slow as the MMAs: with N odd, `gemm` of
    4096 took 1.13 ms, and takes 0.18 with N even. The copy goes through each row once, in a phase of its own. It takes
    as much memory as the array with padded rows: `aligned_copies=false` in the schedule leaves it out. Operands that
    each task has for itself are loaded once, and stay as they are; so do arrays of matrices of which some may be
    left out.

    Before, where the launch says that N is odd:

        pk.tasks (%i, %j) in (%0, %1) {
          %b = pk.load %B[%k, %n : ...] : !pk.private<[K, N], bf16> -> !pk.tile<64x256xbf16>
          %acc_1 = pk.mma %a, %b, %acc : ...

    After:

        pk.tasks (%r, %c) in (%2, %3) {
          %k = pk.block[%r] : !pk.block<K by 16>
          %n = pk.block[%c] : !pk.block<N by 1024>
          %x = pk.load %B[%k, %n : ...] : !pk.private<[K, N], bf16> -> !pk.tile<16x1024xbf16>
          pk.store %x, %B_aligned[%k, %n : ...] : ..., !pk.private<[K, N], bf16, padded>
        }
        pk.tasks (%i, %j) in (%0, %1) {
          %b = pk.load %B_aligned[%k, %n : ...] : !pk.private<[K, N], bf16, padded> -> !pk.tile<64x256xbf16>
          %acc_1 = pk.mma %a, %b, %acc : ...
    """

    name = "pk-align-rows"

    def run(self, kernel: KernelOp) -> None:
        target, asked = target_of(kernel), kernel.schedule.get(ALIGNED_COPIES)
        first = next((op for op in kernel.body.block.ops if isinstance(op, TasksOp)), None)
        if asked == BoolAttr.from_bool(False):
            return
        found: dict[SSAValue, list[LoadOp]] = {}
        can = TMA in target.transfers and target.mma.operands is not Operands.REGISTERS and not kernel.roles
        for op in _unaligned(kernel) if can else ():
            found.setdefault(op.array, []).append(op)
        if asked is not None and not found:
            what = "no rows of operands that several tasks load begin where TMA moves none"
            reason = "an author wrote its roles" if kernel.roles else what
            missed(self.name, kernel, f"`{ALIGNED_COPIES}=true` changes nothing: {reason}")
        if first is None or not found:
            return
        for array, loads in found.items():
            if obstacle := _obstacle(kernel) or _part_of(loads):
                missed(self.name, loads[0], f"threads load rows that begin anywhere: {obstacle}")
                continue
            _copy_first(kernel, first, array, loads)


def _obstacle(kernel: KernelOp) -> str:
    """What keeps a phase from coming first; empty if nothing does."""
    if kernel.schedule.get("overlap") != StringAttr("copy_engine") or not [*remote_stores(kernel), *sums(kernel)]:
        return ""
    return "copy engines send results, and could tell no other rank that a phase is over"


def _part_of(loads: Sequence[LoadOp]) -> str:
    """Why matrices of an array may be left out; empty if tasks and loops surely go through all of them."""
    for op in loads:
        outer = zip(op.indices[:-_AXES], array_type(op.array).dimensions[:-_AXES], strict=True)
        if not all(covers(index, dim, times) for index, dim in outer):
            return f"all matrices of `{array_name(op.array)}` would be copied, of which only some may be used"
    return ""


def _unaligned(kernel: KernelOp) -> Iterator[LoadOp]:
    """Loads, by several tasks, of operands of MMAs whose rows begin anywhere."""
    written = written_arrays(kernel)
    for op in kernel.walk():
        if not isinstance(op, LoadOp) or not isinstance(op.array.type, PrivateType) or op.array in written:
            continue
        if _fits(op) and _comes_again(op):
            yield op


def _fits(op: LoadOp) -> bool:
    """Whether TMA moves no rows of an operand, but would if they were padded."""
    block, kind = op.indices[-1].owner, tile_type(op.result)
    plain = isinstance(block, BlockOp) and block.start is None and not block.in_shard
    if not plain or cluster_of(op) > 1 or between_rows(op) % CHUNK == 0:
        return False
    whole = kind.shape[-1] * dtype_bytes(kind.element_type) % CHUNK == 0
    return whole and array_type(op.array).rank >= _AXES and _is_operand(op.result)


def _is_operand(tile: SSAValue) -> bool:
    """Whether a tile becomes an operand of an MMA, as it is or after what is computed from it."""
    todo, seen = [tile], set[SSAValue]()
    while todo:
        value = todo.pop()
        seen.add(value)
        for use in value.uses:
            if isinstance(use.operation, AnyMmaOp):
                return True
            if is_side_effect_free(use.operation):
                todo += [result for result in use.operation.results if result not in seen]
    return False


def _comes_again(op: LoadOp) -> bool:
    """Whether several tasks load the same."""
    return any(not set(tasks.body.block.args) <= sources(op.indices) for tasks in enclosing_tasks(op)[:1])


def _copy_first(kernel: KernelOp, first: TasksOp, array: SSAValue, loads: list[LoadOp]) -> None:
    kind, name = array_type(array), array_name(array)
    assert isinstance(kind, PrivateType)
    reason = f"its rows begin {between_rows(loads[0])} bytes, or a multiple of that, behind each other"
    missed(AlignRows.name, loads[0], f"`{name}` is copied first, to rows that TMA moves: {reason}")
    location = loads[0].location
    aligned = PrivateType(kind.dimensions, kind.element_type, padded=True)
    to = add_parameter(kernel, f"{name}.aligned", aligned, location)
    body = Block(arg_types=[IndexType()] * kind.rank)
    indices: list[SSAValue] = list(body.args[:-_AXES])
    counts: list[Operation] = [_length(dim) for dim in kind.dimensions[:-_AXES]]
    tuning, size = target_of(kernel).tuning, dtype_bytes(kind.element_type)
    sizes = _sizes(kind.dimensions[-1], tuning.aligned_rows, tuning.aligned_bytes // size, size)
    for number, (dim, extent) in enumerate(zip(kind.dimensions[-_AXES:], sizes, strict=True), len(indices)):
        block = BlockType(dim, extent)
        counts.append(BlockCountOp(block))
        indices.append(append(body, BlockOp(body.args[number], block), location).result)
    tile = append(body, LoadOp(array, indices), location)
    store = append(body, StoreOp(tile.result, to, indices), location)
    if size > 1:
        # Nobody multiplies meanwhile, and these have most threads; of 8-bit elements they move one by one.
        for op in (tile, store):
            op.attributes[ROLE] = RoleAttr(Role.Consumer)
    tasks = TasksOp([count.results[0] for count in counts], Region(body))
    before(first, [*counts, tasks])
    tasks.location = location
    for op in loads:
        op.operands[op.operands.index(array)] = to


def _sizes(dim: Dim, rows: int, columns: int, size: int) -> tuple[int, int]:
    """Rows and columns of what a task copies: of a constant dimension no more than it has, and more rows."""
    if isinstance(dim, str) or padded_length(dim, size) >= columns:
        return rows, columns
    width = padded_length(dim, size)
    return min(_MOST_ROWS, rows * columns // width // rows * rows), width


def _length(dim: Dim) -> Operation:
    return DimOp(dim) if isinstance(dim, str) else constant(dim)
