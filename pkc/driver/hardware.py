"""Runs a compiled kernel on GPUs with numpy arrays: the counterpart of `pkc.sim.run.simulate`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from pkc.codegen.artifact import ArrayParameter, Artifact, Scalar
from pkc.dialect.numeric import Values
from pkc.dialect.types import RANKS
from pkc.runtime.arrays import Array, View
from pkc.runtime.copies import download, upload
from pkc.runtime.launch import LoadedKernel
from pkc.runtime.mesh import Mesh
from pkc.sim.array import POISON_INT

PATIENCE = 20.0
"""Seconds after which kernels that have not ended count as hung."""


def run_on_gpus(
    artifact: Artifact,
    mesh: Mesh,
    dims: Mapping[str, int],
    inputs: Mapping[str, Any],
    *,
    launches: int = 1,
    in_any_order: bool = False,
) -> list[dict[str, Values]]:
    """Launch a kernel on all ranks of a mesh, `launches` times without waiting between; every array afterwards.

    Arrays are as in `Call`. There is one set of them; with `in_any_order` one for each rank's copies of replicated
    arrays, whose sums each rounded in an order of its own. Raises `PkcError`.
    """
    call = Call(artifact, mesh, dims, inputs)
    for _ in range(launches):
        call.launch()
    mesh.synchronize(PATIENCE)
    outputs = call.all_outputs(in_any_order)
    call.free()
    return outputs


class Call:
    """A kernel with its arrays on a mesh whose ranks are all of this process. Raises `PkcError`.

    As with the simulator, private and symmetric arrays have a leading axis of ranks, sharded and replicated ones are
    the global array. Arrays that no input gives begin as NaN, or as the integer that the simulator has for
    what is not written.
    """

    def __init__(
        self,
        artifact: Artifact,
        mesh: Mesh,
        dims: Mapping[str, int],
        inputs: Mapping[str, Any],
    ) -> None:
        self._mesh, self.dims = mesh, dict(dims)
        self.kernel = LoadedKernel(artifact, mesh)
        sizes = {**dims, RANKS: mesh.ranks}
        self._arrays = {p.name: (p, _allocate(mesh, p, sizes)) for p in artifact.arrays if not p.scratch}
        self._arguments: dict[str, Any] = {
            name: _argument(parameter, array, mesh.ranks) for name, (parameter, array) in self._arrays.items()
        }
        for field in artifact.fields:
            if isinstance(field, Scalar):
                value = inputs[field.name]
                self._arguments[field.name] = float(value) if field.dtype == "f32" else int(value)
        self.fill(inputs)

    def fill(self, inputs: Mapping[str, Any]) -> None:
        """Write all arrays as they are at entry; no kernel may be running."""
        self.write({name: inputs.get(name) for name in self._arrays})

    def write(self, inputs: Mapping[str, Any]) -> None:
        """Write some arrays as they are at entry; no kernel may be running."""
        for name, content in inputs.items():
            parameter, array = self._arrays[name]
            for rank in range(self._mesh.ranks):
                upload(self._mesh, array, rank, _initial(parameter, array, rank, content))

    def launch(self, stream: Any = None, *, dims: Mapping[str, int] | None = None) -> None:
        """Start the kernel on all ranks; `stream` as for `LoadedKernel`, `dims` are further ones."""
        self.kernel(self._arguments, dims={**self.dims, **(dims or {})}, stream=stream)

    def launching(self, artifact: Artifact) -> Callable[[], None]:
        """What launches other machine code of the same kernel with these arrays."""
        kernel = LoadedKernel(artifact, self._mesh)
        return lambda: kernel(self._arguments, dims=self.dims)

    def outputs(self, copy: int | None = None) -> dict[str, Values]:
        """All arrays as they are now, of replicated ones the copy of rank `copy`, or that of all, NaN if they differ;
        no kernel may be running."""
        return {name: _whole(self._mesh, *array, copy) for name, array in self._arrays.items()}

    def all_outputs(self, in_any_order: bool) -> list[dict[str, Values]]:
        """`outputs`, for each rank's copies if those may differ, as sums in any order may round."""
        copies = range(self._mesh.ranks) if in_any_order else (None,)
        return [self.outputs(copy) for copy in copies]

    @property
    def arrays(self) -> Mapping[str, Array]:
        """The memory of each array, on all ranks."""
        return {name: array for name, (_, array) in self._arrays.items()}

    def free(self) -> None:
        """Give the memory of the arrays back."""
        for _, array in self._arrays.values():
            array.free()


def clock_of(
    mesh: Mesh,
    dims: Mapping[str, int],
    inputs: Mapping[str, Any],
    launches: int = 20,
    contents: Sequence[Mapping[str, Any]] = (),
) -> Callable[[Artifact], Callable[[], float]]:
    """From machine code of a kernel to what launches it `launches` times, more if that takes less than `LEAST`, fewer
    if it takes more than `ENOUGH`, and gives the nanoseconds of each, by events of the first rank's GPU; with
    `contents` of some arrays, the mean over these. All have the same arrays. On one rank launches are a graph, so that
    short kernels do not wait for the host."""
    calls: list[Call] = []
    kept: list[Callable[[], None]] = []  # a graph does not keep the kernel that it launches
    first, driver = mesh.local[0], mesh.driver
    with mesh.current(first):
        begin, end = driver.cuEventCreate(0), driver.cuEventCreate(0)

    def took(start: Callable[[], object]) -> float:
        with mesh.current(first):
            driver.cuEventRecord(begin, first.stream)
            start()
            driver.cuEventRecord(end, first.stream)
        mesh.synchronize(PATIENCE)
        return driver.cuEventElapsedTime(begin, end) * 1e6

    def start(artifact: Artifact) -> Callable[[], float]:
        if not calls:
            calls.append(Call(artifact, mesh, dims, inputs))
        launch = calls[0].launching(artifact)
        took(launch)
        count = enough_launches(min(took(launch) for _ in range(2)), launches)

        def together() -> None:
            for _ in range(count):
                launch()

        def with_contents() -> float:
            total = 0.0
            for content in contents:
                calls[0].write(content)
                total += took(again)
            return total / len(contents) / count

        kept.append(launch)
        again = together if mesh.ranks > 1 or artifact.engines else _graph(mesh, together)
        return with_contents if contents else lambda: took(again) / count

    return start


def enough_launches(one: float, launches: int) -> int:
    """How many launches are timed together, if one of them takes so many nanoseconds."""
    return max(1, min(max(launches, math.ceil(LEAST / one)), int(ENOUGH / one)))


LEAST = 4e5
"""Nanoseconds of launches that events time well: to a thousandth."""

ENOUGH = 5e6
"""Nanoseconds of launches after which more of them say little."""


def _graph(mesh: Mesh, launches: Callable[[], None]) -> Callable[[], object]:
    """Launches on the stream of the only rank, captured: what starts them again."""
    driver, (rank,) = mesh.driver, mesh.local
    with mesh.current(rank):
        driver.cuStreamBeginCapture(rank.stream, driver.api.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED)
        launches()
        graph = driver.cuGraphInstantiate(driver.cuStreamEndCapture(rank.stream), 0)
        driver.cuGraphUpload(graph, rank.stream)
    return lambda: driver.cuGraphLaunch(graph, rank.stream)


def _allocate(mesh: Mesh, parameter: ArrayParameter, sizes: Mapping[str, int]) -> Array:
    shape = [sizes[dim] if isinstance(dim, str) else dim for dim in parameter.dims]
    layout = "symmetric" if parameter.layout == "private" else parameter.layout
    return mesh.empty(shape, parameter.dtype, layout, parameter.shard, zigzag=parameter.zigzag)


def _argument(parameter: ArrayParameter, array: Array, ranks: int) -> Array | list[View]:
    return [array.local(rank) for rank in range(ranks)] if parameter.layout == "private" else array


_NOBODYS = {name: int(np.asarray(POISON_INT).astype(kind)) for name, kind in (("i32", np.int32), ("i8", np.int8))}
"""What integers hold at entry that the kernel is to write, as the simulator has it: references know it."""


def _initial(parameter: ArrayParameter, array: Array, rank: int, whole: Values | None) -> Any:
    """The elements of an array on a rank at entry."""
    if whole is None:
        return _NOBODYS.get(parameter.dtype, np.nan)
    if parameter.layout in ("private", "symmetric"):
        return whole[rank]
    if parameter.shard is None:
        return whole
    return np.concatenate([whole[there] for there, _ in array.ranges(rank)], axis=parameter.shard)


def _whole(mesh: Mesh, parameter: ArrayParameter, array: Array, copy: int | None) -> Values:
    """An array of all ranks, as the simulator gives it; of a replicated one a `copy`, or NaN if the copies differ."""
    local = [download(mesh, array, rank) for rank in range(mesh.ranks)]
    if parameter.layout in ("private", "symmetric"):
        return np.stack(local)
    if parameter.shard is not None:
        whole = np.empty(array.shape, local[0].dtype)
        for rank, values in enumerate(local):
            for there, here in array.ranges(rank):
                whole[there] = values[here]
        return whole
    if copy is not None:
        return local[copy]
    alike = [values.tobytes() == local[0].tobytes() for values in local]
    return local[0] if all(alike) else local[alike.index(False)] * np.float32("nan").astype(local[0].dtype)
