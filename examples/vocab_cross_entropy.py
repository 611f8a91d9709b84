"""loss = log(sum(exp(X))) - X[target], by rows, where each rank has V of the columns"""

import pkc
from pkc.language import *

M, V = dims("M V")


@pkc.kernel
def vocab_cross_entropy(
    X: bf16[M, V],
    target: i32[M],
    loss: f32[M],
    lse: f32[M],
    top: f32[M].symmetric().scratch(),
    part: f32[M].symmetric().scratch(),
    at: f32[M].symmetric().scratch(),
    V: const = 37984,
):
    for m in tasks(M):
        x = cast(X[m, :], f32)
        top[m] = rowmax(x)
        part[m] = rowsum(exp(x - rowmax(x)))
        column = target[m] - rank * V
        found = zeros(f32)
        if column >= 0 and column < V:
            found += X[m, column]
        at[m] = found
    for m in tasks(blocks(M, 128)):
        most = full(f32, -inf, m)
        for r in ring():
            most = max(most, top.at(r)[m])
        total = zeros(f32, m)
        hit = zeros(f32, m)
        for r in ring():
            total += part.at(r)[m] * exp(top.at(r)[m] - most)
            hit += at.at(r)[m]
        lse[m] = log(total) + most
        loss[m] = log(total) + most - hit
