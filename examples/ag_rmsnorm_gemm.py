"""C = all_gather(X / sqrt(mean(X * X)) * w) @ B: each rank normalises its rows, which all ranks fetch"""

import pkc
from pkc.language import *

M, K, N = dims("M K N")


@pkc.kernel
def ag_rmsnorm_gemm(
    X: bf16[M, K].shard(0),
    w: bf16[K],
    B: bf16[K, N],
    C: bf16[M, N],
    A: bf16[M, K].shard(0).scratch(),
    K: const = 8192,
):
    for m in tasks(blocks(M, 2, of=rank)):
        x = cast(X[m, :], f32)
        A[m, :] = x * rsqrt(rowsum(x * x) / cast(K, f32) + 0.00001) * w[:]
    for m, n in tasks(blocks(M, 128), blocks(N, 256)):
        acc = zeros(f32, m, n)
        for k in blocks(K, 64):
            acc += A[m, k] @ B[k, n]
        C[m, n] = acc
