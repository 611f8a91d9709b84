"""Kernels loaded on meshes, and their launches on torch's current stream."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Mapping, Sequence
from typing import Any

from pkc.driver.builder import artifact_for
from pkc.frontend.tree import Program
from pkc.runtime.arguments import fingerprints
from pkc.runtime.launch import LoadedKernel, Plan
from pkc.runtime.mesh import Mesh
from pkc.torch.groups import Place

torch: Any = importlib.import_module("torch")

_ALIGNMENT = 16


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
        artifact = artifact_for(program, dims=dims, ranks=place.mesh.ranks, constants=known, schedule=said)
        if artifact not in place.loaded:
            place.loaded[artifact] = LoadedKernel(artifact, place.mesh)
        place.chosen[key] = program, place.loaded[artifact]
    return place.chosen[key][1]


def lies_anywhere(kernel: LoadedKernel, name: str) -> bool:
    """Whether an array of a kernel may be any tensor, since no other rank reaches it."""
    return next(array.local for array in kernel.artifact.arrays if array.name == name)


class Launch:
    """Launches of a kernel on torch's current stream: its tensors `names`, each of one layout, which no other rank
    reaches, and other arguments that stay as they are. Tensors that are `transposed` are passed by columns."""

    def __init__(
        self, kernel: LoadedKernel, names: Sequence[str], fixed: Mapping[str, Any], transposed: Sequence[str] = ()
    ) -> None:
        self._kernel, self._names, self._fixed, self._transposed = kernel, names, fixed, transposed
        self._device = kernel.mesh.local[0].device
        self._plan: Plan | None = None
        self._behind: list[int] = []
        """The pointers of the other arguments, which come behind those of the tensors."""
        fingerprints(fixed.values(), self._behind)

    def __call__(self, *tensors: Any) -> None:
        pointers = [*[each.data_ptr() for each in tensors], *self._behind]
        stream = torch._C._cuda_getCurrentRawStream(self._device)
        if self._plan is None or not self._kernel.start(self._plan, pointers, stream):
            arguments = dict(zip(self._names, tensors, strict=True))
            for name in self._transposed:
                arguments[name] = arguments[name].t()
            plan = self._kernel.plan({**arguments, **self._fixed}, {}, stream)
            self._kernel.start(plan, pointers, stream)
            self._plan = plan  # only now may another thread let its tensors take the place of these


def aligned(tensor: Any) -> Any:
    """A tensor that begins where kernels can read it."""
    return tensor.clone() if tensor.data_ptr() % _ALIGNMENT else tensor
