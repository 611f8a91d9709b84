"""all_gather(A) @ B, protocol written out: communicators push own rows to all, consumers wait for each rank's rows"""

from typing import no_type_check

import pkc
from pkc.language import *

M, K, N = dims("M K N")


@pkc.kernel
@no_type_check
def ag_gemm_explicit(
    A: bf16[M, K].shard(0),
    B: bf16[K, N],
    C: bf16[M, N],
    G: bf16[M, K].symmetric().scratch(),
    ready: signal[ranks],
):
    with role(communicator, sms=16):
        for m, k in tasks(blocks(M, 128, of=rank), blocks(K, 256)):
            a = A[m, k]
            for r in ring():
                store(G.at(r)[m, k], a)
                signal(ready.at(r)[rank], 1)
    with role(consumer):
        for r in ring():
            for m, n in tasks(blocks(M, 128, of=r), blocks(N, 256)):
                wait(ready[r], len(blocks(M, 128, of=r)) * len(blocks(K, 256)))
                acc = zeros(f32, m, n)
                for k in blocks(K, 64):
                    acc += G[m, k] @ B[k, n]
                C[m, n] = acc


if __name__ == "__main__":
    print(ag_gemm_explicit.simulate(ranks=4))
