from pkc.language import *
from pkc.language import blocks as tiles

(M,) = dims("M")


@kernel
def copy(A: f32[M], B: f32[M]):
    for m in tasks(tiles(M, 128)):
        B[m] = A[m]
