# pkc: compile --no-import
import pkc
from pkc.language import *

M, N = dims("M N")
SIZE = 4 * 16


@pkc.kernel
def copy(A: f32[M, N], B: f32[M, N]):
    for m, n in tasks(blocks(M, SIZE), blocks(N, 64)):
        B[m, n] = A[m, n]
