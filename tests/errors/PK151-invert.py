from pkc.language import *

(M,) = dims("M")


@kernel
def f(A: i32[M], B: i32[M]):
    for m in tasks(blocks(M, 128)):
        B[m] = ~A[m]
