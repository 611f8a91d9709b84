"""Programs whose loops over N carry what splits merge: sums, maxima, minima, sums that grow with a maximum."""

from __future__ import annotations

HEAD = """kernel k(X: f32[M, N], W: f32[N, D], b: f32[M], Y: f32[M], Z: f32[M, D], D: const = 16):
    for m in tasks(blocks(M, 32)):
"""
ONLINE = (
    HEAD
    + """        top = full(f32, -inf, m); total = zeros(f32, m); o = zeros(f32, m, D)
        for n in blocks(N, 32):
            x = X[m, n]
            {body}
        Y[m] = total; Z[m] = o
"""
)
"""A loop of which `body` is the rest, in front of what it stores."""

ATTENDING = "t = max(top, rowmax(x)); p = exp2(x - t); c = exp2(top - t); total = total * c + rowsum(p)"
_PRODUCT = "o = o * c + p @ W[n]; top = t"
_PLAIN = """kernel k(X: f32[M, N], b: f32[M], Y: f32[M]):
    for m in tasks(blocks(M, 32)):
        {first}
        for n in blocks(N, 32):
            {body}
        Y[m] = {last}
"""


def online(body: str, x: str = "X[m, n]") -> str:
    return ONLINE.replace("x = X[m, n]", f"x = {x}").format(body=body)


PROGRAMS = {
    "attention": online(f"{ATTENDING}; {_PRODUCT}"),
    "scaled inside": online(
        "k = 1.5; t = max(top, rowmax(x)); p = exp((x - t) * k); c = exp((top - t) * k);"
        f" total = total * c + rowsum(p); {_PRODUCT}"
    ),
    "scaled apart": online(
        "k = 1.5; t = max(top, rowmax(x)); p = exp(x * k - t * k); c = exp(top * k - t * k);"
        f" total = rowsum(p) + c * total; {_PRODUCT}"
    ),
    "one of two": online(f"{ATTENDING}; o = o + x @ W[n]; top = t"),
    "weighted": online(f"{ATTENDING}; o = o * c + (p * x) @ W[n] * 0.5; top = t"),
    "masked": online(f"{ATTENDING}; {_PRODUCT}", "where((positions(n) < 20) or (positions(n) >= 250), X[m, n], -inf)"),
    "sum": _PLAIN.format(first="acc = b[m]", body="acc = acc + rowsum(X[m, n])", last="acc"),
    "maximum": _PLAIN.format(first="acc = full(f32, 0.5, m)", body="acc = max(acc, rowmax(X[m, n]))", last="acc"),
    "minimum": _PLAIN.format(first="acc = b[m]", body="acc = min(rowmin(X[m, n]), acc)", last="acc * 2.0"),
    "sink": _PLAIN.format(
        first="top = b[m]; acc = full(f32, 1.0, m)",
        body="t = max(top, rowmax(X[m, n])); acc = acc * exp2(top - t) + rowsum(exp2(X[m, n] - t)); top = t",
        last="top + log2(acc)",
    ),
}
"""In `masked` splits in the middle have no maximum but -inf, of more than 250 positions; the last four begin with
something else than what changes nothing."""

DECODE = """kernel k(Q: bf16[B, H, R, D], K: bf16[B, H, N, D], V: bf16[B, H, N, D], length: i32[B], O: bf16[B, H, R, D],
         D: const = 64, R: const = 8):
    for b, h in tasks(B, H):
        q = Q[b, h]
        top = full(f32, -inf, R); total = zeros(f32, R); o = zeros(f32, R, D)
        for n in blocks(N, 64, stop=max(length[b], 1)):
            s = q @ K[b, h, n].T * 0.18
            t = max(top, rowmax(s)); p = exp2(s - t); c = exp2(top - t)
            total = total * c + rowsum(p)
            o = o * c + cast(p, bf16) @ V[b, h, n]
            top = t
        O[b, h] = o / total
"""
"""Attention of one token, of which 8 queries share a head of keys."""
