"""Y = convolution of images of H x W pixels with R x S filters, zeros around them: row p of X and Y has the channels of
a pixel, image behind image"""

from typing import no_type_check

import pkc
from pkc.language import *

P, C, R, S, N = dims("P C R S N")


@pkc.kernel
@no_type_check
def conv2d(X: bf16[P, C], F: bf16[R, S, C, N], Y: bf16[P, N], H: const = 32, W: const = 32):
    for p, n in tasks(blocks(P, 128), blocks(N, 256)):
        y = positions(p) // W % H
        x = positions(p) % W
        acc = zeros(f32, p, n)
        for r in range(R):
            for s in range(S):
                down = r - R // 2
                right = s - S // 2
                there = positions(p) + (down * W + right)
                inside = y + down >= 0 and y + down < H and x + right >= 0 and x + right < W and there < P
                rows = where(inside, there, -1)  # no row: zeros
                for c in blocks(C, 64):
                    acc += gather(X, rows, c) @ F[r, s, c, n]
        Y[p, n] = acc


if __name__ == "__main__":
    print(conv2d.simulate(ranks=4))
