import numpy as np

from pkc.language import *

(M,) = dims("M")
bias = np.ones(4)


@kernel
def shift(A: f32[M], B: f32[M]):
    for m in tasks(blocks(M, 128)):
        B[m] = A[m] + bias
