from pkc.language import *

(rows,) = dims("M")


@kernel
def copy(A: f32[rows], B: f32[rows]):
    for m in tasks(blocks(rows, 128)):
        B[m] = A[m]
