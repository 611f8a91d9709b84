"""The gradients of K and V in ring_attention: Q, dO and the sums of their rows come round the ring"""

from typing import no_type_check

import pkc
from pkc.language import *

B, H, S, D, T, zigzag = dims("B H S D T zigzag")


@pkc.kernel
@no_type_check
def ring_attention_dkdv(
    Q: bf16[B, H, S, D].shard(2, zigzag=zigzag),
    K: bf16[B, H, T, D].shard(2, zigzag=zigzag),
    V: bf16[B, H, T, D].shard(2, zigzag=zigzag),
    dO: bf16[B, H, S, D].shard(2, zigzag=zigzag),
    L: f32[B, H, S].shard(2, zigzag=zigzag),
    delta: f32[B, H, S].shard(2, zigzag=zigzag),
    dK: bf16[B, H, T, D].shard(2, zigzag=zigzag),
    dV: bf16[B, H, T, D].shard(2, zigzag=zigzag),
    scale: f32,
    D: const = 128,
    causal: const = False,
    zigzag: const = False,
):
    schedule(tile_S=64, tile_T=128, stages=2)
    k = max(scale, 1e-30)  # surely positive: what is masked stays masked
    for b, h, kv in tasks(B, H, blocks(T, 128, of=rank)):
        dk = zeros(f32, kv, D)
        dv = zeros(f32, kv, D)
        for r in ring():  # rank, rank + 1, ... : the order in which shards arrive
            for q in blocks(S, 64, of=r):  # keys are rows: what is computed are left operands, in registers
                s = K[b, h, kv] @ Q[b, h, q].T
                dp = V[b, h, kv] @ dO[b, h, q].T - delta[b, h, q]
                if causal:
                    s = where(positions(kv) <= positions(q), s, -inf)
                p = exp2(s * k - L[b, h, q])
                dv += cast(p, bf16) @ dO[b, h, q]
                dk += cast(p * dp, bf16) @ Q[b, h, q]
        dV[b, h, kv] = dv
        dK[b, h, kv] = dk * (k * 0.6931471805599453)  # scale includes log2(e)


if __name__ == "__main__":
    print(ring_attention_dkdv.simulate(ranks=4))
