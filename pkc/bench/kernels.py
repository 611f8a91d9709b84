"""Kernels that pkc compiles, as contestants."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pkc.bench.peers.problem import Case, Problem, Shape
from pkc.bench.peers.ranks import Job, torch
from pkc.bench.suite import Entry
from pkc.codegen.artifact import ArrayParameter, Artifact
from pkc.codegen.kernel_parameters import array_parameters
from pkc.driver.builder import artifact_for
from pkc.driver.compiler import compile_program
from pkc.frontend import tree
from pkc.runtime.element import ELEMENTS
from pkc.runtime.launch import LoadedKernel
from pkc.runtime.mesh import Mesh
from pkc.runtime.torch import tensor


def compile_kernel(
    program: tree.Program, entry: Entry, problem: Problem, schedule: Mapping[str, str], target: str
) -> Artifact:
    """Machine code of a kernel for a problem. Raises `PkcError`."""
    constants = problem.constants
    tile = compile_program(program, kernel=entry.kernel, constants=constants, schedule=schedule)
    arrays = array_parameters(tile.kernel)
    sizes = _shapes(entry, problem)
    shapes = [(array.dims, sizes[array.name]) for array in arrays if array.name in sizes]
    dims = {
        dim: size for names, shape in shapes for dim, size in zip(names, shape, strict=True) if isinstance(dim, str)
    }
    return artifact_for(
        program,
        dims=dims,
        ranks=problem.ranks,
        kernel=entry.kernel,
        constants=constants,
        schedule=schedule,
        target=target,
    )


def _shapes(entry: Entry, problem: Problem) -> dict[str, Shape]:
    """The shapes of the arrays, by parameter."""
    return {**dict(zip(entry.operands, problem.operands, strict=True)), entry.result: problem.result}


def make_mesh(job: Job) -> Mesh:
    """All ranks of a job. Raises `PkcError`."""
    return Mesh.from_torchrun() if job.ranks > 1 else Mesh.single_process([job.device])


@dataclass(frozen=True)
class Operands:
    """The arguments of a kernel, the local shard of its result, and what was written into the symmetric heap, as pairs
    of the place there and the content."""

    arguments: Mapping[str, Any]
    result: Any
    written: Sequence[tuple[Any, Any]] = ()


def operands(artifact: Artifact, entry: Entry, case: Case, job: Job, mesh: Mesh) -> Operands:
    """The inputs as the kernel takes them: in the symmetric heap if other ranks reach them. Raises `PkcError`."""
    shapes = _shapes(entry, case.problem)
    contents = dict(zip(entry.operands, case.inputs, strict=True))
    arguments: dict[str, Any] = dict(case.problem.scalars)
    result: Any = None
    written: list[tuple[Any, Any]] = []
    for parameter in artifact.arrays:
        if parameter.name not in shapes:
            continue
        argument, local = _array(parameter, shapes[parameter.name], mesh, job)
        arguments[parameter.name] = argument
        if parameter.name in contents and local is not None:
            # Contents are padded where the last shard is short.
            content = contents[parameter.name][tuple(map(slice, local.shape))]
            local.copy_(content)
            if parameter.layout != "private":
                written.append((local, content))
        if parameter.name == entry.result:
            result = local if local is not None else torch().empty((0, *shapes[entry.result][1:]), device="cuda")
    return Operands(arguments, result, written)


def _array(parameter: ArrayParameter, shape: tuple[int, ...], mesh: Mesh, job: Job) -> tuple[Any, Any]:
    """The argument for a parameter, and its elements on this rank as a tensor; `None` if there are none."""
    if parameter.layout == "private":
        made = torch().empty(shape, dtype=getattr(torch(), ELEMENTS[parameter.dtype].torch), device="cuda")
        return made, made
    array = mesh.empty(shape, parameter.dtype, parameter.layout, parameter.shard, zigzag=parameter.zigzag)
    view = array.local(job.rank)
    return array, tensor(view) if min(view.shape) else None


def launches(artifact: Artifact, given: Operands, mesh: Mesh, *, writes: bool = False) -> Callable[[], Any]:
    """Load a kernel; a call launches it on torch's current stream and returns its result. If it `writes`, it copies the
    operands of the symmetric heap there first, from memory that is not symmetric. Raises `PkcError`."""
    loaded = LoadedKernel(artifact, mesh)
    copied = given.written if writes else ()

    def run() -> Any:
        for place, content in copied:
            place.copy_(content)
        loaded(given.arguments, stream=torch().cuda.current_stream())
        return given.result

    return run
