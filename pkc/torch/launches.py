"""Kernels loaded on meshes, and their launches on torch's current stream."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from pkc.driver.builder import artifact_for
from pkc.frontend.tree import Program
from pkc.runtime.arguments import fingerprints, lowest
from pkc.runtime.arrays import Array
from pkc.runtime.launch import LoadedKernel, Plan
from pkc.runtime.mesh import Mesh
from pkc.torch.groups import Place, Turn

torch: Any = importlib.import_module("torch")

_ALIGNMENT = 16

MOST_KEPT = 16
"""Combinations of sizes of a group for which memory is kept that other ranks write before a launch has begun."""

_EVERY_BATCH = {"splits": "false"}
"""What all have in their schedule: the bits of a row are the same in every batch."""

_AWAITED = {"write_ahead": "false", "packets": "false"}
"""What further ones have in their schedule: ranks wait until all have begun, and the memory serves one launch after the
other."""


@functools.cache
def place_on(device: int) -> Place:
    """The mesh of one GPU, for kernels that reach no other."""
    return Place(Mesh.single_process([device]))


def loaded(
    place: Place,
    program: Program,
    dims: Mapping[str, int],
    constants: Mapping[str, int | float] | None = None,
    schedule: Mapping[str, str] | None = None,
) -> LoadedKernel:
    """A kernel with the schedule for these dimensions, beside what `schedule` says, loaded once for the program, which
    is known by its place in memory: its parts are many."""
    known, said = constants or {}, schedule or {}
    key = id(program), *dims.values(), *known.items(), *said.items()
    if key not in place.chosen:
        all_said = {**_EVERY_BATCH, **said}
        artifact = artifact_for(program, dims=dims, ranks=place.mesh.ranks, constants=known, schedule=all_said)
        if artifact not in place.loaded:
            place.loaded[artifact] = LoadedKernel(artifact, place.mesh)
        place.chosen[key] = program, place.loaded[artifact]
    return place.chosen[key][1]


def loaded_for_sizes(place: Place, program: Program, dims: Mapping[str, int]) -> LoadedKernel:
    """A kernel for one more combination of sizes, with the schedule for these dimensions. All ranks call this for the
    same ones in the same order, so that they agree on the first `MOST_KEPT`."""
    kernel = loaded(place, program, dims)
    if not any(array.kept for array in kernel.artifact.arrays):
        return kernel
    if place.kept >= MOST_KEPT:
        return loaded(place, program, dims, schedule=_AWAITED)
    place.kept += 1
    return kernel


def lies_anywhere(kernel: LoadedKernel, name: str) -> bool:
    """Whether an array of a kernel may be any tensor, since no other rank reaches it."""
    return next(array.local for array in kernel.artifact.arrays if array.name == name)


class Launch:
    """Launches of a kernel on torch's current stream: its tensors `names`, each of one layout, which no other rank
    reaches, and other arguments that stay as they are. Tensors that are `transposed` are passed by columns.

    `spare` has arrays of the mesh for those that are not private: allocators may give tensors addresses that are too
    low to take their place. What is among `results` is then copied from there, all else before the launch to there.
    """

    def __init__(
        self,
        kernel: LoadedKernel,
        names: Sequence[str],
        fixed: Mapping[str, Any],
        transposed: Sequence[str] = (),
        spare: Mapping[str, Array] | None = None,
        results: Collection[str] = (),
    ) -> None:
        self._kernel, self._names, self._fixed, self._transposed = kernel, names, fixed, transposed
        self._turn = Turn(kernel.mesh)
        self._device = kernel.mesh.local[0].device
        self._spare, self._results, self._lowest = spare or {}, results, lowest(kernel.mesh)
        self._lent = [number for number, name in enumerate(names) if name in self._spare]
        """The positions of tensors in place of arrays of the mesh."""
        self._by_heap: tuple[Launch, Mapping[str, Any]] | None = None
        """Launches on the spare arrays, and these on this rank, as tensors."""
        self._plan: Plan | None = None
        self._behind: list[int] = []
        """The pointers of the other arguments, which come behind those of the tensors."""
        fingerprints(fixed.values(), self._behind)

    def __call__(self, *tensors: Any) -> None:
        pointers = [*[each.data_ptr() for each in tensors], *self._behind]
        for number in self._lent:
            if pointers[number] < self._lowest:
                self._copied(tensors)
                return
        stream = torch._C._cuda_getCurrentRawStream(self._device)
        if self._plan is None or not self._kernel.start(self._plan, pointers, stream):
            arguments = dict(zip(self._names, tensors, strict=True))
            for name in self._transposed:
                arguments[name] = arguments[name].t()
            plan = self._kernel.plan({**arguments, **self._fixed}, {}, stream)
            self._kernel.start(plan, pointers, stream)
            self._plan = plan  # only now may another thread let its tensors take the place of these

    def _copied(self, tensors: Sequence[Any]) -> None:
        """Launch on the spare arrays."""
        if self._by_heap is None:
            names = [name for name in self._names if name not in self._spare]
            launch = Launch(self._kernel, names, {**self._fixed, **self._spare}, self._transposed)
            self._by_heap = launch, {name: array.tensor() for name, array in self._spare.items()}
        launch, shards = self._by_heap
        given = dict(zip(self._names, tensors, strict=True))
        with self._turn:
            for name in shards.keys() - set(self._results):
                shards[name].copy_(given[name])
            launch(*[tensor for name, tensor in given.items() if name not in shards])
            for name in self._results:
                given[name].copy_(shards[name])


def aligned(tensor: Any) -> Any:
    """A tensor that begins where kernels can read it."""
    return tensor.clone() if tensor.data_ptr() % _ALIGNMENT else tensor
