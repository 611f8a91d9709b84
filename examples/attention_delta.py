"""The sum of dO * O in each row, which attention_dq and attention_dkdv need"""

from typing import no_type_check

import pkc
from pkc.language import *

B, H, S, D = dims("B H S D")


@pkc.kernel
@no_type_check
def attention_delta(dO: bf16[B, H, S, D], O: bf16[B, H, S, D], delta: f32[B, H, S], D: const = 128):
    for b, h, q in tasks(B, H, blocks(S, 128)):
        delta[b, h, q] = rowsum(dO[b, h, q] * O[b, h, q])


if __name__ == "__main__":
    print(attention_delta.simulate(ranks=4))
