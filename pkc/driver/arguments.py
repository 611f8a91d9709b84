"""Arguments of calls from Python that say how often, on how many ranks, at which level. Imports no compiler."""

from __future__ import annotations

import numbers
import reprlib
from collections.abc import Sequence

from pkc.diagnostics import PkcError
from pkc.driver.errors import BadArgument
from pkc.location import NOWHERE

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


def one_of(name: str, value: object, known: Sequence[str]) -> str:
    """An argument that is one of some words. Raises `PkcError`."""
    if isinstance(value, str) and value in known:
        return value
    raise PkcError(BadArgument(NOWHERE, name, reprlib.repr(value), f"one of {', '.join(map(repr, known))}"))
