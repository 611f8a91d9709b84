"""Arrays of a mesh to and from numpy, through the host: for tests and for programs without torch."""

from __future__ import annotations

from typing import Any

import numpy as np

from pkc.dialect.numeric import Values, numpy_dtype
from pkc.dialect.types import DTYPES
from pkc.runtime.arrays import Array
from pkc.runtime.mesh import Mesh


def upload(mesh: Mesh, array: Array, rank: int, values: Values) -> None:
    """Write the elements of an array on a rank of this process; no kernel may use it. `values` has the view's shape."""
    memory = np.zeros(array.memory_shape, _dtype(array))
    memory[_inside(array, rank)] = values
    place = next(local for local in mesh.local if local.rank == rank)
    with mesh.current(place):
        mesh.driver.cuMemcpyHtoD(array.local(rank).address, memory.ctypes.data, memory.nbytes)


def download(mesh: Mesh, array: Array, rank: int) -> Values:
    """A copy of the elements of an array on a rank of this process, of the view's shape; no kernel may write it."""
    memory = np.empty(array.memory_shape, _dtype(array))
    place = next(local for local in mesh.local if local.rank == rank)
    with mesh.current(place):
        mesh.driver.cuMemcpyDtoH(memory.ctypes.data, array.local(rank).address, memory.nbytes)
    return memory[_inside(array, rank)]


def _dtype(array: Array) -> np.dtype[Any]:
    return numpy_dtype(DTYPES[array.dtype])


def _inside(array: Array, rank: int) -> tuple[slice, ...]:
    """The range of a rank's memory that has elements; a short shard does not fill it."""
    return tuple(slice(extent) for extent in array.local(rank).shape)
