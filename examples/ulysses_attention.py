"""Attention with the sequence spread in and out, but heads computed per rank: no all-to-all in sight; scale > 0"""

from typing import no_type_check

import pkc
from pkc.language import *

B, H, S, D = dims("B H S D")


@pkc.kernel
@no_type_check
def ulysses_attention(
    Q: bf16[B, H, S, D].shard(2),
    K: bf16[B, H, S, D].shard(2),
    V: bf16[B, H, S, D].shard(2),
    O: bf16[B, H, S, D].shard(2),
    scale: f32,
    D: const = 128,
    causal: const = False,
):
    k = max(scale, 1e-30)  # surely positive: what is masked stays masked
    for b, h, q in tasks(B, blocks(H, 1, of=rank), blocks(S, 128)):
        top = full(f32, -inf, q)
        total = zeros(f32, q)
        o = zeros(f32, q, D)
        for kv in blocks(S, 128):
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
    print(ulysses_attention.simulate(ranks=4))
