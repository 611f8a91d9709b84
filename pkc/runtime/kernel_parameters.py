"""Kernel parameters: where the fields of the struct are, and how they are filled in for one rank."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from pkc.codegen.artifact import (
    Alarm,
    ArrayParameter,
    Base,
    Dimension,
    Epochs,
    Field,
    HeapStride,
    RankField,
    Scalar,
    TensorMaps,
)
from pkc.dialect.blocks import padded_length
from pkc.dialect.words import RANKS
from pkc.runtime import tensor_map
from pkc.runtime.arrays import memory_shape
from pkc.runtime.element import ELEMENTS
from pkc.runtime.tensor_map import MAP_BYTES, Maps, Memory, Tiling, tilings

ALIGNMENT = MAP_BYTES

_ADDRESS, _NUMBER = struct.Struct("<Q"), struct.Struct("<i")

_Plain: TypeAlias = Base | HeapStride | Epochs | Dimension | RankField | Scalar | Alarm


@dataclass(slots=True)
class Values:
    """What the kernel parameters of one rank are filled from.

    `addresses` has arrays and counters by name; of those in the symmetric heap, the address on rank 0.
    """

    rank: int
    heap_stride: int
    epochs: int
    alarm: int
    dims: Mapping[str, int]
    scalars: Mapping[str, int | float]
    addresses: Mapping[str, int]


class StructOf:
    """The struct of a kernel on a mesh: where its fields are, and how they are written; made once."""

    def __init__(
        self, fields: Sequence[Field], arrays: Mapping[str, ArrayParameter], ranks: int, heap_stride: int
    ) -> None:
        offsets, self.size = layout(fields)
        places = list(zip(fields, offsets, strict=True))
        plain = [(field, offset) for field, offset in places if not isinstance(field, TensorMaps)]
        maps = [(field, offset) for field, offset in places if isinstance(field, TensorMaps)]
        self.maps = [
            (field, offset, arrays[field.array], _maps(field, arrays[field.array], ranks, heap_stride))
            for field, offset in maps
        ]
        self.bases: dict[str, list[int]] = {}
        for field, offset in plain:
            if isinstance(field, Base):
                self.bases.setdefault(field.array, []).append(offset)
        self.ranks = [offset for field, offset in plain if isinstance(field, RankField) and field.what == "rank"]
        self.epochs = [offset for field, offset in plain if isinstance(field, Epochs)]
        self.memory = ctypes.c_char * (self.size + ALIGNMENT)
        """The type of memory that has room for it wherever it is aligned."""
        self.write = _packing(plain)
        self.getters = [_getter(field) for field, _ in plain]


class KernelParameters:
    """The struct in host memory, aligned, at `address`. Kernels get a copy at each launch."""

    def __init__(self, of: StructOf) -> None:
        self._struct = of
        self._memory = of.memory()
        self._bytes = memoryview(self._memory).cast("B")
        start = ctypes.addressof(self._memory)
        self.address = -(-start // ALIGNMENT) * ALIGNMENT
        self._at = self.address - start
        self._pointers = ctypes.c_void_p(self.address)
        self.pointers = ctypes.addressof(self._pointers)
        """The address of the array of pointers to parameters that a launch takes; it has one entry, the struct."""
        self._written: list[Sequence[tuple[int, int, bool]]] = []
        """What was written of each of the struct's maps, as `Maps.encode` says it."""

    def fill(self, values: Values) -> None:
        """Write every field. Raises `PkcError` if TMA cannot move an array."""
        of, content = self._struct, self._bytes
        of.write(self._memory, self._at, *[get(values) for get in of.getters])
        for field, offset, array, maps in of.maps:
            found = maps.encode(values.dims, values.addresses[array.name], self.address + offset)
            if found is None:
                for tiling in tilings_of(field, array, values):
                    tiling.check()
                raise AssertionError(f"no map of `{array.name}`")
            self._written.append(found)
            for behind, _, repeated in found:
                if repeated:
                    first = self._at + offset + behind
                    second = first + MAP_BYTES
                    content[second : second + MAP_BYTES] = content[first:second]

    def on(self, rank: int, epochs: int) -> KernelParameters:
        """The same on another rank, whose epochs are there; the arrays in its own memory have yet to be moved."""
        of, other = self._struct, KernelParameters(self._struct)
        ctypes.memmove(other.address, self.address, of.size)
        other._written = self._written
        for offset in of.ranks:
            _NUMBER.pack_into(other._memory, other._at + offset, rank)
        for offset in of.epochs:
            _ADDRESS.pack_into(other._memory, other._at + offset, epochs)
        return other

    def move(self, array: str) -> Callable[[int], None]:
        """A function that lets an array of the same shape, at an address that is a multiple of 16 bytes, take the place
        of the one that was filled in."""
        written = zip(self._struct.maps, self._written, strict=True)
        maps = [
            (self.address + offset + behind, begin, self._both(offset + behind) if repeated else None)
            for (_, offset, parameter, _), found in written
            if parameter.name == array
            for behind, begin, repeated in found
        ]
        bases = [self._at + offset for offset in self._struct.bases.get(array, ())]
        memory, pack, replace = self._memory, _ADDRESS.pack_into, tensor_map.replace_address()

        def to(address: int) -> None:
            for target, begin, both in maps:
                status = replace(target, address + begin)
                if status:
                    raise tensor_map.not_moved(status, address + begin)
                if both is not None:
                    both[1][:] = both[0]
            for offset in bases:
                pack(memory, offset, address)

        return to

    def _both(self, at: int) -> tuple[memoryview, memoryview]:
        """The map that is in the struct from `at` on, and the one behind it."""
        first, second = self._at + at, self._at + at + MAP_BYTES
        return self._bytes[first:second], self._bytes[second : second + MAP_BYTES]


def _maps(field: TensorMaps, array: ArrayParameter, ranks: int, heap_stride: int) -> Maps:
    """What encodes the maps of an array."""
    heap = None if array.layout == "private" else heap_stride
    return Maps(
        array.dtype,
        _joined(array.dims) if field.joined else array.dims,
        field.box,
        field.swizzle,
        ranks=ranks,
        heap_stride=heap,
        shard=array.shard,
        split=field.split,
        padded=array.padded,
    )


def layout(fields: Sequence[Field]) -> tuple[list[int], int]:
    """The offset of each field, and the size of the struct, as C++ has them."""
    offsets: list[int] = []
    end = 0
    for size, alignment in map(_size, fields):
        start = -(-end // alignment) * alignment
        offsets.append(start)
        end = start + size
    return offsets, -(-end // ALIGNMENT) * ALIGNMENT


def _size(field: Field) -> tuple[int, int]:
    if isinstance(field, TensorMaps):
        return 2 * MAP_BYTES, MAP_BYTES
    wide = isinstance(field, Base | HeapStride | Epochs | Alarm)
    return (8, 8) if wide else (4, 4)


def _packing(places: Sequence[tuple[_Plain, int]]) -> Callable[..., None]:
    """Writes the values of all plain fields at once, into a buffer from an offset on."""
    text, end = "<", 0
    for field, offset in places:
        text += f"{offset - end}x{_code(field)}"
        end = offset + _size(field)[0]
    return struct.Struct(text).pack_into


def _code(field: _Plain) -> str:
    """The type of a field, as `struct` names it."""
    if isinstance(field, Base | HeapStride | Epochs | Alarm):
        return "Q"
    return "f" if isinstance(field, Scalar) and field.dtype == "f32" else "i"


def _getter(field: _Plain) -> Callable[[Values], int | float]:
    """The value of a field."""
    match field:
        case Base(array=array):
            return lambda values: values.addresses[array]
        case HeapStride():
            return lambda values: values.heap_stride
        case Epochs():
            return lambda values: values.epochs
        case Alarm():
            return lambda values: values.alarm
        case Dimension(dim=dim):
            return lambda values: values.dims[dim]
        case RankField(what="rank"):
            return lambda values: values.rank
        case RankField():
            return lambda values: values.dims[RANKS]
        case Scalar(name=name, dtype="f32"):
            return lambda values: values.scalars[name]
        case Scalar(name=name):
            return lambda values: int(values.scalars[name])


def tilings_of(field: TensorMaps, parameter: ArrayParameter, values: Values) -> tuple[Tiling, Tiling]:
    """What the maps of an array say: of all whole shards, and of the shorter one."""
    if field.joined:
        parameter = replace(parameter, dims=_joined(parameter.dims))
    return tilings(_memory(parameter, values), field.box, field.swizzle, field.split)


def _joined(dims: tuple[str | int, ...]) -> tuple[str | int, ...]:
    """The last two dimensions as one."""
    *outer, many, few = dims
    assert isinstance(many, int) and isinstance(few, int)
    return (*outer, many * few)


def _memory(parameter: ArrayParameter, values: Values) -> Memory:
    dims = values.dims
    extents = extents_of(parameter, dims)
    shape = extents if parameter.shard is None else memory_shape(extents, parameter.shard, dims[RANKS])
    stride, strides = ELEMENTS[parameter.dtype].bytes, list[int]()
    for extent in reversed(in_memory(parameter, shape)):
        strides.append(stride)
        stride *= extent
    return Memory(
        parameter.name,
        parameter.dtype,
        values.addresses[parameter.name],
        extents,
        tuple(reversed(strides)),
        parameter.dims,
        dims[RANKS],
        None if parameter.layout == "private" else values.heap_stride,
        parameter.shard is not None,
    )


def in_memory(parameter: ArrayParameter, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of what an array takes on each rank, of its own shape there: rows may be padded."""
    if not parameter.padded:
        return shape
    return (*shape[:-1], padded_length(shape[-1], ELEMENTS[parameter.dtype].bytes))


def extents_of(parameter: ArrayParameter, dims: Mapping[str, int]) -> tuple[int, ...]:
    """The shape of a whole array."""
    return tuple([dims[dim] if isinstance(dim, str) else dim for dim in parameter.dims])
