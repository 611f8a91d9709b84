"""Default meshes, made when a kernel is called without one."""

from __future__ import annotations

import os
from collections.abc import Sequence

from pkc.runtime.mesh import Mesh

_made: dict[tuple[int, ...] | None, Mesh] = {}
"""By the GPUs of their ranks; `None` is the mesh of the whole program."""


def default_mesh() -> Mesh:
    """The mesh of the whole program: made at the first call, then always the same, until it is closed.

    Under `torchrun`, which sets `WORLD_SIZE`, it has one rank for each process, and all processes must call this;
    otherwise one for each GPU that this process sees. Raises `PkcError`.
    """
    found = _made.get(None)
    if found is None or found.closed:
        found = _made[None] = Mesh.from_torchrun() if under_torchrun() else Mesh.single_process()
    return found


def mesh_on(devices: Sequence[int]) -> Mesh:
    """A mesh of this process alone with these GPUs, made once. Raises `PkcError`."""
    key = tuple(devices)
    whole = _made.get(None)
    if whole is not None and not whole.closed and whole.devices == key:
        return whole
    found = _made.get(key)
    if found is None or found.closed:
        found = _made[key] = Mesh.single_process(key)
    return found


def under_torchrun() -> bool:
    """Whether the program is one of several processes, each of which drives a GPU."""
    return "WORLD_SIZE" in os.environ
