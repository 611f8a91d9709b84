"""Loads and stores of registers, element by element or by 16 bytes; elements that do not exist are left out."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Protocol

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Attribute, BlockArgument, SSAValue

from pkc.dialect.access import AddToArrayOp, LoadOp, ReadOp, Scatter, Store, StoreOp
from pkc.dialect.arrays import array_type
from pkc.dialect.by_table import AddByTableOp, GatherOp
from pkc.dialect.machine import SubviewOp, b32
from pkc.dialect.program import packed
from pkc.dialect.tile import tile_type
from pkc.dialect.types import FLOATS, ArrayType, PGLType, dtype_bytes, dtype_name, f32, widened
from pkc.passes.machine.emit import Emitter
from pkc.passes.machine.lowering import fragments, shifting, spread
from pkc.passes.machine.lowering.context import WarpRole, round_the_ranks
from pkc.passes.machine.lowering.fragments import PACKED
from pkc.passes.machine.lowering.missing import CannotLowerError, slow
from pkc.passes.machine.lowering.tma import Access, copies, in_one_shard, placed
from pkc.targets.layout import CHUNK, NEIGHBOURS, Fragment


class Element:
    """Where the elements of an access are: their addresses, and whether they exist.

    In another array than that of the operation if `array` is given.
    """

    def __init__(self, role: WarpRole, op: Access, rank: SSAValue | None = None, array: SSAValue | None = None) -> None:
        emit, array = role.emit, op.array if array is None else array
        kind = array.type
        assert isinstance(kind, ArrayType)
        self._role = role
        self._places, _ = placed(role, op)
        self._size = dtype_bytes(array_type(array).element_type) * (2 if packed(op) else 1)
        heap = isinstance(kind, PGLType)
        self._shard = kind.shard_dim if isinstance(kind, PGLType) else None
        self._extents = [
            role.dims.shard_length(dim) if position == self._shard else role.dims.extent(dim)
            for position, dim in enumerate(kind.dimensions[:-1])
        ]
        self._extents.append(role.dims.row_length(array_type(array)))
        self._axes = [position for position, index in enumerate(op.indices) if index in role.blocks]
        self._valid = {position: role.dims.valid(self._places[position]) for position in self._axes}
        self._base = emit.address(array)
        self._straddles = self._shard is not None and rank is None and self._places[self._shard].shard is None
        if heap and not self._straddles:
            self._base = role.emit.on_rank(self._base, self._owner(op, rank))

    def _owner(self, op: Access, rank: SSAValue | None) -> SSAValue:
        role = self._role
        if rank is not None:
            return rank
        if op.rank is not None:
            return role.known[op.rank]
        if self._shard is not None:
            return role.dims.owner(self._places[self._shard])
        return role.rank

    @property
    def rows(self) -> SSAValue:
        """How many positions exist along the first axis; may be more than the tile has."""
        return self._valid[self._axes[0]]

    def _start(self, position: int) -> SSAValue:
        """Where a block begins in memory along its dimension."""
        place = self._places[position]
        return place.local if position == self._shard else self._role.dims.position(place)

    def at(self, offsets: list[SSAValue]) -> tuple[SSAValue, SSAValue]:
        """The address of the element at these offsets within the tile, and whether it exists."""
        emit = self._role.emit
        inside = dict(zip(self._axes, offsets, strict=True))
        linear: SSAValue | None = None
        exists: SSAValue | None = None
        base = self._base
        for position in range(len(self._places)):
            coordinate = self._start(position)
            if position in inside:
                coordinate = emit.plus(coordinate, inside[position])
                fits = emit.compare("slt", inside[position], self._valid[position])
                exists = fits if exists is None else emit.both(exists, fits)
                if self._places[position].outside:
                    exists = emit.both(exists, emit.compare("sge", coordinate, 0))
            if self._straddles and position == self._shard:
                length = self._extents[position]
                base = emit.on_rank(base, emit.over(coordinate, length))
                coordinate = emit.modulo(coordinate, length)
            wide = emit.wide(coordinate)
            linear = wide if linear is None else emit.plus(emit.times(linear, emit.wide(self._extents[position])), wide)
        assert linear is not None
        if exists is None:
            exists = emit.compare("eq", emit.const(0), 0)
        return emit.plus(base, emit.times(linear, self._size)), exists


class LocalOrRemote:
    """The elements of a load that reads this rank's shard from another array than the shards of other ranks."""

    def __init__(self, role: WarpRole, op: LoadOp, local: SSAValue) -> None:
        kind = local.type
        assert isinstance(kind, PGLType) and kind.shard_dim is not None
        places, _ = in_one_shard(role, op)
        self._emit = role.emit
        self._is_local = role.emit.compare("eq", role.dims.owner(places[kind.shard_dim]), role.rank)
        self._local, self._remote = Element(role, op, array=local), Element(role, op)

    def at(self, offsets: list[SSAValue]) -> tuple[SSAValue, SSAValue]:
        """As of `Element`."""
        near, _ = self._local.at(offsets)
        far, exists = self._remote.at(offsets)
        return self._emit.select(self._is_local, near, far), exists


def read(role: WarpRole, op: ReadOp) -> SSAValue:
    """One element as an integer, which each thread that needs it loads itself.

    All roles of all CTAs must see the same number: they count through the same tasks by it. They do, because nothing
    writes the array in the same phase (`pk-check-lowering`): each role has waited for the phases before.
    So its lines may stay in the cache of the SM: the first role waits for memory, the others and the next elements do
    not, and who has waited for another phase acquires, which drops them.
    """
    emit = role.emit
    address, _ = Element(role, op).at([])
    cast = arith.IndexCastOp(emit.value("int_bits", emit.value("load_global_b32", address)), IndexType())
    emit.add(cast)
    return cast.result


def load(role: WarpRole, op: LoadOp) -> None:
    """A tile into registers; zero where it has no elements."""
    kind, fragment = tile_type(op.result), spread.fragment_of(role, op.result)
    elements = Element(role, op) if op.local is None else LocalOrRemote(role, op, op.local)
    target = fragments.allocate(role, fragment, kind.element_type, op.result.name_hint)
    role.tiles[op.result] = target
    fill_tile(role, op, op.result, target, elements)


class Elements(Protocol):
    """Where the elements of an access are."""

    def at(self, offsets: list[SSAValue]) -> tuple[SSAValue, SSAValue]:
        """The address of the element at these offsets within the tile, and whether it exists."""
        ...


def fill_tile(
    role: WarpRole, op: LoadOp | GatherOp, value: SSAValue, target: fragments.RegisterTile, elements: Elements
) -> None:
    """Load a tile into its registers, by 16 bytes where it goes; zero where it has no elements."""
    if role.anywhere and isinstance(op, LoadOp):
        _from_anywhere(role, op, target, elements)
        return
    if role.vectors and target.fragment.paired:
        _vectors(role, target, _chunks(role, value, elements), "receive" if packed(op) else "load_global")
        return
    _one_by_one(role, op, value)
    fragments.fill(role, target, lambda i: _element(role, op, value, elements, i))


def _element(role: WarpRole, op: LoadOp | GatherOp, value: SSAValue, elements: Elements, index: SSAValue) -> SSAValue:
    """One element: a neighbour in the same register may lie past the edge, or at an odd place."""
    emit, kind = role.emit, tile_type(value).element_type
    address, exists = elements.at(_offsets(role, value, index))
    inside = spread.is_in_tile(role, spread.fragment_of(role, value), index) if role.chunk is None else None
    exists = exists if inside is None else emit.both(exists, inside)  # blocks may go on behind their tile
    found = emit.registers(1, widened(kind))
    emit.set(_zero(emit, kind), found, 0)
    with emit.when(exists):
        emit.set(_loaded(role, op, kind, address), found, 0)
    return emit.get(found, 0)


Writing = StoreOp | AddToArrayOp | Scatter


def on_each_copy(role: WarpRole, op: Writing, write: Callable[[SSAValue | None], None]) -> None:
    """Write what an operation writes to this rank, to the one that it names, or to every rank if the array is
    replicated."""
    if not copies(op):
        write(None if op.rank is None else role.known[op.rank])
        return
    with round_the_ranks(role) as rank:
        write(rank)


def store(role: WarpRole, op: Writing, elements_of: Callable[[SSAValue | None], Elements]) -> None:
    """A tile from registers, stored or added, to every rank if the array is replicated."""
    on_each_copy(role, op, lambda rank: _store(role, op, elements_of(rank)))


def _store(role: WarpRole, op: Writing, elements: Elements) -> None:
    emit, tile = role.emit, fragments.as_elements(role, op.tile)
    if role.vectors or role.anywhere:
        _by_chunks(op, tile.fragment)
        chunks = _chunks(role, op.tile, elements)
        _vectors(role, fragments.materialize(role, op.tile), chunks, writing(op))
        return
    _one_by_one(role, op, op.tile)
    first = spread.is_first(role, tile.fragment)
    with emit.when(first) if first is not None else nullcontext(), emit.loop(0, tile.fragment.count, unroll=True) as i:
        address, exists = elements.at(_offsets(role, op.tile, i))
        inside = spread.is_in_tile(role, tile.fragment, i) if role.chunk is None else None
        with emit.when(exists if inside is None else emit.both(exists, inside)):
            store_element(role, op, address, fragments.element(role, tile, i))


def _one_by_one(role: WarpRole, op: Access | GatherOp | Scatter, value: SSAValue) -> None:
    """Remark that threads access single elements of a tile, unless it is the way for ragged edges beside another."""
    kind = tile_type(value)
    if kind.rank < 2 or role.chunk is not None:
        return
    assert isinstance(op.array, BlockArgument)
    name = role.launch.kernel.argument_name(op.array)
    adds = isinstance(op, AddToArrayOp | AddByTableOp)
    what = "adds" if adds else "stores" if isinstance(op, Store) else "loads"
    reason = "its tiles are spread over registers as those of an MMA"
    slow(
        op, f"each thread {what} single elements of `{name}`, {dtype_bytes(kind.element_type)} bytes, not 16: {reason}"
    )


def writing(op: Writing) -> str:
    """How the instructions begin that write a tile."""
    kind = tile_type(op.tile).element_type
    if dtype_bytes(kind) == 1 and not isinstance(op, Store):
        raise CannotLowerError(op, "a sum of 8-bit floats in memory", "an array of bf16")
    if packed(op):
        return "send"
    return "store_global" if isinstance(op, Store) else f"add_global_{dtype_name(kind)}"


def store_element(role: WarpRole, op: Writing, address: SSAValue, value: SSAValue) -> None:
    """One element, computed as f32 or i32, to memory."""
    emit, kind = role.emit, tile_type(op.tile).element_type
    if kind in PACKED:
        bits, size = emit.value(f"pack_{PACKED[kind]}", value, value), f"_b{8 * dtype_bytes(kind)}"
    else:
        bits, size = emit.value("bits_f32" if kind == f32 else "bits_i32", value), "_b32"
    epoch = [role.launch.epoch] * packed(op)
    emit.do(f"{writing(op)}{size if isinstance(op, Store) else ''}", address, bits, *epoch)


def _by_chunks(op: Access | GatherOp | Scatter, fragment: Fragment) -> None:
    if not fragment.paired:
        hint = "store them in `tasks` of their own, before those with tiles"
        raise CannotLowerError(op, "rows or single elements among tiles, in a role without a warpgroup", hint)


def _chunks(role: WarpRole, value: SSAValue, elements: Elements) -> list[tuple[SSAValue, SSAValue]]:
    """Where each chunk that a thread works on begins, and whether it exists, wholly or not at all."""
    starts = (role.emit.const(NEIGHBOURS * number) for number in range(role.chunks))
    return [elements.at(_offsets(role, value, start)) for start in starts]


def _vectors(role: WarpRole, tile: fragments.RegisterTile, chunks: list[tuple[SSAValue, SSAValue]], what: str) -> None:
    """Load or write the neighbours that a thread has, 16 bytes at a time; loads give zero where nothing exists."""
    emit = role.emit
    words = tile.fragment.count // 2 if tile.packed else tile.fragment.count
    bits = tile.registers
    if not tile.packed:
        bits = emit.registers(words, b32)
        if what not in _INTO:
            name = "bits_f32" if tile.element_type == f32 else "bits_i32"
            with emit.loop(0, words, unroll=True) as i:
                emit.set(emit.value(name, emit.get(tile.registers, i)), bits, i)
    if what in _INTO:
        zero = _zero_bits(emit)
        with emit.loop(0, words, unroll=True) as i:
            emit.set(zero, bits, i)
    for first in range(0, words, 4):
        subview = SubviewOp(bits, first, 4)
        emit.add(subview)
        chunk, inside = divmod(first, words // len(chunks))
        address, exists = chunks[chunk]
        # A chunk of packets is one of 16 bytes of elements, however many bytes it takes.
        epoch = [role.launch.epoch] * (what in ("send", "receive"))
        emit.do(f"{what}_v4_where", subview.result, emit.plus(address, 4 * inside), *epoch, exists)
    if not tile.packed and what in _INTO:
        name = "float_bits" if tile.element_type == f32 else "int_bits"
        with emit.loop(0, words, unroll=True) as i:
            emit.set(emit.value(name, emit.get(bits, i)), tile.registers, i)


def _from_anywhere(role: WarpRole, op: LoadOp, tile: fragments.RegisterTile, elements: Elements) -> None:
    """Load the neighbours that a thread has, which begin anywhere: each 16 bytes from the two in which they lie, as far
    as their row has something there."""
    emit, size = role.emit, dtype_bytes(tile_type(op.result).element_type)
    zero, loaded = _zero_bits(emit), list[tuple[SSAValue, SSAValue]]()
    valid, each = role.dims.valid(role.blocks[op.indices[-1]]), CHUNK // size
    for first in range(0, NEIGHBOURS * role.chunks, each):
        offsets = _offsets(role, op.result, emit.const(first))
        start, exists = elements.at(offsets)
        shift, left = shifting.inside(emit, start), emit.times(emit.minus(valid, offsets[-1]), size)
        more = emit.both(exists, emit.compare("sgt", emit.minus(emit.plus(left, shift), CHUNK), 0))
        words, halves = shifting.pair(emit)
        for i in range(2 * shifting.WORDS):
            emit.set(zero, words, i)
        down = emit.minus(start, emit.wide(shift))
        for at, (half, there) in enumerate(zip(halves, (exists, more), strict=True)):
            emit.do("load_global_v4_around_where", half, emit.plus(down, at * CHUNK), there)
        loaded.append((words, shift))
    for number, (words, shift) in enumerate(loaded):
        for i, word in enumerate(shifting.shifted(emit, words, shift, size)):
            found = word if tile.packed else emit.value("float_bits" if tile.element_type == f32 else "int_bits", word)
            emit.set(found, tile.registers, number * shifting.WORDS + i)


_INTO = ("load_global", "receive")
"""How the instructions begin that fill registers from memory."""


def _offsets(role: WarpRole, value: SSAValue, index: SSAValue) -> list[SSAValue]:
    return [spread.along(role, value, axis, index) for axis in range(tile_type(value).rank)]


def _zero(emit: Emitter, kind: Attribute) -> SSAValue:
    return emit.real(0.0) if kind in FLOATS else emit.value("int_bits", _zero_bits(emit))


def _zero_bits(emit: Emitter) -> SSAValue:
    return emit.value("bits_f32", emit.real(0.0))


def _loaded(role: WarpRole, op: LoadOp | GatherOp, kind: Attribute, address: SSAValue) -> SSAValue:
    emit = role.emit
    if packed(op):
        return emit.value(f"low_{PACKED[kind]}", emit.value("receive_b16", address, role.launch.epoch))
    if kind in PACKED:
        return emit.value(f"low_{PACKED[kind]}", emit.value(f"load_global_b{8 * dtype_bytes(kind)}", address))
    return emit.value("float_bits" if kind == f32 else "int_bits", emit.value("load_global_b32", address))
