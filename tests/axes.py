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


def _balanced(x: Any) -> Any:
    """Rows and then columns that add up to one."""
    x = x / x.sum(-1, keepdims=True)
    return x / x.sum(-2, keepdims=True)


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
    "one dimension twice": OnAxes(
        """\
kernel k(X: f32[B, D, D], w: f32[D], Y: f32[B, D, D], D: const = 24):
    for b in tasks(B):
        x = abs(X[b, :, :]) + 1.0
        x = x / rowsum(x)
        x = x / rowsum(x.T).T
        Y[b, :, :] = x * w[:].T + w[:]
""",
        lambda a: _balanced(abs(a["X"]) + 1) * a["w"] + a["w"][:, None],
    ),
    "inverses": OnAxes(
        """\
kernel k(X: f32[B, D, D], Y: f32[B, D, D], D: const = 8):
    for b in tasks(B):
        i = positions(D)
        a = X[b, :, :] + where(i == i.T, 32.0, 0.0)
        for j in range(D):
            p = rowsum(rowsum(where(i == j and i.T == j, a, 0.0)))
            row = rowsum(where(i == j, a, 0.0).T)
            col = rowsum(where(i.T == j, a, 0.0))
            t = a - col * (row / p).T
            t = where(i == j, (row / p).T, t)
            t = where(i.T == j, -col / p, t)
            a = where(i == j and i.T == j, 1.0 / p, t)
        Y[b, :, :] = a * 32.0
""",
        lambda a: np.linalg.inv(a["X"] + 32 * np.eye(8)) * 32,
    ),
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
    "as long": OnAxes(
        """\
kernel k(X: f32[M, G, D], w: f32[D], Y: f32[M, G, D], G: const = 16, D: const = 16):
    for m in tasks(M):
        Y[m] = X[m] / (1.0 + rowsum(abs(X[m]))) * w[:]
""",
        lambda a: a["X"] / (1 + np.abs(a["X"]).sum(-1, keepdims=True)) * a["w"],
    ),
    "two names": OnAxes(
        """\
kernel k(a: f32[B, D], b: f32[B, E], X: f32[B, D, E], Y: f32[B, D, E], D: const = 24, E: const = 24):
    for i in tasks(B):
        u = rowsum((X[i] * a[i]).T)
        Y[i] = X[i] + a[i] * (b[i] - u)
""",
        lambda a: a["X"] + a["a"][..., None] * (a["b"] - np.einsum("bde,bd->be", a["X"], a["a"]))[:, None],
    ),
    "two names turned": OnAxes(
        """\
kernel k(a: f32[B, D], b: f32[B, E], Y: f32[B, E, D], D: const = 24, E: const = 24):
    for i in tasks(B):
        Y[i] = a[i] * b[i]
""",
        lambda a: a["b"][..., None] * a["a"][:, None],
    ),
}
"""Tiles that lie along rows and along columns, and axes that are as long."""


THREE: dict[str, OnAxes] = {
    "norms of heads": OnAxes(
        """\
kernel k(X: bf16[M, 3, 64], w: f32[64], Y: f32[M, 3, 64]):
    for m in tasks(blocks(M, 4)):
        x = cast(X[m], f32)
        Y[m] = x * rsqrt(rowsum(x * x) / 64.0 + 0.001) * w[:]
""",
        lambda a: a["X"] / np.sqrt((a["X"] ** 2).mean(-1, keepdims=True) + 0.001) * a["w"],
    ),
    "sums of blocks": OnAxes(
        """\
kernel k(X: f32[B, M, N], s: f32[B, M], Y: f32[B, M]):
    for b, m in tasks(blocks(B, 2), blocks(M, 16)):
        acc = zeros(f32, b, m)
        for n in blocks(N, 64):
            acc = acc + rowsum(X[b, m, n] * s[b, m])
        Y[b, m] = acc * 2.0
""",
        lambda a: 2 * a["X"].sum(-1) * a["s"],
    ),
    "softmax of three axes": OnAxes(
        """\
kernel k(X: f32[B, K, N], Y: bf16[B, K, N]):
    for b, k, n in tasks(blocks(B, 2), blocks(K, 8), blocks(N, 128)):
        e = exp(X[b, k, n] - rowmax(X[b, k, n]))
        Y[b, k, n] = e / rowsum(e)
""",
        lambda a: np.exp(a["X"]) / np.exp(a["X"]).sum(-1, keepdims=True),
    ),
}
"""Tiles of three axes whose rows are reduced."""


def _shifted(x: Any, by: int, axis: int) -> Any:
    """At each place what lies so many places before it along an axis, zeros outside."""
    found, length = np.zeros_like(x), x.shape[axis]
    for place in range(length):
        if 0 <= place - by < length:
            np.moveaxis(found, axis, 0)[place] = np.moveaxis(x, axis, 0)[place - by]
    return found


def _cross(x: Any) -> Any:
    return sum(_shifted(x, by, axis) for by in (-1, 1) for axis in (0, 1)) / 4


def _named(x: Any, t: Any) -> Any:
    """Columns that a table names; zeros where it is negative."""
    return np.where(t >= 0, x[:, np.maximum(t, 0)], 0.0)


SHIFTED: dict[str, OnAxes] = {
    "differences": OnAxes(
        """\
kernel k(X: f32[M, N], Y: f32[M, N]):
    for m, n in tasks(blocks(M, 16), blocks(N, 64)):
        Y[m, n] = X[m, n] - X[m, n - 1]
""",
        lambda a: a["X"] - _shifted(a["X"], 1, 1),
    ),
    "stencil": OnAxes(
        """\
kernel k(X: f32[M, N], Y: f32[M, N]):
    for m, n in tasks(blocks(M, 32), blocks(N, 64)):
        Y[m, n] = 0.25 * (X[m - 1, n] + X[m + 1, n] + X[m, n - 1] + X[m, n + 1])
""",
        lambda a: _cross(a["X"]),
    ),
    "causal convolution": OnAxes(
        """\
kernel k(X: bf16[M, N], W: f32[4, N], b: f32[N], Y: f32[M, N]):
    for m, n in tasks(blocks(M, 32), blocks(N, 64)):
        acc = zeros(f32, m, n) + b[n]
        for s in range(4):
            acc += X[m - 3 + s, n] * W[s, n]
        Y[m, n] = acc * sigmoid(acc)
""",
        lambda a: (lambda x: x / (1 + np.exp(-x)))(
            a["b"] + sum(_shifted(a["X"], 3 - s, 0) * a["W"][s] for s in range(4))
        ),
    ),
    "taps of pixels": OnAxes(
        """\
kernel k(X: f32[K, N], Y: f32[M, V]):
    for m, v in tasks(M, blocks(V, 64)):
        Y[m, v] = X[positions(v) // N + m % 3 - 1, positions(v) % N + m // 3 - 1]
""",
        lambda a: np.stack([_shifted(_shifted(a["X"], 1 - m % 3, 0), 1 - m // 3, 1).ravel()[:152] for m in range(2)]),
    ),
    "upsampled": OnAxes(
        """\
kernel k(X: f16[M, N], Y: f16[H, V]):
    for h, v in tasks(blocks(H, 16), blocks(V, 64)):
        Y[h, v] = X[h // 2, v // 2]
""",
        lambda a: a["X"].repeat(2, 0).repeat(2, 1),
    ),
    "mirrored and turned": OnAxes(
        """\
kernel k(X: f32[M, N], Y: f32[M, N]):
    for m, n in tasks(blocks(M, 16), blocks(N, 64)):
        Y[m, n] = X[M - 1 - m, (n + 3) % N]
""",
        lambda a: np.roll(a["X"][::-1], -3, 1),
    ),
}
"""Blocks whose positions are computed."""

PICKED: dict[str, OnAxes] = {
    "columns": OnAxes(
        """\
kernel k(X: bf16[M, N], t: i32[K], Y: bf16[M, K]):
    for m, k in tasks(blocks(M, 32), blocks(K, 64)):
        Y[m, k] = X[m, t[k]]
""",
        lambda a: _named(a["X"], a["t"]),
    ),
    "heads": OnAxes(
        """\
kernel k(X: bf16[M, N, 16], t: i32[K], Y: f32[M, K, 16]):
    for m, k in tasks(M, blocks(K, 32)):
        Y[m, k] = X[m, t[k]] * 2.0
""",
        lambda a: np.where((a["t"] >= 0)[:, None], a["X"][:, np.maximum(a["t"], 0)], 0.0) * 2,
    ),
    "one of each row": OnAxes(
        """\
kernel k(X: bf16[M, N], t: i32[M], s: f32[M], Y: f32[M]):
    for m in tasks(blocks(M, 32)):
        Y[m] = X[m, t[m]] * s[m]
""",
        lambda a: np.where(a["t"] >= 0, a["X"][np.arange(len(a["t"])), a["t"]], 0.0) * a["s"],
    ),
    "codes": OnAxes(
        """\
kernel k(book: f32[40], q: i32[M, N], s: f32[M], Y: f32[M, N]):
    for m, n in tasks(blocks(M, 16), blocks(N, 64)):
        Y[m, n] = book[q[m, n]] * s[m]
""",
        lambda a: np.where(a["q"] >= 0, a["book"][np.maximum(a["q"], 0)], 0.0) * a["s"][:, None],
    ),
    "codes in words": OnAxes(
        """\
kernel k(q: i32[M, N], book: f32[16], Y: f32[M, V]):
    for m, v in tasks(blocks(M, 16), blocks(V, 64)):
        Y[m, v] = book[(q[m, v // 2] >> (positions(v) % 2 * 4)) & 15]
""",
        lambda a: a["book"][((a["q"][..., None] >> np.array([0, 4])) & 15).reshape(len(a["q"]), -1)],
    ),
    "single elements": OnAxes(
        """\
kernel k(X: f32[M, N], r: i32[K], c: i32[K], Y: f32[K]):
    for k in tasks(blocks(K, 32)):
        Y[k] = X[r[k], c[k]] + X[r[k] // 2, c[k]]
""",
        lambda a: sum(np.where((a["r"] >= 0) & (a["c"] >= 0), a["X"][r, a["c"]], 0.0) for r in (a["r"], a["r"] // 2)),
    ),
    "of a matmul": OnAxes(
        """\
kernel k(X: bf16[M, V], t: i32[K], W: bf16[K, N], Y: f32[M, N]):
    for m, n in tasks(blocks(M, 64), blocks(N, 64)):
        acc = zeros(f32, m, n)
        for k in blocks(K, 64):
            acc += X[m, t[k]] @ W[k, n]
        Y[m, n] = acc
""",
        lambda a: _named(a["X"], a["t"]) @ a["W"],
    ),
}
"""Elements that tables name along any dimension; a negative entry names none."""


def _chunks(a: Arrays) -> Any:
    """A state space by its recurrence, in float64."""
    state, found = 0.0, []
    for x, b, c, decay in zip(a["X"], a["B"], a["C"], a["decay"], strict=True):
        state = np.exp(-abs(decay)) * state + np.outer(b, x)
        found.append(c @ state)
    return np.stack(found)


def _summed_by_blocks(a: Arrays, size: int) -> Any:
    sums = a["X"].sum(-1)
    return np.concatenate([sums[at : at + size].cumsum() for at in range(0, len(sums), size)])


ACROSS: dict[str, OnAxes] = {
    "sums of rows along columns": OnAxes(
        """\
kernel k(X: f32[M, 64], Z: f32[64, M], Y: f32[64, M]):
    for m in tasks(blocks(M, 32)):
        s = rowsum(X[m, :])
        z = Z[:, m] * s
        Y[:, m] = z + rowsum(X[m, :] * s)
""",
        lambda a: a["Z"] * a["X"].sum(-1) + (a["X"] * a["X"].sum(-1, keepdims=True)).sum(-1),
    ),
    "gradient of weights": OnAxes(
        """\
kernel k(X: f32[M, 64], G: f32[M, 64], Y: f32[64]):
    for b in tasks(1):
        acc = zeros(f32, 64)
        for m in blocks(M, 16):
            x = X[m, :]
            r = rsqrt(rowsum(x * x) + 1.0)
            acc += rowsum((G[m, :] * x * r).T)
        Y[:] = acc
""",
        lambda a: (a["G"] * a["X"] / np.sqrt((a["X"] ** 2).sum(-1, keepdims=True) + 1)).sum(0),
    ),
    "sums of loops both ways": OnAxes(
        """\
kernel k(X: f32[M, K], Z: f32[N, K], Y: f32[M, N]):
    for m, n in tasks(blocks(M, 16), blocks(N, 24)):
        xx = zeros(f32, m)
        zz = zeros(f32, n)
        for k in blocks(K, 16):
            xx += rowsum(X[m, k] * X[m, k])
            zz += rowsum(Z[n, k] * Z[n, k])
        Y[m, n] = xx - zz
""",
        lambda a: (a["X"] ** 2).sum(-1)[:, None] - (a["Z"] ** 2).sum(-1),
    ),
    "sums of sums so far": OnAxes(
        """\
kernel k(X: f32[M, 24], Y: f32[M]):
    for m in tasks(blocks(M, 16)):
        Y[m] = cumsum(rowsum(X[m, :]))
""",
        lambda a: _summed_by_blocks(a, 16),
    ),
    "turned when computed": OnAxes(
        """\
kernel k(X: f32[M, 24], Y: f32[24, M]):
    for m in tasks(blocks(M, 16)):
        x = X[m, :]
        Y[:, m] = (x - rowmax(x)).T
""",
        lambda a: (a["X"] - a["X"].max(-1, keepdims=True)).T,
    ),
    "distances": OnAxes(
        """\
kernel k(X: f32[M, K], Z: f32[N, K], Y: f32[M, N]):
    for m, n in tasks(blocks(M, 64), blocks(N, 64)):
        acc = zeros(f32, m, n)
        xx = zeros(f32, m)
        zz = zeros(f32, n)
        for k in blocks(K, 32):
            acc += X[m, k] @ Z[n, k].T
            xx += rowsum(X[m, k] * X[m, k])
            zz += rowsum(Z[n, k] * Z[n, k])
        Y[m, n] = xx + zz - 2.0 * acc
""",
        lambda a: ((a["X"][:, None] - a["Z"]) ** 2).sum(-1),
    ),
    "greatest of sums beside an MMA": OnAxes(
        """\
kernel k(X: bf16[M, 64], W: bf16[64, 64], Y: f32[M, 64]):
    for m in tasks(blocks(M, 64)):
        total = rowsum(X[m, :] @ W[:, :])
        Y[m, :] = X[m, :] / (abs(rowmax(total)) + 1.0)
""",
        lambda a: _of_blocks(a, lambda x: x / (abs((x @ a["W"]).sum(-1).max()) + 1), "X"),
    ),
    "product turned": OnAxes(
        """\
kernel k(A: bf16[M, 64], B: bf16[64, N], b: f32[M], Y: f32[N, M]):
    for m, n in tasks(blocks(M, 64), blocks(N, 64)):
        Y[n, m] = (max(A[m, :] @ B[:, n], 0.0) + b[m]).T
""",
        lambda a: (np.maximum(a["A"] @ a["B"], 0) + a["b"][:, None]).T,
    ),
    "chunks of a state space": OnAxes(
        """\
kernel k(C: f16[S, 64], B: f16[S, 64], X: f16[S, 64], decay: f32[S], Y: f32[S, 64]):
    for one in tasks(1):
        state = zeros(f32, 64, 64)
        for t in blocks(S, 64):
            a = -abs(decay[t])
            c = cumsum(a)
            total = rowsum(a)
            x = X[t, :]
            l = where(positions(t) >= positions(t).T, exp(c - c.T), 0.0)
            inside = cast((C[t, :] @ B[t, :].T) * l, f16) @ x
            Y[t, :] = inside + C[t, :] @ cast(state, f16) * exp(c)
            state = state * exp(total) + cast(B[t, :] * exp(total - c), f16).T @ x
""",
        _chunks,
    ),
}
"""Tiles whose elements threads have along rows, and need along columns."""

PROGRAMS = ORDERS | TWICE | THREE | SHIFTED | PICKED | ACROSS

SUMS: dict[str, str] = {
    "sum of nested tasks": """\
kernel k(X: f32[B, M, N], S: f32[N].replicate(), T: f32[B].replicate()):
    for b in tasks(B):
        for m, n in tasks(blocks(M, 32), blocks(N, 64)):
            S[n] += rowsum(X[b, m, n].T)
    for b in tasks(B):
        for m, n in tasks(blocks(M, 32), blocks(N, 64)):
            T[b] += rowsum(rowsum(X[b, m, n]))
""",
    "sum of lists": """\
kernel k(X: f32[B, M, N], count: i32[B], S: f32[B, N].replicate()):
    for b in tasks(B):
        for m, n in tasks(blocks(M, 32, stop=count[b]), blocks(N, 64)):
            S[b, n] += rowsum(X[b, m, n].T)
""",
    "sum into constants": """\
kernel k(X: bf16[M, 72], t: i32[M], S: f32[70, 72].replicate(), T: f32[70].replicate()):
    for m in tasks(blocks(M, 32)):
        S[t[m]] += X[m]
    for m in tasks(blocks(M, 32)):
        T[t[m]] += full(f32, 1.0, m)
""",
}
"""Sums over ranks, of tasks in tasks and into rows of arrays all of whose dimensions are constants."""
