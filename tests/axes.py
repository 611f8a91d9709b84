"""Small programs about axes: in any order, of one block twice, shifted, picked by tables.

Each writes Y alone; with each is what numpy makes of the inputs of a rank, in float64.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

Arrays = Mapping[str, Any]


class OnAxes(NamedTuple):
    """A program, and Y of its arrays."""

    text: str
    expected: Callable[[Arrays], Any]


def _of_blocks(a: Arrays, of: Callable[..., Any], *names: str) -> Any:
    """What is computed of each 64 rows of arrays."""
    begins = range(0, len(a[names[0]]), 64)
    return np.concatenate([of(*(a[name][begin : begin + 64] for name in names)) for begin in begins])


def _attention(x: Any, b: Any) -> Any:
    s = np.where(np.tri(len(x), dtype=bool), x @ x.T + b, -np.inf)
    e = np.exp(s - s.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True) @ x


ORDERS: dict[str, OnAxes] = {
    "one hot": OnAxes(
        """\
kernel k(X: f32[M, N], t: i32[M], Y: f32[M, N]):
    for m, n in tasks(blocks(M, 32), blocks(N, 64)):
        mask = positions(n) == t[m]
        Y[m, n] = where(mask, 1.0, X[m, n])
""",
        lambda a: np.where(np.arange(a["X"].shape[1]) == a["t"][:, None], 1.0, a["X"]),
    ),
    "outer": OnAxes(
        """\
kernel k(a: f32[M], b: f32[N], Y: f32[M, N]):
    for m, n in tasks(blocks(M, 32), blocks(N, 64)):
        Y[m, n] = (b[n] + a[m]) * b[n]
""",
        lambda a: (a["a"][:, None] + a["b"]) * a["b"],
    ),
    "picked of rows": OnAxes(
        """\
kernel k(X: f32[M, N], t: i32[M], Y: f32[M]):
    for m in tasks(blocks(M, 32)):
        acc = zeros(f32, m)
        for n in blocks(N, 64):
            acc += rowsum(where(positions(n) == t[m], X[m, n], 0.0))
        Y[m] = acc
""",
        lambda a: np.where(np.arange(a["X"].shape[1]) == a["t"][:, None], a["X"], 0.0).sum(-1),
    ),
}
"""Operands whose axes stand in another order than those of a tile beside them."""

TWICE: dict[str, OnAxes] = {
    "causal blocks": OnAxes(
        """\
kernel k(X: bf16[M, 64], Y: f32[M]):
    for m in tasks(blocks(M, 64)):
        Y[m] = rowsum(where(positions(m) >= positions(m).T, X[m] @ X[m].T, 0.0))
""",
        lambda a: _of_blocks(a, lambda x: np.tril(x @ x.T).sum(-1), "X"),
    ),
    "softmax of blocks": OnAxes(
        """\
kernel k(X: bf16[M, 64], b: f32[M], Y: f32[M, 64]):
    for m in tasks(blocks(M, 64)):
        s = where(positions(m).T <= positions(m), X[m] @ X[m].T + b[m].T, -inf)
        p = exp(s - rowmax(s))
        Y[m] = cast(p, bf16) @ X[m] / rowsum(p)
""",
        lambda a: _of_blocks(a, _attention, "X", "b"),
    ),
    "rows and columns": OnAxes(
        """\
kernel k(X: f32[M, N], Z: f32[N, M], v: f32[M], Y: f32[M, N]):
    for m, n in tasks(blocks(M, 16), blocks(N, 64)):
        w = v[m] * 2.0
        Y[m, n] = X[m, n] * w + (Z[n, m] * w).T
""",
        lambda a: (a["X"] + a["Z"].T) * a["v"][:, None] * 2.0,
    ),
}
"""Tiles that lie along rows and along columns."""

PROGRAMS = ORDERS | TWICE
