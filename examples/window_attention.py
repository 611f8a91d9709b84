"""Attention of the last S of T positions: each sees itself and the window - 1 positions before it"""

from typing import no_type_check

import pkc
from pkc.language import *

B, H, S, D, T = dims("B H S D T")


@pkc.kernel
@no_type_check
def window_attention(
    Q: bf16[B, H, S, D],
    K: bf16[B, H, T, D],
    V: bf16[B, H, T, D],
    O: bf16[B, H, S, D],
    scale: f32,
    D: const = 128,
    window: const = 1024,
):
    for b, h, q in tasks(B, H, blocks(S, 128)):
        top = full(f32, -1e30, q)
        total = zeros(f32, q)
        o = zeros(f32, q, D)
        first = start(q) + (T - S)  # of the keys, the one at the first row
        for kv in blocks(T, 128, start=first - window + 1, stop=first + 128):
            s = Q[b, h, q] @ K[b, h, kv].T * scale
            before = positions(q) + (T - S) - positions(kv)
            s = where(before >= 0 and before < window, s, -inf)
            t = max(top, rowmax(s))
            p = exp2(s - t)
            c = exp2(top - t)
            total = total * c + rowsum(p)
            o = o * c + cast(p, bf16) @ V[b, h, kv]
            top = t
        O[b, h, q] = o / max(total, 1e-30)


if __name__ == "__main__":
    print(window_attention.simulate(ranks=4))
