"""Each rank has E experts; expert e takes count[e] token rows that rows names from e * P on, wherever they live.
Token t of this rank ends with the weighted sum of what its K experts make of it, in the ranks and rows of Y that
places names"""

from typing import no_type_check

import pkc
from pkc.language import *

S, H, R, E, K, T, N = dims("S H R E K T N")


@pkc.kernel
@no_type_check
def moe_mlp(
    X: bf16[S, H].shard(0),
    rows: i32[R],
    count: i32[E],
    places: i32[K, T, 2],
    weight: f32[K, T],
    gate: bf16[E, H, N],
    up: bf16[E, H, N],
    down: bf16[E, N, H],
    O: bf16[T, H],
    A: bf16[R, N].scratch(),
    Y: bf16[R, H].symmetric(),
    P: const = 1024,
):
    for e in tasks(E):
        for r, n in tasks(blocks(R, 128, start=e * P, stop=e * P + count[e]), blocks(N, 128)):
            g = zeros(f32, r, n)
            u = zeros(f32, r, n)
            for h in blocks(H, 64):
                x = gather(X, rows[r], h)
                g += x @ gate[e, h, n]
                u += x @ up[e, h, n]
            A[r, n] = g * sigmoid(g) * u
    for e in tasks(E):
        for r, h in tasks(blocks(R, 128, start=e * P, stop=e * P + count[e]), blocks(H, 256)):
            y = zeros(f32, r, h)
            for n in blocks(N, 64):
                y += A[r, n] @ down[e, n, h]
            Y[r, h] = y
    for t, h in tasks(blocks(T, 32), blocks(H, 256)):
        o = zeros(f32, t, h)
        for k in range(K):
            o += gather(Y, places[k, t], h) * weight[k, t]
        O[t, h] = o


if __name__ == "__main__":
    print(moe_mlp.simulate(ranks=4))
