"""Products of two tiles: the element types, which way round operands lie, and one that is computed in registers."""

from __future__ import annotations

PRODUCT = """\
kernel product(A: {a}, B: {b}, C: {c}[M, N]):
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
"""Arrays and operands: `n` as they are multiplied, `t` the other way round; the last one computes its left operand."""


def product(form: str, a: str, b: str, *, c: str = "f32", rows: int = 128, columns: int = 128) -> str:
    """The text of a kernel that multiplies A of type `a` and B of type `b` into C of type `c`."""
    left, right, first, second = (text.format(a=a, b=b) for text in FORMS[form])
    return PRODUCT.format(a=left, b=right, c=c, left=first, right=second, rows=rows, columns=columns)
