"""What a Python kernel takes from the scope around it: numbers, dimensions, functions, the names of `pkc.language`."""

from __future__ import annotations

import builtins
import math
import numbers
from collections.abc import Mapping
from types import CellType, FunctionType
from typing import Any, cast

from pkc.diagnostics import PkcError
from pkc.frontend import construct, python_errors, tree
from pkc.frontend.check_errors import ConstantArgument
from pkc.frontend.words import ArrayType, Dim, Word
from pkc.location import Span

_MISSING = object()


class Captures:
    """The objects that names outside of a function are bound to; looks them up and runs nothing."""

    def __init__(self, globals_: dict[str, Any]) -> None:
        self._globals = globals_
        self._closure: dict[str, CellType] = {}
        self._annotations: Mapping[str, Any] = {}
        self._defaults: dict[str, object] = {}
        self._found: dict[str, object] = {}

    @classmethod
    def of(cls, function: FunctionType) -> Captures:
        """Those of a function that Python has made."""
        made = cls(function.__globals__)
        made._closure = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=False))
        made._annotations = _annotations(function)
        count = function.__code__.co_argcount
        defaults = function.__defaults__ or ()
        names = function.__code__.co_varnames[count - len(defaults) : count]
        made._defaults = dict(zip(names, defaults, strict=True))
        return made

    def constant(self, span: Span, name: str) -> tree.Number | None:
        """The constant that a name is bound to; None if the name itself has its meaning in the language."""
        return classify(span, name, self._lookup(name))

    def function(self, name: str) -> FunctionType | None:
        """The Python function that a name is bound to, if it is one."""
        value = self._value(name)
        if not isinstance(value, FunctionType):
            return None
        self._found[name] = value
        return value

    def word(self, span: Span, name: str) -> None:
        """Refuse a name that is called, or begins a type, and is bound to something outside the language."""
        value = self._lookup(name)
        if classify(span, name, value) is not None:
            raise PkcError(python_errors.CapturedObject(span, name, type(value).__name__))

    def dimensions(self, param: str) -> tuple[object, ...] | None:
        """What the dimensions in a parameter's annotation evaluated to, if that is known."""
        annotation = self._annotations.get(param)
        return annotation.dims if isinstance(annotation, ArrayType) else None

    def default(self, param: str) -> object:
        """What a parameter's default evaluated to; None if it has none."""
        return self._defaults.get(param)

    def current(self) -> bool:
        """Whether all names that were looked up are still bound to the same objects."""
        return all(self._value(name) is value for name, value in self._found.items())

    def _lookup(self, name: str) -> object:
        value = self._found[name] = self._value(name)
        return value

    def _value(self, name: str) -> object:
        cell = self._closure.get(name)
        if cell is not None:
            return _contents(cell)
        return self._globals.get(name, _MISSING)


def classify(span: Span, name: str, value: object) -> tree.Number | None:
    """The constant of a captured object; None for a dimension, a word, and what is not defined."""
    if value is _MISSING or value is getattr(builtins, name, _MISSING):
        return None
    if isinstance(value, Dim | Word):
        if value.name != name:
            raise PkcError(python_errors.CapturedUnderOtherName(span, name, value.name))
        return None
    if isinstance(value, float) and math.isnan(value):
        raise PkcError(python_errors.CapturedNaN(span, name))
    if isinstance(value, bool | int | float):
        return construct.number(span, plain(value))
    if _is_dims(value):
        hint = f'`dims` returns a tuple, also for one name: `{name}, = dims("{name}")`'
        raise PkcError(python_errors.CapturedObject(span, name, "tuple", hint))
    if isinstance(value, numbers.Real):
        kind = "int" if isinstance(value, numbers.Integral) else "float"
        hint = f"write `{name} = {kind}({name})` before the kernel, which can capture numbers of Python"
        raise PkcError(python_errors.CapturedObject(span, name, type(value).__name__, hint))
    raise PkcError(python_errors.CapturedObject(span, name, type(value).__name__))


def _is_dims(value: object) -> bool:
    return isinstance(value, tuple) and all(isinstance(item, Dim) for item in cast("tuple[object, ...]", value))


def plain(value: float) -> int | float:
    """A constant as a plain int, float or bool: numpy's float64 and enumerations derive from these."""
    if isinstance(value, bool):
        return value
    return int(value) if isinstance(value, int) else float(value)


def constant_of(kernel: str, name: str, value: object, span: Span) -> int | float:
    """What a caller gives for a `const` parameter. Raises `PkcError` if it is no number of 64 bits."""
    if isinstance(value, numbers.Integral) and not isinstance(value, int):
        value = int(value)
    if not isinstance(value, int | float):
        raise PkcError(ConstantArgument(span, kernel, name, f"an argument of type {type(value).__name__}"))
    if value != value:
        raise PkcError(ConstantArgument(span, kernel, name, "NaN"))
    return construct.number(span, plain(value)).value


def _contents(cell: CellType) -> object:
    try:
        return cast(object, cell.cell_contents)
    except ValueError:  # assigned later in the enclosing function
        return _MISSING


def _annotations(function: FunctionType) -> Mapping[str, Any]:
    try:
        return function.__annotations__
    except Exception:  # evaluated only now, from Python 3.14 on, and in a scope that lacks a name
        return {}
