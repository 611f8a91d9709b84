"""The symmetric heap: memory that lies at the same offset on every rank, and that every rank reaches.

One range of virtual addresses has a segment for each rank, `stride` bytes apart. So the rank is one more dimension of
an array, in tensor maps and in addresses. A segment has room for a GPU's whole memory; physical memory is mapped as
allocations need it. With one process for each GPU every process reserves such a range, and maps the memory of the
others, which it gets as file descriptors. Memory is ordinary device memory; no multicast object is ever made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pkc.diagnostics import PkcError
from pkc.location import NOWHERE
from pkc.runtime.driver import OUT_OF_MEMORY, Driver, DriverError
from pkc.runtime.errors import GpuMemory, OtherRankFailed
from pkc.runtime.group import Group, close_all
from pkc.runtime.offsets import Offsets

LEAST_GROWTH = 64 << 20
_MIB = 1 << 20


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
        self._mapped: list[tuple[int, int]] = []

    def allocate(self, count: int) -> int:
        """The offset of `count` new bytes, a multiple of 1024; their content is undefined.

        With several processes all must call this together whenever the heap grows. Raises `PkcError`.
        """
        lacking = self._offsets.lacking(count)
        if lacking:
            self._grow(-(-max(lacking, LEAST_GROWTH) // self._unit) * self._unit)
        return self._offsets.take(count)

    def free(self, offset: int) -> None:
        """Free what was allocated at `offset`."""
        self._offsets.give(offset)

    def address(self, rank: int, offset: int) -> int:
        """The address of an offset on a rank, as this process sees it."""
        return self.base + rank * self.stride + offset

    def rank_at(self, address: int) -> int | None:
        """The rank whose segment has this address; `None` if it is not in the heap."""
        rank = (address - self.base) // self.stride
        return rank if 0 <= rank < self.ranks else None

    def close(self) -> None:
        """Unmap everything. No kernel may run on any rank."""
        for address, size in self._mapped:
            self._driver.cuMemUnmap(address, size)
        self._driver.cuMemAddressFree(self.base, self.stride * self.ranks)
        self._mapped.clear()

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
        handles = self._create(size) if self._group is None else self._exchange(self._group, size)
        access = [self._access(device) for device in self._gpus()]
        for rank, handle in sorted(handles.items()):
            address = self.address(rank, self._offsets.size)
            self._driver.cuMemMap(address, size, 0, handle, 0)
            self._mapped.append((address, size))
            self._driver.cuMemSetAccess(address, size, access, len(access))
            # The mapping keeps the memory.
            self._driver.cuMemRelease(handle)
        self._offsets.extend(size)

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
                for handle in handles.values():
                    self._driver.cuMemRelease(handle)
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

    def _exchange(self, group: Group, size: int) -> dict[int, Any]:
        """New memory of this rank and of all others, one rank for each process."""
        failure: PkcError | None = None
        local: dict[int, Any] = {}
        given: list[list[int]] = []
        try:
            local = self._create(size)
            given = [[self._driver.cuMemExportToShareableHandle(local[group.rank], self._fd, 0)]]
        except PkcError as error:
            failure = error
        try:
            given = group.agree(f"enlarges the symmetric heap by {size // _MIB} MiB", *given)
            if failure is not None:
                raise failure
            without = [rank for rank, found in enumerate(given) if not found]
            if without:
                raise PkcError(OtherRankFailed(NOWHERE, size // _MIB, without[0]))
            others = {rank: found[0] for rank, found in enumerate(given) if rank != group.rank}
            return local | {
                rank: self._driver.cuMemImportFromShareableHandle(descriptor, self._fd)
                for rank, descriptor in others.items()
            }
        except PkcError:
            for handle in local.values():
                self._driver.cuMemRelease(handle)
            raise
        finally:
            for found in given:
                close_all(found)
