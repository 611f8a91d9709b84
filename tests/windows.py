"""Kernels that load the same elements at several shifted places: stencils, taps of convolutions, pooling."""

from __future__ import annotations

STENCIL = """
kernel f(X: {kind}[M, N], Y: {kind}[M, N]):
    for m, n in tasks(blocks(M, 8), blocks(N, 64)):
        Y[m, n] = cast(X[m, n], f32) * 0.5 + (X[m - 1, n] + X[m + 1, n] + X[m, n - 1] + X[m, n + 1]) * 0.25
"""
MATMULS = {"beside a matmul"}
"""Not run thread by thread."""

PROGRAMS: dict[str, str] = {
    "stencil": STENCIL.format(kind="f32"),
    "stencil of bf16": STENCIL.format(kind="bf16"),
    "stencil of 8 bits": """
kernel f(X: e4m3[M, N], Y: f32[M, N]):
    for m, n in tasks(blocks(M, 8), blocks(N, 64)):
        Y[m, n] = cast(X[m, n], f32) + cast(X[m - 1, n - 3], f32) * 2.0 + cast(X[m + 1, n + 1], f32) * 4.0
""",
    "box": """
kernel f(X: bf16[M, N], Y: f32[M, N]):
    for m, n in tasks(blocks(M, 8), blocks(N, 64)):
        acc = zeros(f32, m, n)
        for i in range(3):
            for j in range(3):
                acc += X[m + i - 1, n + j - 1]
        Y[m, n] = acc
""",
    "causal convolution": """
kernel f(X: bf16[B, M, N], w: f32[4, N], v: f32[N], Y: bf16[B, M, N]):
    for b, m, n in tasks(B, blocks(M, 8), blocks(N, 64)):
        acc = zeros(f32, m, n)
        for k in range(4):
            acc += X[b, m - 3 + k, n] * w[k, n]
        acc += v[n]
        Y[b, m, n] = acc * sigmoid(acc)
""",
    "every other tap": """
kernel f(X: f16[B, M, N], Y: f32[B, M, N]):
    for b, m, n in tasks(B, blocks(M, 8), blocks(N, 64)):
        a = zeros(f32, m, n)
        for i in range(3):
            a += cast(X[b, m + 2 * i - 2, n], f32) * 0.5
        Y[b, m, n] = a * cast(X[b, m, n], f32)
""",
    "pooling of rows": """
kernel f(X: bf16[B, S, N, 64], Y: bf16[B, M, 64]):
    for b, m in tasks(B, blocks(M, 8)):
        Y[b, m, :] = max(max(X[b, 0, 2 * m, :], X[b, 0, 2 * m + 1, :]), max(X[b, 1, 2 * m, :], X[b, 1, 2 * m + 1, :]))
""",
    "pooling of columns": """
kernel f(X: f32[M, N], Y: f32[M, K]):
    for m, n in tasks(blocks(M, 8), blocks(K, 16)):
        Y[m, n] = X[m, 2 * n] + X[m, 2 * n + 1]
""",
    "single rows": """
kernel f(X: f32[M, N], Y: f32[M, N]):
    for m, n in tasks(M, blocks(N, 64)):
        Y[m, n] = X[m, n - 1] + X[m, n + 1] * 2.0 + X[m, n]
""",
    "copied": """
kernel f(X: bf16[M, N], Y: bf16[M, N]):
    for m, n in tasks(blocks(M, 16), blocks(N, 64)):
        Y[m, n] = X[m, n - 1]
""",
    "summed in a loop": """
kernel f(X: f32[M, N], Y: f32[M]):
    for m in tasks(blocks(M, 8)):
        s = zeros(f32, m)
        for n in blocks(N, 64):
            s += rowsum(exp(X[m - 1, n]) * X[m, n - 2] + exp(X[m + 1, n + 1]))
        Y[m] = s
""",
    "lists that end inside": """
kernel f(X: f32[M, N], Y: f32[M], Z: f32[M, N]):
    for m in tasks(blocks(M, 8, start=3, stop=13)):
        s = zeros(f32, m)
        for n in blocks(N, 64, start=16, stop=100):
            s += rowsum(X[m - 1, n - 1] + X[m + 1, n] + X[m, n + 3])
            Z[m, n] = X[m - 2, n] + X[m - 1, n + 1]
        Y[m] = s
""",
    "volume": """
kernel f(X: f32[B, M, N], Y: f32[B, M, N]):
    for b, m, n in tasks(blocks(B, 2), blocks(M, 4), blocks(N, 32)):
        s = X[b - 1, m, n] + X[b + 1, m, n] + X[b, m - 1, n] + X[b, m + 1, n] + X[b, m, n - 1] + X[b, m, n + 1]
        Y[b, m, n] = X[b, m, n] * 2.0 + s * 0.5
""",
    "most registers": """
kernel f(X: f32[M, N], Z: f32[M, N], Y: f32[M, N]):
    for m, n in tasks(blocks(M, 32), blocks(N, 256)):
        a = X[m - 1, n - 1] * X[m, n] + exp(X[m + 1, n + 1]) * Z[m, n]
        b = a * sigmoid(X[m, n + 1] + X[m, n - 1])
        Y[m, n] = a * X[m - 1, n] + b
""",
    "clusters of places": """
kernel f(X: f32[M, N], Y: f32[M, N]):
    for m, n in tasks(blocks(M, 8), blocks(N, 64)):
        Y[m, n] = X[m, n] + X[m + 1, n] * 2.0 + X[m, n + 1] + X[m + 40, n] * 4.0 + X[m + 41, n - 1]
""",
    "beside rows that begin anywhere": """
kernel f(X: f32[M, N], Z: f32[M, K], Y: f32[M, N]):
    for m, n in tasks(blocks(M, 8), blocks(N, 64)):
        s = zeros(f32, m)
        for k in blocks(K, 128):
            s += rowsum(Z[m, k])
        Y[m, n] = X[m, n - 1] + X[m + 1, n + 1] * 2.0 + s
""",
    "two phases": """
kernel f(X: f32[M, N], Z: f32[M, N], Y: f32[M, N]):
    for m, n in tasks(blocks(M, 8), blocks(N, 64)):
        Z[m, n] = X[m - 1, n] + X[m, n]
    for m, n in tasks(blocks(M, 8), blocks(N, 64)):
        Y[m, n] = Z[m, n - 1] + Z[m, n + 1]
""",
    "beside a matmul": """
kernel f(A: bf16[M, 64], W: bf16[64, N], X: f32[M, N], Y: f32[M, N]):
    for m, n in tasks(blocks(M, 64), blocks(N, 64)):
        Y[m, n] = A[m, :] @ W[:, n] + X[m - 1, n] + X[m + 1, n - 1]
""",
}
