from pkc.language import *

(M,) = dims("M")
twice = lambda x: x * 2.0


@kernel
def scaled(X: f32[M], Y: f32[M]):
    for m in tasks(blocks(M, 128)):
        Y[m] = twice(X[m])
