# pkc: run --ranks 2 --set M=8
from pkc.language import *

(M,) = dims("M")


@kernel
def turn(B: f32[M].symmetric(), ready: signal[1]):
    with role(communicator):
        for m in tasks(blocks(M, 8)):
            wait(ready[0], 1)
            store(B.at((rank + 1) % ranks)[m], zeros(f32, m))
            signal(ready.at((rank + 1) % ranks)[0], 1)
