"""S = reduce_scatter(A @ B) + R; Y = S / sqrt(mean(S * S)) * w, of the rows that a rank ends with"""

import pkc
from pkc.language import *

M, K, N = dims("M K N")


@pkc.kernel
def gemm_rs_rmsnorm(
    A: bf16[M, K],
    B: bf16[K, N],
    R: bf16[M, N].shard(0),
    w: bf16[N],
    S: bf16[M, N].shard(0),
    Y: bf16[M, N].shard(0),
    P: bf16[M, N].shard(0).scratch(),
    N: const = 8192,
):
    schedule(row=1024)  # rows in pieces leave shared memory to the stages of A and B
    for m, n in tasks(blocks(M, 128), blocks(N, 256)):
        acc = zeros(f32, m, n)
        for k in blocks(K, 64):
            acc += A[m, k] @ B[k, n]
        P[m, n] += acc
    for m in tasks(blocks(M, 2, of=rank)):
        s = P[m, :] + R[m, :]
        S[m, :] = s
        Y[m, :] = s * rsqrt(rowsum(s * s) / cast(N, f32) + 0.00001) * w[:]
