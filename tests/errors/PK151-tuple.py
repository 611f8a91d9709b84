import pkc
from pkc.language import *

M, N = dims("M N")


@pkc.kernel
def halves(X: f32[M, N], Y: f32[M, N], Z: f32[M, N]):
    for m, n in tasks(blocks(M, 64), blocks(N, 64)):
        low, high = X[m, n] * 0.5, X[m, n] * 1.5
        Y[m, n] = low
        Z[m, n] = high
