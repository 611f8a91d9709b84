"""Tiles from registers into a stage of a channel."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

from xdsl.ir import Operation, SSAValue

from pkc.dialect.attributes import number_on
from pkc.dialect.machine import b32
from pkc.dialect.roles import LATER, CommitOp, channel_of
from pkc.dialect.tile import TransposeOp, tile_type
from pkc.dialect.transfers import moves_by_tma
from pkc.dialect.types import dtype_bytes, f32
from pkc.passes.machine.emit import Emitter
from pkc.passes.machine.lowering import channels, fragments, interleaved, spread, stages
from pkc.passes.machine.lowering.context import Staged, WarpRole, warp_of_group, warpgroup
from pkc.passes.machine.lowering.fragments import PACKED, RegisterTile, Value
from pkc.passes.machine.lowering.grouping import in_groups
from pkc.passes.machine.lowering.missing import slow
from pkc.targets.layout import CHUNK, WARP_ROWS, Fragment, SharedLayout

_MATRIX_ELEMENT = 2
"""Bytes of an element of the matrices that `stmatrix` writes."""

_Places = Callable[[SSAValue], SSAValue]
"""Finds an address, for so many columns."""


def write(role: WarpRole, op: CommitOp) -> None:
    """Write what a role has computed into the stage that it has acquired."""
    emit = role.emit
    ring = role.launch.rings[op.channel]
    if ring.by_bytes:
        return
    start = channels.stage_address(role, ring, channels.stage_of(role, op.channel))
    for offset, value in zip(ring.slots, op.tiles, strict=True):
        layout = emit.target.shared_layout(tile_type(value))
        if value in role.carried or (isinstance(value.owner, Operation) and moves_by_tma(value.owner)):
            continue
        found = role.tiles[value]
        address, turned = emit.plus(start, offset), _is_turned(role, value)
        if isinstance(found, Staged):
            found = fragments.as_elements(role, value)
        if isinstance(found, interleaved.ZippedTile):
            interleaved.write(role, found, layout, address)
            continue
        assert isinstance(found, fragments.RegisterTile | fragments.LazyTile)
        halves = dtype_bytes(found.element_type) == _MATRIX_ELEMENT
        if halves and _is_in_pairs(found) and _in_matrices(role, found.fragment):
            move = _turned_matrices if turned else _matrices
        else:
            _remark(op, value, found)
            chunks = stages.in_chunks(found.fragment, layout, dtype_bytes(found.element_type))
            move = _turned_elements if turned else _chunks if chunks else _elements
        move(role, value, found, layout, address, number_on(op, LATER) or 0)


def clear(role: WarpRole, tile: Staged, first: SSAValue) -> None:
    """Zeros in the rows from `first` on of a stage, before MMAs of any warp of the role read it."""
    emit, threads = role.emit, role.threads
    rows, columns = tile.type.shape
    size = dtype_bytes(tile.type.element_type)
    each = columns * size // CHUNK
    with emit.when(emit.compare("slt", first, rows)):
        zeros = emit.registers(CHUNK // 4, b32)
        for i in range(CHUNK // 4):
            emit.set(emit.value("bits_f32", emit.real(0.0)), zeros, i)
        begin = emit.plus(emit.times(first, each), emit.minus(threads.thread, threads.start))
        with emit.loop(begin, rows * each, threads.count) as chunk:
            at = emit.over(chunk, each), emit.times(emit.modulo(chunk, each), CHUNK // size)
            emit.do("store_shared_v4", zeros, stages.shared_address(emit, tile.address, tile.layout, size, at))
        emit.do("fence_async_shared")
        emit.do(threads.sync)


def _is_turned(role: WarpRole, value: SSAValue) -> bool:
    """Whether threads have a tile the other way round: what is in registers is its transpose. A stage is read either
    way."""
    return isinstance(value.owner, TransposeOp) and not isinstance(role.tiles[value], Staged)


def _is_in_pairs(tile: Value) -> bool:
    """Whether a register, or what is computed right here, has two neighbours of 16 bits."""
    return tile.packed if isinstance(tile, RegisterTile) else tile.exact is not None


def _in_matrices(role: WarpRole, fragment: Fragment) -> bool:
    whole = fragment.columns % 16 == 0 and fragment.shape[0] % WARP_ROWS == 0 and not fragment.lanes
    return whole and role.emit.target.instruction("stmatrix_x4") is not None


def _remark(op: CommitOp, value: SSAValue, tile: Value) -> None:
    """Say of a tile of 16-bit elements that it does not go into its stage as matrices; others never do, nor do those
    that meet no MMA: of these a warp writes a row at a time."""
    other = dtype_bytes(tile.element_type) != _MATRIX_ELEMENT
    if other or tile.element_type not in PACKED or tile_type(value).rank != 2 or tile.fragment.lanes:
        return
    rows, columns = tile_type(value).shape
    reason = (
        f"{rows} x {columns} is not a multiple of {WARP_ROWS} x 16"
        if isinstance(tile, RegisterTile)
        else "it is not in registers"
    )
    slow(op, f"{channel_of(op.channel).label.data} goes into its stage 4 bytes at a time, not by stmatrix: {reason}")


def _matrices(
    role: WarpRole, value: SSAValue, tile: Value, layout: SharedLayout, address: SSAValue, later: int
) -> None:
    """16-bit elements by stmatrix: each warp writes 16 rows and 16 columns at once."""
    emit, lane = role.emit, role.threads.lane

    def places(block: SSAValue, row: SSAValue) -> _Places:
        swizzle = _swizzle(emit, layout, lane)
        start = emit.plus(address, emit.times(row, layout.width))

        def at(pair: SSAValue) -> SSAValue:
            chunk = emit.times(pair, 2)
            mine = emit.plus(emit.rest(chunk, layout.width // CHUNK), emit.right(lane, 4))
            return emit.plus(start, _in_panels(emit, layout, chunk, mine, swizzle))

        return at

    _by_matrices(role, value, tile, places, "stmatrix_x4", later)


def _turned_matrices(
    role: WarpRole, value: SSAValue, tile: Value, layout: SharedLayout, address: SSAValue, later: int
) -> None:
    """The same of a tile that threads have the other way round: what is written has 16 columns of their 16 rows."""
    emit, lane = role.emit, role.threads.lane

    def places(block: SSAValue, row: SSAValue) -> _Places:
        of_matrix = emit.bit_and(lane, 7)
        inside = emit.plus(of_matrix, emit.times(emit.right(lane, 4), 8))
        start = emit.plus(address, emit.times(inside, layout.width))
        swizzle = _swizzle(emit, layout, of_matrix)
        # Two chunks of a row have the rows of a warp.
        warps = emit.times(block, tile.fragment.rows // WARP_ROWS)
        chunk = emit.times(emit.plus(warps, warp_of_group(role)), 2)
        mine = emit.plus(emit.rest(chunk, layout.width // CHUNK), emit.bit_and(emit.right(lane, 3), 1))
        begin = emit.plus(start, _in_panels(emit, layout, chunk, mine, swizzle))
        return lambda pair: emit.plus(begin, emit.times(pair, WARP_ROWS * layout.width))

    _by_matrices(role, value, tile, places, "stmatrix_x4_trans", later)


def _swizzle(emit: Emitter, layout: SharedLayout, row: SSAValue) -> SSAValue:
    """What the chunks of a row are exchanged by, of rows that differ from `row` by multiples of 8."""
    return emit.bit_and(emit.part(row, layout.lines), layout.width // CHUNK - 1)


def _in_panels(emit: Emitter, layout: SharedLayout, chunk: SSAValue, mine: SSAValue, swizzle: SSAValue) -> SSAValue:
    """Bytes from the beginning of a row to chunk `mine` of the panel that `chunk` is in."""
    panel = emit.times(emit.part(chunk, layout.width // CHUNK), layout.panel_bytes)
    return emit.plus(panel, emit.left(emit.bit_xor(mine, swizzle), 4))


def _by_matrices(
    role: WarpRole,
    value: SSAValue,
    tile: Value,
    places: Callable[[SSAValue, SSAValue], _Places],
    instruction: str,
    later: int,
) -> None:
    """Write 16 rows and 16 columns of each warp at once: `places` gives, for a block of the rows of a warpgroup and the
    row of a thread, what finds the thread's address of so many columns."""
    emit, threads, fragment = role.emit, role.threads, tile.fragment
    group = warpgroup(role)
    inside = emit.plus(emit.times(warp_of_group(role), WARP_ROWS), emit.bit_and(threads.lane, WARP_ROWS - 1))
    for repeat in range(fragment.repeats):
        block = emit.plus(group, repeat * fragment.warpgroups)
        row = emit.plus(emit.times(block, fragment.rows), inside)
        at = places(block, row)

        def columns(pair: SSAValue, at: _Places = at, first: int = repeat * fragment.columns // 4) -> None:
            place, base = at(pair), emit.plus(emit.times(pair, 4), first)
            words = [_pair(emit, tile, emit.plus(base, i)) for i in range(4)]
            emit.do(instruction, place, *words)

        with _of_tile(emit, fragment, row):  # whole warps have rows of the tile, or none
            in_groups(role, value, fragment.columns // 16, 8, columns, later if repeat == fragment.repeats - 1 else 0)


def _pair(emit: Emitter, tile: Value, number: SSAValue) -> SSAValue:
    """The register with two neighbours of a tile of 16-bit elements."""
    if isinstance(tile, RegisterTile):
        return emit.get(tile.registers, number)
    assert tile.exact is not None
    first = emit.times(number, 2)
    low, high = tile.exact(emit, first), tile.exact(emit, emit.plus(first, 1))
    return emit.value(f"pack_{PACKED[tile.element_type]}", low, high)


def _of_tile(emit: Emitter, fragment: Fragment, row: SSAValue) -> AbstractContextManager[object]:
    """A branch for what is done to a row only if the tile has it."""
    return emit.when(emit.compare("slt", row, fragment.shape[0])) if fragment.cut else nullcontext()


def _elements(
    role: WarpRole, value: SSAValue, tile: Value, layout: SharedLayout, address: SSAValue, later: int
) -> None:
    """Write element by element; threads that have the same element write the same value."""
    emit, fragment, kind = role.emit, tile.fragment, tile_type(value)
    narrow, size = kind.element_type in PACKED, dtype_bytes(kind.element_type)
    # A thread has two neighbours of each row, which lie side by side in a stage too.
    paired = 1 in fragment.axes and fragment.side == 1 and (narrow or not fragment.ends_early)
    store = "v2" if not narrow and paired else "b8x2" if paired and size == 1 else f"b{8 * size * (1 + paired)}"

    def one(i: SSAValue) -> None:
        first = emit.times(i, 2) if paired else i
        row = spread.row(role, fragment, first) if 0 in fragment.axes else emit.const(0)
        column = spread.column(role, fragment, first) if 1 in fragment.axes else emit.const(0)
        at = (row, column) if kind.rank > 1 else (emit.const(0), column)
        at = fragments.in_rows(emit, kind, row) if fragment.axes == (0,) else at
        place = stages.shared_address(emit, address, layout, size, at)
        inside = spread.is_in_tile(role, fragment, first)
        with emit.when(inside) if inside is not None else nullcontext():
            if store == "v2":
                emit.do(
                    "store_shared_v2", place, *(_bits(role, tile, emit.plus(first, one), False) for one in range(2))
                )
            else:
                emit.do(f"store_shared_{store}", place, _bits(role, tile, i, paired))

    in_groups(role, value, fragment.count // (1 + paired), 1 + paired, one, later)


def _turned_elements(
    role: WarpRole, value: SSAValue, tile: Value, layout: SharedLayout, address: SSAValue, later: int
) -> None:
    """Write a tile that threads have the other way round, element by element."""
    emit, fragment, size = role.emit, tile.fragment, dtype_bytes(tile.element_type)

    def one(i: SSAValue) -> None:
        at = spread.column(role, fragment, i), spread.row(role, fragment, i)
        inside = spread.is_in_tile(role, fragment, i)
        with emit.when(inside) if inside is not None else nullcontext():
            place = stages.shared_address(emit, address, layout, size, at)
            emit.do(f"store_shared_b{8 * size}", place, _bits(role, tile, i, False))

    in_groups(role, value, fragment.count, 1, one, later)


def _chunks(role: WarpRole, value: SSAValue, tile: Value, layout: SharedLayout, address: SSAValue, later: int) -> None:
    """Write 16 bytes at a time."""
    emit, fragment, size = role.emit, tile.fragment, dtype_bytes(tile.element_type)
    paired, words = size == _MATRIX_ELEMENT, CHUNK // 4

    def one(number: SSAValue) -> None:
        first = emit.times(number, CHUNK // size)
        place = emit.plus(address, stages.in_stage(role, fragment, layout, size, first))
        inside = spread.is_in_tile(role, fragment, first)
        with emit.when(inside) if inside is not None else nullcontext():
            bits = emit.registers(words, b32)
            for i in range(words):
                emit.set(_bits(role, tile, emit.plus(emit.times(number, words), i), paired), bits, i)
            emit.do("store_shared_v4", bits, place)

    in_groups(role, value, fragment.count * size // CHUNK, CHUNK // size, one, later)


def _bits(role: WarpRole, tile: Value, number: SSAValue, paired: bool) -> SSAValue:
    """What goes into a stage of an element of a tile, or of a pair of elements that share a register."""
    emit, kind = role.emit, tile.element_type
    if paired and _is_in_pairs(tile):
        return _pair(emit, tile, number)
    if kind in PACKED:
        first = emit.times(number, 2) if paired else number
        low, high = (fragments.element(role, tile, emit.plus(first, i * paired)) for i in range(2))
        return emit.value(f"pack_{PACKED[kind]}", low, high)
    return emit.value("bits_f32" if kind == f32 else "bits_i32", fragments.element(role, tile, number))
