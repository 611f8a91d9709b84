"""C[e] = A[e] @ B[e] for each expert e, of the first count[e] rows of A[e]"""

from typing import no_type_check

import pkc
from pkc.language import *

E, P, N, K = dims("E P N K")


@pkc.kernel
@no_type_check
def grouped_gemm(A: bf16[E, P, K], B: bf16[E, K, N], count: i32[E], C: bf16[E, P, N]):
    for e in tasks(E):
        for p, n in tasks(blocks(P, 128, stop=count[e]), blocks(N, 256)):
            acc = zeros(f32, p, n)
            for k in blocks(K, 64):
                acc += A[e, p, k] @ B[e, k, n]
            C[e, p, n] = acc


if __name__ == "__main__":
    print(grouped_gemm.simulate(ranks=4))
