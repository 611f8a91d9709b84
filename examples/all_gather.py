"""Y = all of X on every rank: each rank writes its rows to all"""

from typing import no_type_check

import pkc
from pkc.language import *

M, N = dims("M N")


@pkc.kernel
@no_type_check
def all_gather(X: bf16[M, N].shard(0), Y: bf16[M, N].replicate()):
    for m, n in tasks(blocks(M, 128, of=rank), blocks(N, 256)):
        Y[m, n] = X[m, n]


if __name__ == "__main__":
    print(all_gather.simulate(ranks=4))
