from pkc.language import *

(M,) = dims("M")


@kernel
def pick(A: f32[M], B: f32[M], n: i32):
    for m in tasks(blocks(M, 128)):
        B[m] = A[m] if n > 0 else 0
