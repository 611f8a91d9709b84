"""Kernel parameters: where the fields of the struct are, and how they are filled in for one rank."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
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
from pkc.dialect.types import RANKS
from pkc.runtime.arrays import memory_shape, row_major
from pkc.runtime.element import ELEMENTS
from pkc.runtime.tensor_map import MAP_BYTES, Memory, move, tilings

ALIGNMENT = MAP_BYTES

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


class KernelParameters:
    """The struct in host memory, aligned, at `address`. Kernels get a copy at each launch."""

    def __init__(self, fields: Sequence[Field], offsets: Sequence[int], size: int) -> None:
        """`offsets` and `size` are the `layout` of the fields."""
        self._memory = ctypes.create_string_buffer(size + ALIGNMENT)
        self.address = -(-ctypes.addressof(self._memory) // ALIGNMENT) * ALIGNMENT
        self._fields = tuple(zip(fields, (self.address + offset for offset in offsets), strict=True))
        self._pointers = (ctypes.c_void_p * 1)(self.address)
        self.pointers = ctypes.addressof(self._pointers)
        """The address of the array of pointers to parameters that a launch takes; it has one entry, the struct."""
        self._maps: dict[str, list[tuple[int, int]]] = {}
        self._bases: dict[str, list[ctypes.c_uint64]] = {}

    def fill(self, arrays: Mapping[str, ArrayParameter], values: Values) -> None:
        """Write every field. Raises `PkcError` if TMA cannot move an array."""
        for field, address in self._fields:
            if isinstance(field, TensorMaps):
                memory = _memory(arrays[field.array], values)
                whole, rest = tilings(memory, field.box, field.swizzle, field.split)
                whole.check()
                whole.encode(address)
                if rest is whole:
                    ctypes.memmove(address + MAP_BYTES, address, MAP_BYTES)
                else:
                    rest.check()
                    rest.encode(address + MAP_BYTES)
                offset = rest.address - memory.address
                places = (address, whole.address - memory.address), (address + MAP_BYTES, offset)
                self._maps.setdefault(field.array, []).extend(places)
            else:
                _write(field, address, values)
                if isinstance(field, Base):
                    self._bases.setdefault(field.array, []).append(ctypes.c_uint64.from_address(address))

    def move(self, array: str, address: int) -> None:
        """Let an array of the same shape, at a multiple of 16 bytes, take the place of the one that was filled in."""
        for target, offset in self._maps.get(array, ()):
            move(target, address + offset)
        for base in self._bases.get(array, ()):
            base.value = address


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


def _write(field: _Plain, at: int, values: Values) -> None:
    if isinstance(field, Base):
        ctypes.c_uint64.from_address(at).value = values.addresses[field.array]
    elif isinstance(field, HeapStride):
        ctypes.c_uint64.from_address(at).value = values.heap_stride
    elif isinstance(field, Epochs):
        ctypes.c_uint64.from_address(at).value = values.epochs
    elif isinstance(field, Alarm):
        ctypes.c_uint64.from_address(at).value = values.alarm
    elif isinstance(field, Dimension):
        ctypes.c_int32.from_address(at).value = values.dims[field.dim]
    elif isinstance(field, RankField):
        ctypes.c_int32.from_address(at).value = values.rank if field.what == "rank" else values.dims[RANKS]
    elif field.dtype == "f32":
        ctypes.c_float.from_address(at).value = values.scalars[field.name]
    else:
        ctypes.c_int32.from_address(at).value = int(values.scalars[field.name])


def _memory(parameter: ArrayParameter, values: Values) -> Memory:
    extents = extents_of(parameter, values.dims)
    size = ELEMENTS[parameter.dtype].bytes
    shape = memory_shape(extents, parameter.shard, values.dims[RANKS])
    return Memory(
        parameter.name,
        parameter.dtype,
        values.addresses[parameter.name],
        extents,
        tuple(size * stride for stride in row_major(shape)),
        tuple(map(str, parameter.dims)),
        values.dims[RANKS],
        None if parameter.layout == "private" else values.heap_stride,
        parameter.shard is not None,
    )


def extents_of(parameter: ArrayParameter, dims: Mapping[str, int]) -> tuple[int, ...]:
    """The shape of a whole array."""
    return tuple(_extents(parameter.dims, dims))


def _extents(dims: Sequence[str | int], values: Mapping[str, int]) -> Iterator[int]:
    for dim in dims:
        yield values[dim] if isinstance(dim, str) else dim
