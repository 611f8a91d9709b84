"""The pass `pk-check-lowering`: what the target has no instructions for is refused before anything is lowered."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Block, Operation, SSAValue

from pkc.diagnostics import Diagnostic
from pkc.dialect.access import AddToArrayOp, LoadOp, ReadOp, StoreOp
from pkc.dialect.by_table import AddByTableOp, ScatterAddOp, tables_of
from pkc.dialect.engines import is_engine
from pkc.dialect.machine import MAX_BOX
from pkc.dialect.program import UNORDERED, KernelOp, RoleOp, TasksOp
from pkc.dialect.reductions import RowReduction
from pkc.dialect.roles import ConsumeOp
from pkc.dialect.tile import (
    AnyMmaOp,
    BroadcastOp,
    ClipOp,
    EnlargeOp,
    FullOp,
    PositionsOp,
    SplatOp,
    TransposeOp,
    tile_type,
)
from pkc.dialect.transfers import moves_by_tma
from pkc.dialect.types import BlockType, TileType, dtype_bytes, dtype_name
from pkc.dialect.windows import WindowOp
from pkc.location import span_of
from pkc.passes.analysis.dependence import enclosing_tasks, maker
from pkc.passes.analysis.named_tiles import array_name, dimension, size_text
from pkc.passes.analysis.pointwise import is_pointwise, is_spread
from pkc.passes.analysis.register_axes import infer_axes, lies_across, tiles_of
from pkc.passes.analysis.settled import unsettled
from pkc.passes.analysis.tables import is_table
from pkc.passes.kernel_pass import CheckPass
from pkc.passes.machine.lower_tiles import only_moves
from pkc.passes.machine.lowering import flat
from pkc.passes.machine.machine_errors import NotLowered
from pkc.targets.layout import COLUMN_STEP, NEIGHBOURS, ROW_STEP
from pkc.targets.target import Operands, Target, target_of

_PANEL = 32
"""Bytes of which rows in shared memory are multiples where an MMA reads them: the narrowest swizzle."""


class CheckLowering(CheckPass):
    """Refuse tiles and accesses that no instructions of the target are for, each at its line and with what mends it.

    - MMAs: what is summed over, rows and columns are multiples of what the instructions take.
    - Rows are reduced along columns, beside MMAs those of tiles of two axes.
    - Sums where an array lives have no order, and no element of 8 bits.
    - What an index is read from no role writes meanwhile.

    Refused, because an MMA takes 16 elements of bf16 at a time:

        %acc = pk.mma %a, %b, %sum : !pk.tile<64x40xbf16>, !pk.tile<40x64xbf16> -> !pk.tile<64x64xf32>
    """

    name = "pk-check-lowering"

    def check(self, kernel: KernelOp) -> Iterator[Diagnostic]:
        first: dict[tuple[str, str, str], NotLowered] = {}
        for role in kernel.roles:
            for one in () if is_engine(role) else _of_role(kernel, role):
                first.setdefault((one.what, one.hint, one.where), one)
        yield from first.values()


def _of_role(kernel: KernelOp, role: RoleOp) -> Iterator[NotLowered]:
    target, axes = target_of(kernel), infer_axes(role.body)
    mmas = [found for op in role.walk() if isinstance(op, AnyMmaOp) for found in _mma(kernel, op, target)]
    yield from mmas
    for op in role.walk():
        for table in tables_of(op):
            yield from _table(table, target)
        if isinstance(op, RowReduction):
            yield from _reduction(op, axes, target)
        elif isinstance(op, BroadcastOp):
            yield from _broadcast(op, axes, target)
        elif isinstance(op, ReadOp):
            yield from _element(kernel, op, target)
        elif isinstance(op, AddToArrayOp | AddByTableOp):
            yield from _sum_in_memory(kernel, op, target)
        elif isinstance(op, TasksOp) and not is_spread(op) and not mmas:
            yield from _registers(op, target)
        elif isinstance(op, TasksOp) and is_pointwise(op) and not only_moves(role):
            yield from _chunks(op.body.block, axes, target)
        elif isinstance(op, LoadOp | StoreOp | AddToArrayOp) and moves_by_tma(op):
            yield from _box(op, target)


# MMAs


def _mma(kernel: KernelOp, op: AnyMmaOp, target: Target) -> Iterator[NotLowered]:
    mma, kind = target.mma, tile_type(op.a).element_type
    size, where = dtype_bytes(kind), _operands(kernel, op)
    needs = [(op.a, 1, mma.depth // size, f"an MMA that sums over {{}} elements of {dtype_name(kind)}")]
    rows, turned = 1 if tile_type(op.a).shape[0] < ROW_STEP else ROW_STEP, ""
    columns = COLUMN_STEP
    if mma.operands is Operands.REGISTERS:
        if size != 2:
            yield _refused(op, target, f"an MMA of {dtype_name(kind)}", "operands of 16 bits: `cast(x, bf16)`", where)
    else:
        if _is_staged(op.a) and _is_turned(op.a):
            rows, turned = mma.rows, " of a left operand that is transposed"
        columns = columns if _is_turned(op.b) or not _is_staged(op.b) else max(columns, _PANEL // size)
        if not _is_staged(op.a) and size == 1:
            hint = "round them to bf16, and multiply by an array of bf16"
            yield _refused(op, target, "an MMA of 8-bit floats that are computed", hint, where)
        for operand in (op.a, op.b):
            yield from _long(op, operand, target, where)
    needs += [(op.a, 0, rows, f"an MMA of {{}} rows{turned}"), (op.b, 1, columns, "an MMA of {} columns")]
    wrong = [(tile, axis, step, what) for tile, axis, step, what in needs if tile_type(tile).shape[axis] % step]
    if wrong:
        tile, axis, _, what = wrong[0]
        found = [_mended(tile, axis, step) for tile, axis, step, _ in wrong]
        hint = ", ".join(text for text, _ in found)
        sizes = tuple(one for _, some in found for one in some)
        what = what.format(tile_type(tile).shape[axis])
        yield NotLowered(span_of(op.location), target.name, what, hint, where, sizes)


def _long(op: AnyMmaOp, operand: SSAValue, target: Target, where: str) -> Iterator[NotLowered]:
    """A few long rows lie in shared memory without the swizzle that MMAs read."""
    kind, axis = tile_type(_stage(operand)), 0 if _is_turned(operand) else 1
    size = dtype_bytes(kind.element_type)
    if not _is_staged(operand) or kind.shape[-1] * size % _PANEL or target.shared_layout(kind).swizzle:
        return
    block, fits = dimension(operand, axis), kind.shape[-1]
    while fits % 2 == 0 and not target.shared_layout(TileType((kind.shape[0], fits), kind.element_type)).swizzle:
        fits //= 2
    what = f"an MMA of {kind.shape[0]} rows of {kind.shape[-1]} elements"
    sizes = ((block.of, fits),) if block is not None and isinstance(block.of, str) else ()
    hint = f"`blocks({'...' if block is None else block.of}, {fits})`"
    yield NotLowered(span_of(op.location), target.name, what, hint, where, sizes)


def _operands(kernel: KernelOp, op: AnyMmaOp) -> str:
    """Both operands: from which arrays they are, their shapes and bytes."""
    names = (array_name(operand, kernel) or "computed" for operand in (op.a, op.b))
    sizes = (size_text(tile_type(operand)) for operand in (op.a, op.b))
    return "; ".join(f"{name}: {text}" for name, text in zip(names, sizes, strict=True))


# Tiles in registers


def _registers(tasks: TasksOp, target: Target) -> Iterator[NotLowered]:
    """Tiles beside MMAs that are no whole numbers of the rows and columns of an accumulator."""
    for op in tasks.walk():
        for value in tiles_of(op):
            kind = tile_type(value)
            if kind.rank < 2 or not _is_in_registers(value):
                continue
            if kind.rank > 2:
                hint = "numbers, not blocks, for the first axes: `tasks(B, ...)`"
                yield _refused(op, target, f"computing with a tile of {kind.rank} axes beside an MMA", hint)
                return
            for axis, step in ((0, ROW_STEP), (1, COLUMN_STEP)):
                length = kind.shape[axis]
                if length % step and (axis == 1 or length > step):
                    what = f"computing with a tile of {' x '.join(map(str, kind.shape))} beside an MMA"
                    hint, sizes = (_APART, ()) if _is_whole(value, axis) else _mended(value, axis, step)
                    yield NotLowered(span_of(op.location), target.name, what, hint, size_text(kind), sizes)
                    return


_APART = "a scratch array for what the MMA gives, and other `tasks` that load it and compute with this tile"


def _is_whole(tile: SSAValue, axis: int) -> bool:
    """Whether no block that an axis goes through could have another size: it has all of a constant, or no block."""
    block = dimension(tile, axis)
    return block is None or block.of == block.extent


def _chunks(block: Block, axes: dict[SSAValue, tuple[int, ...]], target: Target) -> Iterator[NotLowered]:
    """Tiles that threads go over in chunks of neighbours: those of a block have one shape, or lie along an axis."""
    for before, inside, after in flat.chunked(block):
        yield from _in_chunks([inner for op in inside for inner in op.walk()], axes, target)
        for other in (other for op in (*before, *after) for region in op.regions for other in region.blocks):
            yield from _chunks(other, axes, target)


def _in_chunks(ops: Sequence[Operation], axes: dict[SSAValue, tuple[int, ...]], target: Target) -> Iterator[NotLowered]:
    found = [(op, value) for op in ops if not is_table(op) for value in op.results if isinstance(value.type, TileType)]
    kinds = [(op, value, tile_type(value)) for op, value in found if tile_type(value).rank]
    named = [one for one in kinds if dimension(one[1], one[2].rank - 1) is not None]
    at, whole, kind = max((*named, *kinds), key=lambda one: one[2].rank, default=(None, None, None))
    if at is None or whole is None or kind is None:
        return
    if kind.rank > 2:
        hint = "numbers, not blocks, for the first axes: `tasks(B, ...)`"
        yield _refused(at, target, f"a role that computes with a tile of {kind.rank} axes", hint, size_text(kind))
        return
    if kind.shape[-1] % NEIGHBOURS:
        hint, sizes = _mended(whole, kind.rank - 1, NEIGHBOURS)
        what = f"a role that computes with rows of {kind.shape[-1]} elements"
        yield NotLowered(span_of(at.location), target.name, what, hint, size_text(kind), sizes)
    for op, value, other in kinds:
        if other.shape != kind.shape and other.shape != tuple(kind.shape[-2:][axis] for axis in axes[value]):
            where = f"{size_text(other)}; {size_text(kind)} elsewhere"
            what = "a role that computes with tiles of several shapes"
            yield _refused(op, target, what, "separate `tasks` for each of them", where)
            return


def _box(op: LoadOp | StoreOp | AddToArrayOp, target: Target) -> Iterator[NotLowered]:
    """What TMA moves is divided along the first of several axes and the last one alone."""
    tile = op.result if isinstance(op, LoadOp) else op.tile
    kinds = [index.type for index in op.indices if isinstance(index.type, BlockType)]
    for kind in kinds[1:-1]:
        if kind.extent > MAX_BOX:
            size = next(n for n in range(MAX_BOX, 0, -1) if kind.extent % n == 0)
            what = f"a tile of {kind.extent} elements along a dimension that is neither its first nor its last"
            sizes = ((kind.of, size),) if isinstance(kind.of, str) else ()
            where, hint = size_text(tile_type(tile)), f"at most {MAX_BOX}: `blocks({kind.of}, {size})`"
            yield NotLowered(span_of(op.location), target.name, what, hint, where, sizes)


def _is_in_registers(value: SSAValue) -> bool:
    """Whether threads have elements of a tile, or read them: not if only MMAs do, or each of them reads some again."""
    if not _is_staged(value):
        return True
    return not all(
        isinstance(use.operation, AnyMmaOp | TransposeOp | ClipOp | EnlargeOp | WindowOp) for use in value.uses
    )


def _stage(value: SSAValue) -> SSAValue:
    """The tile in a stage that another one is a view of, or that tile itself."""
    while isinstance(value.owner, TransposeOp | ClipOp):
        value = value.owner.tile
    return value


def _is_staged(value: SSAValue) -> bool:
    return isinstance(_stage(value).owner, ConsumeOp)


def _is_turned(value: SSAValue) -> bool:
    turned = False
    while isinstance(value.owner, TransposeOp | ClipOp):
        turned ^= isinstance(value.owner, TransposeOp)
        value = value.owner.tile
    return turned


def _reduction(op: RowReduction, axes: dict[SSAValue, tuple[int, ...]], target: Target) -> Iterator[NotLowered]:
    kind, spread = tile_type(op.tile), all(map(is_spread, enclosing_tasks(op)))
    if kind.rank > 2 and not spread:
        what = f"a reduction of rows of a tile of {kind.rank} axes beside an MMA"
        yield _refused(op, target, what, _as_numbers(op.tile), size_text(kind))
    elif 1 not in axes.get(op.tile, (1,)) and kind.rank > 1:
        what = "a reduction of the result of a row reduction, or of a tile combined with one"
        yield _refused(op, target, what, _as_numbers(op.tile), size_text(kind))


def _as_numbers(tile: SSAValue) -> str:
    """What to write instead of the first block of a tile of several axes."""
    first, hint = dimension(tile, 0), "numbers, not blocks, for the first axes"
    if first is None or first.of == first.extent:
        return hint
    return f"{hint}: `{first.of}` for `blocks({first.of}, {first.extent})`"


def _broadcast(op: BroadcastOp, axes: dict[SSAValue, tuple[int, ...]], target: Target) -> Iterator[NotLowered]:
    if not lies_across(op, axes.get(op.tile, ()), axes.get(op.result, ())):
        return
    tile = next((use.operation.results[0] for use in op.result.uses if use.operation.results), op.result)
    what = f"a tile along others than the last of {tile_type(op.result).rank} axes"
    yield _refused(op, target, what, _as_numbers(tile), size_text(tile_type(op.tile)))


# Memory


def _element(kernel: KernelOp, op: ReadOp, target: Target) -> Iterator[NotLowered]:
    """An index or a count that others may write meanwhile."""
    why, hint = unsettled(kernel, op)
    if why:
        yield _refused(op, target, f"an index or a count that is read from an array {why}", hint)


def _table(rows: SSAValue, target: Target) -> Iterator[NotLowered]:
    """Numbers of rows that threads cannot evaluate one by one."""
    op = rows.owner
    if not tile_type(rows).rank:
        return
    if isinstance(op, ConsumeOp | LoadOp | FullOp | SplatOp) or (isinstance(op, PositionsOp) and not op.zigzag):
        return
    if isinstance(op, Operation) and (isinstance(op, BroadcastOp | ClipOp) or is_table(op)):
        for operand in op.operands:
            if isinstance(operand.type, TileType):
                yield from _table(operand, target)
        return
    what = "rows picked by a table that a loop carries"
    hint = "write the iterations out; or store the table to an array of i32 first, and load it in other `tasks`"
    yield _refused(maker(rows), target, what, hint, size_text(tile_type(rows)))


def _sum_in_memory(kernel: KernelOp, op: AddToArrayOp | AddByTableOp, target: Target) -> Iterator[NotLowered]:
    if not kernel.in_any_order:
        what = "`store_add` in a defined order"
        hint = "`schedule(deterministic=False)` lets each contribution be added where it lives, in no order"
        if isinstance(op, ScatterAddOp):  # a sum over ranks
            why = op.attributes.get(UNORDERED)
            reason = f": {why.data}" if isinstance(why, StringAttr) else ""
            what = f"a sum, in a defined order, into rows picked by a table{reason}"
            hint += "; sums of rows that `gather` brings have one"
            if not op.of_rows:
                hint = (
                    "rows in place of other dimensions: `O[to[p], m] += t.T` of the transposed array, or "
                    "`O[a[p] * T + b[p], n]` of one with S * T rows; or `schedule(deterministic=False)`"
                )
        yield _refused(op, target, what, hint)
    if dtype_bytes(tile_type(op.tile).element_type) == 1:
        yield _refused(op, target, "a sum of 8-bit floats in memory", "an array of bf16")


# Findings


def _refused(op: Operation, target: Target, what: str, hint: str, where: str = "needed here") -> NotLowered:
    return NotLowered(span_of(op.location), target.name, what, hint, where)


def _mended(tile: SSAValue, axis: int, step: int) -> tuple[str, tuple[tuple[str, int], ...]]:
    """What to write so that an axis of a tile is a multiple of `step`, and the size of the blocks by dimension."""
    block, size = dimension(tile, axis), -(-tile_type(tile).shape[axis] // step) * step
    if block is None:
        return f"a multiple of {step}: `blocks(..., {size})`", ()
    return f"a multiple of {step}: `blocks({block.of}, {size})`", ((block.of, size),) if isinstance(
        block.of, str
    ) else ()
