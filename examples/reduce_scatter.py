"""Y = the sum of all ranks' X, each row with its owner"""

from typing import no_type_check

import pkc
from pkc.language import *

M, N = dims("M N")


@pkc.kernel
@no_type_check
def reduce_scatter(X: bf16[M, N], Y: bf16[M, N].shard(0)):
    for m, n in tasks(blocks(M, 128), blocks(N, 256)):
        Y[m, n] += X[m, n]


if __name__ == "__main__":
    print(reduce_scatter.simulate(ranks=4))
