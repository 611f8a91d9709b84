"""O = softmax(Q @ K^T * scale) @ V on each rank by itself; scale includes log2(e), and is > 0"""

from typing import no_type_check

import pkc
from pkc.language import *

B, H, S, D, T = dims("B H S D T")


@pkc.kernel
@no_type_check
def attention(
    Q: bf16[B, H, S, D],
    K: bf16[B, H, T, D],
    V: bf16[B, H, T, D],
    O: bf16[B, H, S, D],
    scale: f32,
    D: const = 128,
    causal: const = False,
):
    k = max(scale, 1e-30)  # surely positive: what is masked stays masked
    for b, h, q in tasks(B, H, blocks(S, 128)):
        top = full(f32, -inf, q)
        total = zeros(f32, q)
        o = zeros(f32, q, D)
        for kv in blocks(T, 128):
            s = Q[b, h, q] @ K[b, h, kv].T
            if causal:
                s = where(positions(q) >= positions(kv), s, -inf)
            t = max(top, rowmax(s) * k)
            p = exp2(s * k - t)
            c = exp2(top - t)
            total = total * c + rowsum(p)
            o = o * c + cast(p, bf16) @ V[b, h, kv]
            top = t
        O[b, h, q] = o / total


if __name__ == "__main__":
    print(attention.simulate(ranks=4))
