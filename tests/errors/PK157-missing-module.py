import missing_module
from pkc.language import *


@kernel
def copy(A: f32[4], B: f32[4]):
    for m in tasks(blocks(4, 4)):
        B[m] = A[m]
