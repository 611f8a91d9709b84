"""grouped_attention over a sequence that is spread over the ranks: K and V come round the ring"""

from typing import no_type_check

import pkc
from pkc.language import *

B, H, G, S, D, zigzag = dims("B H G S D zigzag")


@pkc.kernel
@no_type_check
def grouped_ring_attention(
    Q: bf16[B, H, S, D].shard(2, zigzag=zigzag),
    K: bf16[B, G, S, D].shard(2, zigzag=zigzag),
    V: bf16[B, G, S, D].shard(2, zigzag=zigzag),
    O: bf16[B, H, S, D].shard(2, zigzag=zigzag),
    L: f32[B, H, S].shard(2, zigzag=zigzag),
    scale: f32,
    D: const = 128,
    group: const = 4,
    causal: const = False,
    zigzag: const = False,
):
    k = max(scale, 1e-30)  # surely positive: what is masked stays masked
    for b, g, i, q in tasks(B, G, group, blocks(S, 128, of=rank)):
        h = g * group + i
        x = Q[b, h, q]
        top = full(f32, -inf, q)
        total = zeros(f32, q)
        o = zeros(f32, q, D)
        for r in ring():  # rank, rank + 1, ... : the order in which shards arrive
            for kv in blocks(S, 128, of=r):
                s = x @ K[b, g, kv].T
                if causal:
                    s = where(positions(q) >= positions(kv), s, -inf)
                t = max(top, rowmax(s) * k)
                p = exp2(s * k - t)
                c = exp2(top - t)
                total = total * c + rowsum(p)
                o = o * c + cast(p, bf16) @ V[b, g, kv]
                top = t
        O[b, h, q] = o / total
        L[b, h, q] = top + log2(total)


if __name__ == "__main__":
    print(grouped_ring_attention.simulate(ranks=4))
