"""Kernels on a mesh: loaded once, with scratch memory and counters, launched on all GPUs of a process in one loop."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from pkc.codegen.artifact import Artifact, Waits
from pkc.diagnostics import Diagnostic, PkcError
from pkc.dialect.words import RANKS
from pkc.location import NOWHERE
from pkc.runtime.arguments import Bound, bind, fingerprints, reached
from pkc.runtime.beside import Beside, Work
from pkc.runtime.driver import Driver
from pkc.runtime.enqueue import Action, Call, Placer, calls, kinds, side_by_side
from pkc.runtime.errors import FirstLaunchInCapture, WrongGpu
from pkc.runtime.forms import Form
from pkc.runtime.group import Group
from pkc.runtime.kernel_memory import KernelMemory, Memory
from pkc.runtime.kernel_parameters import KernelParameters, StructOf, Values
from pkc.runtime.mesh import Mesh
from pkc.runtime.plans import Plan, Plans, Start
from pkc.runtime.rank import Rank
from pkc.runtime.steps import Section
from pkc.runtime.turns import is_captured
from pkc.runtime.unrolled import Unrolled

_SPARE_SMS = 4
"""SMs that a kernel with copy engines leaves free: the driver copies within one GPU by a kernel."""


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
        self._engines = Unrolled(artifact.engines) if artifact.engines else None
        self._beside = Beside(mesh, self._engines.count) if self._engines is not None else None
        spare = _SPARE_SMS if self._engines is not None else 0
        sms = grid or min(rank.sms for rank in mesh.local) - spare
        self.grid = sms // artifact.cluster * artifact.cluster
        self._digest = artifact.source[:8]
        self._functions = self._load()
        if artifact.cluster > 1:
            self.grid = min(self.grid, *(self._clustered(rank) for rank in mesh.local))
        self._configs = {rank.rank: self._config() for rank in mesh.local}
        arrays = {array.name: array for array in artifact.arrays}
        self._struct = StructOf(artifact.fields, arrays, mesh.ranks, mesh.heap.stride)
        self._interface = artifact.interface
        far = (array for array in self._interface.passed if not (array.local or array.layout == "private"))
        self._far = {array.name: array for array in far}
        """What other ranks reach."""
        private = (array for array in artifact.arrays if array.layout == "private" and array.scratch)
        self._private_scratch = [array.name for array in private]
        self.memory = KernelMemory(artifact, mesh, self.grid)
        self._turns = mesh.turns if self.memory.shared or artifact.queue else None
        self._form: Form | None = None
        """What calls have in common with the last one that was checked."""
        self._agreed: set[object] = set()
        self._plans: Plans[Plan] = Plans()
        self._raised = mesh.alarm.raised
        self._started = 0
        """On how many ranks of this process the last launch has started."""
        self._context = mesh.local[0].context if len(mesh.local) == 1 else None
        """The only context in which it is launched, if there is one."""
        self._implied_dims: dict[str, int] = {}
        if artifact.waits is not None:
            self._implied_dims[artifact.waits.ctas] = self.grid
            mesh.faults.add(partial(self._reported, artifact.waits), self._release)

    def __call__(
        self, arguments: Mapping[str, Any], *, dims: Mapping[str, int] | None = None, stream: Any = None
    ) -> None:
        """Launch on all ranks of this process; returns before the kernels end.

        `arguments` by parameter: arrays of the mesh; for private arrays, and others that no other rank reaches, a list
        with one tensor for each rank of this process, or the tensor if there is one rank; numbers for scalars. `dims`
        has the dimensions that no array shows.

        `stream` is a list with one for each rank of this process: an integer, a torch stream, or anything with
        `__cuda_stream__`. A single one for several ranks must be of the first rank's GPU: all ranks wait for it, and it
        then waits for all ranks. Without `stream` the mesh's streams are used, which wait for no other.

        The first launch for some dimensions allocates memory and so cannot be captured into a graph; with one process
        for each GPU it waits for all ranks. Raises `PkcError`.
        """
        settings = dims or {}
        streams, shared = self.mesh.streams(stream)
        pointers: list[int] = []
        found = fingerprints(arguments.values(), pointers)
        key = (*arguments, *found, *settings.items())
        # Another thread may let its tensors take the place of these, once the launch has its copy of their addresses.
        with self.mesh.launching:
            plan = self._plans.find(key, pointers)
            if plan is None or not plan.moved(pointers):
                plan = self.plan(arguments, settings, streams[0] if shared is None else shared)
                self._plans.keep(key, pointers, plan)
            self.launch(plan, streams, shared)

    def plan(self, arguments: Mapping[str, Any], settings: Mapping[str, int], stream: int) -> Plan:
        """A launch with these arguments, prepared; the first will be on `stream`. `settings` are the dimensions that no
        array shows. Raises `PkcError`."""
        pointers: list[int] = []
        found = fingerprints(arguments.values(), pointers)
        form, bound = self._form, None
        if form is not None and form.names == tuple(arguments) and form.settings == settings:
            bound = form.bound(found, pointers)
        if form is None or bound is None:
            bound = bind(self._interface, self.mesh, arguments, settings)
            form = self._form = Form(self._interface, self.mesh, tuple(arguments), found, settings)
        return self.prepare(bound, form, pointers, stream)

    def start(self, plan: Plan, pointers: list[int], stream: int) -> bool:
        """Launch a plan with arrays at `pointers` on the only rank of this process; whether it serves for them."""
        with self.mesh.launching:
            if not plan.moved(pointers):
                return False
            self.launch(plan, [stream], None)
        return True

    def prepare(self, bound: Bound, form: Form, pointers: list[int], stream: int) -> Plan:
        """All that launches need with arguments of a form at `pointers`; the first one will be on `stream`. Raises
        `PkcError`."""
        mesh, context = self.mesh, self.mesh.local[0].context
        with mesh.launching:
            _, current = mesh.driver.api.cuCtxGetCurrent()
            if current == context:
                return self._prepared(bound, form, pointers, stream)
            # The driver encodes tensor maps only within a context, of whatever GPU.
            with mesh.current(mesh.local[0]):
                return self._prepared(bound, form, pointers, stream)

    def _prepared(self, bound: Bound, form: Form, pointers: list[int], stream: int) -> Plan:
        mesh = self.mesh
        for name, array in self._far.items():
            if name in bound.own:  # it was bound before machine code was known
                raise PkcError(reached(self._interface, array))
        dims = {**bound.dims, **self._implied_dims} if self._implied_dims else bound.dims
        memory = self.memory.known(dims)
        first = memory is None
        new = None if mesh.group is None else self._agree(bound, mesh.group, allocates=first)
        if memory is None:
            self._check_capture(stream)
            memory = self.memory.allocate(dims)
        if new is not None:
            mesh.heap.share()
            self._agreed.add(new)
        starts = self._starts(bound, dims, memory)
        if first and self._beside is not None:
            self._beside.try_out([start.work for start in starts if start.work is not None])
        # Other processes agree to each place in the heap.
        return Plan(starts, form, pointers, bound.spans, () if mesh.group is None else self._far)

    def _agree(self, bound: Bound, group: Group, *, allocates: bool) -> object:
        """Wait for all ranks at the first launch of this kind; which kind it is, or `None` if it is not the first.

        If it allocates memory, that must be at the same place on all of them: a kernel signals to counters there."""
        what = bound.describe(self._far)
        kind = what, *[self.mesh.heap.trims_before(bound.heap[name]) for name in self._far]
        if kind in self._agreed:
            return None
        place = f", {self.mesh.used >> 10} KiB of the heap in use" if allocates else ""
        group.agree(f"launches {self.artifact.name} ({self._digest}) with {what}{place}")
        return kind

    def launch(self, plan: Plan, streams: Sequence[int], shared: int | None) -> None:
        """Launch what is prepared; streams as `Mesh.streams` gives them. The caller holds `launching` of the mesh:
        threads launch one after the other, so that every GPU gets their kernels in the same order, and on whatever
        streams, a launch begins when the one before on this mesh has ended (`pkc.runtime.turns`)."""
        mesh, starts, turns = self.mesh, plan.starts, self._turns
        mesh.check()
        if self._raised.value:
            mesh.faults.check()
        mesh.faults.last = starts
        self._started = 0
        _, before = mesh.driver.api.cuCtxGetCurrent()
        current = before
        try:
            if shared is not None:
                self._fork(shared)
            if turns is not None:
                current = turns.take(streams, current)
            if self._beside is None:
                current = self._launch(starts, streams, current)
            else:
                current = self._launch_beside(starts, streams, self._beside)
            if turns is not None:
                turns.end(streams, current)
            if shared is not None:
                self._join(shared)
        except Exception as error:
            # Other ranks that have launched would wait as long as waits may take.
            waiting = mesh.ranks > 1 and (mesh.group is not None or self._started)
            if waiting and not _is_captured(mesh.driver, streams[0]):
                mesh.faults.failed(error)
            raise
        finally:
            if before != self._context:
                mesh.driver.api.cuCtxSetCurrent(before)

    def scratch(self, name: str, dims: Mapping[str, int]) -> int:
        """The offset in the heap of a scratch array or a signal, after a launch with these dimensions."""
        wanted = {dim: dims[dim] for dim in self._interface.dims}
        memory = self.memory.known({**wanted, RANKS: self.mesh.ranks, **self._implied_dims})
        assert memory is not None
        return memory.offsets[name]

    # Launching

    def _launch(self, starts: Sequence[Start], streams: Sequence[int], current: Any) -> Any:
        """Start the kernels; `current` is the current context, and what is returned then is.

        Nothing is allocated, loaded or waited for: a kernel that runs may wait for one that is not started yet."""
        api = self.mesh.driver.api
        for at, start in enumerate(starts):
            context, config = start.rank.context, start.config
            if context != current:
                current = context
                api.cuCtxSetCurrent(context)
            config.hStream = streams[at]
            (status,) = api.cuLaunchKernelEx(config, start.function, start.parameters.pointers, 0)
            if status:
                self.mesh.driver.fail("cuLaunchKernelEx", status)
            self._started += 1
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
        self.mesh.libraries.append(library)
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

    def _starts(self, bound: Bound, dims: Mapping[str, int], memory: Memory) -> Sequence[Start]:
        """The launch on each rank. Parameters differ in the rank's number, and in what is in its own memory."""
        mesh, heap = self.mesh, self.mesh.heap
        starts: list[Start] = []
        addresses = {name: heap.address(0, offset) for name, offset in (*bound.heap.items(), *memory.offsets.items())}
        scalars, alarm = bound.scalars, mesh.alarm.address
        for at, rank in enumerate(mesh.local):
            own = {name: given[at] for name, given in bound.own.items()}
            own |= {name: heap.address(rank.rank, memory.offsets[name]) for name in self._private_scratch}
            epochs = heap.address(rank.rank, memory.epochs)
            values = Values(rank.rank, heap.stride, epochs, alarm, dims, scalars, {**addresses, **own})
            if not starts:
                parameters = KernelParameters(self._struct)
                parameters.fill(values)
            else:
                parameters = starts[0].parameters.on(rank.rank, epochs)
                for name, address in own.items():
                    parameters.move(name)(address)
            work = None if self._engines is None else self._work(self._engines, values, memory)
            config, function = self._configs[rank.rank], self._functions[rank.rank]
            starts.append(Start(rank, config, function, parameters, work, self.artifact.name, bound.dims))
        return starts

    def _work(self, engines: Unrolled, values: Values, memory: Memory) -> Work:
        placer, heap, api = Placer(self.artifact, values), self.mesh.heap, self.mesh.driver.api
        actions: list[Action] = []

        def enqueued(section: Section) -> Sequence[Sequence[Call]]:
            strands = side_by_side(list(placer.actions(strand)) for strand in section)
            actions.extend(itertools.chain(*strands))
            return [list(calls(api, some)) for some in strands]

        found = engines.sections(values.rank, values.dims, values.scalars)
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

    def _reported(self, waits: Waits, known: Sequence[str]) -> Diagnostic | None:
        return self.memory.reported(waits, known, limit=self.mesh.alarm.limit)

    def _release(self) -> None:
        """End the waits of copy engines: their counters get a value that is enough for any."""
        if self._beside is not None:
            self._beside.release(self.memory.signals())


def _is_captured(driver: Driver, stream: int) -> bool:
    """Whether nothing runs that is launched on a stream, as far as the driver can say."""
    try:
        return is_captured(driver, stream)
    except PkcError:  # a capture that has failed, or a GPU that has
        return False


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
