from pkc.language import *

(M,) = dims("M")


@kernel
def fetch(A: f32[M].symmetric(), B: f32[M]):
    for m in tasks(blocks(M, 128)):
        a = A.at(0)
        B[m] = a[m]
