"""Token t of this rank ends with the weighted sum of the expert outputs that places names, a rank and a row each"""

from typing import no_type_check

import pkc
from pkc.language import *

R, H, K, T = dims("R H K T")


@pkc.kernel
@no_type_check
def moe_gather_combine(Y: bf16[R, H].symmetric(), places: i32[K, T, 2], weight: f32[K, T], O: bf16[T, H]):
    for t, h in tasks(blocks(T, 64), blocks(H, 256)):
        acc = zeros(f32, t, h)
        for k in range(K):
            acc += gather(Y, places[k, t], h) * weight[k, t]
        O[t, h] = acc


if __name__ == "__main__":
    print(moe_gather_combine.simulate(ranks=4))
