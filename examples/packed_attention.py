"""Attention of sequences of different lengths, one behind the other: sequence b has rows rows[b] to rows[b + 1] and
keys keys[b] to keys[b + 1]; `group` heads of Q share one of K and V"""

from typing import no_type_check

import pkc
from pkc.language import *

S, H, D, T, G, N = dims("S H D T G N")


@pkc.kernel
@no_type_check
def packed_attention(
    Q: bf16[S, H, D],
    K: bf16[T, G, D],
    V: bf16[T, G, D],
    O: bf16[S, H, D],
    rows: i32[N],
    keys: i32[N],
    scale: f32,
    D: const = 128,
    group: const = 1,
    causal: const = False,
):
    k = max(scale, 1e-30)  # surely positive: what is masked stays masked
    for b in tasks(N - 1):
        for h, q in tasks(H, blocks(S, 128, start=rows[b], stop=rows[b + 1])):
            top = full(f32, -1e30, q)
            total = zeros(f32, q)
            o = zeros(f32, q, D)
            for kv in blocks(T, 128, start=keys[b], stop=keys[b + 1]):
                s = Q[q, h] @ K[kv, h // group].T
                if causal:  # the last row of a sequence sees all of its keys
                    s = where(positions(q) + keys[b + 1] - rows[b + 1] >= positions(kv), s, -inf)
                t = max(top, rowmax(s) * k)
                p = exp2(s * k - t)
                c = exp2(top - t)
                total = total * c + rowsum(p)
                o = o * c + cast(p, bf16) @ V[kv, h // group]
                top = t
            O[q, h] = o / max(total, 1e-30)  # zeros where a row sees nothing


if __name__ == "__main__":
    print(packed_attention.simulate(ranks=4))
