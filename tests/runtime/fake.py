"""A fake driver: it answers as the CUDA driver would, and records its calls."""

from __future__ import annotations

import ctypes
import importlib
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from pkc.runtime import tensor_map
from pkc.runtime.driver import Driver

bindings: Any = importlib.import_module("cuda.bindings.driver")
SMS = 132
CLUSTERED_SMS = 120
"""Those that clusters of several SMs find beside each other."""

MEMORY = 140 << 30
UNIT = 2 << 20
SPAN = 1 << 44
"""The first reserved range of addresses."""

FIRST_POINTER = 1 << 32
OK = bindings.CUresult.CUDA_SUCCESS
NO_CONTEXT = int(bindings.CUresult.CUDA_ERROR_INVALID_CONTEXT)


@dataclass(frozen=True)
class Launch:
    context: int
    function: int
    stream: int
    grid: int
    threads: int
    shared: int
    cluster: int
    struct: bytes


@dataclass
class Api:
    """In place of `cuda.bindings.driver`: calls that are not here fail, structures and enumerations are the real ones.

    `enqueued` has what streams are to do, in the order of the calls: the stream, the call, and what it is given.
    `failing` gives the status of a call by name; `unready` streams are never done, and those that
    follow one of `capturing` are captured too.
    """

    gpus: int = 8
    capability: tuple[int, int] = (9, 0)
    failing: dict[str, int] = field(default_factory=dict)
    peers: dict[tuple[str, int, int], int] = field(default_factory=dict)
    unready: set[int] = field(default_factory=set)
    capturing: set[int] = field(default_factory=set)
    struct_bytes: int = 0

    def __post_init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.launches: list[Launch] = []
        self.contexts: list[int] = [0]
        self.mapped: dict[int, int] = {}
        self.access: dict[int, list[int]] = {}
        self.zeroed: list[tuple[int, int]] = []
        self.handles: dict[int, tuple[int, int]] = {}
        self.encoded: list[dict[str, Any]] = []
        self.enqueued: list[tuple[Any, ...]] = []
        self.registered: dict[int, int] = {}
        self.recorded: dict[int, int] = {}
        self.libraries: set[int] = set()
        self._next = 100

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("cu") or name.startswith("cuda"):
            return getattr(bindings, name)
        method = getattr(type(self), f"_{name}", None)
        if method is None:
            raise AssertionError(f"unexpected call of {name}")

        def call(*arguments: Any) -> tuple[Any, ...]:
            self.calls.append((name, *arguments))
            if name in self.failing:
                results = () if method.__annotations__["return"] == "None" else (None,)
                return bindings.CUresult(self.failing[name]), *results
            results = method(self, *arguments)
            return OK, *([] if results is None else results if isinstance(results, tuple) else [results])

        return call

    def names(self) -> list[str]:
        return [name for name, *_ in self.calls]

    def _new(self) -> int:
        self._next += 1
        return self._next

    # Each method is a call, without its status.

    def _cuGetErrorName(self, status: Any) -> bytes:
        return bindings.CUresult(status).name.encode()

    def _cuGetErrorString(self, status: Any) -> bytes:
        return b"what the driver says"

    def _cuDeviceGetCount(self) -> int:
        return self.gpus

    def _cuDeviceGetAttribute(self, attribute: Any, device: int) -> int:
        kinds = bindings.CUdevice_attribute
        return {
            kinds.CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: SMS,
            kinds.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: self.capability[0],
            kinds.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: self.capability[1],
        }[attribute]

    def _cuDeviceTotalMem(self, device: int) -> int:
        return MEMORY

    def _cuDeviceGetP2PAttribute(self, attribute: Any, first: int, second: int) -> int:
        assert first != second
        kind = "atomic" if "NATIVE_ATOMIC" in attribute.name else "access"
        return self.peers.get((kind, first, second), 1)

    def _cuDevicePrimaryCtxRetain(self, device: int) -> int:
        return 1000 + device

    def _cuDevicePrimaryCtxRelease(self, device: int) -> None:
        pass

    def _cuCtxPushCurrent(self, context: int) -> None:
        self.contexts.append(context)

    def _cuCtxPopCurrent(self) -> int:
        return self.contexts.pop()

    def _cuCtxGetCurrent(self) -> int:
        return self.contexts[-1]

    def _cuCtxSetCurrent(self, context: int) -> None:
        self.contexts[-1] = context

    def _cuStreamCreate(self, flags: int) -> int:
        assert flags == bindings.CUstream_flags.CU_STREAM_NON_BLOCKING
        return self._new()

    def _cuCtxGetStreamPriorityRange(self) -> tuple[int, int]:
        return 0, -5

    def _cuStreamCreateWithPriority(self, flags: int, priority: int) -> int:
        assert priority == -5
        return self._cuStreamCreate(flags)

    def _cuStreamDestroy(self, stream: int) -> None:
        pass

    def _cuStreamIsCapturing(self, stream: int) -> Any:
        kinds = bindings.CUstreamCaptureStatus
        captured = stream in self.capturing
        return kinds.CU_STREAM_CAPTURE_STATUS_ACTIVE if captured else kinds.CU_STREAM_CAPTURE_STATUS_NONE

    def _cuStreamWaitEvent(self, stream: int, event: int, flags: int) -> None:
        assert flags == 0
        if self.recorded.get(event) in self.capturing:  # one that was never recorded is not waited for
            self.capturing.add(stream)
        self.enqueued.append((stream, "follow", event))

    def _cuEventCreate(self, flags: int) -> int:
        return self._new()

    def _cuEventRecord(self, event: int, stream: int) -> None:
        self.recorded[event] = stream
        self.enqueued.append((stream, "record", event))

    def _cuEventDestroy(self, event: int) -> None:
        pass

    def cuEventQuery(self, event: int) -> tuple[Any]:
        status = self.failing.get("cuEventQuery", 600 if self.recorded[event] in self.unready else 0)
        self.enqueued.append((0, "sync"))
        return (bindings.CUresult(status),)

    def _cuMemHostRegister(self, address: int, size: int, flags: int) -> None:
        assert self.contexts[-1]
        assert flags == bindings.CU_MEMHOSTREGISTER_PORTABLE | bindings.CU_MEMHOSTREGISTER_DEVICEMAP
        self.registered[address] = size

    def _cuMemHostGetDevicePointer(self, address: int, flags: int) -> int:
        assert address in self.registered
        assert flags == 0
        return address

    def _cuMemHostUnregister(self, address: int) -> None:
        del self.registered[address]

    def _cuMemGetInfo(self) -> tuple[int, int]:
        return 3 << 30, MEMORY

    def _cuMemGetAllocationGranularity(self, properties: Any, flags: Any) -> int:
        assert properties.type == bindings.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
        return UNIT

    def _cuMemAddressReserve(self, size: int, alignment: int, address: int, flags: int) -> Any:
        return bindings.CUdeviceptr(SPAN)

    def _cuMemAddressFree(self, address: int, size: int) -> None:
        pass

    def _cuMemCreate(self, size: int, properties: Any, flags: int) -> int:
        kinds = bindings.CUmemAllocationHandleType
        assert properties.requestedHandleTypes == kinds.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
        handle = self._new()
        self.handles[handle] = (properties.location.id, size)
        return handle

    def _cuMemExportToShareableHandle(self, handle: int, kind: Any, flags: int) -> int:
        """A file with the device of the memory: descriptors refer to it in any process."""
        descriptor = os.memfd_create("memory")
        os.write(descriptor, bytes([self.handles[handle][0]]))
        return descriptor

    def _cuMemImportFromShareableHandle(self, descriptor: int, kind: Any) -> int:
        handle = self._new()
        self.handles[handle] = (os.pread(descriptor, 1, 0)[0], -1)
        return handle

    def _cuMemMap(self, address: int, size: int, offset: int, handle: int, flags: int) -> None:
        assert size % UNIT == offset == 0
        self.mapped[address] = self.handles[handle][0]

    def _cuMemSetAccess(self, address: int, size: int, access: Sequence[Any], count: int) -> None:
        assert len(access) == count
        self.access[address] = [item.location.id for item in access]

    def _cuMemRelease(self, handle: int) -> None:
        del self.handles[handle]

    def _cuMemUnmap(self, address: int, size: int) -> None:
        del self.mapped[address]

    def _cuMemsetD8Async(self, address: int, value: int, count: int, stream: int) -> None:
        assert value == 0
        self.zeroed.append((address, count))
        self.enqueued.append((stream, "clear", address, count))

    def _cuStreamBatchMemOp(self, stream: int, count: int, operations: Sequence[Any], flags: int) -> None:
        assert flags == 0
        assert 0 < count == len(operations) < 256
        kinds = bindings.CUstreamBatchMemOpType
        for operation in operations:
            if operation.operation == kinds.CU_STREAM_MEM_OP_WAIT_VALUE_32:
                value, what = operation.waitValue, "wait"
            else:
                assert operation.operation == kinds.CU_STREAM_MEM_OP_WRITE_VALUE_32
                value, what = operation.writeValue, "write"
            assert value.flags == 0
            self.enqueued.append((stream, what, int(value.address), int(value.value)))

    def _cuMemcpyAsync(self, target: int, source: int, count: int, stream: int) -> None:
        self.enqueued.append((stream, "copy", source, target, count, 1, 0, 0))

    def _cuMemcpy2DAsync(self, copy: Any, stream: int) -> None:
        unified = bindings.CUmemorytype.CU_MEMORYTYPE_UNIFIED
        assert copy.srcMemoryType == copy.dstMemoryType == unified
        assert (copy.srcXInBytes, copy.srcY, copy.dstXInBytes, copy.dstY) == (0, 0, 0, 0)
        assert copy.WidthInBytes <= min(copy.srcPitch, copy.dstPitch)
        box = (copy.WidthInBytes, copy.Height, copy.srcPitch, copy.dstPitch)
        self.enqueued.append((stream, "copy", int(copy.srcDevice), int(copy.dstDevice), *box))

    def _cuLibraryLoadData(self, code: bytes, *rest: Any) -> int:
        assert rest == ([], [], 0, [], [], 0)
        self.libraries.add(self._new())
        return self._next

    def _cuLibraryUnload(self, library: int) -> None:
        self.libraries.remove(library)

    def _cuLibraryGetKernel(self, library: int, name: bytes) -> int:
        return self._new()

    def _cuKernelGetFunction(self, kernel: int) -> int:
        return self.contexts[-1] + 5000

    def _cuFuncLoad(self, function: int) -> None:
        pass

    def _cuOccupancyMaxActiveClusters(self, function: int, config: Any) -> int:
        return CLUSTERED_SMS // config.attrs[0].value.clusterDim.x

    def _cuKernelSetAttribute(self, attribute: Any, value: int, kernel: int, device: int) -> None:
        pass

    def _cuLaunchKernelEx(self, config: Any, function: int, parameters: int, extra: int) -> None:
        (pointer,) = (ctypes.c_void_p * 1).from_address(parameters)
        assert pointer is not None
        assert pointer % 128 == 0
        assert (config.gridDimY, config.gridDimZ, config.blockDimY, config.blockDimZ) == (1, 1, 1, 1)
        cluster = config.attrs[0].value.clusterDim.x if config.numAttrs else 1
        self.enqueued.append((int(config.hStream), "kernel", len(self.launches)))
        self.launches.append(
            Launch(
                self.contexts[-1],
                function,
                int(config.hStream),
                config.gridDimX,
                config.blockDimX,
                config.sharedMemBytes,
                cluster,
                ctypes.string_at(pointer, self.struct_bytes),
            )
        )

    def encode(self, target: Any, *rest: Any) -> int:
        """`cuTensorMapEncodeTiled`: a map is its number, repeated."""
        if not self.contexts[-1]:
            return NO_CONTEXT
        dtype, rank, place, extents, strides, box, steps, interleave, swizzle, promotion, fill = rest
        address = place.value or 0
        assert target.value % 128 == 0
        assert (list(steps), interleave, promotion, fill) == ([1] * rank, 0, 2, 0)
        ctypes.memset(target, len(self.encoded) + 1, 128)
        self.encoded.append(
            {
                "dtype": dtype,
                "address": address,
                "extents": list(extents),
                "strides": list(strides)[: rank - 1],
                "box": list(box),
                "swizzle": swizzle,
            }
        )
        return 0

    def replace(self, target: int, address: int) -> int:
        """`cuTensorMapReplaceAddress`, as strict as `cuTensorMapEncodeTiled`."""
        if not self.contexts[-1]:
            return NO_CONTEXT
        (number,) = ctypes.string_at(target, 1)
        ctypes.memset(target, len(self.encoded) + 1, 128)
        self.encoded.append({**self.encoded[number - 1], "address": address})
        return 0


def driver(monkeypatch: pytest.MonkeyPatch, **settings: Any) -> tuple[Driver, Api]:
    """A driver of `Api(**settings)`, which also encodes tensor maps."""
    api = Api(**settings)
    monkeypatch.setattr(tensor_map, "_encode_tiled", lambda: api.encode)
    monkeypatch.setattr(tensor_map, "replace_address", lambda: api.replace)
    return Driver(api), api


@dataclass(frozen=True)
class Device:
    index: int | None
    type: str = "cuda"


@dataclass
class Tensor:
    """The members of a torch tensor that pkc uses."""

    shape: tuple[int, ...]
    dtype: str = "torch.bfloat16"
    device: Device = Device(0)
    address: int = FIRST_POINTER
    strides: tuple[int, ...] | None = None

    def data_ptr(self) -> int:
        return self.address

    def stride(self) -> tuple[int, ...]:
        if self.strides is not None:
            return self.strides
        strides = [1]
        for extent in reversed(self.shape[1:]):
            strides.insert(0, strides[0] * extent)
        return tuple(strides)
