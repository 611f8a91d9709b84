"""dX = (exp(X - lse) - 1 at the target) * dloss, where each rank has V columns, the ones from `first` on"""

import pkc
from pkc.language import *

M, V = dims("M V")


@pkc.kernel
def vocab_cross_entropy_backward(
    X: bf16[M, V],
    target: i32[M],
    lse: f32[M],
    dloss: f32[M],
    dX: bf16[M, V],
    first: i32,
):
    for m, v in tasks(blocks(M, 16), blocks(V, 512)):
        hit = where(target[m] - first == positions(v), 1.0, 0.0)
        dX[m, v] = (exp(X[m, v] - lse[m]) - hit) * dloss[m]
