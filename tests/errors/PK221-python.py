from pkc.language import *

(M,) = dims("M")


def power(x, n):
    return x * power(x, n - 1)


@kernel
def cube(A: f32[M], B: f32[M]):
    for m in tasks(blocks(M, 128)):
        B[m] = power(A[m], 3)
