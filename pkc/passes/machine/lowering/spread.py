"""How tiles are spread over the threads of a role: which thread holds which element."""

from __future__ import annotations

from math import prod

from xdsl.ir import SSAValue

from pkc.dialect.tile import tile_type
from pkc.dialect.types import TileType
from pkc.passes.analysis.folded_columns import across_stage
from pkc.passes.analysis.row_lanes import of_rows
from pkc.passes.machine.emit import Emitter
from pkc.passes.machine.lowering.context import WarpRole, warp_of_group, warpgroup
from pkc.passes.machine.lowering.missing import CannotLowerError, origin
from pkc.targets.layout import COLUMN_STEP, NEIGHBOURS, ROW_STEP, WARP_ROWS, Fragment

_COLUMNS = 4
"""Without lanes: threads that have the elements of one row, as those of MMAs have."""


def fragment_of(role: WarpRole, value: SSAValue) -> Fragment:
    """How a tile is spread over the threads of the role."""
    kind = value.type
    assert isinstance(kind, TileType)
    if role.chunk is not None:
        axes = role.axes[value]
        # Of rows, each chunk has one element.
        return Fragment(role.chunked if axes == (0,) else kind.shape, axes, 1, 0, flat=per_chunk(axes) * role.chunks)
    if value in role.folded:
        return across_stage(kind.shape, role.axes[value], role.threads.count, role.folded[value])
    if role.threads.lanes is not None:
        return of_rows(kind.shape, role.axes[value], role.threads.count, role.threads.lanes)
    fragment = role.emit.target.fragment(kind.shape, role.axes[value], role.threads.warpgroups)
    if kind.rank > 2:
        raise CannotLowerError(origin(value), f"computing with tiles of {kind.rank} dimensions")
    rows = fragment.rows * fragment.warpgroups
    if not kind.rank:
        return fragment
    if not rows:
        raise CannotLowerError(origin(value), "tiles in the registers of a role without a warpgroup")
    by_row, by_column = 0 in fragment.axes, 1 in fragment.axes
    length = kind.shape[0] if by_row else 0
    short = length < ROW_STEP or length % ROW_STEP == 0
    if (length % rows and not short) or (by_column and kind.shape[-1] % COLUMN_STEP):
        shape = "x".join(map(str, kind.shape))
        what = f"a tile of {shape} in the registers of a role with {role.threads.warps} warps"
        hint = f"blocks of a multiple of {rows} rows and {COLUMN_STEP} columns; or other `consumers`"
        raise CannotLowerError(origin(value), what, hint)
    return fragment


def per_chunk(axes: tuple[int, ...]) -> int:
    """How many elements of a tile along these axes a chunk needs."""
    return NEIGHBOURS if axes[-1:] == (1,) else 1


def row(role: WarpRole, fragment: Fragment, index: SSAValue) -> SSAValue:
    """The row, in the tile, of element `index` of a thread."""
    emit, threads = role.emit, role.threads
    if role.chunk is not None:
        return emit.part(_first_of_chunk(role, fragment, index), fragment.shape[-1])
    if fragment.lanes:
        inside, number = emit.part(_number(role), fragment.lanes), emit.part(index, fragment.per_row)
        if fragment.side > 1:
            inside = emit.plus(emit.times(inside, fragment.side), emit.rest(number, fragment.side))
            number = emit.part(number, fragment.side)
        return emit.plus(inside, emit.times(number, fragment.rows))
    each = fragment.columns // 2 if fragment.columns else 2
    repeat = emit.part(index, each)
    half = emit.bit_and(emit.right(index, 1) if fragment.columns else index, 1)
    group = warpgroup(role)
    block = emit.plus(group, emit.times(repeat, fragment.warpgroups))
    inside = emit.plus(emit.times(warp_of_group(role), WARP_ROWS), emit.right(threads.lane, 2))
    return emit.plus(emit.plus(emit.times(block, fragment.rows), inside), emit.times(half, 8))


def _first_of_chunk(role: WarpRole, fragment: Fragment, index: SSAValue) -> SSAValue:
    """Where the chunk that element `index` is in begins, counted through the tile."""
    emit = role.emit
    assert role.chunk is not None
    further = emit.times(emit.part(index, per_chunk(fragment.axes)), role.threads.count)
    return emit.times(emit.plus(role.chunk, further), NEIGHBOURS)


def column(role: WarpRole, fragment: Fragment, index: SSAValue) -> SSAValue:
    """The column, in the tile, of element `index` of a thread."""
    emit = role.emit
    if role.chunk is not None:
        begin = emit.rest(_first_of_chunk(role, fragment, index), fragment.shape[-1])
        return emit.plus(begin, emit.rest(index, NEIGHBOURS))
    if fragment.lanes:
        j = emit.part(emit.rest(index, fragment.per_row), fragment.together)
        lane = emit.rest(_number(role), fragment.lanes)
        first = emit.times(emit.plus(emit.times(j, fragment.lanes), lane), fragment.together)
        return emit.plus(first, emit.rest(index, fragment.together))
    if 0 in fragment.axes:
        inside = emit.rest(index, fragment.columns // 2)
        j = emit.right(inside, 2)
    else:
        j = emit.right(index, 1)
    pair = emit.times(emit.bit_and(role.threads.lane, 3), 2)
    return emit.plus(emit.plus(emit.times(j, 8), pair), emit.bit_and(index, 1))


def _number(role: WarpRole) -> SSAValue:
    """The number of this thread in the role."""
    return role.emit.minus(role.threads.thread, role.threads.start)


def along(role: WarpRole, value: SSAValue, axis: int, index: SSAValue) -> SSAValue:
    """The position along one axis of a tile; a tile of one axis may lie along either.

    Of several axes the last one lies along columns, the others along rows, the first one outermost.
    """
    emit, fragment, shape = role.emit, fragment_of(role, value), tile_type(value).shape
    if len(shape) > 1 and fragment.axes == (0,):
        further = emit.part(row(role, fragment, index), prod(shape[axis + 1 :]))
        return emit.rest(further, shape[axis]) if axis else further
    if len(shape) <= 2:
        place = fragment.axes[axis]
        return row(role, fragment, index) if place == 0 else column(role, fragment, index)
    if axis == len(shape) - 1:
        return column(role, fragment, index)
    further = emit.part(row(role, fragment, index), prod(shape[axis + 1 : -1]))
    return emit.rest(further, shape[axis]) if axis else further


def row_number(emit: Emitter, fragment: Fragment, index: SSAValue) -> SSAValue:
    """Which of the rows that a thread has element `index` is in."""
    if fragment.lanes:
        return emit.part(index, fragment.per_row)
    repeat = emit.part(index, fragment.columns // 2)
    return emit.plus(emit.times(repeat, 2), emit.bit_and(emit.right(index, 1), 1))


def column_number(emit: Emitter, fragment: Fragment, index: SSAValue) -> SSAValue:
    """Which of the columns that a thread has element `index` is in."""
    if fragment.lanes:
        return emit.rest(index, fragment.per_row)
    inside = emit.rest(index, fragment.columns // 2)
    return emit.plus(emit.times(emit.right(inside, 2), 2), emit.bit_and(index, 1))


def is_in_tile(role: WarpRole, fragment: Fragment, index: SSAValue) -> SSAValue | None:
    """Whether an element of a thread is in the tile; nothing if all are."""
    emit = role.emit
    inside: list[SSAValue] = []
    if fragment.cut:
        inside.append(emit.compare("slt", row(role, fragment, index), fragment.shape[0]))
    if fragment.ends_early:
        inside.append(emit.compare("slt", column(role, fragment, index), fragment.columns))
    return emit.both(*inside) if len(inside) > 1 else next(iter(inside), None)


def is_first(role: WarpRole, fragment: Fragment) -> SSAValue | None:
    """Whether a thread is the first of those that have the same elements; nothing if each has others."""
    emit, each = role.emit, fragment.lanes or _COLUMNS
    if role.chunk is not None or role.threads.one or fragment.axes == (0, 1):
        return None
    if fragment.axes == (0,):
        return emit.compare("eq", emit.rest(_number(role), each), 0)
    return emit.compare("slt", _number(role), each if fragment.axes else 1)
