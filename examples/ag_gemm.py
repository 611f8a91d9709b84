"""C = all_gather(A) @ B: A's rows are spread over the ranks"""

from typing import no_type_check

import pkc
from pkc.language import *

M, K, N = dims("M K N")


@pkc.kernel
@no_type_check
def ag_gemm(A: bf16[M, K].shard(0), B: bf16[K, N], C: bf16[M, N]):
    for m, n in tasks(blocks(M, 128), blocks(N, 256)):
        acc = zeros(f32, m, n)
        for k in blocks(K, 64):
            acc += A[m, k] @ B[k, n]  # foreign rows arrive while own rows are computed
        C[m, n] = acc


if __name__ == "__main__":
    print(ag_gemm.simulate(ranks=4))
