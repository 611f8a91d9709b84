from pkc.language import *

(M,) = dims("M")
made = {}
exec("def twice(x):\n    return x * 2.0", made)
twice = made["twice"]


@kernel
def scaled(X: f32[M], Y: f32[M]):
    for m in tasks(blocks(M, 128)):
        Y[m] = twice(X[m])
