"""Staged tiles to memory by the threads of a warp: for places that no box of a tensor map describes."""

from __future__ import annotations

from xdsl.ir import SSAValue

from pkc.dialect.access import StoreOp
from pkc.dialect.machine import b32
from pkc.dialect.tile import tile_type
from pkc.dialect.types import ArrayType, dtype_bytes
from pkc.passes.lowering import fragments
from pkc.passes.lowering.context import Staged, Worker
from pkc.passes.lowering.memory import Element, store_element
from pkc.passes.lowering.missing import CannotLowerError

_CHUNK = 16
"""Bytes that a thread moves at once, which a swizzle leaves together."""


def store(worker: Worker, op: StoreOp, tile: Staged) -> None:
    """A tile of two dimensions, row by row: 16 bytes at once where rows and blocks end at multiples of that."""
    kind, emit = tile_type(op.tile), worker.emit
    if kind.rank != 2 or tile.transposed:
        raise CannotLowerError(
            op, "a tile other than of two dimensions, stored from its stage by ordinary instructions"
        )
    size = dtype_bytes(kind.element_type)
    if size < 2:
        raise CannotLowerError(op, "8-bit elements stored from their stage by ordinary instructions")
    chunk = _CHUNK // size
    whole = _whole_chunks(worker, op, chunk) if kind.shape[1] % chunk == 0 else emit.compare("ne", emit.const(0), 0)
    with emit.when(whole):
        _by(worker, op, tile, chunk)
    with emit.when(emit.negated(whole)):
        _by(worker, op, tile, 1)
    emit.do("sync_warp")  # one thread says for all that the stage has been read


def _whole_chunks(worker: Worker, op: StoreOp, elements: int) -> SSAValue:
    """Whether the rows of the array begin, and the block ends, at multiples of a chunk."""
    emit, array, last = worker.emit, op.array.type, op.indices[-1]
    assert isinstance(array, ArrayType)
    columns = worker.dims.extent(array.dimensions[-1])
    aligned = emit.compare("eq", emit.bit_and(columns, elements - 1), 0)
    if last not in worker.blocks:
        return aligned
    valid = worker.dims.valid(worker.blocks[last])
    return emit.both(aligned, emit.compare("eq", emit.bit_and(valid, elements - 1), 0))


def _by(worker: Worker, op: StoreOp, tile: Staged, elements: int) -> None:
    """So many neighbours at once, those of a row one after the other, each by the next thread."""
    emit, kind, threads = worker.emit, tile_type(op.tile), worker.threads
    size, each = dtype_bytes(kind.element_type), kind.shape[1] // elements
    places = Element(worker, op)
    rows = emit.least(emit.most(places.rows, 0), kind.shape[0])
    first = emit.minus(threads.thread, 32 * threads.first)
    with emit.loop(first, emit.times(rows, each), threads.count) as chunk:
        row, column = emit.over(chunk, each), emit.times(emit.modulo(chunk, each), elements)
        address, exists = places.at([row, column])
        with emit.when(exists):
            if elements > 1:
                here = fragments.shared_address(emit, tile.address, tile.layout, size, (row, column))
                bits = emit.registers(_CHUNK // 4, b32)
                emit.do("load_shared_v4", bits, here)
                emit.do("store_global_v4", bits, address)
            else:
                store_element(emit, kind.element_type, address, fragments.read_shared(emit, tile, row, column))
