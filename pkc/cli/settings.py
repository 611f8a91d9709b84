"""Reads the `NAME=VALUE` options of the command line and finds out what each name stands for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pkc.cli import errors
from pkc.diagnostics import PkcError, near
from pkc.dialect.program import KernelOp
from pkc.dialect.types import RANKS, ArrayType
from pkc.location import NOWHERE

Number = int | float | bool

_WORDS: dict[str, Number] = {"True": True, "False": False, "inf": float("inf"), "-inf": float("-inf")}


def assignments(option: str, texts: Iterable[str], *, example: str, split: bool = False) -> dict[str, str]:
    """The values by name; with `split`, one text has several, between commas."""
    found: dict[str, str] = {}
    pieces = [piece for text in texts for piece in (text.split(",") if split else [text])]
    for piece in pieces:
        name, equal, value = (text.strip() for text in piece.partition("="))
        if not (name and equal and value):
            raise PkcError(errors.MalformedAssignment(NOWHERE, option, piece, example))
        if name in found:
            raise PkcError(errors.RepeatedAssignment(NOWHERE, option, name))
        found[name] = value
    return found


def numbers(option: str, texts: Iterable[str], *, example: str) -> dict[str, Number]:
    """The numbers by name, from texts such as `M=1024,N=0x40`."""
    found = assignments(option, texts, example=example, split=True)
    return {name: _number(option, name, text) for name, text in found.items()}


def _number(option: str, name: str, text: str) -> Number:
    if text in _WORDS:
        return _WORDS[text]
    if not text.isascii():  # Python reads digits of all scripts
        raise PkcError(errors.NotANumber(NOWHERE, option, name, text))
    try:
        return int(text, 0)
    except ValueError:
        pass
    try:
        value = float(text)
    except ValueError:
        raise PkcError(errors.NotANumber(NOWHERE, option, name, text)) from None
    if value != value:
        raise PkcError(errors.NotANumber(NOWHERE, option, name, text))
    return value


@dataclass(frozen=True)
class Settings:
    """The values of `--set`, without constants. The simulator checks whether they fit."""

    dims: dict[str, Any] = field(default_factory=dict[str, Any])
    scalars: dict[str, Any] = field(default_factory=dict[str, Any])


def sort_settings(kernel: KernelOp, values: Mapping[str, Number], constants: Iterable[str]) -> Settings:
    """Sort the values into dimensions and scalars of a kernel; `constants` are further names that it knows."""
    settings = Settings()
    dims = dimensions(kernel)
    arguments = kernel.arguments
    arrays = {name for name, arg in arguments.items() if isinstance(arg.type, ArrayType)}
    for name, value in values.items():
        if name in dims:
            settings.dims[name] = value
        elif name in arrays:
            raise PkcError(errors.ArraySetting(NOWHERE, name))
        elif name in arguments:
            settings.scalars[name] = value
        else:
            known = [*dims, *constants, *(other for other in arguments if other not in arrays)]
            hint = near(name, known, "it has ") or "it has none at all"
            raise PkcError(errors.UnknownSetting(NOWHERE, kernel.sym_name.data, name, hint))
    return settings


def dimensions(kernel: KernelOp) -> list[str]:
    """The run-time dimensions of a kernel, in the order in which its arrays name them."""
    arrays = [arg.type for arg in kernel.body.block.args if isinstance(arg.type, ArrayType)]
    names = (dim for array in arrays for dim in array.dimensions if isinstance(dim, str) and dim != RANKS)
    return list(dict.fromkeys(names))
