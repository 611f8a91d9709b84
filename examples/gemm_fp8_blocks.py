"""C = A @ B transposed, in 8-bit floats with scales: of each row of A for 128 columns, of blocks of 128 x 128 of B"""

from typing import no_type_check

import pkc
from pkc.language import *

M, K, N, G, H = dims("M K N G H")


@pkc.kernel
@no_type_check
def gemm_fp8_blocks(A: e4m3[M, K], B: e4m3[N, K], a_scale: f32[G, M], b_scale: f32[H, G], C: bf16[M, N]):
    for m, n in tasks(blocks(M, 256), blocks(N, 128)):
        acc = zeros(f32, m, n)
        for k in blocks(K, 128):
            g = start(k) // 128
            acc += A[m, k] @ B[n, k].T * (a_scale[g, m] * b_scale[start(n) // 128, g])
        C[m, n] = acc


if __name__ == "__main__":
    print(gemm_fp8_blocks.simulate(ranks=4))
