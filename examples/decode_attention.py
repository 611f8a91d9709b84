"""Attention of R rows, those of all heads that share a head of K and V, over length[b] keys of each rank. In the first
phase each task has a split of a rank's keys; in the second one each rank puts together what all have of some rows"""

import pkc
from pkc.language import *

B, G, R, D, T, splits = dims("B G R D T splits")


@pkc.kernel
def decode_attention(
    Q: bf16[B, G, R, D].replicate(),
    K: bf16[B, G, T, D],
    V: bf16[B, G, T, D],
    length: i32[B],
    O: bf16[B, G, R, D].replicate(),
    P: f32[B, G, splits, R, D].symmetric().scratch(),
    L: f32[B, G, splits, 2, R].symmetric().scratch(),
    scale: f32,
    D: const = 128,
    splits: const = 4,
):
    k = max(scale, 1e-30)
    for b, g, i, q in tasks(B, G, splits, blocks(R, 16)):
        top = full(f32, -1e30, q)
        total = zeros(f32, q)
        o = zeros(f32, q, D)
        n = (length[b] + 128 * splits - 1) // (128 * splits) * 128
        for kv in blocks(T, 128, start=i * n, stop=min(i * n + n, length[b])):
            s = Q[b, g, q] @ K[b, g, kv].T
            t = max(top, rowmax(s) * k)
            p = exp2(s * k - t)
            c = exp2(top - t)
            total = total * c + rowsum(p)
            o = o * c + cast(p, bf16) @ V[b, g, kv]
            top = t
        P[b, g, i, q] = o
        L[b, g, i, 0, q] = top
        L[b, g, i, 1, q] = total
    for b, g, q in tasks(blocks(B, 1, of=rank), G, blocks(R, 16)):
        top = full(f32, -1e30, q)
        total = zeros(f32, q)
        o = zeros(f32, q, D)
        for r in ring():
            for i in range(splits):
                t = max(top, L.at(r)[b, g, i, 0, q])
                c = exp2(top - t)
                w = exp2(L.at(r)[b, g, i, 0, q] - t)
                total = total * c + L.at(r)[b, g, i, 1, q] * w
                o = o * c + P.at(r)[b, g, i, q] * w
                top = t
        O[b, g, q] = o / max(total, 1e-30)  # zeros where there are no keys
