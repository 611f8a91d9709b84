"""Launches calls of a kernel from Python: binds arguments to parameters, compiles once, launches."""

from __future__ import annotations

import linecache
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from pkc.codegen.artifact import ArrayParameter, Artifact, Interface
from pkc.diagnostics import PACKAGE, PkcError, listing, near
from pkc.dialect.words import RANKS
from pkc.driver import launch_errors as errors
from pkc.driver import tuned
from pkc.driver.arguments import refuse_hidden
from pkc.driver.builder import artifact_for, outline_of
from pkc.driver.kept import Number
from pkc.driver.outlines import Outline, Warned
from pkc.frontend import tree
from pkc.frontend.captures import constant_of
from pkc.frontend.words import Reading
from pkc.location import NOWHERE, Source, Span, shown
from pkc.runtime.argument_errors import LaunchDimension
from pkc.runtime.arguments import Bound, bind, fingerprints
from pkc.runtime.arrays import Array, View
from pkc.runtime.default import default_mesh, mesh_on, under_torchrun
from pkc.runtime.forms import Form
from pkc.runtime.launch import LoadedKernel
from pkc.runtime.mesh import Mesh
from pkc.runtime.plans import Plan, Plans
from pkc.runtime.torch import current_streams


class Launcher:
    """Launches one kernel with one schedule, on one kind of GPU. What was compiled and loaded is kept."""

    def __init__(self, read: Callable[[], Reading], schedule: Mapping[str, str], target: str) -> None:
        self._read, self._schedule, self._target = read, schedule, target
        self._reading: Reading | None = None
        self._known: _Signature | None = None
        self._variants: dict[object, _Variant] = {}
        self._plans: Plans[_Ready] = Plans()
        self._alike: _Alike | None = None

    def launch(self, arguments: Sequence[Any], named: Mapping[str, Any], stream: Any) -> None:
        """Launch with these arguments, and compile first if they need it. Raises `PkcError`."""
        pointers: list[int] = []
        names = tuple(named)
        found = fingerprints((*arguments, *named.values()), pointers)
        key = (names, *found)
        try:
            ready = self._plans.find(key, pointers)
            if ready is not None and not (mesh := ready.mesh).closed and ready.reading.current():
                with mesh.launching:  # or another thread may let its tensors take the place of these
                    if ready.plan.moved(pointers):
                        ready.loaded.launch(ready.plan, *_streams(mesh, stream))
                        return
            ready = self._like_before(names, found, pointers, stream)
            if ready is None:
                ready = self._ready(arguments, named, stream, pointers, found)
            with ready.mesh.launching:
                ready.loaded.launch(ready.plan, *_streams(ready.mesh, stream))
                self._plans.keep(key, pointers, ready)
        except PkcError as error:
            raise _at_the_caller(error) from None

    def empty(self, name: str, mesh: Mesh | None, dims: Mapping[str, Any]) -> Array:
        """A new array that fits a parameter. Raises `PkcError`."""
        try:
            variant = self._variant({key: value for key, value in dims.items() if key in self._signature.constants})
            array = variant.array(str(name))
            place = mesh or default_mesh()
            shape = variant.shape(array, dims, place)
            return place.empty(shape, array.dtype, array.layout, array.shard, zigzag=array.zigzag)
        except PkcError as error:
            raise _at_the_caller(error) from None

    # Preparing

    @property
    def _program(self) -> tree.Program:
        """The kernel, read again if its source or a captured constant changed; what was compiled is then dropped."""
        if self._reading is None or not self._reading.current():
            self._reading = self._read()
            self._known = None
            self._variants.clear()
            self._plans.clear()
            self._alike = None
        return self._reading.program

    @property
    def _signature(self) -> _Signature:
        program = self._program
        if self._known is None:
            self._known = _Signature(program.kernels[0])
        return self._known

    def _like_before(
        self, names: tuple[str, ...], found: Sequence[object], pointers: list[int], stream: Any
    ) -> _Ready | None:
        """A call that is like the last one that was checked, but for shapes, addresses and scalars."""
        alike = self._alike
        if alike is None or alike.mesh.closed or not alike.reading.current():
            return None
        if names != alike.names or len(found) != len(alike.form.names):
            return None
        bound = alike.form.bound(found, pointers)
        return None if bound is None else self._prepared(alike, bound, pointers, stream)

    def _ready(
        self,
        arguments: Sequence[Any],
        named: Mapping[str, Any],
        stream: Any,
        pointers: list[int],
        found: Sequence[object],
    ) -> _Ready:
        signature = self._signature
        values, settings = signature.assign(arguments, named, stream)
        names = [name for name, _ in zip(values, arguments, strict=False)] + [*named]
        constants = {name: values.pop(name) for name in signature.constants if name in values}
        variant = self._variant(constants)
        mesh = _mesh_of(variant.interface, values)
        bound = bind(variant.interface, mesh, {name: values[name] for name in names if name in values}, settings)
        assert self._reading is not None
        form = Form(variant.interface, mesh, names, found, settings)
        self._alike = _Alike(self._reading, mesh, variant, tuple(named), form)
        return self._prepared(self._alike, bound, pointers, stream)

    def _prepared(self, alike: _Alike, bound: Bound, pointers: list[int], stream: Any) -> _Ready:
        loaded = alike.variant.loaded(alike.mesh, bound.dims)
        plan = loaded.prepare(bound, alike.form, pointers, _first(*_streams(alike.mesh, stream)))
        return _Ready(alike.reading, alike.mesh, loaded, plan, plan.fixed)

    def _variant(self, constants: Mapping[str, Any]) -> _Variant:
        """The kernel with these constants, compiled to the tile level, or known from when it was."""
        program = self._program
        given = {name: constant_of(program.kernels[0].name, name, value, NOWHERE) for name, value in constants.items()}
        key = (*given, *fingerprints(given.values(), []))
        if key not in self._variants:
            outline = outline_of(program, given, self._schedule, self._target)
            _warn(outline.warnings)
            self._variants[key] = _Variant(program, given, self._schedule, self._target, outline)
        return self._variants[key]


@dataclass(frozen=True)
class _Alike:
    """A call that was prepared: what calls with other shapes have in common with it."""

    reading: Reading
    mesh: Mesh
    variant: _Variant
    names: tuple[str, ...]
    """The arguments that are given by name, behind the others."""
    form: Form


@dataclass(slots=True)
class _Ready:
    """A call that is ready to be launched, as long as its kernel stays the same."""

    reading: Reading
    mesh: Mesh
    loaded: LoadedKernel
    plan: Plan
    fixed: Sequence[int]


class _Variant:
    """A kernel with given constants, and what was compiled and loaded for it."""

    def __init__(
        self,
        program: tree.Program,
        constants: Mapping[str, Number],
        schedule: Mapping[str, str],
        target: str,
        outline: Outline,
    ) -> None:
        self._program, self._constants, self._schedule, self._target = program, constants, schedule, target
        self.interface = outline.interface
        # Where tiles are set nothing is chosen for sizes, unless it was measured.
        chosen = not outline.sets_tiles or tuned.any_measured()
        self._lengths = None if chosen else outline.lengths
        """What machine code depends on, if not on the sizes themselves."""
        self._artifacts: dict[object, Artifact] = {}
        self._loaded: dict[object, LoadedKernel] = {}
        """By mesh, and dimensions, machine code, or what a schedule that is set depends on else."""

    def loaded(self, mesh: Mesh, dims: Mapping[str, int]) -> LoadedKernel:
        """The machine code for these dimensions, with `ranks`, on the GPUs of a mesh."""
        key: object = mesh, *dims.values()
        if key not in self._loaded:
            self._loaded[key] = self._load(mesh, {dim: size for dim, size in dims.items() if dim != RANKS})
        return self._loaded[key]

    def _load(self, mesh: Mesh, dims: Mapping[str, int]) -> LoadedKernel:
        if self._lengths is None:
            return self._of(self._made(dims, mesh.ranks), mesh)
        alike: object = mesh, "alike", *self._lengths.divisors(dims, mesh.ranks).items()
        if alike not in self._loaded:
            self._loaded[alike] = self._of(self._made(dims, mesh.ranks), mesh)
        return self._loaded[alike]

    def _of(self, artifact: Artifact, mesh: Mesh) -> LoadedKernel:
        key: object = mesh, artifact
        if key not in self._loaded:
            self._loaded[key] = LoadedKernel(artifact, mesh)
        return self._loaded[key]

    def _made(self, dims: Mapping[str, int], ranks: int) -> Artifact:
        sizes = ranks, *dims.values()
        if sizes not in self._artifacts:
            self._artifacts[sizes] = artifact_for(
                self._program,
                dims=dims,
                ranks=ranks,
                constants=self._constants,
                schedule=self._schedule,
                target=self._target,
            )
        return self._artifacts[sizes]

    def array(self, name: str) -> ArrayParameter:
        """The array parameter of this name."""
        arrays = {array.name: array for array in self.interface.arrays if not array.scratch}
        if name not in arrays:
            hint = near(name, arrays, "it has ")
            raise PkcError(errors.NoSuchArray(NOWHERE, self.interface.name, name, hint))
        return arrays[name]

    def shape(self, array: ArrayParameter, dims: Mapping[str, Any], mesh: Mesh) -> list[int]:
        """The shape of an array for these dimensions, of which `dims` may have more than it needs."""
        known = {*self.interface.dims, *self._constants}
        wrong = next((dim for dim in dims if dim not in known), None)
        if wrong is not None:
            raise self._bad_dim(wrong, f"does not exist; there are {listing(self.interface.dims) or 'none'}")
        sizes = {**dims, RANKS: mesh.ranks}
        unset = next((dim for dim in array.dims if isinstance(dim, str) and dim not in sizes), None)
        if unset is not None:
            raise self._bad_dim(unset, f"has no value: `{array.name}` needs it")
        return [sizes[dim] if isinstance(dim, str) else dim for dim in array.dims]

    def _bad_dim(self, dim: str, problem: str) -> PkcError:
        return PkcError(LaunchDimension(NOWHERE, self.interface.name, dim, problem))


class _Signature:
    """How a kernel is called."""

    def __init__(self, kernel: tree.Kernel) -> None:
        self._kernel, self._name = kernel, kernel.name
        params = [param for param in kernel.params if _is_passed(param)]
        self._call = _spelling(kernel.name, params)
        self._names = [param.name for param in params]
        self._needed = [param.name for param in params if param.default is None]
        self._dims = _dims_of(kernel)
        self.constants = [param.name for param in kernel.params if param.annotation.base == "const"]

    def assign(
        self, arguments: Sequence[Any], named: Mapping[str, Any], stream: Any = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """The arguments by parameter, and the rest: settings of dimensions. Raises `PkcError`."""
        names = self._names
        if len(arguments) > len(names):
            plural = "s" * (len(names) != 1)
            counts = self._name, len(names), plural, len(arguments)
            raise PkcError(errors.TooManyArguments(NOWHERE, *counts, self._call))
        values = dict(zip(names, arguments, strict=False))
        twice = next((name for name in named if name in values), None)
        if twice is not None:
            raise PkcError(errors.RepeatedArgument(NOWHERE, self._name, twice, self._call))
        values |= {name: named[name] for name in names if name in named}
        settings = {name: value for name, value in named.items() if name not in values}
        unknown = next((name for name in settings if name not in self._dims), None)
        if unknown is not None:
            hint = near(unknown, names, "it has ") if unknown not in values else ""
            raise PkcError(errors.UnknownArgument(NOWHERE, self._name, unknown, hint))
        missing = [name for name in self._needed if name not in values]
        if missing:
            if "stream" in missing:
                refuse_hidden(self._kernel, "calls", stream=stream)
            raise PkcError(errors.MissingArguments(NOWHERE, self._name, listing(missing), self._call))
        return values, settings


def _is_passed(param: tree.Param) -> bool:
    """Whether the caller passes it: not scratch arrays and signals, which the runtime allocates."""
    annotation = param.annotation
    return annotation.base != "signal" and not any(modifier.name == "scratch" for modifier in annotation.modifiers)


def _dims_of(kernel: tree.Kernel) -> set[str]:
    """All names in the dimensions of parameters."""
    dims = (dim for param in kernel.params for dim in param.annotation.dims or ())
    return {dim.id for dim in dims if isinstance(dim, tree.Name)}


def _spelling(name: str, params: Iterable[tree.Param]) -> str:
    texts = [param.name if param.default is None else f"{param.name}={param.default.span.text}" for param in params]
    return f"{name}({', '.join(texts)})"


# Mesh and streams


def _mesh_of(interface: Interface, values: Mapping[str, Any]) -> Mesh:
    """The mesh of the arrays; if none has one, that of the program under torchrun, or that of the tensors' GPUs."""
    given = [values[array.name] for array in interface.passed]
    for value in given:
        if isinstance(value, Array):
            value.mesh.check()
            return value.mesh
    if under_torchrun():
        return default_mesh()
    for value in given:
        devices = [_device(item) for item in _items(value)]
        if devices and None not in devices:
            return mesh_on(cast("list[int]", devices))
    return mesh_on(range(max((len(_items(value)) for value in given), default=1)))


def _items(value: Any) -> Sequence[Any]:
    return cast("Sequence[Any]", value) if isinstance(value, list | tuple) else [value]


def _device(value: Any) -> int | None:
    """The GPU on which a tensor is."""
    if isinstance(value, View):
        return value.device
    device = getattr(value, "device", None)
    return getattr(device, "index", None) if getattr(device, "type", "") == "cuda" else None


def _first(streams: Sequence[int], shared: int | None) -> int:
    """The stream that a launch begins on."""
    return streams[0] if shared is None else shared


def _streams(mesh: Mesh, stream: Any) -> tuple[list[int], int | None]:
    if stream is None and (found := current_streams(mesh)) is not None:
        return found
    return mesh.streams(stream)


# Diagnostics at the line of the caller


def _at_the_caller(error: PkcError) -> PkcError:
    """The same error; diagnostics without a line get the line that calls the kernel."""
    span = _calling_line()
    return PkcError(*(replace(found, span=span) if found.span is NOWHERE else found for found in error.diagnostics))


def _calling_line() -> Span:
    """The expression of the caller that is being evaluated, outside of pkc."""
    frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while frame is not None and frame.f_code.co_filename.startswith(PACKAGE):
        frame = frame.f_back
    text = "" if frame is None else "".join(linecache.getlines(frame.f_code.co_filename, frame.f_globals))
    if frame is None or not text:
        return NOWHERE
    source = Source(shown(frame.f_code.co_filename), text)
    place = list(frame.f_code.co_positions())[frame.f_lasti // 2]
    line, end_line, column, end_column = place
    if line is None or end_line is None or column is None or end_column is None:
        return NOWHERE
    lines = source.text.split("\n")
    start, end = (
        source.offset(at, 1 + len(lines[at - 1].encode()[:bytes_before].decode(errors="ignore")))
        for at, bytes_before in ((line, column), (end_line, end_column))
    )
    return Span(source, start, end)


def _warn(found: Iterable[Warned]) -> None:
    """Raise warnings about a kernel as Python's."""
    for warning in found:
        warnings.warn_explicit(warning.text, UserWarning, warning.file, warning.line)
