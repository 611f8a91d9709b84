"""Y = X, split by columns instead of rows"""

from typing import no_type_check

import pkc
from pkc.language import *

M, N = dims("M N")


@pkc.kernel
@no_type_check
def all_to_all(X: bf16[M, N].shard(0), Y: bf16[M, N].shard(1)):
    for m, n in tasks(blocks(M, 128, of=rank), blocks(N, 128)):
        Y[m, n] = X[m, n]


if __name__ == "__main__":
    print(all_to_all.simulate(ranks=4))
