"""Programs that read sharded arrays by shifted blocks and by tables along any dimension, each with sizes and with a
formula of its own in float64."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.irregular import Arrays, Irregular, each, f64, fixed


def moved(x: Any, *by: int) -> np.ndarray:
    """What lies so far behind each element along the first dimensions, zero outside of the array."""
    made, inside = (
        np.zeros_like(x),
        [slice(max(0, -step), max(0, -step) + max(0, n - abs(step))) for step, n in zip(by, x.shape, strict=False)],
    )
    made[tuple(inside)] = x[
        tuple(slice(part.start + step, part.stop + step) for part, step in zip(inside, by, strict=True))
    ]
    return made


def _stencil(i: Arrays, ranks: int) -> Arrays:
    u = f64(i["U"])
    around = moved(u, -1, 0) + moved(u, 1, 0) + moved(u, 0, -1) + moved(u, 0, 1)
    return {"V": 0.25 * (around - np.float64(i["h2"]) * f64(i["F"]))}


def _corners(i: Arrays, ranks: int) -> Arrays:
    u = f64(i["U"])
    return {"V": np.stack([moved(u, -1, -1) + moved(u, 1, 2)] * ranks)}


def _local(i: Arrays, ranks: int) -> Arrays:
    u = f64(i["U"])
    return {"V": moved(u, 0, 8) + moved(u, 0, 3)}


def _named(x: np.ndarray, table: np.ndarray, axis: int) -> np.ndarray:
    shape = [-1 if axis == dim else 1 for dim in range(x.ndim)]
    return np.where((table >= 0).reshape(shape), np.take(x, np.maximum(table, 0), axis), 0.0)


def _picked(i: Arrays, ranks: int) -> Arrays:
    return {"V": each(ranks, lambda r: _named(f64(i["U"]), i["t"][r], 1))}


def _rows(i: Arrays, ranks: int) -> Arrays:
    u = f64(i["U"])
    return {"V": _named(u, i["t"], 0) + moved(u, -1, 0) + u[::-1]}


def _convolution(i: Arrays, ranks: int) -> Arrays:
    x, made = f64(i["X"]), 0.0
    for down in range(3):
        for right in range(3):
            made = made + np.einsum("hwc,rck->rhwk", moved(x, down - 1, right - 1), f64(i["F"])[:, down, right])
    owners = np.arange(x.shape[0]) // -(-x.shape[0] // ranks)
    return {"Y": np.stack([made[owner, row] for row, owner in enumerate(owners)])}


SHIFTED = {
    "a stencil of rows of shards": Irregular(
        """
kernel jacobi(U: f32[M, N].shard(0), F: f32[M, N].shard(0), V: f32[M, N].shard(0), h2: f32):
    for m, n in tasks(blocks(M, 32, of=rank), blocks(N, 32)):
        V[m, n] = 0.25 * (U[m - 1, n] + U[m + 1, n] + U[m, n - 1] + U[m, n + 1] - h2 * F[m, n])
""",
        fixed({"M": 21, "N": 37}, {"M": 300, "N": 264}),
        _stencil,
        alone=False,
    ),
    "shifted along both dimensions": Irregular(
        """
kernel corners(U: bf16[M, N].shard(0), V: f32[M, N]):
    for m, n in tasks(blocks(M, 32), blocks(N, 32)):
        V[m, n] = U[m - 1, n - 1] + U[m + 1, n + 2]
""",
        fixed({"M": 21, "N": 37}, {"M": 300, "N": 264}),
        _corners,
        alone=False,
    ),
    "shifted in this rank's shard": Irregular(
        """
kernel local(U: bf16[M, N].shard(0), V: f32[M, N].shard(0)):
    for m, n in tasks(blocks(M, 32, of=rank), blocks(N, 32)):
        V[m, n] = U[m, n + 8] + U[m, n + 3]
""",
        fixed({"M": 21, "N": 37}, {"M": 300, "N": 264}),
        _local,
    ),
    "shifted in zigzag order": Irregular(
        """
kernel local(U: bf16[M, N].shard(0, zigzag=True), V: f32[M, N].shard(0, zigzag=True)):
    for m, n in tasks(blocks(M, 32, of=rank), blocks(N, 32)):
        V[m, n] = U[m, n + 8] + U[m, n + 3]
""",
        fixed({"M": 21, "N": 37}, {"M": 300, "N": 264}),
        _local,
    ),
    "columns of rows of shards": Irregular(
        """
kernel picked(U: bf16[M, N].shard(0), t: i32[K], V: bf16[M, K]):
    for m, k in tasks(blocks(M, 32), blocks(K, 32)):
        V[m, k] = U[m, t[k]]
""",
        fixed({"M": 21, "N": 37, "K": 19}, {"M": 300, "N": 264, "K": 100}),
        _picked,
        alone=False,
    ),
    "rows of columns of shards": Irregular(
        """
kernel rows(U: bf16[M, N].shard(1), t: i32[M].replicate(), V: f32[M, N].shard(1)):
    for m, n in tasks(blocks(M, 32), blocks(N, 32, of=rank)):
        V[m, n] = U[t[m], n] + U[m - 1, n] + U[M - 1 - m, n]
""",
        fixed({"M": 21, "N": 37}, {"M": 300, "N": 256}),
        _rows,
    ),
    "a convolution with the rows of neighbours": Irregular(
        """
kernel conv(X: bf16[H, W, C].shard(0), F: bf16[3, 3, C, K], Y: f32[H, W, K].shard(0)):
    for h, w, k in tasks(blocks(H, 1, of=rank), blocks(W, 64), blocks(K, 64)):
        acc = zeros(f32, w, k)
        for i in range(3):
            if h + i - 1 >= 0 and h + i - 1 < H:
                for j in range(3):
                    for c in blocks(C, 32):
                        acc += X[h + i - 1, w + j - 1, c] @ F[i, j, c, k]
        Y[h, w, k] = acc
""",
        fixed({"H": 5, "W": 10, "C": 24, "K": 16}, {"H": 30, "W": 100, "C": 64, "K": 64}),
        _convolution,
        alone=False,
    ),
}
