from pkc.language import *

M, N = dims("M N")


@kernel
def row_sums(A: f32[M, N], B: f32[M]):
    for m, n in tasks(blocks(M, 128), blocks(N, 128)):
        B[m] = rowsum(A[m, n])
