"""Y = the sum of all ranks' X, on every rank"""

from typing import no_type_check

import pkc
from pkc.language import *

M, N = dims("M N")


@pkc.kernel  # type: ignore[no-redef]  # the word of the same name
@no_type_check
def all_reduce(X: bf16[M, N], Y: bf16[M, N].replicate()):
    for m, n in tasks(blocks(M, 128), blocks(N, 256)):
        Y[m, n] += X[m, n]


if __name__ == "__main__":
    print(all_reduce.simulate(ranks=4))
