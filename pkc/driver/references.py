"""What a user says that a kernel computes: functions in Python files, or expressions in numpy.

A reference gets by name, as it asks for them: the arrays that the program may read at entry, floats as float64;
scalars, constants and dimensions; and `ranks`. Private and symmetric arrays have a leading axis of ranks, the others
are global. It gives the array that the kernel writes, or a `dict` of arrays by name if there are several.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias, cast

import numpy as np
from xdsl.ir import Attribute

from pkc.diagnostics import PkcError, listing, near
from pkc.dialect.numeric import FORMATS, UNIT, Values, numpy_dtype
from pkc.dialect.ranges import FILLER, LARGEST
from pkc.dialect.types import FLOATS
from pkc.driver import reference_errors as errors
from pkc.frontend.construct import shorten
from pkc.location import NOWHERE, Source, Span
from pkc.sim.program import Program
from pkc.sim.reference import Expected

Function: TypeAlias = Callable[..., Any]

_FUNCTION = re.compile(r"(.+\.py):([^\W\d]\w*)")
_NAMED = re.compile(r"\s*([^\W\d]\w*)\s*=(?!=)(.*)", re.DOTALL)

_KNOWN = "arrays, scalars, constants, dimensions and `ranks` by name, and numpy as `np`"

SLACK = 2.0**-40
"""How far off a reference in float64 may be itself, against the largest element of an array that is no filler."""


@dataclass(frozen=True)
class Reference:
    """A function, and how the user has written it; `array` is what it gives, None if its result says so."""

    name: str
    function: Function
    array: str | None = None
    span: Span = NOWHERE
    """Of the kernel that names it; nowhere for the command line."""


def references_of(
    asked: Sequence[Function | str], kernel: str, written: Sequence[str], span: Span = NOWHERE
) -> list[Reference]:
    """What is asked for, at a span of the program or on the command line: functions, `FILE.py:FUNCTION`, or
    `EXPRESSION`, also of a dict of arrays by name, and `NAME=EXPRESSION`. Raises `PkcError`."""
    return [_reference(one, kernel, written, span) for one in asked]


def _reference(asked: Function | str, kernel: str, written: Sequence[str], span: Span) -> Reference:
    if not isinstance(asked, str):
        if not inspect.isroutine(asked):
            what, known = f"no array: it is of type `{type(asked).__name__}`", "a reference is a function or a text"
            raise PkcError(errors.WrongReference(span, shorten(repr(asked)), what, known))
        return Reference(asked.__name__, asked, span=span)
    in_file = _FUNCTION.fullmatch(asked)
    if in_file is not None:
        return Reference(asked, _function(in_file[1], in_file[2], span), span=span)
    if _gives_several(asked):
        return Reference(asked, _expression(asked, asked.strip(), span), span=span)
    named = _NAMED.fullmatch(asked)
    array, text = (named[1], named[2]) if named else (written[0] if len(written) == 1 else "", asked)
    if array not in written:
        raise PkcError(errors.UnnamedReference(span, asked, kernel, listing(written) or "nothing"))
    return Reference(asked, _expression(asked, text.strip(), span), array, span)


def _gives_several(asked: str) -> bool:
    """Whether an expression gives arrays by their names: `dict(Y=..., Z=...)`, or a dict that is written out."""
    try:
        found = ast.parse(asked.strip(), mode="eval").body
    except (SyntaxError, ValueError):
        return False
    return isinstance(found, ast.Dict) or (
        isinstance(found, ast.Call) and isinstance(found.func, ast.Name) and found.func.id == "dict"
    )


def _function(path: str, name: str, span: Span) -> Function:
    from pkc.frontend.files import read_source
    from pkc.frontend.python import import_file

    module = vars(import_file(read_source(path, ".py")))
    functions = [known for known, value in module.items() if inspect.isfunction(value)]
    if name not in functions:
        raise PkcError(errors.NoSuchReference(span, path, name, near(name, functions, "it has ")))
    return module[name]


def _expression(asked: str, text: str, span: Span) -> Function:
    try:
        code = compile(text, "<reference>", "eval")
    except (SyntaxError, ValueError) as error:
        what = f"{type(error).__name__}: {error.msg if isinstance(error, SyntaxError) else error}"
        raise PkcError(errors.ReferenceFailed(span, asked, what, _KNOWN)) from None

    def evaluate(**values: Any) -> Any:
        # One namespace, so that comprehensions see the names too.
        return eval(code, {"np": np, **values})

    return evaluate


def _values(called: Program, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """The inputs of a run as references get them: floats as float64."""
    arrays = {
        name: np.array(inputs[name], np.float64 if kind.element_type in FLOATS else None)
        for name, kind in called.arrays.items()
        if name in inputs
    }
    scalars = {
        name: np.float32(inputs[name]) if kind == "f32" else inputs[name] for name, kind in called.scalars.items()
    }
    return arrays | {name: value.item() if hasattr(value, "item") else value for name, value in scalars.items()}


def computed(
    references: Sequence[Reference], called: Program, inputs: Mapping[str, Any], others: Mapping[str, Any]
) -> list[dict[str, Values]]:
    """The arrays that each reference gives for the inputs of a run, and other values by name: constants, dimensions and
    the number of ranks. Raises `PkcError`."""
    if not references:
        return []
    values = {**_values(called, inputs), **others}
    return [_computed(reference, called.name, values) for reference in references]


def _computed(reference: Reference, kernel: str, values: Mapping[str, Any]) -> dict[str, Values]:
    arguments = _arguments(reference, kernel, values)
    try:
        with np.errstate(all="ignore"):
            found = reference.function(**arguments)
    except Exception as error:
        text = f"{type(error).__name__}: {error}".rstrip(": ").split("\n", 1)[0]
        span = _raised_at(reference, error)
        raise PkcError(errors.ReferenceFailed(span, reference.name, shorten(text, 200), listing(values))) from error
    if isinstance(found, dict):
        arrays = cast("dict[object, Any]", found)
        return {str(name): _array(value) for name, value in arrays.items()}
    return {reference.array or "": _array(found)}


def _array(value: Any) -> Values:
    try:
        return np.asarray(value)
    except ValueError:  # rows of several lengths
        return np.asarray(value, object)


def _arguments(reference: Reference, kernel: str, values: Mapping[str, Any]) -> dict[str, Any]:
    parameters = inspect.signature(reference.function).parameters.values()
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return dict(values)
    needed = [p.name for p in parameters if p.default is p.empty and p.kind is not p.VAR_POSITIONAL]
    for name in needed:
        if name not in values:
            raise PkcError(errors.ReferenceArgument(reference.span, reference.name, name, kernel, listing(values)))
    return {parameter.name: values[parameter.name] for parameter in parameters if parameter.name in values}


def _raised_at(reference: Reference, error: Exception) -> Span:
    """The line of the function's file that an exception came through."""
    from pkc.frontend.python import raised_at

    code = getattr(reference.function, "__code__", None)
    if code is None or code.co_filename == __file__:
        return reference.span
    try:
        source = Source(code.co_filename, Path(code.co_filename).read_text(encoding="utf-8")).remember()
    except (OSError, ValueError):
        return reference.span
    return raised_at(source, error)


def expected_by(
    reference: Reference, found: Mapping[str, Values], expected: Mapping[str, Expected], called: Program
) -> dict[str, Expected]:
    """The values of a reference of a kernel, with the bounds of pkc's own. Raises `PkcError`."""
    if list(found) == [""] and len(expected) == 1:
        found = {next(iter(expected)): found[""]}
    if not found or not set(found) <= set(expected):
        given = "one array" if "" in found else listing(found) if found else "no array"
        wanted = f"the kernel writes {listing(expected)}: give a `dict` of arrays by these names"
        raise PkcError(errors.WrongReference(reference.span, reference.name, given, wanted))
    kinds = {name: kind.element_type for name, kind in called.arrays.items()}
    return {name: _around(reference, name, value, expected[name], kinds[name]) for name, value in found.items()}


def _around(reference: Reference, name: str, value: Values, expected: Expected, element: Attribute) -> Expected:
    shape = expected.value.shape
    if value.dtype.kind not in "fiub" or value.shape != shape:
        given = f"`{name}` as {value.dtype} of shape {_shape(value.shape)}"
        raise PkcError(
            errors.WrongReference(reference.span, reference.name, given, f"it has the shape {_shape(shape)}")
        )
    return replace(_bounded(value, expected, element), own=expected.settled)


def _bounded(value: Values, expected: Expected, element: Attribute) -> Expected:
    settled = None if expected.settled is None else _bounded(value, expected.settled, element)
    numbers = np.isfinite(value)
    known = np.isfinite(expected.value)
    bound = np.where(known, expected.bound, 0.0) * (1 + SLACK) + _room(value)
    # At an infinity a bound says how large a number may stand there.
    infinite = np.where(value == expected.value, expected.bound, 0.0)
    value = np.where(expected.written, value.astype(np.float64), expected.value)
    if element in FLOATS:
        # So near to the largest number the bound is of what the program may have when it is rounded, and has no room
        # for the rounding itself.
        largest_of = LARGEST[element] / (1 + 2 * FORMATS[element].unit)
        with np.errstate(all="ignore"):
            outside = np.abs(value - expected.value) > bound
            near_largest = known & numbers & outside & (np.abs(value) > largest_of)
            value = np.where(near_largest, value.astype(numpy_dtype(element)).astype(np.float64), value)
    bound = np.where(numbers, bound, infinite)
    return Expected(value, bound, expected.written, settled=settled, open_at=expected.open_at)


def _room(value: Values) -> Values:
    """How far off each element of a reference may be by its own rounding. A filler that is left in the result, such as
    -1e30, is one that the kernel has rounded to an f32, and says nothing of how large the others are."""
    size = np.abs(value.astype(np.float64))
    filler = np.isfinite(size) & (size >= FILLER)
    largest = size[np.isfinite(size) & ~filler].max(initial=0.0)
    return np.where(filler, size * (UNIT + SLACK), SLACK * largest)


def _shape(shape: Collection[int]) -> str:
    return f"[{', '.join(map(str, shape))}]"
