"""Each rank holds E experts. Expert e takes the first count[e] token rows that rows[e] names, wherever they live"""

from typing import no_type_check

import pkc
from pkc.language import *

T, H, E, N, P = dims("T H E N P")


@pkc.kernel
@no_type_check
def moe_dispatch_gemm(
    X: bf16[T, H].shard(0),
    W: bf16[E, H, N],
    rows: i32[E, P],
    count: i32[E],
    Y: bf16[E, P, N],
):
    for e in tasks(E):
        for p, n in tasks(blocks(P, 128, stop=count[e]), blocks(N, 256)):
            acc = zeros(f32, p, n)
            for k in blocks(H, 64):
                acc += gather(X, rows[e, p], k) @ W[e, k, n]
            Y[e, p, n] = acc


if __name__ == "__main__":
    print(moe_dispatch_gemm.simulate(ranks=4))
