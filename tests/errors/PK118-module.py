import math

from pkc.language import *

(M,) = dims("M")


@kernel
def f(A: f32[M], B: f32[M]):
    for m in tasks(blocks(M, 128)):
        B[m] = A[m] * math.pi
