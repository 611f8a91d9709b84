from pkc.language import *

(M,) = dims("M")
MISSING = float("nan")


@kernel
def fill(B: f32[M]):
    for m in tasks(blocks(M, 128)):
        B[m] = MISSING
