"""Protocols as an author could write them: buffers, rings and counts.

Most right ones stand beside a wrong one that differs from them in its mistake alone.
"""

from __future__ import annotations

from tests.check.protocols import UNORDERED, Right, Wrong

WRONG: dict[str, Wrong] = {}
RIGHT: dict[str, Right] = {}

WRONG["two flags in turn, of which the second round awaits the first"] = Wrong(
    ("PK482", *UNORDERED),
    2,
    """
kernel k(X: f32[6, M].symmetric(), Y: f32[6, M], G: f32[6, M].symmetric().scratch(), full: signal[2]):
    with role(communicator):
        for i in range(6):
            for m in tasks(blocks(M, 8)):
                store(G.at((rank + 1) % ranks)[i, m], X[i, m])
            signal(full.at((rank + 1) % ranks)[i % 2], 1)
    with role(consumer):
        for i in range(6):
            wait(full[i % 2], (i + 1) // 2)
            for m in tasks(blocks(M, 8)):
                Y[i, m] = G[i, m]
""",
)
_SLOTS = """
kernel k(X: f32[6, M].symmetric(), Y: f32[6, M], G: f32[2, M].symmetric().scratch(), full: signal[2],
         free: signal[2]):
    with role(communicator):
        for i in range(6):
            wait(free[i % 2], {credit})
            for m in tasks(blocks(M, 8)):
                store(G.at((rank + 1) % ranks)[i % 2, m], X[i, m])
            signal(full.at((rank + 1) % ranks)[i % 2], 1)
    with role(consumer):
        for i in range(6):
            wait(full[i % 2], i // 2 + 1)
            for m in tasks(blocks(M, 8)):
                Y[i, m] = G[i % 2, m]
            signal(free.at((rank + ranks - 1) % ranks)[{which}], 1)
"""
WRONG["a credit of each buffer, one too few"] = Wrong(("PK730",), 2, _SLOTS.format(credit="i // 2 - 1", which="i % 2"))
RIGHT["credits of the other of two buffers, which come later"] = Right(
    (1, 2, 3), _SLOTS.format(credit="i // 2", which="(i + 1) % 2")
)
RIGHT["a credit of each buffer"] = Right((1, 2, 3, 5), _SLOTS.format(credit="i // 2", which="i % 2"))
WRONG["tokens of all ranks in the same slots"] = Wrong(
    ("PK730",),
    3,
    """
kernel k(X: f32[P, D].symmetric(), to: i32[P], Y: f32[P, D], G: f32[P, D].symmetric().scratch(), s: signal[1]):
    with role(communicator):
        for p in tasks(P):
            for d in blocks(D, 32):
                store(G.at(to[p] % ranks)[p, d], X[p, d])
        signal_all(s[0], 1)
    with role(consumer):
        wait(s[0], ranks)
        for p in tasks(P):
            for d in blocks(D, 32):
                Y[p, d] = G.at(to[p] % ranks)[p, d]
""",
    ("--set", "P=20,D=32"),
)
RIGHT["tokens of each rank in slots of their own"] = Right(
    (1, 2, 3, 5),
    WRONG["tokens of all ranks in the same slots"]
    .text.replace("G: f32[P, D]", "G: f32[ranks, P, D]")
    .replace("[p, d], X", "[rank, p, d], X")
    .replace("ranks)[p, d]\n", "ranks)[rank, p, d]\n"),
    ("--set", "P=20,D=32"),
)
WRONG["the flag of the count taken for that of the data"] = Wrong(
    UNORDERED,
    2,
    """
kernel k(X: f32[M].symmetric(), n: i32[1], Y: f32[M].symmetric(), G: f32[M].symmetric().scratch(), s: signal[2]):
    with role(communicator):
        for m in blocks(M, 8):
            store(G.at((rank + 1) % ranks)[m], X[m])
        signal(s.at((rank + 1) % ranks)[1], 1)
    with role(loader):
        signal(s.at((rank + 1) % ranks)[0], 1)
    with role(consumer):
        wait(s[0], 1)
        for m in tasks(blocks(M, 8, stop=n[0])):
            store(Y[m], G[m])
        for m in tasks(blocks(M, 8, start=n[0])):
            store(Y[m], zeros(f32, m))
        wait(s[1], 1)
""",
    ("--set", "M=40"),
)


def _both_ways(right: str, left: str) -> str:
    return f"""
kernel k(X: f32[M].symmetric(), Y: f32[ranks, M], G: f32[ranks, M].symmetric().scratch(), s: signal[ranks]):
    with role(communicator):
        for m in tasks(blocks(M, 8)):
            store(G[rank, m], X[m])
        signal(s.at(rank)[rank], 1)
        for i in range({right}):
            o = (rank + ranks - i) % ranks
            wait(s[o], 1)
            for m in tasks(blocks(M, 8)):
                store(G.at((rank + 1) % ranks)[o, m], G[o, m])
            signal(s.at((rank + 1) % ranks)[o], 1)
    with role(loader):
        for i in range({left}):
            o = (rank + i) % ranks
            wait(s[o], 1)
            for m in tasks(blocks(M, 8)):
                store(G.at((rank + ranks - 1) % ranks)[o, m], G[o, m])
            signal(s.at((rank + ranks - 1) % ranks)[o], 1)
    with role(consumer):
        for r in range(ranks):
            wait(s[r], 1)
            for m in tasks(blocks(M, 8)):
                Y[r, m] = G[r, m]
"""


WRONG["a ring in both ways, whose halves meet at an even number of ranks"] = Wrong(
    ("PK730", "PK482"), 4, _both_ways("ranks // 2", "ranks // 2")
)
WRONG["a ring in both ways that leaves out the rank opposite"] = Wrong(
    ("PK480", "PK481"), 4, _both_ways("(ranks - 1) // 2", "(ranks - 1) // 2")
)
RIGHT["a ring in both ways"] = Right((1, 2, 3, 4, 5), _both_ways("ranks // 2", "(ranks - 1) // 2"))
RIGHT["a ring in both ways, for odd numbers of ranks"] = Right((1, 3, 5), _both_ways("ranks // 2", "ranks // 2"))
WRONG["rank 3 does not count itself"] = Wrong(
    ("PK482",),
    5,
    """
kernel k(X: f32[M].symmetric(), Y: f32[M].symmetric(), G: f32[ranks, M].symmetric().scratch(), s: signal[1]):
    with role(communicator):
        for m in tasks(blocks(M, 8)):
            store(G.at(3)[rank, m], X[m])
        signal(s.at(3)[0], 1)
    with role(consumer):
        if rank == 3:
            wait(s[0], ranks - 1)
            for m in tasks(blocks(M, 8)):
                t = zeros(f32, m)
                for r in range(ranks):
                    t = t + G[r, m]
                for r in range(ranks):
                    store(Y.at(r)[m], t)
""",
)
RIGHT["rank 3 adds up and sends to all"] = Right(
    (4, 5), WRONG["rank 3 does not count itself"].text.replace("ranks - 1)", "ranks)")
)
WRONG["rank 3 alone awaits too early"] = Wrong(
    UNORDERED,
    4,
    """
kernel k(X: f32[M].symmetric(), Y: f32[M], G: f32[M].symmetric().scratch(), s: signal[ranks]):
    with role(communicator):
        for m in tasks(blocks(M, 8)):
            store(G.at((rank + 1) % ranks)[m], X[m])
        signal_all(s[rank], 1)
    with role(consumer):
        if rank == 3:
            wait(s[1], 1)
        else:
            wait(s[(rank + ranks - 1) % ranks], 1)
        for m in tasks(blocks(M, 8)):
            Y[m] = G[m]
""",
)


def _butterfly(buffer: str) -> str:
    return f"""
kernel k(X: f32[M].symmetric(), Y: f32[M], S: f32[M].scratch(), G: f32[3, M].symmetric().scratch(), s: signal[3]):
    with role(communicator):
        for m in tasks(blocks(M, 8)):
            S[m] = X[m]
        d = 1
        for i in range({{rounds}}):
            p = rank + d - 2 * d * (rank // d % 2)
            for m in tasks(blocks(M, 8)):
                store(G.at(p)[{buffer}, m], S[m])
            signal(s.at(p)[i], 1)
            wait(s[i], 1)
            for m in tasks(blocks(M, 8)):
                S[m] = S[m] + G[{buffer}, m]
            d = d * 2
        for m in tasks(blocks(M, 8)):
            Y[m] = S[m]
"""


WRONG["a butterfly with one buffer for all rounds"] = Wrong(("PK730",), 4, _butterfly("0").format(rounds=2))
WRONG["a butterfly for five ranks"] = Wrong(("PK707", "PK706", "PK711"), 5, _butterfly("i").format(rounds=3))
RIGHT["a butterfly with a buffer for each round"] = Right((4,), _butterfly("i").format(rounds=2))
WRONG["a barrier that one rank leaves out"] = Wrong(
    ("PK444", "PK480", "PK481"),
    3,
    """
kernel k(X: f32[M], Y: f32[M], S: f32[M].symmetric().scratch(), b: signal[1]):
    with role(communicator):
        for m in tasks(blocks(M, 8)):
            store(S[m], X[m])
        if rank < 2:
            barrier(b[0])
        for m in tasks(blocks(M, 8)):
            Y[m] = S.at((rank + 1) % ranks)[m]
""",
)
WRONG["as many barriers as one's number says"] = Wrong(
    ("PK444", "PK480", "PK481"),
    3,
    """
kernel k(X: f32[M], Y: f32[M], S: f32[M].symmetric().scratch(), b: signal[1]):
    with role(communicator):
        for m in tasks(blocks(M, 8)):
            store(S[m], X[m])
        for i in range(rank + 1):
            barrier(b[0])
        for m in tasks(blocks(M, 8)):
            Y[m] = S.at((rank + 1) % ranks)[m]
""",
)
_READERS = """
kernel k(X: f32[4, M].symmetric(), Y: f32[4, M], Z: f32[4, M], G: f32[M].symmetric().scratch(),
         full: signal[1], free: signal[1]):
    with role(communicator):
        for i in range(4):
            wait(free[0], {credit})
            for m in tasks(blocks(M, 8)):
                store(G.at((rank + 1) % ranks)[m], X[i, m])
            signal(full.at((rank + 1) % ranks)[0], 1)
    with role(consumer):
        for i in range(4):
            wait(full[0], i + 1)
            for m in tasks(blocks(M, 8)):
                Y[i, m] = G[m]
            signal(free.at((rank + ranks - 1) % ranks)[0], 1)
    with role(storer):
        for i in range(4):
            wait(full[0], i + 1)
            for m in tasks(blocks(M, 8)):
                Z[i, m] = G[m] * 2.0
            signal(free.at((rank + ranks - 1) % ranks)[0], 1)
"""
WRONG["the credit of one of two readers"] = Wrong(("PK730", "PK482"), 2, _READERS.format(credit="i"))
RIGHT["credits of two readers"] = Right((1, 2, 3, 5), _READERS.format(credit="2 * i"))
WRONG["flags in two digits of a counter, which carry"] = Wrong(
    ("PK482", *UNORDERED),
    2,
    """
kernel k(X: f32[M].symmetric(), Y: f32[M], G: f32[M].symmetric().scratch(), H: f32[M].symmetric().scratch(),
         s: signal[1]):
    with role(communicator):
        for m in tasks(blocks(M, 8)):
            store(G.at((rank + 1) % ranks)[m], X[m])
            signal(s.at((rank + 1) % ranks)[0], 1)
    with role(loader):
        for m in tasks(blocks(M, 8)):
            store(H.at((rank + 1) % ranks)[m], X[m])
        signal(s.at((rank + 1) % ranks)[0], 4)
    with role(consumer):
        wait(s[0], 4)
        for m in tasks(blocks(M, 8)):
            Y[m] = H[m]
""",
    ("--set", "M=64"),
)
WRONG["whole blocks and one more, for sizes that have no rest"] = Wrong(
    ("PK481", "PK480"),
    2,
    """
kernel k(X: f32[M].symmetric(), Y: f32[M], G: f32[M].symmetric().scratch(), s: signal[1]):
    with role(communicator):
        for m in tasks(blocks(M, 8)):
            store(G.at((rank + 1) % ranks)[m], X[m])
            signal(s.at((rank + 1) % ranks)[0], 1)
    with role(consumer):
        wait(s[0], M // 8 + 1)
        for m in tasks(blocks(M, 8)):
            Y[m] = G[m]
""",
)
_NEXT = """
kernel k(X: f32[M].shard(0), Y: f32[M], G: f32[M].symmetric().scratch(), s: signal[ranks]):
    with role(communicator):
        for m in tasks(blocks(M, 8, of=rank)):
            x = X[m]
            for r in ring():
                store(G.at(r)[m], x)
                signal(s.at(r)[rank], 1)
    with role(consumer):
        for r in ring():
            wait(s[r], len(blocks(M, 8, of={of})))
            for m in tasks(blocks(M, 8, of=r)):
                Y[m] = G[m]
"""
WRONG["the count of the rank behind the sender"] = Wrong(("PK481", "PK482"), 3, _NEXT.format(of="(r + 1) % ranks"))
WRONG["a counter taken down by one too few"] = Wrong(
    ("PK730", "PK482"),
    3,
    """
kernel k(X: f32[2, M].symmetric(), Y: f32[2, M], G: f32[ranks, M].symmetric().scratch(), s: signal[1],
         t: signal[1]):
    with role(communicator):
        for i in range(2):
            for m in tasks(blocks(M, 8)):
                x = X[i, m]
                for r in ring():
                    store(G.at(r)[rank, m], x)
            signal_all(s[0], 1)
            wait(s[0], ranks)
            signal(s.at(rank)[0], 0 - (ranks - 1))
            for m in tasks(blocks(M, 8)):
                y = zeros(f32, m)
                for r in range(ranks):
                    y = y + G[r, m]
                Y[i, m] = y
            signal_all(t[0], 1)
            wait(t[0], ranks * (i + 1))
""",
)
RIGHT["a counter taken down for the next round"] = Right(
    (1, 2, 3), WRONG["a counter taken down by one too few"].text.replace("0 - (ranks - 1)", "0 - ranks")
)
RIGHT["a counter that is below zero for a while"] = Right(
    (1, 2, 3),
    """
kernel k(X: f32[M].symmetric(), Y: f32[M], G: f32[M].symmetric().scratch(), s: signal[1]):
    with role(communicator):
        signal(s.at(rank)[0], 0 - 1)
        for m in tasks(blocks(M, 8)):
            store(G.at((rank + 1) % ranks)[m], X[m])
        signal(s.at((rank + 1) % ranks)[0], 2)
    with role(consumer):
        wait(s[0], 1)
        for m in tasks(blocks(M, 8)):
            Y[m] = G[m]
""",
)
WRONG["one of ranks not awaited before a sum of all copies"] = Wrong(
    ("PK482", *UNORDERED),
    3,
    """
kernel k(X: f32[M], S: f32[M].symmetric().scratch(), Y: f32[M], s: signal[1]):
    with role(communicator):
        for m in tasks(blocks(M, 8)):
            store(S[m], X[m] * 2.0)
        signal_all(s[0], 1)
        wait(s[0], ranks - 1)
        for m in tasks(blocks(M, 8)):
            Y[m] = reduce(S[m])
""",
)
WRONG["dimensions of a table of counters in the other order"] = Wrong(
    ("PK706",),
    5,
    """
kernel k(X: f32[32].symmetric(), Y: f32[ranks, 32], G: f32[ranks, 32].symmetric().scratch(), s: signal[ranks, 4]):
    with role(communicator):
        for m in tasks(blocks(32, 8)):
            x = X[m]
            for r in ring():
                store(G.at(r)[rank, m], x)
                signal(s.at(r)[start(m) // 8, rank], 1)
    with role(consumer):
        for r in ring():
            for m in tasks(blocks(32, 8)):
                wait(s[start(m) // 8, r], 1)
                Y[r, m] = G[r, m]
""",
)
RIGHT["a table of counters"] = Right(
    (1, 2, 3, 5),
    WRONG["dimensions of a table of counters in the other order"]
    .text.replace("[start(m) // 8, rank]", "[rank, start(m) // 8]")
    .replace("[start(m) // 8, r]", "[r, start(m) // 8]"),
)
