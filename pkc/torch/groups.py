"""Meshes of process groups: one for each group, made when it is first needed."""

from __future__ import annotations

import importlib
import math
import socket
import threading
import uuid
from dataclasses import dataclass, field
from typing import Any

from pkc.codegen.artifact import Artifact
from pkc.diagnostics import PkcError
from pkc.frontend.tree import Program
from pkc.location import NOWHERE
from pkc.runtime.arrays import Array, ArrayLayout, memory_shape
from pkc.runtime.driver import load
from pkc.runtime.element import ELEMENTS, element_name
from pkc.runtime.errors import NoDriver, SameGpu, SeveralHosts
from pkc.runtime.group import Job
from pkc.runtime.launch import LoadedKernel
from pkc.runtime.mesh import Mesh

torch: Any = importlib.import_module("torch")
dist: Any = importlib.import_module("torch.distributed")
_c10d: Any = importlib.import_module("torch.distributed.distributed_c10d")

SHARED_GPU = False
"""Whether processes of a group may drive one GPU, where kernels of different processes take turns: for tests."""

MOST_CALLS = 256
"""Layouts of tensors for which a group keeps what an operator does with them; the oldest goes first."""

_known: dict[str, _Known] = {}
"""By name of the group. Names come again when torch.distributed is initialised again, so the group is kept with it."""

_closing = threading.Lock()
"""Held while one thread closes what is known of groups that are gone."""


def mesh_of(group: Any = None) -> Mesh:
    """The mesh of a process group, of its name, or of a `DeviceMesh` of one dimension; by default of all processes.

    The first call for a group makes the mesh, and all processes of the group must make it: each drives its current
    GPU. Groups may be disjoint or overlap. Raises `PkcError` if the group is on several hosts, if two of its processes
    drive one GPU, or if torch has no GPU.
    """
    return place_of(name_of(group)).mesh


def name_of(group: Any = None) -> str:
    """The name that operators know a group by."""
    if isinstance(group, str):
        return group
    if group is None:
        return _c10d._get_default_group().group_name
    return (group.get_group() if hasattr(group, "get_group") else group).group_name


def close(group: Any = None) -> None:
    """Free the memory of a group's mesh, once all its processes have called this. No kernel may run.

    Of groups that were destroyed, all of them after `destroy_process_group()`, this process frees what it has without
    the others.
    """
    _close_gone()
    if not dist.is_initialized():
        return
    known = _known.pop(name_of(group), None)
    if known is not None and known.place is not None:
        known.place.mesh.close()


class Turn:
    """`with turn:` what torch's current stream does with memory of a mesh begins when the mesh's last launch has ended,
    and what any stream does with it later begins when this has: also copies of operands and of results."""

    def __init__(self, mesh: Mesh) -> None:
        self._mesh, self._device = mesh, mesh.local[0].device

    def __enter__(self) -> None:
        self._mesh.launching.acquire()
        try:
            self._mesh.take_turn(torch._C._cuda_getCurrentRawStream(self._device))
        except BaseException:
            self._mesh.launching.release()
            raise

    def __exit__(self, *_: object) -> None:
        self._mesh.launching.release()


class Place:
    """A mesh with the kernels loaded there, and memory for operands and results that other ranks reach.

    One range of memory serves all operators of a size: they run one after the other, each in its `turn` with the copies
    of its operands and results; a launch ends when all ranks are done with that memory.
    """

    def __init__(self, mesh: Mesh) -> None:
        self.mesh = mesh
        self.turn = Turn(mesh)
        self.loaded: dict[Artifact, LoadedKernel] = {}
        self.chosen: dict[object, tuple[Program, LoadedKernel]] = {}
        """The loaded kernels, by the place of the program, which stays, and the dimensions that a schedule was chosen
        for."""
        self.sizes: dict[object, Any] = {}
        """What operators have prepared, by kernel and sizes."""
        self.kept = 0
        """For how many of these memory is kept that other ranks write before a launch has begun."""

    def array(
        self,
        shape: tuple[int, ...],
        dtype: Any,
        layout: ArrayLayout,
        shard: int | None = None,
        *,
        number: int = 0,
        zigzag: bool = False,
    ) -> Array:
        """An array, content undefined; all ranks must make the same ones in the same order. Those that an operator uses
        together have different numbers."""
        name = element_name(dtype)
        count = math.prod(memory_shape(shape, shard, self.mesh.ranks)) * ELEMENTS[name].bytes
        place = self.mesh.heap.range_of(count, ("operand", number))
        return Array(self.mesh, shape, name, layout, shard, zigzag=zigzag, offset=place)


@dataclass(slots=True)
class _Known:
    """What this process has for a group: what its operators do by layout of their tensors, and its place if any does
    that needs one."""

    group: Any
    calls: dict[object, Any] = field(default_factory=dict[object, Any])
    place: Place | None = None


def place_of(name: str) -> Place:
    """The mesh of the group of this name and its memory; made at the first call, in which all processes take part."""
    known = _find(name)
    if known.place is None:
        known.place = Place(_mesh(known.group))
    return known.place


def calls_of(name: str) -> dict[object, Any]:
    """What operators of the group of this name do, by layout of their tensors."""
    return _find(name).calls


def keep(calls: dict[object, Any], layout: object, call: Any) -> None:
    """Keep what an operator does with tensors of a layout."""
    while len(calls) >= MOST_CALLS:
        calls.pop(next(iter(calls)), None)  # another thread may drop the same one
    calls[layout] = call


def _find(name: str) -> _Known:
    group = _c10d._resolve_process_group(name)
    found = _known.get(name)
    if found is None or found.group is not group or (found.place is not None and found.place.mesh.closed):
        _close_gone()
        found = _known[name] = _Known(group)
    return found


def _close_gone() -> None:
    """Close what this process has for groups that were destroyed. Their other processes may have new ones of the same
    name, or may be no more: they are not waited for."""
    with _closing:
        for name, known in list(_known.items()):
            if _is_gone(name, known.group):
                if known.place is not None:
                    known.place.mesh.close(together=False)
                del _known[name]


def _is_gone(name: str, group: Any) -> bool:
    try:
        return _c10d._resolve_process_group(name) is not group
    except (RuntimeError, ValueError):
        return True


def _mesh(group: Any) -> Mesh:
    cuda = importlib.import_module("torch.cuda")
    if not cuda.is_available():
        load()  # says what is missing, unless it is torch
        raise PkcError(NoDriver(NOWHERE, "torch finds none; builds of torch for CPUs have no CUDA"))
    rank, ranks, device = dist.get_rank(group), dist.get_world_size(group), cuda.current_device()
    if ranks == 1:
        return Mesh.single_process([device])
    # Under this name the processes find each other: that of rank 0 counts.
    mine = socket.gethostname(), device, str(cuda.get_device_properties(device).uuid), f"pkc-{uuid.uuid4()}"
    all_of: list[Any] = [None] * ranks
    dist.all_gather_object(all_of, mine, group=group)
    hosts, devices, gpus, names = zip(*all_of, strict=True)
    if len(set(hosts)) > 1:
        raise PkcError(SeveralHosts(NOWHERE, ranks, hosts.count(hosts[rank])))
    if len(set(gpus)) < ranks and not SHARED_GPU:
        raise PkcError(SameGpu(NOWHERE, str(list(devices))))
    return Mesh.of_job(Job(rank, ranks, device, names[0]), devices)
