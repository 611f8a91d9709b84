"""S = the sum of all ranks' X, and R; Y = S / sqrt(mean(S * S)) * w, by rows: each rank does a share of them for all"""

import pkc
from pkc.language import *

M, H = dims("M H")


@pkc.kernel
def all_reduce_rmsnorm(
    X: bf16[M, H].symmetric(),
    R: bf16[M, H],
    w: bf16[H],
    S: bf16[M, H].replicate(),
    Y: bf16[M, H].replicate(),
    H: const = 8192,
):
    for m in tasks(blocks(M, 2, of=rank)):
        s = cast(R[m, :], f32)
        for r in ring():
            s += X.at(r)[m, :]
        S[m, :] = s
        Y[m, :] = s * rsqrt(rowsum(s * s) / cast(H, f32) + 0.00001) * w[:]
