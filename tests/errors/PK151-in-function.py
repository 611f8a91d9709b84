from pkc.language import *

(M,) = dims("M")


def twice(x):
    return x + x if M > 1 else x


@kernel
def double(A: f32[M], B: f32[M]):
    for m in tasks(blocks(M, 128)):
        B[m] = twice(A[m])
