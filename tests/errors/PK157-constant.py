from pkc.language import *

M = dims("M")


@kernel
def total(X: f32[M, V], Y: f32[M], V: const = 64):
    for m in tasks(blocks(M, 4)):
        Y[m] = rowsum(X[m, :])
