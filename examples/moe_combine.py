"""Token t ends with the weighted sum of all ranks' expert outputs that rows names it for"""

from typing import no_type_check

import pkc
from pkc.language import *

E, P, N, T = dims("E P N T")


@pkc.kernel
@no_type_check
def moe_combine(Y: bf16[E, P, N], rows: i32[E, P], weight: f32[E, P], count: i32[E], O: bf16[T, N].shard(0)):
    for e in tasks(E):
        for p, n in tasks(blocks(P, 128, stop=count[e]), blocks(N, 256)):
            O[rows[e, p], n] += Y[e, p, n] * weight[e, p]


if __name__ == "__main__":
    print(moe_combine.simulate(ranks=4))
