"""Kernels that read and write elements which lie in turn: pairs, colours, halves of a cache."""

from __future__ import annotations

ROPE = """
kernel f(X: {kind}[M, 2, {D}, 2], c: f32[M, {D}], s: f32[M, {D}], Y: {kind}[M, 2, {D}, 2]):
    for m, h in tasks(blocks(M, 16), 2):
        a = cast(X[m, h, :, 0], f32)
        b = cast(X[m, h, :, 1], f32)
        Y[m, h, :, 0] = a * c[m, :] - b * s[m, :]
        Y[m, h, :, 1] = b * c[m, :] + a * s[m, :]
"""
GREY = """
kernel f(X: {kind}[M, 64, 3], Y: f32[M, 64]):
    for m, n in tasks(blocks(M, 16), blocks(64, 32)):
        Y[m, n] = cast(X[m, n, 0], f32) * 0.25 + cast(X[m, n, 1], f32) * 0.5 + cast(X[m, n, 2], f32) * 0.25
"""
TO_COLOURS = """
kernel f(X: f32[M, 64], Y: {kind}[M, 64, 3]):
    for m, n in tasks(blocks(M, 16), blocks(64, 32)):
        Y[m, n, 2] = X[m, n] * 0.25
        Y[m, n, 0] = X[m, n] * 0.5
        Y[m, n, 1] = X[m, n] + 1.0
"""
PROGRAMS: dict[str, str] = {
    "rope": ROPE.format(kind="bf16", D=64),
    "rope of f32": ROPE.format(kind="f32", D=64),
    "short rows": ROPE.format(kind="bf16", D=8),
    "odd rows": ROPE.format(kind="bf16", D=12),
    "rows of no chunk": ROPE.format(kind="f16", D=20),
    "three of bf16": GREY.format(kind="bf16"),
    "three of f32": GREY.format(kind="f32"),
    "three of 8 bits": GREY.format(kind="i8"),
    "three stored": TO_COLOURS.format(kind="bf16"),
    "three of f32 stored": TO_COLOURS.format(kind="f32"),
    "in place": """
kernel f(X: bf16[M, 64, 2]):
    for m in tasks(blocks(M, 16)):
        a = cast(X[m, :, 0], f32)
        b = cast(X[m, :, 1], f32)
        X[m, :, 0] = max(a, b)
        X[m, :, 1] = min(a, b)
""",
    "apart and together": """
kernel f(KV: bf16[M, 64, 2], K: bf16[M, 64], V: bf16[M, 64]):
    for m in tasks(blocks(M, 16)):
        K[m, :] = KV[m, :, 0]
        V[m, :] = KV[m, :, 1]
""",
    "together": """
kernel f(K: bf16[M, 64], V: bf16[M, 64], KV: bf16[M, 64, 2]):
    for m in tasks(blocks(M, 16)):
        KV[m, :, 0] = K[m, :]
        KV[m, :, 1] = V[m, :]
""",
    "some": """
kernel f(X: bf16[M, 64, 4], Y: bf16[M, 64]):
    for m in tasks(blocks(M, 16)):
        Y[m, :] = cast(X[m, :, 3], f32) - cast(X[m, :, 1], f32)
""",
    "one axis": """
kernel f(X: f32[256, 2], Y: f32[256, 2]):
    for n in tasks(blocks(256, 64)):
        Y[n, 0] = X[n, 0] * X[n, 0] - X[n, 1] * X[n, 1]
        Y[n, 1] = 2.0 * X[n, 0] * X[n, 1]
""",
    "rows reduced": """
kernel f(X: bf16[M, 256, 2], Y: f32[M]):
    for m in tasks(blocks(M, 16)):
        a = cast(X[m, :, 0], f32)
        b = cast(X[m, :, 1], f32)
        Y[m] = sqrt(rowsum(a * a + b * b))
""",
    "four": """
kernel f(X: bf16[M, 64, 4], Y: bf16[M, 64, 4]):
    for m, n in tasks(blocks(M, 16), blocks(64, 32)):
        Y[m, n, 0] = X[m, n, 3]
        Y[m, n, 1] = cast(X[m, n, 2], f32) * 2.0
        Y[m, n, 2] = cast(X[m, n, 1], f32) * 2.0
        Y[m, n, 3] = X[m, n, 0]
""",
    "one place of rows": """
kernel f(X: f32[M, 4, 2], Z: f32[M, 64], Y: f32[M, 64]):
    for m in tasks(blocks(M, 16)):
        t = Z[m, :]
        for n in range(4):
            t = t * X[m, n, 0] + X[m, n, 1]
        Y[m, :] = t + rowsum(X[m, :, 0] * X[m, :, 1])
""",
    "beside a matmul": """
kernel f(A: bf16[M, K], B: bf16[K, 64], R: bf16[M, 64, 2], Y: bf16[M, 64, 2]):
    for m in tasks(blocks(M, 64)):
        acc = zeros(f32, m, 64)
        for k in blocks(K, 64):
            acc += A[m, k] @ B[k, :]
        Y[m, :, 0] = acc + cast(R[m, :, 0], f32)
        Y[m, :, 1] = acc * cast(R[m, :, 1], f32)
""",
    "normalised rows": """
kernel f(X: bf16[M, 4, 64, 2], w: f32[64, 2], c: f32[M, 64], s: f32[M, 64], Y: bf16[M, 4, 64, 2]):
    for m, h in tasks(blocks(M, 8), 4):
        a = cast(X[m, h, :, 0], f32)
        b = cast(X[m, h, :, 1], f32)
        r = rsqrt((rowsum(a * a) + rowsum(b * b)) / 128.0 + 0.00001)
        p = a * r * w[:, 0]
        q = b * r * w[:, 1]
        Y[m, h, :, 0] = p * c[m, :] - q * s[m, :]
        Y[m, h, :, 1] = q * c[m, :] + p * s[m, :]
""",
    "long rows": """
kernel f(X: bf16[M, 4096, 2], Y: bf16[M, 4096, 2]):
    for m in tasks(M):
        a = cast(X[m, :, 0], f32)
        b = cast(X[m, :, 1], f32)
        r = rowsum(a * a + b * b)
        Y[m, :, 0] = a / r
        Y[m, :, 1] = b / r
""",
    "three axes": """
kernel f(X: bf16[M, 4, 32, 2], c: f32[M, 4, 32], Y: bf16[M, 4, 32, 2]):
    for m in tasks(blocks(M, 4)):
        for h in blocks(4, 4):
            a = cast(X[m, h, :, 0], f32)
            b = cast(X[m, h, :, 1], f32)
            Y[m, h, :, 0] = a * c[m, h, :] - b
            Y[m, h, :, 1] = b * c[m, h, :] + a
""",
    "blocks that end early": """
kernel f(X: f32[M, 200, 2], Y: f32[M, 200, 2]):
    for m, d in tasks(blocks(M, 16), blocks(200, 64)):
        Y[m, d, 0] = X[m, d, 1] * 2.0
        Y[m, d, 1] = X[m, d, 0] + 1.0
""",
    "in branches": """
kernel f(X: f32[M, 64, 2], n: i32[1], Y: f32[M, 64, 2]):
    for m in tasks(blocks(M, 8)):
        if n[0] > 0:
            Y[m, :, 0] = X[m, :, 0] * 2.0
            Y[m, :, 1] = X[m, :, 1] * 3.0
        else:
            Y[m, :, 0] = X[m, :, 1]
            Y[m, :, 1] = X[m, :, 0]
""",
    "eight": """
kernel f(X: bf16[M, 64, 8], Y: f32[M, 64]):
    for m, n in tasks(blocks(M, 8), blocks(64, 32)):
        first = (X[m, n, 0] + X[m, n, 1]) + (X[m, n, 2] + X[m, n, 3])
        Y[m, n] = first + (X[m, n, 4] + X[m, n, 5]) + (X[m, n, 6] + X[m, n, 7])
""",
    "two blocks of one array": """
kernel f(X: f32[M, 128, 2], Y: f32[M, 64, 2]):
    for m in tasks(blocks(M, 8)):
        for n in blocks(64, 64):
            Y[m, n, 0] = X[m, n + 0, 0] * X[m, n + 64, 0]
            Y[m, n, 1] = X[m, n + 0, 1] * X[m, n + 64, 1]
""",
    "beside a gather": """
kernel f(X: bf16[M, 64, 2], rows: i32[M], Y: bf16[M, 64, 2]):
    for m in tasks(blocks(M, 16)):
        Y[m, :, 0] = X[rows[m], :, 1]
        Y[m, :, 1] = X[rows[m], :, 0]
""",
    "operands computed of them": """
kernel f(Q: bf16[M, 64, 2], K: bf16[N, 128], Y: f32[M, N]):
    for m, n in tasks(blocks(M, 64), blocks(N, 64)):
        a = cast(Q[m, :, 0], f32) * 2.0
        b = cast(Q[m, :, 1], f32) * 2.0
        Y[m, n] = cast(a, bf16) @ K[n, positions(64)].T + cast(b, bf16) @ K[n, positions(64) + 64].T
""",
    "through scratch memory": """
kernel f(X: bf16[M, 64, 2], T: bf16[M, 64, 2].scratch(), Y: bf16[M, 64]):
    for m in tasks(blocks(M, 16)):
        T[m, :, 0] = X[m, :, 1]
        T[m, :, 1] = X[m, :, 0]
    for m in tasks(blocks(M, 32)):
        Y[m, :] = cast(T[m, :, 0], f32) - cast(T[m, :, 1], f32)
""",
}

MATMULS = {"beside a matmul", "operands computed of them"}
"""Those that multiply."""
