from pkc.language import *

(M,) = dims("M")


def mean(x):
    return x / cast(M, f32)


@kernel
def scale(A: f32[M], B: f32[M]):
    for m in tasks(blocks(M, 128)):
        B[m] = mean(A[m])
