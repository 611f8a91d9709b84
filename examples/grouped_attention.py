"""Attention in which `group` heads of Q share one of K and V; L is the log-sum-exp of each row, to base 2"""

from typing import no_type_check

import pkc
from pkc.language import *

B, H, G, S, D, T = dims("B H G S D T")


@pkc.kernel
@no_type_check
def grouped_attention(
    Q: bf16[B, H, S, D],
    K: bf16[B, G, T, D],
    V: bf16[B, G, T, D],
    O: bf16[B, H, S, D],
    L: f32[B, H, S],
    scale: f32,
    D: const = 128,
    group: const = 4,
    causal: const = False,
):
    k = max(scale, 1e-30)  # surely positive: what is masked stays masked
    for b, h, q in tasks(B, H, blocks(S, 128)):
        top = full(f32, -1e30, q)
        total = zeros(f32, q)
        o = zeros(f32, q, D)
        for kv in blocks(T, 128):
            s = Q[b, h, q] @ K[b, h // group, kv].T
            if causal:  # the last row sees all keys, also where S and T differ
                s = where(positions(q) + (T - S) >= positions(kv), s, -inf)
            t = max(top, rowmax(s) * k)
            p = exp2(s * k - t)
            c = exp2(top - t)
            total = total * c + rowsum(p)
            o = o * c + cast(p, bf16) @ V[b, h // group, kv]
            top = t
        total = max(total, 1e-30)  # zeros where a row sees nothing
        O[b, h, q] = o / total
        L[b, h, q] = top + log2(total)


if __name__ == "__main__":
    print(grouped_attention.simulate(ranks=4))
