"""Running a compiled kernel on GPUs with arrays in numpy: the counterpart of `pkc.sim.run.simulate`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from pkc.codegen.artifact import ArrayParameter, Artifact, Scalar
from pkc.dialect.numeric import Values
from pkc.dialect.types import RANKS
from pkc.runtime.arrays import Array, View
from pkc.runtime.copies import download, upload
from pkc.runtime.launch import LoadedKernel
from pkc.runtime.mesh import Mesh

_PATIENCE = 20.0
"""Seconds after which kernels that have not ended are taken to hang."""


def run_on_gpus(
    artifact: Artifact,
    mesh: Mesh,
    dims: Mapping[str, int],
    inputs: Mapping[str, Any],
    *,
    launches: int = 1,
) -> dict[str, Values]:
    """Launch a kernel on all ranks of a mesh, `launches` times without waiting between; every array afterwards.

    As with the simulator, private and symmetric arrays have a leading axis of ranks, sharded and replicated ones are
    the global array. What is in no input begins as NaN, or as 0x55 in every byte of an integer. All ranks are of this
    process. Raises `PkcError`.
    """
    kernel = LoadedKernel(artifact, mesh)
    sizes = {**dims, RANKS: mesh.ranks}
    arrays = {p.name: (p, _allocate(mesh, p, sizes)) for p in artifact.arrays if not p.scratch}
    for name, (parameter, array) in arrays.items():
        whole = inputs.get(name)
        for rank in range(mesh.ranks):
            upload(mesh, array, rank, _part(parameter, array, rank, whole))
    arguments: dict[str, Any] = {name: _argument(p, array, mesh.ranks) for name, (p, array) in arrays.items()}
    wanted = {field.name: field.dtype for field in artifact.fields if isinstance(field, Scalar)}
    for name, dtype in wanted.items():
        arguments[name] = float(inputs[name]) if dtype == "f32" else int(inputs[name])
    for _ in range(launches):
        kernel(arguments, dims=dict(dims))
    mesh.synchronize(_PATIENCE)
    outputs = {name: _whole(mesh, parameter, array) for name, (parameter, array) in arrays.items()}
    for _, array in arrays.values():
        array.free()
    return outputs


def _allocate(mesh: Mesh, parameter: ArrayParameter, sizes: Mapping[str, int]) -> Array:
    shape = [sizes[dim] if isinstance(dim, str) else dim for dim in parameter.dims]
    layout = "symmetric" if parameter.layout == "private" else parameter.layout
    return mesh.empty(shape, parameter.dtype, layout, parameter.shard)


def _argument(parameter: ArrayParameter, array: Array, ranks: int) -> Array | list[View]:
    return [array.local(rank) for rank in range(ranks)] if parameter.layout == "private" else array


def _part(parameter: ArrayParameter, array: Array, rank: int, whole: Values | None) -> Any:
    """What a rank has of an array at entry."""
    shape = array.local(rank).shape
    if whole is None:
        return np.nan if parameter.dtype != "i32" else 0x55555555
    if parameter.layout in ("private", "symmetric"):
        return whole[rank]
    if parameter.shard is None:
        return whole
    length = array.memory_shape[parameter.shard]
    cut = [slice(None)] * len(shape)
    cut[parameter.shard] = slice(rank * length, rank * length + shape[parameter.shard])
    return whole[tuple(cut)]


def _whole(mesh: Mesh, parameter: ArrayParameter, array: Array) -> Values:
    """An array of all ranks, as the simulator gives it; the copies of a replicated one have to agree."""
    parts = [download(mesh, array, rank) for rank in range(mesh.ranks)]
    if parameter.layout in ("private", "symmetric"):
        return np.stack(parts)
    if parameter.shard is not None:
        return np.concatenate(parts, axis=parameter.shard)
    alike = [part.tobytes() == parts[0].tobytes() for part in parts]
    return parts[0] if all(alike) else parts[alike.index(False)] * np.float32("nan").astype(parts[0].dtype)
