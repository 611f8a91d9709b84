from pkc.language import *

(M,) = dims("M")


def scaled(x, by=2.0):
    return x * by


@kernel
def double(A: f32[M], B: f32[M]):
    for m in tasks(blocks(M, 128)):
        B[m] = scaled(A[m])
