"""Y = silu(X @ W) * (X @ V) on each rank by itself: two MMAs, one epilogue"""

from typing import no_type_check

import pkc
from pkc.language import *

M, K, N = dims("M K N")


@pkc.kernel
@no_type_check
def swiglu(X: bf16[M, K], W: bf16[K, N], V: bf16[K, N], Y: bf16[M, N]):
    for m, n in tasks(blocks(M, 128), blocks(N, 128)):
        gate = zeros(f32, m, n)
        up = zeros(f32, m, n)
        for k in blocks(K, 64):
            gate += X[m, k] @ W[k, n]
            up += X[m, k] @ V[k, n]
        Y[m, n] = gate * sigmoid(gate) * up


if __name__ == "__main__":
    print(swiglu.simulate(ranks=4))
