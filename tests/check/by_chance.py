"""Protocols as an author could write them: what is right by chance where dimensions are alike, or on few CTAs.

Most right ones stand beside a wrong one that differs from them in its mistake alone.
"""

from __future__ import annotations

from tests.check.protocols import UNORDERED, Right, Wrong

WRONG: dict[str, Wrong] = {}
RIGHT: dict[str, Right] = {}

_GATE = """
kernel k(X: f32[M].symmetric(), Y: f32[M], Z: f32[M], G: f32[M].symmetric().scratch(), s: signal[1]):
    with role(communicator):
        for m in tasks(blocks(M, 8)):
            store(G.at((rank + 1) % ranks)[m], X[m])
        signal(s.at((rank + 1) % ranks)[0], 1)
    with role(consumer):
        for m in tasks(blocks(M, 16)):
            wait(s[0], 1)
            Z[m] = G[m] * 2.0
        for m in tasks(blocks(M, 8)):
            {wait}
            Y[m] = G[m]
"""
WRONG["tasks that rely on a wait of those before them"] = Wrong(UNORDERED, 2, _GATE.format(wait="y = 1"))
RIGHT["tasks of two lists that each await"] = Right((1, 2, 3), _GATE.format(wait="wait(s[0], 1)"))
_TABLE = """
kernel k(X: f32[P, D].symmetric(), rows: i32[P], Y: f32[P, D], G: f32[P, D].symmetric().scratch(), s: signal[P]):
    with role(communicator):
        for p in tasks(P):
            for d in blocks(D, 32):
                store(G.at((rank + 1) % ranks)[p, d], X[p, d])
            signal(s.at((rank + 1) % ranks)[p], 1)
    with role(consumer):
        for p in tasks(P):
            wait(s[{which}], 1)
            for d in blocks(D, 32):
                Y[p, d] = G[rows[p], d]
"""
WRONG["the flag of a table's entry for that of the row it names"] = Wrong(
    UNORDERED, 2, _TABLE.format(which="p"), ("--set", "P=20,D=32")
)
RIGHT["the flag of the row that a table names"] = Right(
    (1, 2, 3, 5), _TABLE.format(which="rows[p]"), ("--set", "P=20,D=32")
)
WRONG["the flag of a table's entry for that of the row it names, small"] = Wrong(UNORDERED, 2, _TABLE.format(which="p"))
_GAT = """
kernel k(X: f32[P, D], rows: i32[P, 2], Y: f32[P, D], G: f32[P, D].symmetric().scratch(), s: signal[ranks]):
    with role(communicator):
        for p in tasks(blocks(P, 8)):
            for d in blocks(D, 32):
                store(G[p, d], X[p, d] * 2.0)
        signal_all(s[rank], 1)
    with role(consumer):
        {wait}
        for p in tasks(blocks(P, 8)):
            for d in blocks(D, 32):
                Y[p, d] = gather(G, rows[p, :], d)
"""
WRONG["rows of all ranks, of which one's own are awaited"] = Wrong(
    UNORDERED, 3, _GAT.format(wait="wait(s[rank], 1)"), ("--set", "P=20,D=32")
)
RIGHT["rows of all ranks, all awaited"] = Right(
    (1, 2, 3, 5), _GAT.format(wait="for r in ring():\n            wait(s[r], 1)"), ("--set", "P=20,D=32")
)
_TURNS = """
kernel k(X: f32[4, M], Y: f32[4, M], S: f32[{depth}, M].symmetric().scratch(), b: signal[1]):
    with role(communicator):
        for i in range(4):
            for m in tasks(blocks(M, 8)):
                store(S[i % {depth}, m], X[i, m])
            barrier(b[0])
            for m in tasks(blocks(M, 8)):
                Y[i, m] = reduce(S[i % {depth}, m])
"""
WRONG["one memory and one barrier for each round"] = Wrong(("PK730",), 2, _TURNS.format(depth=1))
RIGHT["two memories in turn and one barrier for each round"] = Right((1, 2, 3, 5), _TURNS.format(depth=2))
_MIRROR = """
kernel k(X: f32[M], Y: f32[M], done: signal[M], go: signal[M]):
    with role(communicator):
        for i in tasks(M):
            wait(done[{which}], 1)
            signal(go.at(rank)[i], 1)
    with role(consumer):
        for i in tasks(M):
            signal(done.at(rank)[i], 1)
            {wait}
        for m in tasks(blocks(M, 8)):
            Y[m] = X[m]
"""
WRONG["two roles whose tasks wait for each other in other orders"] = Wrong(
    ("PK487", "PK480"), 1, _MIRROR.format(which="M - 1 - i", wait="wait(go[i], 1)"), ("--set", "M=300")
)
RIGHT["two roles whose tasks go in step"] = Right(
    (1, 2), _MIRROR.format(which="i", wait="wait(go[i], 1)"), ("--set", "M=300")
)
WRONG["who waits is not who reads"] = Wrong(
    UNORDERED,
    2,
    """
kernel k(X: f32[M].symmetric(), Y: f32[M], Z: f32[M], G: f32[M].symmetric().scratch(), s: signal[1]):
    with role(communicator):
        for m in tasks(blocks(M, 8)):
            store(G.at((rank + 1) % ranks)[m], X[m])
        signal(s.at((rank + 1) % ranks)[0], 1)
    with role(consumer):
        wait(s[0], 1)
        for m in tasks(blocks(M, 8)):
            Z[m] = X[m]
    with role(storer):
        for m in tasks(blocks(M, 8)):
            Y[m] = G[m]
""",
)
_HEADS = """
kernel k(X: f32[B, H, M].symmetric(), Y: f32[B, H, M], G: f32[B, H, M].symmetric().scratch(), s: signal[B, H]):
    with role(communicator):
        for b, h, m in tasks(B, H, blocks(M, 8)):
            store(G.at((rank + 1) % ranks)[b, h, m], X[b, h, m])
            signal(s.at((rank + 1) % ranks)[{sent}], 1)
    with role(consumer):
        for b, h, m in tasks(B, H, blocks(M, 8)):
            wait(s[b, h], {count})
            Y[b, h, m] = G[b, h, m]
"""
WRONG["counters of heads, named by batches"] = Wrong(
    ("PK706", "PK481", "PK480", "PK482", *UNORDERED), 2, _HEADS.format(sent="h, b", count="len(blocks(M, 8))")
)
WRONG["counters of heads that count heads"] = Wrong(
    ("PK481", "PK480", "PK482"), 2, _HEADS.format(sent="b, h", count="len(blocks(M, 8)) * H")
)
WRONG["counters of the first head for all"] = Wrong(
    ("PK481", "PK480", "PK482"), 2, _HEADS.format(sent="b, 0", count="len(blocks(M, 8))")
)
RIGHT["counters of heads"] = Right((1, 2, 3), _HEADS.format(sent="b, h", count="len(blocks(M, 8))"))
_MN = """
kernel k(X: f32[M].symmetric(), V: f32[N].symmetric(), Y: f32[M], Z: f32[N], G: f32[M].symmetric().scratch(),
         F: f32[N].symmetric().scratch(), s: signal[1]):
    with role(communicator):
        for m in tasks(blocks(M, 8)):
            store(G.at((rank + 1) % ranks)[m], X[m])
            signal(s.at((rank + 1) % ranks)[0], 1)
    with role(loader):
        for n in tasks(blocks(N, 8)):
            store(F.at((rank + 1) % ranks)[n], V[n])
            signal(s.at((rank + 1) % ranks)[0], 1)
    with role(consumer):
        wait(s[0], {count})
        for m in tasks(blocks(M, 8)):
            Y[m] = G[m]
        for n in tasks(blocks(N, 8)):
            Z[n] = F[n]
"""
WRONG["a product for a sum of two counts"] = Wrong(
    ("PK481", "PK480", "PK482"), 2, _MN.format(count="len(blocks(M, 8)) * len(blocks(N, 8))")
)
WRONG["twice the blocks of one dimension for those of two"] = Wrong(
    ("PK481", "PK480", "PK482"), 2, _MN.format(count="2 * len(blocks(M, 8))")
)
RIGHT["a sum of two counts"] = Right((1, 2, 3), _MN.format(count="len(blocks(M, 8)) + len(blocks(N, 8))"))
_ONE = """
kernel k(X: f32[M, N].symmetric(), Y: f32[M, N], G: f32[M, N].symmetric().scratch(), s: signal[1]):
    with role(communicator):
        for m in tasks(blocks(M, 8)):
            for n in blocks(N, 8):
                store(G.at((rank + 1) % ranks)[m, n], X[m, n])
            signal(s.at((rank + 1) % ranks)[0], 1)
    with role(consumer):
        wait(s[0], {count})
        for m, n in tasks(blocks(M, 8), blocks(N, 8)):
            Y[m, n] = G[m, n]
"""
WRONG["the blocks of the other dimension"] = Wrong(
    ("PK481", "PK480", "PK482"), 2, _ONE.format(count="len(blocks(N, 8))")
)
WRONG["two, as many as there are blocks in a small array"] = Wrong(
    ("PK481", "PK480", "PK482"), 2, _ONE.format(count="2")
)
WRONG["each block but the first counted twice"] = Wrong(
    ("PK705", "PK730", "PK481", "PK480", "PK482"), 2, _ONE.format(count="2 * len(blocks(M, 8)) - 2")
)
WRONG["half of the elements, rounded, for the blocks"] = Wrong(
    ("PK705", "PK730", "PK481", "PK480", "PK482"), 2, _ONE.format(count="M // 8 + min(M % 8, 1) * (M // 8)")
)
RIGHT["blocks counted by a division that rounds up"] = Right((1, 2, 3), _ONE.format(count="(M + 7) // 8"))
WRONG["groups of ranks with the wrong leader"] = Wrong(
    ("PK480", "PK481", "PK482", *UNORDERED),
    5,
    """
kernel k(X: f32[M].symmetric(), Y: f32[M].symmetric(), G: f32[ranks, M].symmetric().scratch(), s: signal[1]):
    with role(communicator):
        lead = rank // 3 * 3
        for m in tasks(blocks(M, 8)):
            store(G.at(lead)[rank, m], X[m])
        signal(s.at(rank // 3 * 2)[0], 1)
        if rank == lead:
            n = min(3, ranks - rank)
            wait(s[0], n)
            for m in tasks(blocks(M, 8)):
                x = zeros(f32, m)
                for i in range(n):
                    x = x + G[lead + i, m]
                for i in range(n):
                    store(Y.at(lead + i)[m], x)
""",
)
WRONG["a scan that awaits only the rank before, and reads all"] = Wrong(
    UNORDERED,
    4,
    """
kernel k(X: f32[M], Y: f32[M], S: f32[M].symmetric().scratch(), s: signal[ranks]):
    with role(communicator):
        for m in tasks(blocks(M, 8)):
            store(S[m], X[m] * 2.0)
        signal_all(s[rank], 1)
    with role(consumer):
        if rank > 0:
            wait(s[rank - 1], 1)
        for m in tasks(blocks(M, 8)):
            t = zeros(f32, m)
            for r in range(rank):
                t = t + S.at(r)[m]
            Y[m] = t
""",
)
_COUNTED = """
kernel k(X: f32[M].symmetric(), Y: f32[M], G: f32[M].symmetric().scratch(), s: signal[1], t: signal[1]):
    with role(communicator):
        for m in tasks(blocks(M, 8)):
            signal(t.at(rank)[0], 1)
            store(G.at((rank + 1) % ranks)[m], X[m])
        wait(t[0], len(blocks(M, 8)))
        signal(s.at((rank + 1) % ranks)[0], 1)
    with role(consumer):
        wait(s[0], 1)
        for m in tasks(blocks(M, 8)):
            Y[m] = G[m]
"""
RIGHT["one who counts its tasks before it announces them"] = Right((1, 2, 3), _COUNTED)
WRONG["the first task of a list announces all"] = Wrong(
    UNORDERED,
    2,
    """
kernel k(X: f32[M].symmetric(), Y: f32[M], G: f32[M].symmetric().scratch(), s: signal[1], t: signal[1]):
    with role(communicator):
        for m in tasks(blocks(M, 8)):
            signal(t.at(rank)[0], 1)
            store(G.at((rank + 1) % ranks)[m], X[m])
            if start(m) + 8 >= M:
                wait(t[0], len(blocks(M, 8)))
                signal(s.at((rank + 1) % ranks)[0], 1)
    with role(consumer):
        wait(s[0], 1)
        for m in tasks(blocks(M, 8)):
            Y[m] = G[m]
""",
)
RIGHT["the last task that announces all when all are there"] = Right(
    (1, 2, 3),
    WRONG["the first task of a list announces all"].text.replace(
        """            signal(t.at(rank)[0], 1)
            store(G.at((rank + 1) % ranks)[m], X[m])
""",
        """            store(G.at((rank + 1) % ranks)[m], X[m])
            signal(t.at(rank)[0], 1)
""",
    ),
)
WRONG["a wait for one, in a loop that needs all"] = Wrong(
    ("PK482", *UNORDERED),
    3,
    """
kernel k(X: f32[M].symmetric(), Y: f32[M], G: f32[ranks, M].symmetric().scratch(), s: signal[1]):
    with role(communicator):
        for m in tasks(blocks(M, 8)):
            x = X[m]
            for r in ring():
                store(G.at(r)[rank, m], x)
        signal_all(s[0], 1)
    with role(consumer):
        for m in tasks(blocks(M, 8)):
            t = zeros(f32, m)
            for i in range(ranks):
                wait(s[0], i + 1)
                t = t + G[i, m]
            Y[m] = t
""",
)
RIGHT["a wait for all, in front of a loop"] = Right(
    (1, 2, 3, 5),
    WRONG["a wait for one, in a loop that needs all"].text.replace(
        "            for i in range(ranks):\n                wait(s[0], i + 1)\n",
        "            wait(s[0], ranks)\n            for i in range(ranks):\n",
    ),
)
_EX = """
kernel k(X: f32[E, P].symmetric(), Y: f32[E, P].symmetric(), G: f32[E, P].symmetric().scratch(), s: signal[E]):
    with role(communicator):
        for e in range({a}, {b}):
            for p in tasks(blocks(P, 8)):
                for r in ring():
                    store(G.at(r)[e, p], X[e, p])
            signal_all(s[e], 1)
    with role(consumer):
        for e in range(E):
            wait(s[e], 1)
            for p in tasks(blocks(P, 8)):
                store(Y[e, p], G[e, p])
"""
WRONG["experts shared out by a division that rounds down"] = Wrong(
    ("PK480", "PK481", *UNORDERED),
    5,
    _EX.format(a="rank * (E // ranks)", b="(rank + 1) * (E // ranks)"),
    ("--set", "E=9"),
)
WRONG["experts shared out by a division that rounds down, any number"] = Wrong(
    ("PK480", "PK481", *UNORDERED), 5, _EX.format(a="rank * (E // ranks)", b="(rank + 1) * (E // ranks)")
)
RIGHT["experts shared out, as evenly as they go"] = Right(
    (1, 2, 3, 5), _EX.format(a="rank * E // ranks", b="(rank + 1) * E // ranks"), ("--set", "E=9")
)
WRONG["sms that are left for nobody else"] = Wrong(
    ("PK467",),
    2,
    """
kernel k(X: f32[M].symmetric(), Y: f32[M], G: f32[M].symmetric().scratch(), s: signal[1]):
    with role(communicator, sms=132):
        for m in tasks(blocks(M, 8)):
            store(G.at((rank + 1) % ranks)[m], X[m])
        signal(s.at((rank + 1) % ranks)[0], 1)
    with role(consumer):
        wait(s[0], 1)
        for m in tasks(blocks(M, 8)):
            Y[m] = G[m]
""",
)
_DED = """
kernel k(X: f32[M].symmetric(), Y: f32[M], G: f32[M].symmetric().scratch(), H: f32[M].symmetric().scratch(),
         s: signal[1]):
    with role(communicator, sms=8):
        for m in tasks(blocks(M, 8)):
            store(G.at((rank + 1) % ranks)[m], X[m])
        for m in tasks(blocks(M, 16)):
            store(H.at((rank + 1) % ranks)[m], X[m])
            signal(s.at((rank + 1) % ranks)[0], 1)
    with role(consumer):
        wait(s[0], len(blocks(M, 16)))
        for m in tasks(blocks(M, 8)):
            Y[m] = G[m] + H[m]
"""
WRONG["tasks of SMs of their own that announce what those before them have stored"] = Wrong(UNORDERED, 2, _DED)
WRONG["the same, of a given size"] = Wrong(UNORDERED, 2, _DED, ("--set", "M=50"))
