"""Sweeps: the same path at many sizes, ranks and orders. `make test` runs some of the cases, `make test-long` all."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest


def sweep(cases: Iterable[Any], often: Callable[..., bool]) -> list[Any]:
    """Cases for `parametrize`; those of which `often` does not hold are marked `long`."""
    split = [(case, case if isinstance(case, tuple) else (case,)) for case in cases]
    return [case if often(*values) else pytest.param(*values, marks=pytest.mark.long) for case, values in split]


def spread(kept: int, total: int) -> list[bool]:
    """Which of so many cases stay, if `kept` do: evenly spread, the last one among them."""
    return [(number + 1) * kept // total > number * kept // total for number in range(total)]
