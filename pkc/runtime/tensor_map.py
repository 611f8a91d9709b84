"""Tensor maps: how TMA finds the boxes of an array.

`cuTensorMapEncodeTiled` is called through ctypes: it writes into memory that must be aligned, and the memory in which
cuda.bindings keeps maps is not.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pkc.diagnostics import PkcError
from pkc.dialect.blocks import padded_length, shard_length
from pkc.location import NOWHERE
from pkc.runtime.driver import DriverError
from pkc.runtime.element import ELEMENTS
from pkc.runtime.errors import DriverFailure, TensorMapRule

MAP_BYTES = 128
"""The size of a map and its alignment."""

_SWIZZLES = (0, 32, 64, 128)
_L2_PROMOTION_128_BYTES = 2
_MOST_DIMENSIONS, _MOST_BOX, _MOST_STRIDE = 5, 256, 1 << 40


@dataclass(slots=True)
class Tiling:
    """What a map says: all tuples innermost first, strides in bytes and without that of the innermost dimension.

    `names` are the names of dimensions in messages.
    """

    array: str
    dtype: str
    address: int
    extents: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    swizzle: int
    names: tuple[str, ...]

    def check(self) -> None:
        """Raises `PkcError` if the hardware has no such map."""
        size = ELEMENTS[self.dtype].bytes
        if len(self.extents) > _MOST_DIMENSIONS:
            self._reject("the number of dimensions", len(self.extents), f"TMA knows at most {_MOST_DIMENSIONS}")
        if len(self.box) != len(self.extents):
            self._reject("the number of dimensions", len(self.extents), f"its boxes have {len(self.box)}")
        if self.address % 16:
            self._reject("its address", hex(self.address), "an address must be a multiple of 16 bytes")
        for axis, stride in enumerate(self.strides):
            if stride % 16 or stride >= _MOST_STRIDE:
                self._reject_stride(axis, stride, 16 // size)
        for axis, length in enumerate(self.box):
            if not 1 <= length <= _MOST_BOX:
                self._reject(f"the box along {self.names[axis]}", length, f"a box has 1 to {_MOST_BOX} positions")
        self._check_row(self.box[0] * size)

    def _reject_stride(self, axis: int, stride: int, elements: int) -> None:
        inner, name = self.names[axis : axis + 2]
        rule = f"it must be a multiple of 16 bytes: let {inner} be a multiple of {elements}"
        rule = rule if stride % 16 else "it must be less than 2^40"
        self._reject(f"the distance from one position of {name} to the next", f"{stride} bytes", rule)

    def _check_row(self, row: int) -> None:
        if row % 16:
            self._reject(f"the box along {self.names[0]}", f"{row} bytes", "it must be a multiple of 16 bytes")
        if self.swizzle and row > self.swizzle:
            rule = f"with a swizzle of {self.swizzle} bytes it must not be longer"
            self._reject(f"the box along {self.names[0]}", f"{row} bytes", rule)

    def _reject(self, what: str, value: object, rule: str) -> None:
        raise PkcError(TensorMapRule(NOWHERE, self.array, what, str(value), rule))


_ONE = ((0, 0, True),)
"""A single map, which is the second one too."""


class Maps:
    """The maps of `TensorMaps` for an array, of whatever size: all but sizes and address is made once.

    `ranks` and `heap_stride` are those of the mesh, the latter only if the array lies in the symmetric heap; `shard` is
    the dimension that it is sharded along. Rows that are `padded` begin at multiples of 32 bytes. One thread at a time
    may encode them.
    """

    def __init__(
        self,
        dtype: str,
        dims: Sequence[str | int],
        box: tuple[int, ...],
        swizzle: int,
        *,
        ranks: int,
        heap_stride: int | None = None,
        shard: int | None = None,
        split: int | None = None,
        padded: bool = False,
    ) -> None:
        self._padded = padded
        self._last = last = len(dims) - 1
        self._dims = tuple(enumerate(reversed(dims)))
        self._size, self._ranks = ELEMENTS[dtype].bytes, ranks
        self._shard, self._split = (None if axis is None else last - axis for axis in (shard, split))
        self._step = heap_stride if shard is not None else None
        copies = heap_stride is not None and shard is None
        count = len(dims) + (split is not None) + copies
        self._part = box[0] if len(box) > count else 0
        rank = count + bool(self._part)
        row = box[0] * self._size
        self._exist = len(box) == rank <= _MOST_DIMENSIONS and all(1 <= length <= _MOST_BOX for length in box)
        self._exist = self._exist and not row % 16 and (not swizzle or row <= swizzle)
        long, longs, ones = _arrays(rank)
        self._extents, self._strides = long(), longs()
        if copies:
            self._extents[count - 1], self._strides[count - 2] = ranks, heap_stride
        self._call, self._target, self._address = _encode_tiled(), ctypes.c_void_p(), ctypes.c_void_p()
        self._about = ELEMENTS[dtype].code, rank
        self._rest = _box(box), ones, 0, _SWIZZLES.index(swizzle), _L2_PROMOTION_128_BYTES, 0

    def encode(self, dims: Mapping[str, int], address: int, target: int) -> Sequence[tuple[int, int, bool]] | None:
        """Write the maps of an array at `address`, a multiple of 16, to host memory at `target`, a multiple of 128;
        `None` if TMA has no such maps.

        Of each map: how far behind `target` it is, how far behind `address` it begins, and whether it is the second one
        too, which is not written then. Raises `DriverError`.
        """
        if not self._exist:
            return None
        stride, extents, strides, last = self._size, self._extents, self._strides, self._last
        length = whole = rest = step = 0
        for axis, dim in self._dims:
            if axis:
                if stride % 16 or stride >= _MOST_STRIDE:
                    return None
                strides[axis - 1] = stride
            extents[axis] = extent = dims[dim] if isinstance(dim, str) else dim
            if axis == self._split:
                extents[axis] = length = shard_length(extent, self._ranks)
                whole, rest = divmod(extent, length)
                step = self._step or length * stride
            if self._padded and not axis:
                extent = padded_length(extent, self._size)
            stride *= extent if axis != self._shard else shard_length(extent, self._ranks)
        if length:
            if step % 16 or step >= _MOST_STRIDE:
                return None
            extents[last + 1], strides[last] = whole, step
        if self._part:
            row, extents[0] = extents[0], self._part
            extents[self._about[1] - 1], strides[self._about[1] - 2] = row // self._part, self._part * self._size
        self._encode(address, target)
        if not rest:
            return _ONE
        assert self._split is not None
        extents[self._split], extents[last + 1] = rest, 1
        self._encode(address + whole * step, target + MAP_BYTES)
        return (0, 0, False), (MAP_BYTES, whole * step, False)

    def _encode(self, address: int, target: int) -> None:
        self._target.value, self._address.value = target, address
        status = self._call(self._target, *self._about, self._address, self._extents, self._strides, *self._rest)
        if status:
            text = f"{hex(address)}: {[*self._extents]}, {[*self._strides]}"
            raise DriverError(DriverFailure(NOWHERE, "cuTensorMapEncodeTiled", str(status), text), status)


def not_moved(status: int, address: int) -> DriverError:
    """What `replace_address` has not done."""
    return DriverError(DriverFailure(NOWHERE, "cuTensorMapReplaceAddress", str(status), hex(address)), status)


@functools.cache
def _arrays(rank: int) -> tuple[Any, Any, Any]:
    """The types of extents and strides of so many dimensions, and steps of one."""
    return ctypes.c_uint64 * rank, ctypes.c_uint64 * max(rank - 1, 1), _box((1,) * rank)


@functools.cache
def _box(lengths: tuple[int, ...]) -> Any:
    return (ctypes.c_uint32 * len(lengths))(*lengths)


@functools.cache
def _names(dims: tuple[str | int, ...]) -> tuple[str, ...]:
    """The names of dimensions in messages, innermost first."""
    return tuple(f"`{dim}`" for dim in reversed(dims))


@functools.cache
def _encode_tiled() -> Any:
    # The driver's library is loaded by now.
    # Conversions by `argtypes` take longer than the call: pointers are objects of ctypes, all else fits a C int.
    return ctypes.CDLL("libcuda.so.1").cuTensorMapEncodeTiled


@functools.cache
def replace_address() -> Callable[[int, int], int]:
    """A function that lets the map in host memory at an address be of an array at another one, a multiple of 16, within
    a context. It gives a CUresult."""
    call = ctypes.CDLL("libcuda.so.1").cuTensorMapReplaceAddress
    call.argtypes = (ctypes.c_void_p, ctypes.c_void_p)
    return call


@dataclass(slots=True)
class Memory:
    """An array in memory, outermost dimension first; `strides` in bytes.

    `heap_stride` is the distance between the ranks' copies or shards if it lies in the symmetric heap, then `address`
    is that of rank 0.
    """

    name: str
    dtype: str
    address: int
    extents: tuple[int, ...]
    strides: tuple[int, ...]
    dims: tuple[str | int, ...]
    ranks: int
    heap_stride: int | None
    sharded: bool = False
    """Whether each rank has one shard of a dimension; otherwise each rank's memory has all of it."""


def tilings(memory: Memory, box: tuple[int, ...], swizzle: int, split: int | None) -> tuple[Tiling, Tiling]:
    """The maps of `TensorMaps`: of all whole shards, and of the shorter one (or the first map again)."""
    heap = memory.heap_stride
    ranks = [(memory.ranks, heap, "the ranks")] if heap is not None and not memory.sharded else []
    if split is None:
        only = _tiling(memory, memory.extents, ranks, box, swizzle)
        return only, only
    extent = memory.extents[split]
    length = shard_length(extent, memory.ranks)
    whole = extent // length
    step = heap if heap is not None and memory.sharded else length * memory.strides[split]
    first = _tiling(memory, _with(memory.extents, split, length), [(whole, step, "the shards"), *ranks], box, swizzle)
    rest = extent - whole * length
    if not rest:
        return first, first
    last = replace(memory, address=memory.address + whole * step)
    return first, _tiling(last, _with(memory.extents, split, rest), [(1, step, "the shards"), *ranks], box, swizzle)


def _with(extents: tuple[int, ...], position: int, extent: int) -> tuple[int, ...]:
    return (*extents[:position], extent, *extents[position + 1 :])


def _tiling(
    memory: Memory,
    extents: tuple[int, ...],
    outer: Sequence[tuple[int, int, str]],
    box: tuple[int, ...],
    swizzle: int,
) -> Tiling:
    """A map of `extents`; `outer` has extent, stride and name of further dimensions. A box of one dimension more has
    parts of rows."""
    sizes, steps, names = extents[::-1], memory.strides[-2::-1], _names(memory.dims)
    for extent, stride, name in outer:
        sizes, steps, names = (*sizes, extent), (*steps, stride), (*names, name)
    if len(box) > len(sizes):
        steps, names = (*steps, box[0] * ELEMENTS[memory.dtype].bytes), (*names, f"the parts of {names[0]}")
        sizes = (box[0], *sizes[1:], sizes[0] // box[0])
    return Tiling(memory.name, memory.dtype, memory.address, sizes, steps, box, swizzle, names)
