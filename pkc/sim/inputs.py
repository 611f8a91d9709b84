"""The data of a run: the values of dimensions, and arrays and scalars that fit the kernel's parameters."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from pkc.diagnostics import PkcError
from pkc.dialect.numeric import Values
from pkc.dialect.program import KernelOp
from pkc.dialect.ranges import I32
from pkc.dialect.types import RANKS, Layout, PGLType, PrivateType
from pkc.location import NOWHERE
from pkc.sim import errors
from pkc.sim.conversion import convert
from pkc.sim.program import Program

Inputs: TypeAlias = Mapping[str, Any]

LARGEST_DIMENSION = 2**63 - 1

MOST_RANKS = 16
MOST_GIB = 16
_BYTES = 16
"""For each element on each rank: in the simulator it is an f32, in the reference an f64 with a bound."""


@dataclass(frozen=True)
class Data:
    """The checked inputs of a run: sizes by dimension (with `ranks`), arrays, scalars."""

    sizes: dict[str, int]
    arrays: dict[str, Values]
    scalars: dict[str, float | int]

    @property
    def ranks(self) -> int:
        return self.sizes[RANKS]

    def shape(self, kind: PrivateType | PGLType) -> tuple[int, ...]:
        """The sizes of an array's dimensions."""
        return tuple(dim if isinstance(dim, int) else self.sizes[dim] for dim in kind.dimensions)


def resolve_dims(kernel: KernelOp, dims: Mapping[str, int], inputs: Inputs, ranks: int) -> dict[str, int]:
    """The value of every run-time dimension, from settings and from the shapes of those inputs that are passed."""
    program = Program(kernel)
    if not 1 <= ranks <= MOST_RANKS:
        raise PkcError(errors.BadRanks(NOWHERE, ranks, MOST_RANKS))
    found: dict[str, tuple[int, str]] = {}
    for name, size in dims.items():
        _check_setting(program, name, size)
        found[name] = (int(size), "its setting")
    for dim, size, source in _sizes_of_inputs(program, inputs, ranks):
        first, first_source = found.setdefault(dim, (size, source))
        if first != size:
            span = program.span_of_dim(dim)
            raise PkcError(errors.ContradictoryDimension(span, dim, first, first_source, size, source))
    unset = [errors.UnsetDimension(program.span_of_dim(dim), dim) for dim in program.dims if dim not in found]
    if unset:
        raise PkcError(*unset)
    for dim, (size, _) in found.items():
        if not 1 <= size <= LARGEST_DIMENSION:
            raise PkcError(errors.BadDimension(program.span_of_dim(dim), dim, str(size)))
    return {dim: found[dim][0] for dim in program.dims}


def check_data(program: Program, dims: Mapping[str, int], inputs: Inputs, ranks: int) -> Data:
    """The data of a run, checked against the kernel's parameters. Raises `PkcError`."""
    sizes = resolve_dims(program.kernel, dims, inputs, ranks) | {RANKS: ranks}
    arrays: dict[str, Values] = {}
    scalars: dict[str, float | int] = {}
    data = Data(sizes, arrays, scalars)
    check_memory(program, sizes)
    for name, value in inputs.items():
        _check_takes_data(program, name)
        if name in program.scalars:
            scalars[name] = _scalar(program, name, value)
        else:
            arrays[name] = as_elements(program, {name: value})[name]
    missing = [name for name in (*program.inputs, *program.scalars) if name not in inputs]
    if missing:
        raise PkcError(*(errors.MissingInput(program.span_of(name), program.name, name) for name in missing))
    return data


def as_elements(program: Program, inputs: Inputs) -> dict[str, Any]:
    """The inputs, arrays in the element types of their parameters: floats are rounded. Raises `PkcError`."""
    arrays = {name: kind.element_type for name, kind in program.arrays.items() if name in inputs}
    converted = {
        name: convert(_content(program, name, inputs[name]), name, element, "what is passed", program.span_of(name))
        for name, element in arrays.items()
    }
    return {**inputs, **converted}


def _check_setting(program: Program, name: str, size: object) -> None:
    if name not in program.dims:
        known = ", ".join(f"`{dim}`" for dim in program.dims) or "none"
        raise PkcError(errors.UnknownDimension(program.span, program.name, name, known))
    if not isinstance(size, int | np.integer) or isinstance(size, bool):
        raise PkcError(errors.BadDimension(program.span_of_dim(name), name, repr(size)))


def dims_of(kernel: KernelOp, inputs: Inputs, ranks: int) -> dict[str, int]:
    """The run-time dimensions of arrays that are passed, of which none is written alone. Raises `PkcError`."""
    program = Program(kernel)
    for name in inputs:
        _check_takes_data(program, name)
    return {dim: size for dim, size, _ in _sizes_of_inputs(program, inputs, ranks)}


def _sizes_of_inputs(program: Program, inputs: Inputs, ranks: int) -> Iterator[tuple[str, int, str]]:
    """Each run-time dimension that a passed array has, with its size and the array's name."""
    for name, value in inputs.items():
        kind = program.arrays.get(name)
        if kind is None:
            continue
        shape = _content(program, name, value).shape
        expected: list[int | str] = [*((ranks,) if has_leading_ranks(kind) else ()), *kind.dimensions]
        fits = len(shape) == len(expected) and all(
            (isinstance(want, str) and want != RANKS) or size == (ranks if want == RANKS else want)
            for size, want in zip(shape, expected, strict=True)
        )
        if not fits:
            raise PkcError(_wrong_shape(program, name, shape, expected))
        for size, dim in zip(shape, expected, strict=True):
            if isinstance(dim, str) and dim != RANKS:
                yield dim, size, f"`{name}`"


def has_leading_ranks(kind: PrivateType | PGLType) -> bool:
    """Whether callers pass an array with a leading axis of ranks."""
    return isinstance(kind, PrivateType) or kind.layout is Layout.Symmetric


def _content(program: Program, name: str, value: Any) -> Values:
    try:
        return np.asarray(value)
    except ValueError:
        # A list whose items differ in shape.
        span = program.span_of(name)
        raise PkcError(errors.WrongInputShape(span, name, "that is not rectangular", "one array")) from None


def _wrong_shape(program: Program, name: str, shape: tuple[int, ...], expected: list[Any]) -> errors.WrongInputShape:
    texts = [f"[{', '.join(map(str, dims))}]" for dims in (shape, expected)]
    hint = ", with the ranks first" if has_leading_ranks(program.arrays[name]) else ""
    return errors.WrongInputShape(program.span_of(name), name, texts[0], texts[1] + hint)


def _check_takes_data(program: Program, name: str) -> None:
    allocated = name in program.signals or name in program.scratch
    unused = name in program.arrays and name not in program.written
    if name in program.scalars or name in program.inputs or (unused and not allocated):
        return
    if allocated:
        reason = "pkc allocates it"
    elif name in program.summed:
        reason = "a sum over ranks begins at zero"
    elif name in program.arrays:
        reason = "the kernel only writes it"
    else:
        known = ", ".join(f"`{known}`" for known in (*program.inputs, *program.scalars)) or "none"
        reason = f"its inputs are {known}"
    raise PkcError(errors.NotAnInput(program.span_of(name), program.name, name, reason))


def _scalar(program: Program, name: str, value: Any) -> float | int:
    kind = program.scalars[name]
    number = np.asarray(value)
    fits = number.shape == () and number.dtype.kind in ("iu" if kind == "i32" else "iuf")
    if not fits or (kind == "i32" and int(number) not in I32):
        raise PkcError(errors.BadScalar(program.span_of(name), name, repr(value), kind))
    if kind == "i32":
        return int(number)
    with np.errstate(over="ignore"):
        rounded = float(np.float32(number))
    if math.isinf(rounded) and not np.isinf(number):
        raise PkcError(errors.BadScalar(program.span_of(name), name, repr(value), kind))
    return rounded


def check_memory(program: Program, sizes: Mapping[str, int], only: Collection[str] | None = None) -> None:
    """Refuse a run whose arrays, or `only` some of them, take too much memory."""
    kinds = [kind for name, kind in program.arrays.items() if only is None or name in only]
    lengths = ([dim if isinstance(dim, int) else sizes[dim] for dim in kind.dimensions] for kind in kinds)
    found = sum(map(math.prod, lengths)) * sizes[RANKS] * _BYTES // 2**30
    if found > MOST_GIB:
        raise PkcError(errors.TooLarge(program.span, found, MOST_GIB))
