"""Sizes and inputs with which `pkc check` looks at a kernel, beside those that are asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from xdsl.ir import SSAValue

from pkc.check.counterexample import ADDRESSES
from pkc.check.static import LAUNCHES
from pkc.diagnostics import Diagnostic, PkcError
from pkc.dialect.access import LoadOp, ReadOp, StoreAddOp, StoreOp
from pkc.dialect.arrays import array_type
from pkc.dialect.program import KernelOp
from pkc.dialect.types import Dim
from pkc.location import span_of
from pkc.passes.roles.remote_accesses import array_name
from pkc.semantics.errors import IndexOutOfRange
from pkc.sim.draw import seeds_for, seeds_together
from pkc.sim.numbers import grows_with
from pkc.sim.run import resolve_dims
from pkc.sim.small import least_dims, other_dims, swept_dims

FEW = 2
"""As many orders at most are tried of each of them."""

_INDEXED = LoadOp | ReadOp | StoreOp | StoreAddOp

_MOST_SEEDS = 12
"""From as many seeds at most inputs are drawn for integers that are compared, and from one round more of all cases."""


_MOST_TOGETHER = 40
"""Up to this seed inputs are drawn in which the elements of arrays are alike."""


@dataclass(frozen=True)
class Instance:
    """Sizes, and the first of the seeds that inputs are drawn from."""

    dims: Mapping[str, int]
    seed: int
    brief: bool = False
    """Whether it is one of many, looked at in one order."""
    alike: bool = False
    """Whether it is about inputs in which the elements of arrays are alike, not about sizes."""
    least: bool = False
    """Whether it may be too small for the program."""


def other_instances(
    kernel: KernelOp,
    ranks: int,
    given: Mapping[str, Any],
    scalars: Mapping[str, Any],
    asked: Mapping[str, int],
) -> Iterator[Instance]:
    """Further instances, in which dimensions that are given keep their size. If the program compares integers that are
    drawn, each has other ones, and there are more with the sizes asked for, until each integer has been on both sides;
    briefly also those in which all elements of an array, or of a row, are alike, there and at the sizes that pass
    numbers. Last come many sizes in a row, looked at briefly, and those that may be too small. Raises `PkcError` if
    dimensions do not fit."""
    seeds = min(_MOST_SEEDS, 2 * seeds_for(kernel, ranks=ranks, dims=asked))
    seen = [dict(asked)]
    unlike = partial(unlike_dims, kernel, ranks, given, scalars, seen)
    for dims in unlike(other_dims(kernel, ranks)):
        yield Instance(dims, LAUNCHES * len(seen) if seeds else 0)
    drawn = range(LAUNCHES * len(seen), seeds, LAUNCHES)
    yield from (Instance(asked, seed) for seed in drawn)
    yield from (one for one in _alike(kernel, ranks, asked) if one.seed not in drawn)
    if seen[-1] != asked:
        yield from _alike(kernel, ranks, seen[-1])
    for least, some in ((False, swept_dims(kernel, ranks)), (True, least_dims(kernel, ranks))):
        for dims in unlike(some):
            yield Instance(dims, LAUNCHES * len(seen) if seeds else 0, brief=True, least=least)


def unlike_dims(
    kernel: KernelOp,
    ranks: int,
    given: Mapping[str, Any],
    scalars: Mapping[str, Any],
    seen: list[dict[str, int]],
    several: Iterable[Mapping[str, int]],
) -> Iterator[dict[str, int]]:
    """Those of several sizes that are not seen yet, with what is given; then they are. Raises `PkcError` if dimensions
    do not fit."""
    for sizes in several:
        dims = dict(resolve_dims(kernel, {**sizes, **given}, scalars, ranks))
        if dims not in seen:
            yield dims
            seen.append(dims)


def _alike(kernel: KernelOp, ranks: int, dims: Mapping[str, int]) -> Iterator[Instance]:
    together = seeds_together(kernel, ranks=ranks, dims=dims)
    first, end = together.start // LAUNCHES * LAUNCHES, min(together.stop, _MOST_TOGETHER)
    yield from (Instance(dims, seed, brief=True, alike=True) for seed in range(first, end, LAUNCHES))


def too_small(kernel: KernelOp, mean: Callable[[], object], *, least: bool = False) -> Diagnostic | None:
    """What a program from which roles are derived, or any where the `least` sizes are looked at, finds past the end of
    an array where `mean` runs it: for such sizes its dimensions depend on each other in a way that its text does not
    say. Not what it finds past the end of the very dimension that it goes through: that is so for any size."""
    if kernel.roles and not least:
        return None
    try:
        mean()
    except PkcError as error:
        first = error.diagnostics[0]
        return first if isinstance(first, ADDRESSES) and (least or not _overruns_itself(kernel, first)) else None
    return None


def _overruns_itself(kernel: KernelOp, found: Diagnostic) -> bool:
    """Whether an index outside of a dimension grows with that dimension alone."""
    return any(isinstance(dim, str) and grows_with(index) == {dim} for dim, index in indices_at(kernel, found))


def indices_at(kernel: KernelOp, found: Diagnostic) -> Iterator[tuple[Dim, SSAValue]]:
    """The dimensions, and the indices, that a finding past the end of an array may be about."""
    if not isinstance(found, IndexOutOfRange):
        return
    for op in kernel.walk():
        if isinstance(op, _INDEXED) and span_of(op.location) == found.span and array_name(op.array) == found.array:
            yield array_type(op.array).dimensions[found.axis], op.indices[found.axis]
