"""Programs that are run on GPUs, beside the examples and those of other tests."""

from __future__ import annotations

NESTED = """\
kernel nested(X: bf16[E, M, N], Y: bf16[E, M, N]):
    for e in tasks(E):
        for m, n in tasks(blocks(M, 64), blocks(N, 64)):
            Y[e, m, n] = cast(cast(X[e, m, n], f32) * 0.5, bf16)
"""
ACTIVATIONS = """\
def scaled(x, by):
    return x * by

def gelu(x):
    inner = scaled(x, 0.7071067811865476)
    return scaled(x, 0.5) * (1.0 + erf(inner))

def power(x, n):
    y = x
    for i in range(n - 1):
        y *= x
    return y

"""
EPILOGUE = f"""\
{ACTIVATIONS}kernel mlp_up(X: bf16[M, K], W: bf16[K, N], bias: f32[N], Y: bf16[M, N]):
    for m, n in tasks(blocks(M, 128), blocks(N, 128)):
        acc = zeros(f32, m, n)
        for k in blocks(K, 64):
            acc += X[m, k] @ W[k, n]
        Y[m, n] = gelu(acc + bias[n])
"""
ELEMENTWISE = f"""\
{ACTIVATIONS}kernel activated(X: f32[M, N], Y: f32[M, N]):
    for m, n in tasks(blocks(M, 64), blocks(N, 64)):
        Y[m, n] = gelu(power(X[m, n], 3))
"""
ADDITION = """\
kernel added(A: bf16[M, K], B: bf16[K, N], C: f32[M, N]):
    schedule(deterministic=False)
    for m, n in tasks(blocks(M, 64), blocks(N, 64)):
        C[m, n] = zeros(f32, m, n)
    for m, n, k in tasks(blocks(M, 64), blocks(N, 64), blocks(K, 64)):
        store_add(C[m, n], A[m, k] @ B[k, n])
"""
ROW_SUMS = """\
kernel sums(X: f32[M, N], Z: f32[M]):
    for m in tasks(blocks(M, 128)):
        s = zeros(f32, m)
        for n in blocks(N, 64):
            s += rowsum(X[m, n])
        Z[m] = s
"""
FROM_MEMORY = {
    "copies": """\
kernel copies(count: i32[E], X: bf16[E, M, N], Y: bf16[E, M, N]):
    for e in tasks(E):
        for m, n in tasks(blocks(M, 64, stop=count[e]), blocks(N, 64)):
            Y[e, m, n] = X[e, m, n]
""",
    "indices": """\
kernel indices(count: i32[E], row: i32[E, M], wanted: i32[E], X: bf16[M, N], Y: bf16[E, M, N]):
    for e in tasks(E):
        for i, n in tasks(blocks(M, 1, stop=count[e]), blocks(N, 64)):
            if wanted[e] > 50:
                Y[e, i, n] = X[row[e, i], n]
""",
    "sums": """\
kernel sums(first: i32[E], end: i32[E], X: bf16[E, M, N], Y: f32[E, M]):
    for e, m in tasks(E, blocks(M, 64)):
        acc = zeros(f32, m)
        for n in blocks(N, 64, start=first[e], stop=end[e]):
            acc = acc + rowsum(cast(X[e, m, n], f32))
        Y[e, m] = acc
""",
    "matmuls": """\
kernel matmuls(count: i32[E], end: i32[E], A: bf16[E, M, K], B: bf16[E, K, N], C: bf16[E, M, N]):
    for e in tasks(E):
        for m, n in tasks(blocks(M, 128, stop=count[e]), blocks(N, 128)):
            acc = zeros(f32, m, n)
            for k in blocks(K, 64, stop=end[e]):
                acc += A[e, m, k] @ B[e, k, n]
            C[e, m, n] = acc
""",
}
_COMBINE = """\
kernel combine(Y: bf16[E, P, N], rows: i32[E, P], weight: f32[E, P], count: i32[E], O: bf16[T, N].shard(0)):
"""
COMBINED = {
    "in loops": f"""\
{_COMBINE}\
    for n in tasks(blocks(N, 256)):
        for e in range(E):
            for p in blocks(P, 128, stop=count[e]):
                O[rows[e, p], n] += Y[e, p, n] * weight[e, p]
""",
    "in branches": f"""\
{_COMBINE}\
    for e in tasks(E):
        for p, n in tasks(blocks(P, 128, stop=count[e]), blocks(N, 256)):
            if count[e] > 40:
                O[rows[e, p], n] += Y[e, p, n] * weight[e, p]
""",
}
"""Sums into rows of a table that are repeated, or left out."""

COPY = """\
kernel copy(X: bf16[M, N], Y: bf16[M, N]):
    for m, n in tasks(blocks(M, {rows}), blocks(N, {columns})):
        Y[m, n] = X[m, n]
"""
LONG_ROWS = {
    "softmax": """\
        x = cast(X[m, :], f32)
        e = exp(x - rowmax(x))
        Y[m, :] = e / rowsum(e) * w[:]
        Z[m] = rowmax(x)
""",
    "layernorm": """\
        x = cast(X[m, :], f32)
        c = x - rowsum(x) / LENGTH.0
        s = rsqrt(rowsum(c * c) / LENGTH.0 + 0.001)
        Y[m, :] = c * s * w[:]
        Z[m] = s
""",
    "loss": """\
        x = X[m, :] * 0.5
        Y[m, :] = x
        Z[m] = log(rowsum(exp(x - rowmax(x)))) + rowmax(x)
""",
}
LOOPED_ROWS = {
    "loaded again": """\
        x = cast(X[m, :], f32)
        t = rowmax(x)
        for k in range(3):
            t = rowmax(where(x < t, x, -inf))
        Y[m, :] = where(x >= t, x * w[:], 0.0)
        Z[m] = t
""",
    "carried": """\
        x = cast(X[m, :], f32)
        rest = x; t = rowmax(x)
        for k in range(3):
            t = rowmax(rest)
            rest = where(rest >= t, -9.0, rest)
        Y[m, :] = rest * w[:]
        Z[m] = t
""",
}
"""Long rows that a loop uses."""
_OPERANDS = {"16 bits": ("B: {t}[K, N]", "B[k, n]"), "8 bits": ("B: {t}[N, K]", "B[n, k].T")}
COLLECTIVES = {
    "rs": ("A: {t}[M, K]", "C: {c}[M, N].shard(0)", "+="),
    "ar": ("A: {t}[M, K]", "C: {c}[M, N].replicate()", "+="),
    "ag": ("A: {t}[M, K].shard(0)", "C: {c}[M, N]", "="),
}


def with_collective(family: str, kind: str, result: str) -> str:
    """A matmul with a collective, of other element types than those of the examples."""
    left, target, write = COLLECTIVES[family]
    right, operand = _OPERANDS["8 bits" if kind in ("e4m3", "e5m2") else "16 bits"]
    arrays = ", ".join((left, right, target)).format(t=kind, c=result)
    return (
        f"kernel matmul_{family}({arrays}):\n"
        "    for m, n in tasks(blocks(M, 128), blocks(N, 128)):\n"
        "        acc = zeros(f32, m, n)\n"
        "        for k in blocks(K, 64):\n"
        f"            acc += A[m, k] @ {operand}\n"
        f"        C[m, n] {write} acc\n"
    )
