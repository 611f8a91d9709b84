"""C = all_reduce(A @ B): every rank holds a K-slice and ends with all of C"""

from typing import no_type_check

import pkc
from pkc.language import *

M, K, N = dims("M K N")


@pkc.kernel
@no_type_check
def gemm_ar(A: bf16[M, K], B: bf16[K, N], C: bf16[M, N].replicate()):
    for m, n in tasks(blocks(M, 128), blocks(N, 256)):
        acc = zeros(f32, m, n)
        for k in blocks(K, 64):
            acc += A[m, k] @ B[k, n]
        C[m, n] += acc  # summed over ranks into every copy


if __name__ == "__main__":
    print(gemm_ar.simulate(ranks=4))
