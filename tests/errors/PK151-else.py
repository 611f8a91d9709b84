from pkc.language import *

(M,) = dims("M")


@kernel
def f(A: f32[M], B: f32[M]):
    for m in tasks(blocks(M, 128)):
        if start(m) < 512:
            B[m] = A[m]
        else:
            pass
