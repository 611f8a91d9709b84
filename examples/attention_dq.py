"""The gradient of Q in grouped_attention, from that of O and the sums of attention_delta"""

from typing import no_type_check

import pkc
from pkc.language import *

B, H, G, S, D, T = dims("B H G S D T")


@pkc.kernel
@no_type_check
def attention_dq(
    Q: bf16[B, H, S, D],
    K: bf16[B, G, T, D],
    V: bf16[B, G, T, D],
    dO: bf16[B, H, S, D],
    L: f32[B, H, S],
    delta: f32[B, H, S],
    dQ: bf16[B, H, S, D],
    scale: f32,
    D: const = 128,
    group: const = 1,
    causal: const = False,
):
    schedule(tile_S=128, tile_T=128)
    k = max(scale, 1e-30)  # surely positive: what is masked stays masked
    for b, h, q in tasks(B, H, blocks(S, 128)):
        dq = zeros(f32, q, D)
        for kv in blocks(T, 128):
            s = Q[b, h, q] @ K[b, h // group, kv].T
            dp = dO[b, h, q] @ V[b, h // group, kv].T
            if causal:  # the last row sees all keys, also where S and T differ
                s = where(positions(q) + (T - S) >= positions(kv), s, -inf)
            p = exp2(s * k - L[b, h, q])
            dq += cast(p * (dp - delta[b, h, q]), bf16) @ K[b, h // group, kv]
        dQ[b, h, q] = dq * (k * 0.6931471805599453)  # scale includes log2(e)


if __name__ == "__main__":
    print(attention_dq.simulate(ranks=4))
