"""Arrays of a mesh to and from numpy, through the host: for tests and for programs without torch."""

from __future__ import annotations

from typing import Any

import numpy as np

from pkc.dialect.numeric import Values, numpy_dtype
from pkc.dialect.types import DTYPES
from pkc.runtime.arrays import Array
from pkc.runtime.mesh import Mesh


def upload(mesh: Mesh, array: Array, rank: int, values: Values) -> None:
    """Write what a rank of this process has of an array; no kernel may use it. `values` has the shape of its view."""
    held = np.zeros(array.memory_shape, _dtype(array))
    held[_inside(array, rank)] = values
    place = next(local for local in mesh.local if local.rank == rank)
    with mesh.current(place):
        mesh.driver.cuMemcpyHtoD(array.local(rank).address, held.ctypes.data, held.nbytes)


def download(mesh: Mesh, array: Array, rank: int) -> Values:
    """What a rank of this process has of an array, as a copy in the shape of its view; no kernel may write it."""
    held = np.empty(array.memory_shape, _dtype(array))
    place = next(local for local in mesh.local if local.rank == rank)
    with mesh.current(place):
        mesh.driver.cuMemcpyDtoH(held.ctypes.data, array.local(rank).address, held.nbytes)
    return held[_inside(array, rank)]


def _dtype(array: Array) -> np.dtype[Any]:
    return numpy_dtype(DTYPES[array.dtype])


def _inside(array: Array, rank: int) -> tuple[slice, ...]:
    """The part of a rank's memory that has elements."""
    return tuple(slice(extent) for extent in array.local(rank).shape)
