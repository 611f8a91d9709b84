"""C = scale * A @ B transposed, in 8-bit floats: tensor cores read both operands along K, so B is [N, K]"""

from typing import no_type_check

import pkc
from pkc.language import *

M, K, N = dims("M K N")


@pkc.kernel
@no_type_check
def gemm_fp8(A: e4m3[M, K], B: e4m3[N, K], C: bf16[M, N], scale: f32):
    for m, n in tasks(blocks(M, 128), blocks(N, 256)):
        acc = zeros(f32, m, n)
        for k in blocks(K, 128):
            acc += A[m, k] @ B[n, k].T
        C[m, n] = acc * scale


if __name__ == "__main__":
    print(gemm_fp8.simulate(ranks=4))
