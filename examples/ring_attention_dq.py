"""The gradient of Q in grouped_ring_attention, from that of O and the sums of attention_delta"""

from typing import no_type_check

import pkc
from pkc.language import *

B, H, G, S, D, T, zigzag = dims("B H G S D T zigzag")


@pkc.kernel
@no_type_check
def ring_attention_dq(
    Q: bf16[B, H, S, D].shard(2, zigzag=zigzag),
    K: bf16[B, G, T, D].shard(2, zigzag=zigzag),
    V: bf16[B, G, T, D].shard(2, zigzag=zigzag),
    dO: bf16[B, H, S, D].shard(2, zigzag=zigzag),
    L: f32[B, H, S].shard(2, zigzag=zigzag),
    delta: f32[B, H, S].shard(2, zigzag=zigzag),
    dQ: bf16[B, H, S, D].shard(2, zigzag=zigzag),
    scale: f32,
    D: const = 128,
    group: const = 1,
    causal: const = False,
    zigzag: const = False,
):
    schedule(tile_S=128, tile_T=128)
    k = max(scale, 1e-30)  # surely positive: what is masked stays masked
    for b, g, i, q in tasks(B, G, group, blocks(S, 128, of=rank)):
        h = g * group + i
        x = Q[b, h, q]
        y = dO[b, h, q]
        top = L[b, h, q]
        sums = delta[b, h, q]
        dq = zeros(f32, q, D)
        for r in ring():  # rank, rank + 1, ... : the order in which shards arrive
            for kv in blocks(T, 128, of=r):
                s = x @ K[b, g, kv].T
                dp = y @ V[b, g, kv].T
                if causal:
                    s = where(positions(q) >= positions(kv), s, -inf)
                p = exp2(s * k - top)
                dq += cast(p * (dp - sums), bf16) @ K[b, g, kv]
        dQ[b, h, q] = dq * (k * 0.6931471805599453)  # scale includes log2(e)


if __name__ == "__main__":
    print(ring_attention_dq.simulate(ranks=4))
