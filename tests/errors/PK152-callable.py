import functools
import operator

from pkc.language import *

(M,) = dims("M")
twice = functools.partial(operator.mul, 2)


@kernel
def double(A: f32[M], B: f32[M]):
    for m in tasks(blocks(M, 128)):
        B[m] = twice(A[m])
