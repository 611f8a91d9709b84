"""The functions of the language: numbers to try them on, programs of one each, and what is wrong with results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from xdsl.ir import Attribute, Operation
from xdsl.utils.test_value import create_ssa_value

from pkc.dialect.declaration import OPERATIONS
from pkc.dialect.elementwise import Binary, MaxOp, MinOp, SelectOp, Unary
from pkc.dialect.ranges import Bounded, ends
from pkc.dialect.reductions import RowReduction
from pkc.dialect.types import TileType, dtype_name, f32, i1, i32
from pkc.semantics import tile_ops

Array: TypeAlias = npt.NDArray[Any]

_EDGES = [
    0.0,
    2.0**-149,
    2.0**-140,
    2.0**-126,
    1e-30,
    2.0**-25,
    2.0**-12,
    0.1,
    0.5,
    1.0,
    1.5,
    2.0,
    3.0,
    np.pi,
    9.1,
    16.0,
]
_FAR = [87.3, 88.0, 88.72, 88.73, 103.9, 104.0, 126.0, 127.9, 128.0, 149.0, 150.0, 1e5, 2.0**31, 2.0**64, 3.4028235e38]

_POSITIVE = np.float32([*_EDGES, *_FAR, np.inf])
_BESIDE = [np.nextafter(_POSITIVE[:-2], np.float32(to)) for to in (-1, np.inf)]
SPECIAL = np.concatenate([*(sign * found for sign in (-1, 1) for found in (_POSITIVE, *_BESIDE)), np.float32([np.nan])])
"""Numbers at which something begins or ends, with their neighbours."""


def drawn(rng: np.random.Generator, count: int) -> Array:
    """So many numbers: half of them of all sizes, subnormal ones too, a quarter near 1, a quarter below 100."""
    anything = rng.integers(0, 2**32, count // 2, np.uint32).view(np.float32)
    near = 1 + rng.standard_normal(count // 4) * 2.0 ** rng.integers(-23, 0, count // 4)
    small = rng.standard_normal(count - count // 2 - count // 4) * 30
    return np.concatenate([anything, near.astype(np.float32), small.astype(np.float32)])


INTEGERS = np.int32([-(2**31), -(2**31) + 1, -7, -2, -1, 0, 1, 2, 3, 7, 2**30, 2**31 - 2, 2**31 - 1])


def inputs_of(op: type[Operation], element: Attribute, seed: int, count: int) -> list[Array]:
    """So many operands of an operation, first the special numbers, or all pairs of them."""
    rng = np.random.default_rng(seed)
    special = SPECIAL if element == f32 else INTEGERS
    first = [special] if issubclass(op, Unary) else [side.reshape(-1) for side in np.meshgrid(special, special)]
    more = count - first[0].size
    draw = drawn if element == f32 else _integers
    return [np.concatenate([side, draw(rng, more)]) for side in first]


def _integers(rng: np.random.Generator, count: int) -> Array:
    return rng.integers(-(2**31), 2**31, count).astype(np.int32)


# What is wrong


@dataclass(frozen=True)
class Verdict:
    """`wrong` are the places of results that the language does not allow; `ulps` is the largest error of the others, in
    units in the last place of the exact result, at the place `worst`."""

    wrong: Array
    ulps: float
    worst: int


def judged(op: type[Operation], inputs: Sequence[Array], found: Array) -> Verdict:
    """Results of an operation on f32 or i32 against what it is in float64, and how far off it may be."""
    element = i32 if found.dtype == np.int32 else f32
    made = op(*[create_ssa_value(TileType(found.shape, element)) for _ in inputs])  # pyright: ignore[reportCallIssue]
    with np.errstate(all="ignore"):
        wide = [x.astype(np.float64) if element == f32 else x for x in inputs]
        exact = tile_ops.value(made, np.float64)(*wide)
        if element == i32:
            return Verdict(np.flatnonzero(found != exact), 0.0, 0)
        low, high = ends(tile_ops.bounded(made)(*[Bounded(x, None) for x in wide]))
        signed = (found != 0) | (exact != 0) | (np.signbit(found) == np.signbit(exact))
        if issubclass(op, MaxOp | MinOp):  # of zeros of both signs it is either (IEEE 754-2008, maxNum and minNum)
            signed |= np.signbit(wide[0]) != np.signbit(wide[1])
        right = (found >= low) & (found <= high) & signed | (np.isnan(found) & np.isnan(exact))
        ulps = np.abs(found - exact) / np.spacing(np.abs(exact).astype(np.float32)).astype(np.float64)
    ulps = np.where(np.isfinite(ulps) & right, ulps, 0.0)
    worst = int(np.argmax(ulps))
    return Verdict(np.flatnonzero(~right), float(ulps[worst]), worst)


# Programs


def elements(op: type[Operation]) -> list[Attribute]:
    """The element types of arrays that a program of an operation can have; logic is on comparisons of f32."""
    return [x for x in (f32, i32) if x in OPERATIONS[op].types] or [f32]


def program(op: type[Operation], element: Attribute, *, positive: bool = False) -> str:
    """A kernel of one operation: of arrays X and, for two operands, W into Y; with `positive` of |X| + 0.01."""
    word, kind = OPERATIONS[op].word, dtype_name(element)
    x, w = ("(abs(X[m, n]) + 0.01)" if positive else "X[m, n]"), "W[m, n]"
    if issubclass(op, RowReduction):
        return (
            f"kernel rows(X: {kind}[M, 64], Y: {kind}[M, 64]):\n"
            "    for m in tasks(blocks(M, 64)):\n"
            f"        Y[m, :] = X[m, :] - {word}(X[m, :])\n"
        )
    if op is SelectOp:
        text = f"where({x} < {w}, {x}, {w})"
    elif i1 in OPERATIONS[op].types:
        condition = f"not {x} < {w}" if issubclass(op, Unary) else f"{x} < {w} {word} {x} > 0"
        text = f"where({condition}, {x}, {w})"
    elif issubclass(op, Unary):
        text = f"{word}({x})"
    else:
        text = f"{word}({x}, {w})" if word.isidentifier() else f"{x} {word} {w}"
    second = f"W: {kind}[M, N], " if w in text else ""
    return (
        f"kernel function(X: {kind}[M, N], {second}Y: {kind}[M, N]):\n"
        "    for m, n in tasks(blocks(M, 64), blocks(N, 64)):\n"
        f"        Y[m, n] = {text}\n"
    )


CASES = [
    (op, element)
    for op, declared in OPERATIONS.items()
    for element in elements(op)
    if issubclass(op, Unary | Binary) and element in declared.types
]
"""Operations that can be tried by themselves, element by element."""
