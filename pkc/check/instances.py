"""Sizes at which `pkc check` looks at a kernel, beside those that are asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from pkc.check.counterexample import ADDRESSES
from pkc.diagnostics import Diagnostic, PkcError
from pkc.dialect.program import KernelOp
from pkc.sim.run import resolve_dims
from pkc.sim.small import other_dims

FEW = 2
"""As many orders at most are tried of each of them."""


def other_instances(
    kernel: KernelOp,
    ranks: int,
    given: Mapping[str, Any],
    scalars: Mapping[str, Any],
    asked: Mapping[str, int],
) -> Iterator[Mapping[str, int]]:
    """Sizes of further instances, in which dimensions that are given keep their size; none if all are. Raises
    `PkcError` if dimensions do not fit."""
    seen = [dict(asked)]
    for sizes in other_dims(kernel, ranks):
        dims = dict(resolve_dims(kernel, sizes | dict(given), scalars, ranks))
        if dims not in seen:
            seen.append(dims)
            yield dims


def too_small(kernel: KernelOp, mean: Callable[[], object]) -> Diagnostic | None:
    """What a program from which roles are derived finds past the end of an array where `mean` runs it: for such sizes
    its dimensions depend on each other in a way that its text does not say."""
    if kernel.roles:
        return None
    try:
        mean()
    except PkcError as error:
        first = error.diagnostics[0]
        return first if isinstance(first, ADDRESSES) else None
    return None
