from pkc.language import *

(M,) = dims("M")


@kernel(overlap="intra_sm", stages=[2, 4])
def copy(A: f32[M], B: f32[M]):
    for m in tasks(blocks(M, 128)):
        B[m] = A[m]
