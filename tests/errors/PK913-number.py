# pkc: run --ranks 1 --set M=4
from pkc.language import *

(M,) = dims("M")


@kernel(reference=2)
def k(X: f32[M], Y: f32[M]):
    for m in tasks(blocks(M, 4)):
        Y[m] = X[m] + X[m]
