"""The gradients of K and V in grouped_attention, from that of O and the sums of attention_delta"""

from typing import no_type_check

import pkc
from pkc.language import *

B, H, G, S, D, T = dims("B H G S D T")


@pkc.kernel
@no_type_check
def attention_dkdv(
    Q: bf16[B, H, S, D],
    K: bf16[B, G, T, D],
    V: bf16[B, G, T, D],
    dO: bf16[B, H, S, D],
    L: f32[B, H, S],
    delta: f32[B, H, S],
    dK: bf16[B, G, T, D],
    dV: bf16[B, G, T, D],
    scale: f32,
    D: const = 128,
    group: const = 1,
    causal: const = False,
):
    schedule(tile_S=64, tile_T=128, stages=2)
    k = max(scale, 1e-30)  # surely positive: what is masked stays masked
    for b, g, kv in tasks(B, G, blocks(T, 128)):
        dk = zeros(f32, kv, D)
        dv = zeros(f32, kv, D)
        for i in range(group):
            h = g * group + i
            for q in blocks(S, 64):  # keys are rows: what is computed are left operands, in registers
                s = K[b, g, kv] @ Q[b, h, q].T
                dp = V[b, g, kv] @ dO[b, h, q].T - delta[b, h, q]
                if causal:  # the last row sees all keys, also where S and T differ
                    s = where(positions(kv) <= positions(q) + (T - S), s, -inf)
                p = exp2(s * k - L[b, h, q])
                dv += cast(p, bf16) @ dO[b, h, q]
                dk += cast(p * dp, bf16) @ Q[b, h, q]
        dV[b, g, kv] = dv
        dK[b, g, kv] = dk * (k * 0.6931471805599453)  # scale includes log2(e)


if __name__ == "__main__":
    print(attention_dkdv.simulate(ranks=4))
