"""Attention of few rows, those of all heads that share head h of K and V, over length[h] keys of each rank; H counts
the heads of K and V of all sequences. In the first phase each task has a split of a rank's keys; in the second one each
rank puts together what all ranks have of some rows"""

from typing import no_type_check

import pkc
from pkc.language import *

H, R, D, T, splits = dims("H R D T splits")


@pkc.kernel
@no_type_check
def decode_attention(
    Q: bf16[H, R, D].replicate(),
    K: bf16[H, T, D],
    V: bf16[H, T, D],
    length: i32[H],
    O: bf16[H, R, D].replicate(),
    P: f32[H, splits, R, D].symmetric().scratch(),
    L: f32[H, splits, 2, R].symmetric().scratch(),
    scale: f32,
    D: const = 128,
    splits: const = 4,
):
    k = max(scale, 1e-30)
    for h, i, q in tasks(H, splits, blocks(R, 16)):
        top = full(f32, -1e30, q)
        total = zeros(f32, q)
        o = zeros(f32, q, D)
        n = (length[h] + 128 * splits - 1) // (128 * splits) * 128
        for kv in blocks(T, 128, start=i * n, stop=min(i * n + n, length[h])):
            s = Q[h, q] @ K[h, kv].T
            t = max(top, rowmax(s) * k)
            p = exp2(s * k - t)
            c = exp2(top - t)
            total = total * c + rowsum(p)
            o = o * c + cast(p, bf16) @ V[h, kv]
            top = t
        P[h, i, q] = o
        L[h, i, 0, q] = top
        L[h, i, 1, q] = total
    for h, q in tasks(blocks(H, 1, of=rank), blocks(R, 16)):
        top = full(f32, -1e30, q)
        total = zeros(f32, q)
        o = zeros(f32, q, D)
        for r in ring():
            for i in range(splits):
                t = max(top, L.at(r)[h, i, 0, q])
                c = exp2(top - t)
                w = exp2(L.at(r)[h, i, 0, q] - t)
                total = total * c + L.at(r)[h, i, 1, q] * w
                o = o * c + P.at(r)[h, i, q] * w
                top = t
        O[h, q] = o / max(total, 1e-30)  # zeros where there are no keys


if __name__ == "__main__":
    print(decode_attention.simulate(ranks=4))
