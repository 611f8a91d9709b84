"""A mesh: the GPUs that a program runs on, one rank each, and the memory that they share."""

from __future__ import annotations

import threading
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, cast
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from pkc.diagnostics import PkcError
from pkc.dialect.words import LANES
from pkc.location import NOWHERE
from pkc.runtime import group as groups
from pkc.runtime.alarm import Alarm
from pkc.runtime.arrays import Array, ArrayLayout, Kind, problem_of
from pkc.runtime.driver import NOT_READY, Driver, load
from pkc.runtime.element import element_name
from pkc.runtime.errors import (
    ClosedMesh,
    Hang,
    ImpossibleArray,
    MissingGpu,
    NoPeerAccess,
    RankLeft,
    RanksOnOneGpu,
    SameGpu,
    StreamCount,
    TooFewQueues,
)
from pkc.runtime.faults import Faults
from pkc.runtime.heap import Heap
from pkc.runtime.offsets import ALIGNMENT
from pkc.runtime.rank import Rank, Side
from pkc.runtime.turns import Turns, handles_of
from pkc.targets.arch import QUEUES, hardware_queues

_ZEROED = 16 << 20
"""Bytes that are zeroed at once; the reports of a kernel take a hundred thousand, its counters for some sizes less."""

_PATIENCE = 0.001
"""Seconds for which completion is polled without a pause."""

_ENDING = 1.0
"""Seconds in which kernels end that are made to give up."""


class Mesh:
    """All ranks of a program. Made by `single_process`, `from_torchrun`, `of_job` or `virtual`; all raise `PkcError`.

    The streams of a mesh do not wait for the default stream.
    """

    def __init__(
        self, driver: Driver, devices: Mapping[int, int], ranks: int, group: groups.Group | None = None
    ) -> None:
        self.driver = driver
        self.ranks = ranks
        self.group = group
        self._share = sum(device == next(iter(devices.values())) for device in devices.values())
        self.shares_gpu = self._share > 1
        self.local: tuple[Rank, ...] = tuple(self._rank(rank, device) for rank, device in devices.items())
        self.devices = tuple(devices.values())
        """The GPUs of the ranks of this process."""
        self.heap = Heap(driver, devices, ranks, group)
        with self.current(self.local[0]):
            self.alarm = Alarm(driver, ranks, group)
        self.faults = Faults(self.alarm, group, tuple(devices), ranks)
        self.kinds = WeakValueDictionary[object, Kind]()
        self.closed = False
        self.launching = threading.RLock()
        """Held while one thread prepares or starts a launch on all ranks of this process."""
        self.turns = Turns(driver, self.local)
        self._zeroed = (0, 0)
        """The first and the last offset of memory that is zero on all ranks and not in use."""
        self._sides: dict[int, list[Side]] = {rank.rank: [] for rank in self.local}
        self.libraries: list[Any] = []
        """The machine code that kernels of this mesh have loaded."""

    @classmethod
    def single_process(cls, devices: Sequence[int] | None = None, *, driver: Driver | None = None) -> Mesh:
        """One process drives all GPUs, or those that `devices` lists: rank i is `devices[i]`."""
        driver = driver or load()
        count = driver.devices()
        chosen = tuple(range(count)) if devices is None else tuple(devices)
        if not chosen or len(set(chosen)) != len(chosen):
            raise PkcError(SameGpu(NOWHERE, str(list(chosen))))
        for rank, device in enumerate(chosen):
            _check_device(rank, device, count)
        _check_peers(driver, chosen, chosen)
        return cls(driver, dict(enumerate(chosen)), len(chosen))

    @classmethod
    def from_torchrun(cls, *, driver: Driver | None = None) -> Mesh:
        """One process for each GPU, started by `torchrun` on one host. All processes must call this."""
        job = groups.job()
        return cls.of_job(job, range(job.ranks), driver=driver)

    @classmethod
    def of_job(cls, job: groups.Job, devices: Sequence[int], *, driver: Driver | None = None) -> Mesh:
        """One process for each GPU of a host: rank r drives `devices[r]`. All processes of the job must call this.

        A program may have several such meshes, of the same, other or overlapping processes: each job has a name.
        """
        driver = driver or load()
        count = driver.devices()
        _check_device(job.rank, job.local_rank, count)
        group = groups.Group(job)
        # A process may see its own GPU alone.
        _check_peers(driver, (job.local_rank,), [device for device in devices if device < count])
        return cls(driver, {job.rank: job.local_rank}, job.ranks, group)

    @classmethod
    def virtual(cls, ranks: int, device: int = 0, *, driver: Driver | None = None) -> Mesh:
        """`ranks` ranks on one GPU, which share its SMs: what is exchanged is as between GPUs, only faster."""
        if not 1 <= ranks <= QUEUES:
            raise PkcError(RanksOnOneGpu(NOWHERE, ranks, QUEUES))
        driver = driver or load()
        _check_device(0, device, driver.devices())
        return cls(driver, dict.fromkeys(range(ranks), device), ranks)

    def empty(
        self,
        shape: Sequence[int],
        dtype: object,
        layout: ArrayLayout = "symmetric",
        shard: int | None = None,
        *,
        zigzag: bool = False,
    ) -> Array:
        """A new array, content undefined, at the same offset on every rank: all must make it, in the same order.

        `shape` is that of the whole array; `shard` the dimension that layout `shard` splits, with `zigzag` in zigzag
        order (docs/language.md, section 3). `dtype` is `bf16`, `f16`,
        `f32`, `i32`, `i8`, `e4m3` or `e5m2`, or torch's name of it.
        """
        self.check()
        name, extents = element_name(dtype), tuple(shape)
        problem = problem_of(name, extents, layout, shard)
        if zigzag and shard is None and not problem:
            problem = "`zigzag` is an order of shards: it needs layout `shard`"
        if problem:
            raise PkcError(ImpossibleArray(NOWHERE, problem))
        return Array(self, extents, name, layout, shard, zigzag=zigzag)

    def trim(self) -> int:
        """Give memory of freed arrays back to the GPUs, where nothing behind them is in use: how many bytes on each
        rank. All ranks must do so, in the same order, and wait for none.

        No kernel of this process may still use these arrays, on whatever stream. Raises `PkcError`.
        """
        self.check()
        return self.heap.trim()

    @property
    def used(self) -> int:
        """How many bytes of each rank are in use, by arrays and by what kernels have for themselves."""
        first, end = self._zeroed
        return self.heap.used - (end - first)

    def zeroed(self, count: int) -> int:
        """The offset in the heap, a multiple of 1024, of `count` new bytes, zero on all ranks. Raises `PkcError`.

        They are part of a range that is zeroed at once, so that few calls wait for the GPUs and for other processes.
        """
        size = -(-count // ALIGNMENT) * ALIGNMENT
        first, end = self._zeroed
        if first + size > end:
            length = max(size, _ZEROED)
            first = self.heap.allocate(length)
            end = first + length
            self.zero(first, length)
            self.synchronize()
            if self.group is not None:
                # Others may signal there as soon as they launch.
                self.group.agree("has zeroed memory for counters")
        self._zeroed = first + size, end
        return first

    def zero(self, offset: int, count: int) -> None:
        """Set `count` bytes at an offset of the heap to zero, on each rank of this process; not waited for."""
        for rank in self.local:
            with self.current(rank):
                self.driver.cuMemsetD8Async(self.heap.address(rank.rank, offset), 0, count, rank.stream)

    def read(self, rank: Rank, offset: int, count: int) -> NDArray[np.uint8]:
        """A copy of `count` bytes at an offset of the heap of a rank of this process; no kernel may write them."""
        content = np.empty(count, np.uint8)
        with self.current(rank):
            self.driver.cuMemcpyDtoH(content.ctypes.data, self.heap.address(rank.rank, offset), count)
        return content

    def streams(self, given: Any) -> tuple[list[int], int | None]:
        """The stream of each rank of this process, and the stream that these are forked from and joined to, if any.

        `given` is a list with a stream for each rank; or a single stream, which is that of the only rank, or the one to
        fork from; or `None` for the mesh's streams. A stream is an integer, a torch stream, or anything with
        `__cuda_stream__`.
        """
        local = [rank.stream for rank in self.local]
        if given is None:
            return local, None
        if not isinstance(given, list | tuple):
            one = handles_of([given])
            return (one, None) if len(local) == 1 else (local, one[0])
        several = handles_of(cast("Sequence[Any]", given))
        if len(several) != len(local):
            raise PkcError(StreamCount(NOWHERE, len(several), len(local)))
        return several, None

    def take_turn(self, stream: int) -> None:
        """Let what comes next on a stream of this process's only rank begin when the last launch has ended, on whatever
        stream that is. The caller holds `launching` until its own launches on this stream are made, and all that goes
        with them."""
        _, before = self.driver.api.cuCtxGetCurrent()
        if self.turns.take([stream], before) != before:
            self.driver.api.cuCtxSetCurrent(before)

    def lanes(self, roles: int) -> int:
        """How many streams each of `roles` copy engine roles may have: as many as get a hardware queue each beside the
        kernels', at least one. The hardware does in order what is in one queue, whatever the streams.

        Several roles get half of the queues: the driver takes some for itself, and with 7 of 8 in use on 4 GPUs streams
        of two roles, which wait for each other, shared one.
        """
        queues = hardware_queues() // self._share
        return max(1, min(LANES, ((queues if roles == 1 else queues // 2) - 1) // roles))

    def beside(self, count: int) -> list[list[Side]]:
        """`count` more streams for each rank of this process, for what must run while its kernel does.

        Raises `PkcError` if the GPU has too few hardware queues for all of them to run at once.
        """
        share, queues = self._share, hardware_queues()
        if share * (count + 1) > queues:
            raise PkcError(TooFewQueues(NOWHERE, share, count + 1, share * (count + 1), queues))
        for rank in self.local:
            sides = self._sides[rank.rank]
            with self.current(rank):
                while len(sides) < count:
                    sides.append(Side(*self._stream()))
        return [self._sides[rank.rank][:count] for rank in self.local]

    def synchronize(self, timeout: float = 60.0, stream: Any = None) -> None:
        """Wait until all that was launched has ended; `stream` as it was given to the launches.

        Never waits inside the driver, which nothing could interrupt. Raises `PkcError` if a kernel has given up
        waiting, and after `timeout` seconds, when all kernels are made to give up; if they do not end even so, the
        process can do nothing but end.
        """
        self.check()
        streams, shared = self.streams(stream)
        events: dict[Rank, Any] = {}  # of this call alone: other threads launch, and wait for other streams
        for rank, handle in zip(self.local, streams if shared is None else [shared], strict=shared is None):
            with self.current(rank):
                events[rank] = self._event()
                self.driver.cuEventRecord(events[rank], handle)
        waiting = list(events)
        started = time.monotonic()
        try:
            while waiting := [rank for rank in waiting if not self._done(events[rank])]:
                passed = time.monotonic() - started
                if passed > timeout:
                    self.alarm.raise_it()
                if passed > timeout + _ENDING:
                    late = waiting if shared is None else self.local
                    names = ", ".join(str(rank.rank) for rank in late)
                    raise PkcError(Hang(NOWHERE, f"rank{'s' * (len(late) > 1)} {names}", timeout))
                time.sleep(0.0005 if passed > _PATIENCE else 0)
        finally:
            for event in events.values():
                self.driver.api.cuEventDestroy(event)
        self.faults.check()

    def close(self, *, together: bool = True) -> None:
        """Free all memory of the mesh and unload its kernels, once all ranks have called this. No kernel may run. A
        second call does nothing.

        When kernels have given up waiting, no other rank is waited for: some may be no more. Nor is it without
        `together`, when this process waits for its own launches: what other ranks have mapped of its memory stays until
        they let it go. Raises `PkcError` if these launches do not end.
        """
        if self.closed:
            return
        if self.alarm.raised.value:
            time.sleep(_ENDING)  # every kernel, on whatever stream, sees the alarm in the first milliseconds
        elif not together:
            self._finish()
        elif self.group is not None:
            self._agree_to_close(self.group)
        self.closed = self.faults.closed = True
        self.heap.close()
        for rank in self.local:
            with self.current(rank):
                self.driver.cuEventDestroy(rank.turn)
                for each in (rank, *self._sides[rank.rank]):
                    self.driver.cuEventDestroy(each.event)
                    self.driver.cuStreamDestroy(each.stream)
        with self.current(self.local[0]):
            self.alarm.close()
            while self.libraries:
                self.driver.cuLibraryUnload(self.libraries.pop())
        for rank in self.local:
            self.driver.cuDevicePrimaryCtxRelease(rank.device)
        if self.group is not None:
            self.group.close()

    def check(self) -> None:
        """Raises `PkcError` if the mesh was closed."""
        if self.closed:
            raise PkcError(ClosedMesh(NOWHERE))

    @contextmanager
    def current(self, rank: Rank) -> Generator[None]:
        """Make the context of a rank current for a while."""
        self.driver.cuCtxPushCurrent(rank.context)
        try:
            yield
        finally:
            self.driver.cuCtxPopCurrent()

    def _finish(self) -> None:
        """Wait for the launches of this process, on whatever streams they are."""
        with self.launching:
            _, before = self.driver.api.cuCtxGetCurrent()
            if self.turns.take([rank.stream for rank in self.local], before) != before:
                self.driver.api.cuCtxSetCurrent(before)
        try:
            self.synchronize()
        except PkcError as error:
            if any(isinstance(found, Hang) for found in error.diagnostics):
                raise
            # Kernels that give up waiting have ended all the same.

    def _agree_to_close(self, group: groups.Group) -> None:
        try:
            group.agree("closes its mesh")
        except PkcError as error:
            if not any(isinstance(found, RankLeft) for found in error.diagnostics):
                raise
            # It has closed its mesh alone, or is no more: nothing of it is waited for.

    def _rank(self, rank: int, device: int) -> Rank:
        driver = self.driver
        # The primary context is the one that torch and the CUDA runtime use.
        context = driver.cuDevicePrimaryCtxRetain(device)
        driver.cuCtxPushCurrent(context)
        (stream, event), turn = self._stream(), self._event()
        driver.cuCtxPopCurrent()
        sms = driver.attribute("MULTIPROCESSOR_COUNT", device) // self._share
        return Rank(rank, device, context, stream, event, turn, sms)

    def _stream(self) -> tuple[int, Any]:
        """A stream that waits for no other, and an event, of the current context."""
        stream = self.driver.cuStreamCreate(int(self.driver.api.CUstream_flags.CU_STREAM_NON_BLOCKING))
        return int(stream), self._event()

    def _event(self) -> Any:
        return self.driver.cuEventCreate(int(self.driver.api.CUevent_flags.CU_EVENT_DISABLE_TIMING))

    def _done(self, event: Any) -> bool:
        (status,) = self.driver.api.cuEventQuery(event)
        if status and int(status) != NOT_READY:
            self.driver.fail("cuEventQuery", status)
        return not status


def _check_device(rank: int, device: int, count: int) -> None:
    if not 0 <= device < count:
        raise PkcError(MissingGpu(NOWHERE, rank, device, count))


def _check_peers(driver: Driver, local: Sequence[int], others: Sequence[int]) -> None:
    kinds = driver.api.CUdevice_P2PAttribute
    access = kinds.CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED
    atomic = kinds.CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED
    for first in local:
        for second in others:
            if first == second:
                continue
            if not driver.cuDeviceGetP2PAttribute(access, first, second):
                raise PkcError(NoPeerAccess(NOWHERE, first, second, ""))
            if not driver.cuDeviceGetP2PAttribute(atomic, first, second):
                raise PkcError(NoPeerAccess(NOWHERE, first, second, " with atomic operations"))
