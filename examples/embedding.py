"""Y = W[ids]: rows of a table that is sharded over the ranks"""

import pkc
from pkc.language import *

V, H, T = dims("V H T")


@pkc.kernel
def embedding(
    W: bf16[V, H].shard(0),
    ids: i32[T],
    Y: bf16[T, H],
):
    for t, h in tasks(blocks(T, 16), blocks(H, 1024)):
        Y[t, h] = gather(W, ids[t], h)
