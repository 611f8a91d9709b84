import numpy as np

from pkc.language import *

(M,) = dims("M")
W = np.float32(2)


@kernel
def f(A: f32[M], B: f32[M]):
    for m in tasks(blocks(M, 128)):
        B[m] = A[m] * W
