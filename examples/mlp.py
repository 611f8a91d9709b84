"""Y = relu(X @ W) @ V on each rank by itself: two GEMMs, one phase after the other"""

from typing import no_type_check

import pkc
from pkc.language import *

M, K, N, P = dims("M K N P")


@pkc.kernel
@no_type_check
def mlp(X: bf16[M, K], W: bf16[K, N], V: bf16[N, P], H: bf16[M, N].scratch(), Y: bf16[M, P]):
    for m, n in tasks(blocks(M, 128), blocks(N, 256)):
        h = zeros(f32, m, n)
        for k in blocks(K, 64):
            h += X[m, k] @ W[k, n]
        H[m, n] = max(h, 0.0)
    for m, p in tasks(blocks(M, 128), blocks(P, 256)):  # once all of H is there
        y = zeros(f32, m, p)
        for n in blocks(N, 64):
            y += H[m, n] @ V[n, p]
        Y[m, p] = y


if __name__ == "__main__":
    print(mlp.simulate(ranks=4))
