"""The two-shot all-reduce, protocol written out: each rank adds up its rows and stores them to all"""

from typing import no_type_check

import pkc
from pkc.language import *

M, N = dims("M N")


@pkc.kernel
@no_type_check
def all_reduce_explicit(
    X: bf16[M, N].symmetric(),
    Y: bf16[M, N].symmetric(),
    ready: signal[1],
    done: signal[1],
):
    with role(communicator, sms=16):
        barrier(ready[0])  # every rank's X is there
        for m, n in tasks(blocks(M, 128, of=rank), blocks(N, 256)):
            t = reduce(X[m, n])
            for r in ring():
                store(Y.at(r)[m, n], t)
        signal_all(done[0], 1)
        wait(done[0], ranks)  # every rank's rows have arrived


if __name__ == "__main__":
    print(all_reduce_explicit.simulate(ranks=4))
