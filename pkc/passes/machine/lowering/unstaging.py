"""Tiles between memory and their stage by ordinary instructions: for places that no box of a tensor map describes, and
for targets without TMA."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial
from itertools import product
from math import gcd, prod

from xdsl.dialects.builtin import i64
from xdsl.ir import Operation, SSAValue

from pkc.dialect.access import LoadOp, Scatter, StoreOp
from pkc.dialect.arrays import array_type
from pkc.dialect.by_table import ByTable, GatherOp
from pkc.dialect.machine import b32
from pkc.dialect.program import packed
from pkc.dialect.roles import CommitOp
from pkc.dialect.scalars import constant_of
from pkc.dialect.tile import tile_type
from pkc.dialect.transfers import TMA, moves_async
from pkc.dialect.types import PrivateType, TileType, dtype_bytes
from pkc.passes.machine.emit import Emitter
from pkc.passes.machine.lowering import fragments, realigned, stages, tma
from pkc.passes.machine.lowering.context import Staged, WarpRole
from pkc.passes.machine.lowering.memory import (
    Access,
    Element,
    Elements,
    LocalOrRemote,
    Writing,
    on_each_copy,
    store_element,
    writing,
)
from pkc.passes.machine.lowering.missing import CannotLowerError
from pkc.passes.machine.lowering.rows import elements_of, row_address
from pkc.passes.roles.carrying import rows_of_a_thread
from pkc.targets.layout import CHUNK

Chunk = tuple[SSAValue, SSAValue, SSAValue, SSAValue]
"""The address of a chunk, whether something is there, its row and its column in the tile."""


def is_carried(role: WarpRole, op: LoadOp | GatherOp) -> bool:
    """Whether a tile that ordinary instructions load goes into one stage as it is."""
    uses = list(op.result.uses)
    moves = TMA not in role.emit.target.transfers or not role.threads.warpgroups
    return moves and len(uses) == 1 and isinstance(uses[0].operation, CommitOp)


def fits(op: Writing, tile: Staged) -> bool:
    """Whether a staged tile can be stored from where it lies."""
    kind = tile_type(op.tile)
    return (kind.rank == 2 or isinstance(op, Scatter)) and not tile.transposed


def load(role: WarpRole, op: LoadOp | GatherOp) -> None:
    """A tile into each stage that it is committed to, row by row; zero where it has no elements."""
    kind, emit = tile_type(op.result), role.emit
    addresses = [each.address for each in tma.destinations(role, op)]
    layout, size = emit.target.shared_layout(kind), dtype_bytes(kind.element_type)
    zero = emit.value("bits_f32", emit.real(0.0))

    role.carried.add(op.result)

    def places() -> tuple[Elements, SSAValue]:
        return _elements(role, op), emit.const(prod(kind.shape[:-1]))

    def copy(chunks: Sequence[Chunk], count: int) -> None:
        for address, (there, exists, row, column) in product(addresses, chunks):
            here = stages.shared_address(emit, address, layout, size, (row, column))
            emit.do(f"copy_shared_{'v4' if count > 1 else 'b32'}_where", here, there, exists)

    def move(chunks: Sequence[Chunk], count: int) -> None:
        if moves_async(op) and (count > 1 or size == 4):
            copy(chunks, count)
            return
        words = CHUNK // 4 if count > 1 else 1
        found = [emit.registers(words, b32) for _ in chunks]
        for bits, (there, exists, _, _) in zip(found, chunks, strict=True):
            for i in range(words):
                emit.set(zero, bits, i)
            if count > 1:  # no branch: the loads of all chunks are in flight at once
                emit.do("load_global_v4_where", bits, there, exists)
                continue
            with emit.when(exists):
                emit.set(emit.value(f"load_global_b{8 * size}", there), bits, 0)
        for address, (bits, (_, _, row, column)) in product(addresses, list(zip(found, chunks, strict=True))):
            here = stages.shared_address(emit, address, layout, size, (row, column))
            if count > 1:
                emit.do("store_shared_v4", bits, here)
            else:
                emit.do(f"store_shared_b{8 * size}", here, emit.get(bits, 0))

    at_once = emit.target.threads.loads
    if isinstance(op, GatherOp) and op.result in role.ahead:
        at_once = rows_of_a_thread(op, role.threads.warps)
    elif isinstance(op, GatherOp) and moves_async(op):
        chunks = prod(kind.shape) * size // CHUNK
        at_once = gcd(emit.target.threads.copies, max(1, chunks // role.threads.count))

    def anywhere() -> None:
        assert isinstance(op, LoadOp)
        for address in addresses:
            realigned.load(role, op, places(), partial(_along_axes, emit, kind), address)

    _by_chunks(role, op, kind, places, move, at_once, anywhere if realigned.fits(role, op, kind) else None)


def load_table(role: WarpRole, op: Operation) -> None:
    """Find the rows that this thread copies in each iteration of a loop, one for each of its chunks, once for all."""
    for use in op.results[0].uses:
        gather = use.operation
        if not isinstance(gather, GatherOp) or not moves_async(gather) or not is_carried(role, gather):
            continue
        kind, array = tile_type(gather.result), array_type(gather.array)
        copied = rows_of_a_thread(gather, role.threads.warps)
        by_rows = isinstance(array, PrivateType) or array.shard_dim == 0
        if gather.parent is op.parent or not by_rows or not copied:
            continue
        emit, threads = role.emit, role.threads
        each = kind.shape[-1] * dtype_bytes(kind.element_type) // CHUNK
        found, first = emit.registers(copied, i64), emit.minus(threads.thread, threads.start)
        for step in range(copied):
            row = emit.over(emit.plus(first, step * threads.count), each)
            emit.set(row_address(role, gather, row), found, step)
        role.ahead[gather.result] = found


def _elements(role: WarpRole, op: LoadOp | GatherOp) -> Elements:
    if isinstance(op, GatherOp):
        return elements_of(role, op)
    return Element(role, op) if op.local is None else LocalOrRemote(role, op, op.local)


def store(role: WarpRole, op: Writing, tile: Staged) -> None:
    """A tile row by row, or a single row by elements, to every rank if the array is replicated."""
    if tile.transposed:
        raise CannotLowerError(op, "`.T`, stored from its stage by ordinary instructions")
    on_each_copy(role, op, lambda rank: _store(role, op, tile, rank))
    role.emit.do("sync_warp")  # one thread says for all that the stage has been read


def _store(role: WarpRole, op: Writing, tile: Staged, rank: SSAValue | None) -> None:
    kind, emit = tile_type(op.tile), role.emit
    size = dtype_bytes(kind.element_type)
    if kind.rank < 2:
        _store_row(role, op, tile, rank)
        return

    def places() -> tuple[Elements, SSAValue]:
        whole = prod(kind.shape[:-1])
        if isinstance(op, Scatter):
            return elements_of(role, op, rank), emit.const(whole)
        elements = Element(role, op, rank)
        return elements, emit.least(emit.most(elements.rows, 0), whole) if kind.rank == 2 else emit.const(whole)

    def move(chunks: Sequence[Chunk], count: int) -> None:
        if count == 1:
            found = [fragments.read_shared(emit, tile, row, column) for _, _, row, column in chunks]
            for element, (there, exists, _, _) in zip(found, chunks, strict=True):
                with emit.when(exists):
                    store_element(role, op, there, element)
            return
        ((there, exists, row, column),) = chunks
        with emit.when(exists):
            here = stages.shared_address(emit, tile.address, tile.layout, size, (row, column))
            bits = emit.registers(CHUNK // 4, b32)
            emit.do("load_shared_v4", bits, here)
            if packed(op):
                emit.do("send_v4_where", bits, there, role.launch.epoch, exists)
            else:
                emit.do(f"{writing(op)}_v4", bits, there)

    def anywhere() -> None:
        assert isinstance(op, StoreOp)
        realigned.store(role, op, tile, places(), partial(_along_axes, emit, kind))

    if tile.shifts is not None:
        anywhere()
        return
    _by_chunks(role, op, kind, places, move, 1, anywhere if realigned.fits(role, op, kind) else None)


def _store_row(role: WarpRole, op: Writing, tile: Staged, rank: SSAValue | None) -> None:
    """A tile of one dimension, or of none, each element by the next thread; a long row by chunks."""
    emit, kind, threads = role.emit, tile_type(op.tile), role.threads
    places = elements_of(role, op, rank) if isinstance(op, Scatter) else Element(role, op, rank)
    long = bool(kind.rank) and kind.shape[0] * dtype_bytes(kind.element_type) > CHUNK * threads.count
    if long and isinstance(op, StoreOp) and realigned.fits(role, op, kind):
        realigned.store(role, op, tile, (places, emit.const(1)), partial(_along_axes, emit, kind))
        return
    first = emit.minus(threads.thread, threads.start)
    with emit.loop(first, kind.shape[0] if kind.rank else 1, threads.count) as column:
        address, exists = places.at([column] if kind.rank else [])
        with emit.when(exists):
            found = fragments.read_shared(emit, tile, emit.const(0), column)
            store_element(role, op, address, found)


def _by_chunks(
    role: WarpRole,
    op: Access | GatherOp | Scatter,
    kind: TileType,
    places: Callable[[], tuple[Elements, SSAValue]],
    move: Callable[[Sequence[Chunk], int], None],
    at_once: int,
    anywhere: Callable[[], None] | None,
) -> None:
    """Move a tile in chunks of a row, each by the next thread: of 16 bytes where rows and blocks end at multiples of
    that, else `anywhere`, or by single elements.

    `places` gives where the elements are, and how many rows there are; `move` gets chunks, and how many elements each
    of them has: `at_once` chunks where their number is a multiple of that for each thread, else one. Of single elements
    it gets several in any case, some of which may be the last one again.
    """
    emit, threads = role.emit, role.threads
    chunk, columns = CHUNK // dtype_bytes(kind.element_type), kind.shape[-1] if kind.rank else 1
    whole = _whole_chunks(role, op, chunk) if columns % chunk == 0 else None
    for count in (chunk, 1) if whole is not None else (1,):
        with nullcontext() if whole is None else emit.when(whole if count > 1 else emit.negated(whole)):
            if count == 1 and anywhere is not None:
                anywhere()
                continue
            (elements, rows), each = places(), columns // count
            first, total = emit.minus(threads.thread, threads.start), emit.times(rows, each)
            known, most = constant_of(total), at_once
            if count == 1:
                most = _singles(role, op)
            whole_steps = known is not None and known % (most * threads.count) == 0
            together = most if whole_steps or count == 1 else 1
            with emit.loop(first, total, together * threads.count) as begin:
                chunks: list[Chunk] = []
                for step in range(together):
                    # A thread stays in its columns, if a row has no more chunks than there are threads.
                    stays = threads.count % each == 0 and (whole_steps or together == 1)
                    number = begin if stays else emit.plus(begin, step * threads.count)
                    inside = None if together == 1 or whole_steps else emit.compare("slt", number, total)
                    if inside is not None:
                        number = emit.least(number, emit.minus(total, 1))
                    row, column = emit.part(number, each), emit.times(emit.rest(number, each), count)
                    row = emit.plus(row, step * (threads.count // each)) if stays else row
                    role.step = step if together > 1 and count > 1 else None
                    there, exists = elements.at(_along_axes(emit, kind, row, column))
                    # A thread loads the last one again, which is the same; it does not add to it again.
                    if inside is not None and not isinstance(op, LoadOp | GatherOp):
                        exists = emit.both(exists, inside)
                    chunks.append((there, exists, row, column))
                role.step = None
                move(chunks, count)


def _singles(role: WarpRole, op: Operation) -> int:
    """How many elements a thread has on their way: where it waits for them, and no table has a place for each."""
    target = role.emit.target
    if isinstance(op, ByTable) or moves_async(op):
        return 1
    return target.threads.singles if role.threads.registers >= target.registers.carrying else target.threads.loads


def _along_axes(emit: Emitter, kind: TileType, row: SSAValue, column: SSAValue) -> list[SSAValue]:
    """The positions along each axis of a tile; of more than two, the last one is that of columns."""
    if kind.rank < 2:
        return [column][: kind.rank]
    found = [column]
    for extent in reversed(kind.shape[1:-1]):
        found.append(emit.rest(row, extent))
        row = emit.part(row, extent)
    return [row, *reversed(found)]


def _whole_chunks(role: WarpRole, op: Access | GatherOp | Scatter, elements: int) -> SSAValue:
    """Whether the rows of the array begin, and the block begins and ends, at multiples of a chunk."""
    emit, last = role.emit, (op.places if isinstance(op, ByTable) else op.indices)[-1]
    apart = isinstance(op, ByTable) and not op.ends_in_block
    if last not in role.blocks or apart:  # neighbours of the tile are none of the array
        return emit.compare("ne", emit.const(0), 0)
    columns = role.dims.row_length(array_type(op.array))
    aligned = emit.compare("eq", emit.bit_and(columns, elements - 1), 0)
    block = role.blocks[last]
    whole = emit.both(aligned, emit.compare("eq", emit.bit_and(role.dims.valid(block), elements - 1), 0))
    if block.stop is None:  # then an aligned end implies an aligned begin
        return whole
    return emit.both(whole, emit.compare("eq", emit.bit_and(block.local, elements - 1), 0))
