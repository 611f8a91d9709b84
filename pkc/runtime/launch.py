"""Kernels on a mesh: loaded once, with scratch memory and counters, launched on all GPUs of a process in one loop."""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pkc.codegen.artifact import ArrayParameter, Artifact, TensorMaps, Waits
from pkc.diagnostics import Diagnostic, PkcError
from pkc.dialect import blocks
from pkc.dialect.words import RANKS
from pkc.location import NOWHERE
from pkc.runtime import reports
from pkc.runtime.arguments import Bound, bind, fingerprint, tensors
from pkc.runtime.arrays import memory_shape
from pkc.runtime.beside import Beside, Work
from pkc.runtime.driver import Driver
from pkc.runtime.element import ELEMENTS
from pkc.runtime.enqueue import Action, Call, Placer, calls, counters, counters_along, kinds, side_by_side
from pkc.runtime.errors import FirstLaunchInCapture, WrongGpu
from pkc.runtime.group import Group
from pkc.runtime.kernel_parameters import KernelParameters, StructOf, Values, extents_of
from pkc.runtime.mesh import Mesh
from pkc.runtime.plans import Plan, Start, keep
from pkc.runtime.rank import Rank
from pkc.runtime.steps import Section
from pkc.runtime.turns import is_captured

if TYPE_CHECKING:
    from pkc.runtime.engines import Engines

_SPARE_SMS = 4
"""SMs that a kernel with copy engines leaves free: the driver copies within one GPU by a kernel."""


@dataclass(frozen=True)
class _Memory:
    """Scratch arrays and counters of a kernel for one set of dimensions: offsets in the symmetric heap.

    Counters and epochs keep their values from launch to launch, so these belong together.
    """

    offsets: dict[str, int]
    epochs: int
    restarting: tuple[int, int]
    """Offset and size, in bytes, of the counters that restart with each launch."""
    signals: tuple[tuple[int, int], ...]
    """The same of all counters."""


class LoadedKernel:
    """A kernel on the GPUs of a mesh. Raises `PkcError` if they are not those it is compiled for.

    `grid` is the number of CTAs on each rank, by default one for each SM that a rank has; with copy engines some SMs
    are left free (`pkc.runtime.enqueue`). All CTAs must be able to run at once, because they wait for each other.
    """

    def __init__(self, artifact: Artifact, mesh: Mesh, *, grid: int | None = None) -> None:
        mesh.check()
        self.artifact, self.mesh = artifact, mesh
        for rank in mesh.local:
            _check_gpu(mesh.driver, artifact, rank)
        self._engines = _engines(artifact.engines)
        self._beside = Beside(mesh, self._engines.count) if self._engines is not None else None
        spare = _SPARE_SMS if self._engines is not None else 0
        sms = grid or min(rank.sms for rank in mesh.local) - spare
        self.grid = sms // artifact.cluster * artifact.cluster
        self._digest = (artifact.source or hashlib.sha256(artifact.cubin).hexdigest())[:8]
        self._functions = self._load()
        if artifact.cluster > 1:
            self.grid = min(self.grid, *(self._clustered(rank) for rank in mesh.local))
        self._configs = {rank.rank: self._config() for rank in mesh.local}
        self._struct = StructOf(artifact.fields, {array.name: array for array in artifact.arrays})
        self._interface = artifact.interface
        private = (array for array in artifact.arrays if array.layout == "private" and array.scratch)
        self._private_scratch = [array.name for array in private]
        self._memory: dict[tuple[tuple[str, int], ...], _Memory] = {}
        """By dimensions; a kernel without memory of its own has epochs alone, the same for all."""
        self._agreed: set[object] = set()
        self._plans: dict[object, Plan] = {}
        self._raised = mesh.alarm.raised
        self._context = mesh.local[0].context if len(mesh.local) == 1 else None
        """The only context in which it is launched, if there is one."""
        # Without memory of its own, launches of a kernel have nothing to do with each other.
        self._takes_turns = bool(artifact.signals) or any(array.scratch for array in artifact.arrays)
        self._implied_dims: dict[str, int] = {}
        if artifact.waits is not None:
            self._implied_dims[artifact.waits.ctas] = self.grid
            mesh.faults.add(partial(self._reported, artifact.waits), self._release)

    def __call__(
        self, arguments: Mapping[str, Any], *, dims: Mapping[str, int] | None = None, stream: Any = None
    ) -> None:
        """Launch on all ranks of this process; returns before the kernels end.

        `arguments` by parameter: arrays of the mesh; for private arrays a list with one tensor for each rank of this
        process, or the tensor if there is one rank; numbers for scalars. `dims` has the dimensions that no array shows.

        `stream` is a list with one for each rank of this process: an integer, a torch stream, or anything with
        `__cuda_stream__`. A single one for several ranks must be of the first rank's GPU: all ranks wait for it, and it
        then waits for all ranks. Without `stream` the mesh's streams are used, which wait for no other.

        The first launch for some dimensions allocates memory and so cannot be captured into a graph; with one process
        for each GPU it waits for all ranks. Raises `PkcError`.
        """
        settings = dims or {}
        streams, shared = self.mesh.streams(stream)
        pointers: list[int] = []
        key = tuple((name, fingerprint(value, pointers)) for name, value in arguments.items()), tuple(settings.items())
        # Another thread may let its tensors take the place of these, once the launch has its copy of their addresses.
        with self.mesh.launching:
            plan = self._plans.get(key)
            if plan is None or not plan.moved(pointers):
                plan = self.plan(arguments, pointers, settings, streams[0] if shared is None else shared)
                keep(self._plans, key, plan)
            self.launch(plan.starts, streams, shared)

    def plan(self, arguments: Mapping[str, Any], pointers: list[int], settings: Mapping[str, int], stream: int) -> Plan:
        """A launch with these arguments, prepared; the first will be on `stream`. Raises `PkcError`.

        `pointers` has the addresses of their tensors, `settings` the dimensions that no array shows.
        """
        bound = bind(self._interface, self.mesh, arguments, settings)
        return Plan(self.prepare(bound, stream), list(tensors(arguments.items())), pointers, bound.spans)

    def start(self, plan: Plan, pointers: list[int], stream: int) -> bool:
        """Launch a plan with tensors at `pointers` on the only rank of this process; whether it serves for them."""
        with self.mesh.launching:
            if not plan.moved(pointers):
                return False
            self.launch(plan.starts, [stream], None)
        return True

    def prepare(self, bound: Bound, stream: int) -> Sequence[Start]:
        """All that launches with these arguments need; the first launch will be on `stream`. Raises `PkcError`."""
        with self.mesh.launching:
            return self._prepare(bound, stream)

    def _prepare(self, bound: Bound, stream: int) -> Sequence[Start]:
        group = self.mesh.group
        new = None if group is None else self._agree(bound, group)
        shown = bound.dims
        bound = replace(bound, dims=shown | self._implied_dims) if self._implied_dims else bound
        key = tuple(bound.dims.items()) if self._takes_turns else ()
        memory = self._memory.get(key)
        first = memory is None
        if memory is None:
            self._check_capture(stream)
            memory = self._memory[key] = self._allocate(bound.dims)
        if new is not None:
            self.mesh.heap.share()
            self._agreed.add(new)
        starts = tuple(self._start(at, rank, bound, memory, shown) for at, rank in enumerate(self.mesh.local))
        if first and self._beside is not None:
            self._beside.try_out([start.work for start in starts if start.work is not None])
        return starts

    def _agree(self, bound: Bound, group: Group) -> object:
        """Wait for all ranks at the first launch of this kind; which kind it is, or `None` if it is not the first."""
        what = bound.describe()
        kind = what, *map(self.mesh.heap.trims_before, bound.heap.values())
        if kind in self._agreed:
            return None
        group.agree(f"launches {self.artifact.name} ({self._digest}) with {what}")
        return kind

    def launch(self, starts: Sequence[Start], streams: Sequence[int], shared: int | None) -> None:
        """Launch what is prepared; streams as `Mesh.streams` gives them. Threads launch one after the other, so that
        every GPU gets their kernels in the same order, and on whatever streams, a launch begins when the one before on
        this mesh has ended (`pkc.runtime.turns`)."""
        mesh, beside = self.mesh, self._beside
        with mesh.launching:
            mesh.check()
            if self._raised.value:
                mesh.faults.check()
            mesh.faults.last = starts
            _, before = mesh.driver.api.cuCtxGetCurrent()
            current = before
            try:
                if shared is not None:
                    self._fork(shared)
                if self._takes_turns:
                    current = mesh.turns.take(streams, current)
                if beside is None:
                    current = self._launch(starts, streams, current)
                else:
                    current = self._launch_beside(starts, streams, beside)
                if self._takes_turns:
                    mesh.turns.end(streams, current)
                if shared is not None:
                    self._join(shared)
            finally:
                if before != self._context:
                    mesh.driver.api.cuCtxSetCurrent(before)

    def scratch(self, name: str, dims: Mapping[str, int]) -> int:
        """The offset in the heap of a scratch array or a signal, after a launch with these dimensions."""
        wanted = {**dims, **self._implied_dims, RANKS: self.mesh.ranks}
        return next(memory for key, memory in self._memory.items() if dict(key) == wanted).offsets[name]

    # Launching

    def _launch(self, starts: Sequence[Start], streams: Sequence[int], current: Any) -> Any:
        """Start the kernels; `current` is the current context, and what is returned then is.

        Nothing is allocated, loaded or waited for: a kernel that runs may wait for one that is not started yet."""
        api = self.mesh.driver.api
        for start, stream in zip(starts, streams, strict=True):
            context, config = start.rank.context, start.config
            if context != current:
                current = context
                api.cuCtxSetCurrent(context)
            config.hStream = stream
            (status,) = api.cuLaunchKernelEx(config, start.function, start.parameters.pointers, 0)
            if status:
                self.mesh.driver.fail("cuLaunchKernelEx", status)
        return current

    def _launch_beside(self, starts: Sequence[Start], streams: Sequence[int], beside: Beside) -> Any:
        works = [start.work for start in starts if start.work is not None]
        beside.begin(works, streams)
        self._launch(starts, streams, None)
        return beside.enqueue(works, streams)

    def _fork(self, stream: int) -> None:
        """Let the mesh's streams wait for a stream of the first rank's GPU."""
        driver, first = self.mesh.driver, self.mesh.local[0]
        with self.mesh.current(first):
            driver.cuEventRecord(first.event, stream)
        for rank in self.mesh.local:
            with self.mesh.current(rank):
                driver.cuStreamWaitEvent(rank.stream, first.event, 0)

    def _join(self, stream: int) -> None:
        driver = self.mesh.driver
        for rank in self.mesh.local:
            with self.mesh.current(rank):
                driver.cuEventRecord(rank.event, rank.stream)
        with self.mesh.current(self.mesh.local[0]):
            for rank in self.mesh.local:
                driver.cuStreamWaitEvent(stream, rank.event, 0)

    # Preparing

    def _load(self) -> dict[int, Any]:
        """The function on each rank, loaded: loading lazily at the first launch could wait for a kernel that runs."""
        driver, artifact = self.mesh.driver, self.artifact
        library = driver.cuLibraryLoadData(artifact.cubin, [], [], 0, [], [], 0)
        kernel = driver.cuLibraryGetKernel(library, artifact.name.encode())
        shared = driver.api.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        functions: dict[int, Any] = {}
        for rank in self.mesh.local:
            with self.mesh.current(rank):
                functions[rank.rank] = driver.cuKernelGetFunction(kernel)
                driver.cuFuncLoad(functions[rank.rank])
            driver.cuKernelSetAttribute(shared, artifact.shared_bytes, kernel, rank.device)
        return functions

    def _clustered(self, rank: Rank) -> int:
        """How many CTAs run at once on a rank in clusters: the SMs of a GPC are no multiple of them everywhere."""
        with self.mesh.current(rank):
            found = self.mesh.driver.cuOccupancyMaxActiveClusters(self._functions[rank.rank], self._config())
        return found * self.artifact.cluster

    def _start(self, at: int, rank: Rank, bound: Bound, memory: _Memory, shown: Mapping[str, int]) -> Start:
        heap = self.mesh.heap
        addresses = {name: given[at] for name, given in bound.private.items()}
        for offsets in (bound.heap, memory.offsets):
            for name, offset in offsets.items():
                addresses[name] = heap.address(0, offset)
        for name in self._private_scratch:
            addresses[name] = heap.address(rank.rank, memory.offsets[name])
        epochs = heap.address(rank.rank, memory.epochs)
        parameters = KernelParameters(self._struct)
        values = Values(rank.rank, heap.stride, epochs, self.mesh.alarm.address, bound.dims, bound.scalars, addresses)
        _, current = self.mesh.driver.api.cuCtxGetCurrent()
        # The driver encodes tensor maps only within a context.
        if current == rank.context:
            parameters.fill(values)
        else:
            with self.mesh.current(rank):
                parameters.fill(values)
        config, function = self._configs[rank.rank], self._functions[rank.rank]
        work = self._work(values, memory)
        return Start(rank, config, function, parameters, work, self.artifact.name, shown)

    def _work(self, values: Values, memory: _Memory) -> Work | None:
        if self._engines is None:
            return None
        placer, heap, api = Placer(self.artifact, values), self.mesh.heap, self.mesh.driver.api
        actions: list[Action] = []

        def enqueued(section: Section) -> Sequence[Sequence[Call]]:
            strands = side_by_side(list(placer.actions(strand)) for strand in section)
            actions.extend(itertools.chain(*strands))
            return [list(calls(api, some)) for some in strands]

        found = self._engines.sections(values.rank, values.dims, values.scalars)
        roles = [[enqueued(section) for section in sections] for sections in found]
        offset, count = memory.restarting
        copied = tuple(kinds(actions, heap.rank_at))
        return Work(heap.address(values.rank, offset), count, roles, copied, frozenset(placer.copied))

    def _config(self) -> Any:
        api, artifact = self.mesh.driver.api, self.artifact
        config = api.CUlaunchConfig()
        config.gridDimX, config.gridDimY, config.gridDimZ = self.grid, 1, 1
        config.blockDimX, config.blockDimY, config.blockDimZ = artifact.threads, 1, 1
        config.sharedMemBytes = artifact.shared_bytes
        if artifact.cluster > 1:
            attribute = api.CUlaunchAttribute()
            attribute.id = api.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
            cluster = attribute.value.clusterDim
            cluster.x, cluster.y, cluster.z = artifact.cluster, 1, 1
            config.attrs, config.numAttrs = [attribute], 1
        return config

    def _check_capture(self, stream: int) -> None:
        if is_captured(self.mesh.driver, stream):
            raise PkcError(FirstLaunchInCapture(NOWHERE, self.artifact.name))

    def _allocate(self, dims: Mapping[str, int]) -> _Memory:
        mesh, artifact = self.mesh, self.artifact
        offsets: dict[str, int] = {}
        for parameter in artifact.arrays:
            if parameter.scratch:
                size = self._scratch_bytes(parameter, dims)
                reports = artifact.waits is not None and parameter.name == artifact.waits.reports
                zero = reports or parameter.packets  # no epoch is that of a launch to come
                offsets[parameter.name] = (mesh.zeroed if zero else mesh.heap.allocate)(size)
        for signal in artifact.signals:
            if not signal.restarts:
                offsets[signal.name] = mesh.zeroed(4 * counters(signal, dims))
        epochs = mesh.zeroed(4 * self.grid)
        # Side by side, so that one call clears them.
        together = [signal for signal in artifact.signals if signal.restarts]
        ends = list(itertools.accumulate((4 * counters(signal, dims) for signal in together), initial=0))
        restarting = (mesh.zeroed(ends[-1]), ends[-1]) if together else (0, 0)
        offsets |= {signal.name: restarting[0] + end for signal, end in zip(together, ends, strict=False)}
        signals = tuple((offsets[signal.name], 4 * counters(signal, dims)) for signal in artifact.signals)
        return _Memory(offsets, epochs, restarting, signals)

    def _reported(self, waits: Waits, known: Sequence[str]) -> Diagnostic | None:
        """What threads that gave up waiting have reported, of all ranks; `known` are other facts, a line each."""
        for key, memory in self._memory.items():
            dims, shape = dict(key), (self.grid, 2 * waits.warps, reports.WORDS)
            written = {rank: self._words(rank, memory.offsets[waits.reports], shape) for rank in range(self.mesh.ranks)}
            found = reports.read(waits, written, partial(self._counter_at, memory, dims))
            if found:
                launches = {rank: int(self._words(rank, memory.epochs, (1,))[0]) for rank in range(self.mesh.ranks)}
                absent = [*reports.missing_launches(launches), *known]
                return reports.diagnose(self.artifact.name, found, self.mesh.alarm.limit, absent)
        return None

    def _words(self, rank: int, offset: int, shape: tuple[int, ...]) -> NDArray[np.int32]:
        """Words of the memory of any rank, as they are now: nobody need answer."""
        words = np.empty(shape, np.int32)
        with self.mesh.current(self.mesh.local[0]):
            self.mesh.driver.cuMemcpyDtoH(words.ctypes.data, self.mesh.heap.address(rank, offset), words.nbytes)
        return words

    def _release(self) -> None:
        """End the waits of copy engines: their counters get a value that is enough for any."""
        if self._beside is not None:
            self._beside.release([place for memory in self._memory.values() for place in memory.signals])

    def _counter_at(self, memory: _Memory, dims: Mapping[str, int], rank: int, name: str, low: int) -> tuple[int, ...]:
        """The indices of the counter of signal `name` whose address has this low half."""
        signal = next(signal for signal in self.artifact.signals if signal.name == name)
        place = (low - self.mesh.heap.address(rank, memory.offsets[name])) % 2**32 // 4
        indices: list[int] = []
        for extent in reversed(signal.dims):
            place, index = divmod(place, counters_along(extent, dims))
            indices.append(index)
        return tuple(reversed(indices))

    def _scratch_bytes(self, parameter: ArrayParameter, dims: Mapping[str, int]) -> int:
        """The bytes on each rank; a dimension whose blocks follow shards has room for all shards at full length."""
        extents = list(memory_shape(extents_of(parameter, dims), parameter.shard, dims[RANKS]))
        splits = {
            field.split
            for field in self.artifact.fields
            if isinstance(field, TensorMaps) and field.array == parameter.name
        }
        for split in splits - {None, parameter.shard}:
            assert split is not None
            extents[split] = dims[RANKS] * blocks.shard_length(extents[split], dims[RANKS])
        return math.prod(extents) * ELEMENTS[parameter.dtype].bytes * (2 if parameter.packets else 1)


def _engines(text: str) -> Engines | None:
    """What copy engines do, if they do anything: it is IR, which takes long to import."""
    if not text:
        return None
    from pkc.runtime.engines import Engines

    return Engines(text)


def _check_gpu(driver: Driver, artifact: Artifact, rank: Rank) -> None:
    halves = (driver.attribute(f"COMPUTE_CAPABILITY_{half}", rank.device) for half in ("MAJOR", "MINOR"))
    found = next(halves), next(halves)
    if not runs_on(artifact.target, found):
        capability = ".".join(map(str, found))
        raise PkcError(WrongGpu(NOWHERE, artifact.name, artifact.target, rank.device, capability))


def runs_on(target: str, capability: tuple[int, int]) -> bool:
    """Machine code for `sm_XYa` runs on compute capability X.Y alone, that for `sm_XY` on X.Y and later X."""
    digits = target.removeprefix("sm_").rstrip("af")
    wanted = (int(digits[:-1]), int(digits[-1]))
    if target.endswith("a"):
        return capability == wanted
    return capability[0] == wanted[0] and capability >= wanted
