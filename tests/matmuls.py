"""Matmuls of two tiles: the element types, which way round operands lie, and one that is computed in registers."""

from __future__ import annotations

MATMUL = """\
kernel matmul(A: {a}, B: {b}, C: {c}[M, N]):
    for m, n in tasks(blocks(M, {rows}), blocks(N, {columns})):
        acc = zeros(f32, m, n)
        for k in blocks(K, 64):
            acc += {left} @ {right}
        C[m, n] = acc
"""

FORMS = {
    "nn": ("{a}[M, K]", "{b}[K, N]", "A[m, k]", "B[k, n]"),
    "nt": ("{a}[M, K]", "{b}[N, K]", "A[m, k]", "B[n, k].T"),
    "tn": ("{a}[K, M]", "{b}[K, N]", "A[k, m].T", "B[k, n]"),
    "tt": ("{a}[K, M]", "{b}[N, K]", "A[k, m].T", "B[n, k].T"),
    "registers": ("{a}[M, K]", "{b}[K, N]", "cast(max(cast(A[m, k], f32), 0.0), {b})", "B[k, n]"),
}
"""Arrays and operands: `n` as they lie, `t` the other way round; the last one computes its left operand."""


def matmul(form: str, a: str, b: str, *, c: str = "f32", rows: int = 128, columns: int = 128) -> str:
    """The text of a kernel that multiplies A of type `a` and B of type `b` into C of type `c`."""
    left, right, first, second = (text.format(a=a, b=b) for text in FORMS[form])
    return MATMUL.format(a=left, b=right, c=c, left=first, right=second, rows=rows, columns=columns)


LOOPS = {
    "gate_up": """\
kernel k(A: bf16[M, K].shard(0), B: bf16[K, N], D: bf16[K, N], C: bf16[M, N]):
    for m, n in tasks(blocks(M, 128), blocks(N, 64)):
        gate = zeros(f32, m, n)
        up = zeros(f32, m, n)
        for k in blocks(K, 64):
            gate += A[m, k] @ B[k, n]
            up += A[m, k] @ D[k, n]
        C[m, n] = gate * up
""",
    "chain": """\
kernel k(A: bf16[M, K], B: bf16[K, N], D: bf16[M, K], E: bf16[K, N], C: f32[M, N].shard(0)):
    for m, n in tasks(blocks(M, 128), blocks(N, 64)):
        acc = zeros(f32, m, n)
        for k in blocks(K, 64):
            acc += A[m, k] @ B[k, n]
            acc += D[m, k] @ E[k, n]
        C[m, n] += acc
""",
    "twice": """\
kernel k(A: bf16[M, K], B: bf16[K, N], D: bf16[M, L], E: bf16[L, N], C: f32[M, N]):
    for m, n in tasks(blocks(M, 128), blocks(N, 64)):
        acc = zeros(f32, m, n)
        for k in blocks(K, 64):
            acc += A[m, k] @ B[k, n]
        for l in blocks(L, 64):
            acc += D[m, l] @ E[l, n]
        C[m, n] = acc
""",
    "outer": """\
kernel k(A: bf16[M, D], B: bf16[L, N, D], C: f32[M, N], D: const = 64):
    for m, n in tasks(blocks(M, 128), blocks(N, 64)):
        a = A[m]
        acc = zeros(f32, m, n)
        for i in range(L):
            acc += a @ B[i, n].T
        C[m, n] = acc
""",
    "carried": """\
kernel k(A: bf16[M, K], B: bf16[K, N], C: f32[M, N]):
    for m, n in tasks(blocks(M, 128), blocks(N, 64)):
        acc = zeros(f32, m, n)
        rows = zeros(f32, m)
        i = 0
        for k in blocks(K, 64):
            acc += A[m, k] @ B[k, n]
            rows = rows + rowsum(A[m, k]) * cast(i, f32)
            i = (i + 3) % 5
        C[m, n] = acc + rows
""",
    "branch": """\
kernel k(A: bf16[M, K], B: bf16[K, N], C: f32[M, N]):
    for m, n in tasks(blocks(M, 128), blocks(N, 64)):
        acc = zeros(f32, m, n)
        rows = zeros(f32, m)
        i = 0
        for k in blocks(K, 64):
            acc += A[m, k] @ B[k, n]
            if i > 1:
                rows = rows + 1.0
            i = i + 1
        C[m, n] = acc + rows
""",
}
"""Loops whose MMAs stay in flight: two accumulators that share an operand, two MMAs into one, an operand from outside,
other values carried, a branch beside."""

SUMS = {
    "two": """\
kernel k(A: bf16[M, K], B: bf16[K, N], D: bf16[K, N], C: bf16[M, N].shard(0), E: bf16[M, N].replicate()):
    for m, n in tasks(blocks(M, 64), blocks(N, 64)):
        first = zeros(f32, m, n)
        second = zeros(f32, m, n)
        for k in blocks(K, 64):
            first += A[m, k] @ B[k, n]
            second += A[m, k] @ D[k, n]
        C[m, n] += first
        E[m, n] += second
""",
    "rows": """\
kernel k(A: bf16[M, K], B: bf16[K, D], C: bf16[M, D].shard(0), D: const = 64):
    for m in tasks(blocks(M, 64)):
        acc = zeros(f32, m, D)
        for k in blocks(K, 64):
            acc += A[m, k] @ B[k]
        C[m] += acc
""",
    "phases": """\
kernel k(A: bf16[M, K], B: bf16[K, N], C: bf16[M, N].shard(0), E: bf16[M, N].shard(0)):
    for m, n in tasks(blocks(M, 64), blocks(N, 64)):
        acc = zeros(f32, m, n)
        for k in blocks(K, 64):
            acc += A[m, k] @ B[k, n]
        C[m, n] += acc
    for m, n in tasks(blocks(M, 64), blocks(N, 64)):
        E[m, n] += cast(C[m, n], f32) * 2.0
""",
    "of iterations": """\
kernel k(A: bf16[M, K], B: bf16[K, N], C: bf16[M, N].shard(0)):
    for m in tasks(blocks(M, 64)):
        for n in blocks(N, 64):
            for k in blocks(K, 64):
                C[m, n] += A[m, k] @ B[k, n]
            C[m, n] += full(f32, 1.0, m, n)
""",
}
"""Sums over ranks that consumers share: two of one task, one whose tasks have one index, one of two phases."""

BATCHED = """\
kernel batched(A: bf16[B, M, K], W: bf16[B, K, N], C: bf16[B, M, N]):
    for b, m, n in tasks(B, blocks(M, 128), blocks(N, 128)):
        acc = zeros(f32, m, n)
        for k in blocks(K, {depth}):
            acc += A[b, m, k] @ W[b, k, n]
        C[b, m, n] = acc
"""
"""A matmul for each of several pairs, in steps of `depth` along what is summed over."""

GRAM = """\
kernel gram(A: bf16[M, K], C: f32[M, M]):
    for m, n in tasks(blocks(M, 128), blocks(M, 128)):
        acc = zeros(f32, m, n)
        for k in blocks(K, 64):
            acc += A[m, k] @ A[n, k].T
        C[m, n] = acc
"""
"""A matrix times itself, transposed."""
