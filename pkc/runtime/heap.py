"""The symmetric heap: memory that lies at the same offset on every rank, and that every rank reaches.

One range of virtual addresses has a segment for each rank, `stride` bytes apart. So the rank is one more dimension of
an array, in tensor maps and in addresses. A segment has room for a GPU's whole memory; physical memory is mapped as
allocations need it, in chunks, and unmapped when all at the end is free. Memory is ordinary device memory; no multicast
object is ever made.

With one process for each GPU every process reserves such a range, and maps the memory of the others, which it gets as
file descriptors. A rank's own memory grows without the others; theirs is mapped when a launch first reaches it, which
they take part in anyway. It shrinks without them too: a GPU has its memory back when the last process has unmapped it.
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pkc.diagnostics import PkcError
from pkc.location import NOWHERE
from pkc.runtime.driver import OUT_OF_MEMORY, Driver, DriverError
from pkc.runtime.errors import GpuMemory, OtherRankFailed
from pkc.runtime.group import Group, close_all
from pkc.runtime.offsets import Offsets

LEAST_GROWTH = 64 << 20
_MIB = 1 << 20


@dataclass
class _Chunk:
    """What the heap has grown by at once, on each rank: from the offset `start` on."""

    start: int
    size: int
    mapped: list[int] = field(default_factory=list[int])
    """Addresses, one for each rank whose memory is mapped."""
    descriptor: int | None = None
    """The memory of this rank for other processes, until it is exchanged for theirs."""


class Heap:
    """The heap of `ranks` ranks. `devices` has the GPUs of the ranks that this process drives, by rank."""

    def __init__(self, driver: Driver, devices: Mapping[int, int], ranks: int, group: Group | None) -> None:
        self._driver, self.devices, self.ranks, self._group = driver, dict(devices), ranks, group
        api = driver.api
        self._fd = api.CUmemAllocationHandleType.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
        flags = api.CUmemAllocationGranularity_flags.CU_MEM_ALLOC_GRANULARITY_RECOMMENDED
        self._unit: int = max(driver.cuMemGetAllocationGranularity(self._properties(d), flags) for d in self._gpus())
        most = max(driver.cuDeviceTotalMem(device) for device in self._gpus())
        self.stride: int = 1 << (most - 1).bit_length()
        self.base = int(driver.cuMemAddressReserve(self.stride * ranks, self._unit, 0, 0))
        self._offsets = Offsets()
        self._chunks: list[_Chunk] = []
        self._trims = 0
        self._made: dict[int, int] = {}
        """By offset in use, how often the heap had shrunk before it was allocated."""
        self._ranges: dict[tuple[int, Hashable], int] = {}

    def allocate(self, count: int) -> int:
        """The offset of `count` new bytes, a multiple of 1024; their content is undefined.

        All processes must call this and the other methods in the same order; it waits for none. Raises `PkcError`.
        """
        lacking = self._offsets.lacking(count)
        if lacking:
            self._grow(-(-max(lacking, LEAST_GROWTH) // self._unit) * self._unit)
        offset = self._offsets.take(count)
        self._made[offset] = self._trims
        return offset

    def range_of(self, count: int, use: Hashable) -> int:
        """The offset of at least `count` bytes that serve one launch after the other, and hold nothing in between: the
        same for all that ask for about as many for the same use.

        They are never freed. Sizes are powers of two, so that all together take at most four times the largest.
        """
        key = 1 << max(count - 1, 1).bit_length(), use
        if key not in self._ranges:
            self._ranges[key] = self.allocate(key[0])
        return self._ranges[key]

    def free(self, offset: int) -> None:
        """Free what was allocated at `offset`."""
        self._offsets.give(offset)
        del self._made[offset]

    @property
    def used(self) -> int:
        """How many bytes of each rank are in use: the same on all that have made the same calls."""
        return self._offsets.used

    def trims_before(self, offset: int) -> int:
        """How often the heap had shrunk before what is at `offset` was allocated: its memory may not be what was there
        earlier, which other processes have mapped."""
        return self._made[offset]

    def share(self) -> None:
        """Map the memory that other processes have added since: before a launch reaches it. Waits for all of them.

        Raises `PkcError`, also if another rank has no room.
        """
        for chunk in self._chunks:
            if self._group is not None and chunk.descriptor is not None:
                self._exchange(self._group, chunk)

    def trim(self) -> int:
        """Give back the memory behind all that is in use, and return how many bytes these were on each rank. No kernel
        of this process may still use what was freed there; other processes are not waited for."""
        before = self._offsets.size
        while self._chunks and self._offsets.shrink(self._chunks[-1].start):
            self._drop(self._chunks.pop())
        self._trims += self._offsets.size < before
        return before - self._offsets.size

    def address(self, rank: int, offset: int) -> int:
        """The address of an offset on a rank, as this process sees it."""
        return self.base + rank * self.stride + offset

    def rank_at(self, address: int) -> int | None:
        """The rank whose segment has this address; `None` if it is not in the heap."""
        rank = (address - self.base) // self.stride
        return rank if 0 <= rank < self.ranks else None

    def close(self) -> None:
        """Unmap everything. No kernel may run on any rank."""
        for chunk in self._chunks:
            self._drop(chunk)
        self._chunks.clear()
        self._driver.cuMemAddressFree(self.base, self.stride * self.ranks)

    def _drop(self, chunk: _Chunk) -> None:
        self._unmap(chunk, 0)
        if chunk.descriptor is not None:
            os.close(chunk.descriptor)

    def _unmap(self, chunk: _Chunk, count: int) -> None:
        """Unmap all but the first `count` ranks' memory."""
        while len(chunk.mapped) > count:
            self._driver.cuMemUnmap(chunk.mapped.pop(), chunk.size)

    def _gpus(self) -> Sequence[int]:
        return sorted(set(self.devices.values()))

    def _properties(self, device: int) -> Any:
        api = self._driver.api
        properties = api.CUmemAllocationProp()
        properties.type = api.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
        properties.location.type = api.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
        properties.location.id = device
        properties.requestedHandleTypes = self._fd
        return properties

    def _grow(self, size: int) -> None:
        try:
            chunk = self._new_chunk(size)
        except PkcError:
            if self._group is not None:  # the others look for it when they share theirs
                self.share()
                for found in self._group.agree(_growth(size)):
                    close_all(found)
            raise
        self._chunks.append(chunk)
        self._offsets.extend(size)

    def _new_chunk(self, size: int) -> _Chunk:
        """Mapped at the end of the heap, or nothing is."""
        chunk = _Chunk(self._offsets.size, size)
        handles = self._create(size)
        try:
            self._map(chunk, handles)
            if self._group is not None:
                chunk.descriptor = self._driver.cuMemExportToShareableHandle(handles[self._group.rank], self._fd, 0)
        except PkcError:
            self._drop(chunk)
            raise
        finally:
            self._release(handles)
        return chunk

    def _map(self, chunk: _Chunk, handles: Mapping[int, Any]) -> None:
        """Map the memory of these ranks, or of none."""
        access, before = [self._access(device) for device in self._gpus()], len(chunk.mapped)
        try:
            for rank, handle in sorted(handles.items()):
                address = self.address(rank, chunk.start)
                self._driver.cuMemMap(address, chunk.size, 0, handle, 0)
                chunk.mapped.append(address)
                self._driver.cuMemSetAccess(address, chunk.size, access, len(access))
        except PkcError:
            self._unmap(chunk, before)  # a later call maps there again
            raise

    def _release(self, handles: Mapping[int, Any]) -> None:
        """Mappings and descriptors keep the memory."""
        for handle in handles.values():
            self._driver.cuMemRelease(handle)

    def _access(self, device: int) -> Any:
        api = self._driver.api
        access = api.CUmemAccessDesc()
        access.location.type = api.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
        access.location.id = device
        access.flags = api.CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE
        return access

    def _create(self, size: int) -> dict[int, Any]:
        """New memory for each rank of this process, or for none."""
        handles: dict[int, Any] = {}
        for rank, device in self.devices.items():
            try:
                handles[rank] = self._driver.cuMemCreate(size, self._properties(device), 0)
            except DriverError as error:
                self._release(handles)
                if error.status != OUT_OF_MEMORY:
                    raise
                raise self._no_room(device, size) from None
        return handles

    def _no_room(self, device: int, size: int) -> PkcError:
        self._driver.cuCtxPushCurrent(self._driver.cuDevicePrimaryCtxRetain(device))
        free, total = self._driver.cuMemGetInfo()
        self._driver.cuCtxPopCurrent()
        self._driver.cuDevicePrimaryCtxRelease(device)
        numbers = (size, self._offsets.size, free, total)
        return PkcError(GpuMemory(NOWHERE, device, *(number // _MIB for number in numbers)))

    def _exchange(self, group: Group, chunk: _Chunk) -> None:
        """Map the memory of all other ranks, one rank for each process."""
        assert chunk.descriptor is not None
        given = group.agree(_growth(chunk.size), [chunk.descriptor])
        handles: dict[int, Any] = {}
        try:
            without = [rank for rank, found in enumerate(given) if not found]
            if without:
                raise PkcError(OtherRankFailed(NOWHERE, chunk.size // _MIB, without[0]))
            for rank, found in enumerate(given):
                if rank != group.rank:
                    handles[rank] = self._driver.cuMemImportFromShareableHandle(found[0], self._fd)
            self._map(chunk, handles)
            chunk.descriptor = None
        finally:
            self._release(handles)
            for rank, found in enumerate(given):
                if rank != group.rank or chunk.descriptor is None:
                    close_all(found)


def _growth(size: int) -> str:
    """What a rank says whose heap has grown."""
    return f"enlarges the symmetric heap by {size // _MIB} MiB"
