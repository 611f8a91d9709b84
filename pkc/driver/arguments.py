"""Arguments of calls from Python that say how often, on how many ranks, at which level. Imports no compiler."""

from __future__ import annotations

import numbers
import reprlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pkc.diagnostics import PkcError
from pkc.driver.errors import BadArgument, HiddenName
from pkc.location import NOWHERE

if TYPE_CHECKING:
    from pkc.frontend import tree

LARGEST_SEED = 2**32 - 1
LEVELS = ("tile", "roles", "machine")
"""The levels of IR that users ask for."""


def whole(name: str, value: object, least: int | None = None, most: int | None = None) -> int:
    """An argument that is an integer, of a range if it has one. Raises `PkcError`."""
    if not isinstance(value, bool) and isinstance(value, numbers.Integral):
        number = int(value)
        if (least is None or number >= least) and (most is None or number <= most):
            return number
    bounds = [f" from {least}" if least is not None else "", f" to {most}" if most is not None else ""]
    raise PkcError(BadArgument(NOWHERE, name, reprlib.repr(value), f"an integer{''.join(bounds)}"))


def seed_of(value: object) -> int:
    """A seed. Raises `PkcError`."""
    return whole("seed", value, 0, LARGEST_SEED)


def refuse_hidden(kernel: tree.Kernel, call: str, **keywords: object) -> None:
    """Raise `PkcError` at the first keyword of a call that is given, so not None, and has the name of a parameter or
    dimension of the kernel."""
    dims = (dim for param in kernel.params for dim in param.annotation.dims or ())
    places = {dim.span.text: dim.span for dim in dims} | {param.name: param.span for param in kernel.params}
    for name, value in keywords.items():
        if value is not None and name in places:
            raise PkcError(HiddenName(places[name], name, call, kernel.name))


def one_of(name: str, value: object, known: Sequence[str]) -> str:
    """An argument that is one of some words. Raises `PkcError`."""
    if isinstance(value, str) and value in known:
        return value
    raise PkcError(BadArgument(NOWHERE, name, reprlib.repr(value), f"one of {', '.join(map(repr, known))}"))
