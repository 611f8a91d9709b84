"""Tiles between memory and their stage by ordinary instructions: for places that no box of a tensor map describes, and
for targets without TMA."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.ir import SSAValue

from pkc.dialect.access import LoadOp, StoreAddOp, StoreOp, array_type
from pkc.dialect.machine import b32
from pkc.dialect.roles import CommitOp
from pkc.dialect.tile import tile_type
from pkc.dialect.transfers import TMA
from pkc.dialect.types import RANKS, TileType, dtype_bytes
from pkc.passes.machine.lowering import channels, fragments
from pkc.passes.machine.lowering.context import Staged, WarpRole
from pkc.passes.machine.lowering.memory import Access, Element, LocalOrRemote, store_element, writing
from pkc.passes.machine.lowering.missing import CannotLowerError
from pkc.passes.machine.lowering.tma import copies

_CHUNK = 16
"""Bytes that a thread moves at once; a swizzle leaves them together."""


def is_carried(role: WarpRole, op: LoadOp) -> bool:
    """Whether a tile that ordinary instructions load goes into one stage as it is."""
    uses = list(op.result.uses)
    moves = TMA not in role.emit.target.transfers or not role.threads.warpgroups
    return moves and len(uses) == 1 and isinstance(uses[0].operation, CommitOp)


def fits(op: StoreOp | StoreAddOp, tile: Staged) -> bool:
    """Whether a staged tile can be stored from where it lies."""
    kind = tile_type(op.tile)
    return kind.rank == 2 and not tile.transposed and dtype_bytes(kind.element_type) > 1


def load(role: WarpRole, op: LoadOp) -> None:
    """A tile of two dimensions into the stage that it is committed to, row by row; zero where it has no elements."""
    kind, emit = tile_type(op.result), role.emit
    if kind.rank != 2:
        raise CannotLowerError(op, "a tile that is not two-dimensional, loaded into its stage by ordinary instructions")
    _check_bytes(op, kind)
    commit = next(use.operation for use in op.result.uses)
    assert isinstance(commit, CommitOp)
    ring = role.launch.rings[commit.channel]
    start = channels.stage_address(role, ring, channels.stage_of(role, commit.channel))
    address = emit.plus(start, ring.slots[list(commit.tiles).index(op.result)])
    layout, size = emit.target.shared_layout(kind), dtype_bytes(kind.element_type)
    zero = emit.value("bits_f32", emit.real(0.0))

    def places() -> tuple[Element | LocalOrRemote, SSAValue]:
        elements = Element(role, op) if op.local is None else LocalOrRemote(role, op, op.local)
        return elements, emit.const(kind.shape[0])

    def move(there: SSAValue, exists: SSAValue, row: SSAValue, column: SSAValue, count: int) -> None:
        here = fragments.shared_address(emit, address, layout, size, (row, column))
        words = _CHUNK // 4 if count > 1 else 1
        bits = emit.registers(words, b32)
        for i in range(words):
            emit.set(zero, bits, i)
        with emit.when(exists):
            if count > 1:
                emit.do("load_global_v4", bits, there)
            else:
                emit.set(emit.value(f"load_global_b{8 * size}", there), bits, 0)
        if count > 1:
            emit.do("store_shared_v4", bits, here)
        else:
            emit.do(f"store_shared_b{8 * size}", here, emit.get(bits, 0))

    _by_chunks(role, op, kind, places, move)
    role.carried.add(op.result)


def store(role: WarpRole, op: StoreOp | StoreAddOp, tile: Staged) -> None:
    """A tile row by row, or a single row by elements, to every rank if the array is replicated."""
    kind, emit = tile_type(op.tile), role.emit
    if kind.rank > 2 or tile.transposed:
        what = "a tile of more than two dimensions, or `.T`, stored from its stage by ordinary instructions"
        raise CannotLowerError(op, what)
    _check_bytes(op, kind)
    if not copies(op):
        _store(role, op, tile, None)
    else:
        with emit.loop(0, role.dims.extent(RANKS)) as rank:
            _store(role, op, tile, rank)
    emit.do("sync_warp")  # one thread says for all that the stage has been read


def _store(role: WarpRole, op: StoreOp | StoreAddOp, tile: Staged, rank: SSAValue | None) -> None:
    kind, emit = tile_type(op.tile), role.emit
    size = dtype_bytes(kind.element_type)
    if kind.rank < 2:
        _store_row(role, op, tile, rank)
        return

    def places() -> tuple[Element, SSAValue]:
        elements = Element(role, op, rank)
        return elements, emit.least(emit.most(elements.rows, 0), kind.shape[0])

    def move(there: SSAValue, exists: SSAValue, row: SSAValue, column: SSAValue, count: int) -> None:
        with emit.when(exists):
            if count > 1:
                here = fragments.shared_address(emit, tile.address, tile.layout, size, (row, column))
                bits = emit.registers(_CHUNK // 4, b32)
                emit.do("load_shared_v4", bits, here)
                emit.do(f"{writing(op)}_v4", bits, there)
            else:
                store_element(emit, op, there, fragments.read_shared(emit, tile, row, column))

    _by_chunks(role, op, kind, places, move)


def _store_row(role: WarpRole, op: StoreOp | StoreAddOp, tile: Staged, rank: SSAValue | None) -> None:
    """A tile of one dimension, or of none, each element by the next thread."""
    emit, kind, threads = role.emit, tile_type(op.tile), role.threads
    places = Element(role, op, rank)
    first = emit.minus(threads.thread, threads.start)
    with emit.loop(first, kind.shape[0] if kind.rank else 1, threads.count) as column:
        address, exists = places.at([column] if kind.rank else [])
        with emit.when(exists):
            found = fragments.read_shared(emit, tile, emit.const(0), column)
            store_element(emit, op, address, found)


def _check_bytes(op: Access, kind: TileType) -> None:
    if dtype_bytes(kind.element_type) < 2:
        how = "loaded into" if isinstance(op, LoadOp) else "stored from"
        raise CannotLowerError(op, f"8-bit elements {how} their stage by ordinary instructions")


def _by_chunks(
    role: WarpRole,
    op: Access,
    kind: TileType,
    places: Callable[[], tuple[Element | LocalOrRemote, SSAValue]],
    move: Callable[[SSAValue, SSAValue, SSAValue, SSAValue, int], None],
) -> None:
    """Move a tile in chunks of a row, each by the next thread: of 16 bytes where rows and blocks end at multiples of
    that, else of one element.

    `places` gives where the elements are, and how many rows there are; `move` gets an address, whether something is
    there, a row, a column, and how many elements.
    """
    emit, threads = role.emit, role.threads
    chunk = _CHUNK // dtype_bytes(kind.element_type)
    whole = _whole_chunks(role, op, chunk) if kind.shape[1] % chunk == 0 else emit.compare("ne", emit.const(0), 0)
    for count in (chunk, 1):
        with emit.when(whole if count > 1 else emit.negated(whole)):
            (elements, rows), each = places(), kind.shape[1] // count
            first = emit.minus(threads.thread, threads.start)
            with emit.loop(first, emit.times(rows, each), threads.count) as number:
                row, column = emit.over(number, each), emit.times(emit.modulo(number, each), count)
                move(*elements.at([row, column]), row, column, count)


def _whole_chunks(role: WarpRole, op: Access, elements: int) -> SSAValue:
    """Whether the rows of the array begin, and the block begins and ends, at multiples of a chunk."""
    emit, last = role.emit, op.indices[-1]
    columns = role.dims.row_length(array_type(op.array))
    aligned = emit.compare("eq", emit.bit_and(columns, elements - 1), 0)
    if last not in role.blocks:
        return aligned
    block = role.blocks[last]
    whole = emit.both(aligned, emit.compare("eq", emit.bit_and(role.dims.valid(block), elements - 1), 0))
    if block.stop is None:  # then an aligned end implies an aligned begin
        return whole
    return emit.both(whole, emit.compare("eq", emit.bit_and(block.local, elements - 1), 0))
