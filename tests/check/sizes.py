"""Protocols as an author could write them: what is right up to a size, a block or a rank, and collectives.

Most right ones stand beside a wrong one that differs from them in its mistake alone.
"""

from __future__ import annotations

from tests.check.protocols import UNORDERED, Right, Wrong

WRONG: dict[str, Wrong] = {}
RIGHT: dict[str, Right] = {}

_G4 = """
kernel k(X: f32[M].symmetric(), Y: f32[M], G: f32[M].symmetric().scratch(), s: signal[M]):
    with role(communicator):
        for g in tasks({groups}):
            for m in blocks(M, 8, start=g * 32, stop=g * 32 + 32):
                store(G.at((rank + 1) % ranks)[m], X[m])
            signal(s.at((rank + 1) % ranks)[g], 1)
    with role(consumer):
        for m in tasks(blocks(M, 8)):
            wait(s[start(m) // {per}], 1)
            Y[m] = G[m]
"""
WRONG["groups of four, the rest unannounced"] = Wrong(
    (
        "PK480",
        "PK481",
        "PK482",
    ),
    3,
    _G4.format(groups="M // 32", per="32"),
)
WRONG["groups of four, awaited by groups of eight"] = Wrong(UNORDERED, 2, _G4.format(groups="(M + 31) // 32", per="64"))
RIGHT["groups of four blocks"] = Right((1, 2, 3, 5), _G4.format(groups="(M + 31) // 32", per="32"))
_PAR = """
kernel k(X: f32[5, M].symmetric(), Y: f32[5, M], G: f32[M].symmetric().scratch(), full: signal[1],
         free: signal[1]):
    with role(communicator):
        for i in range(5):
            wait(free[0], {fr})
            for m in tasks(blocks(M, 8)):
                store(G.at((rank + 1) % ranks)[m], X[i, m])
            signal(full.at((rank + 1) % ranks)[0], 1)
    with role(consumer):
        for i in range(5):
            wait(full[0], {fu})
            for m in tasks(blocks(M, 8)):
                Y[i, m] = G[m]
            signal(free.at((rank + ranks - 1) % ranks)[0], 1)
"""
WRONG["phases as parities"] = Wrong(
    (
        "PK705",
        "PK730",
        "PK480",
        "PK481",
        "PK482",
    ),
    3,
    _PAR.format(fr="i % 2", fu="i % 2 + 1"),
)
WRONG["free as parity only"] = Wrong(UNORDERED, 3, _PAR.format(fr="i % 2", fu="i + 1"))
RIGHT["phases as numbers"] = Right((1, 2, 3, 5), _PAR.format(fr="i", fu="i + 1"))
_BC = """
kernel k(X: f32[M].symmetric(), Y: f32[M], G: f32[M].symmetric().scratch(), s: signal[1]):
    with role(communicator):
        if rank == 0:
            for m in tasks(blocks(M, 8)):
                store(G[m], X[m])
            signal(s.at(0)[0], 1)
        wait(s[0], 1)
        d = 1
        for i in range(3):
            if rank < d and {cond}:
                for m in tasks(blocks(M, 8)):
                    store(G.at(rank + d)[m], G[m])
                signal(s.at(rank + d)[0], 1)
            d = d * 2
    with role(consumer):
        wait(s[0], 1)
        for m in tasks(blocks(M, 8)):
            Y[m] = G[m]
"""
WRONG["broadcast by doubling, powers of two only"] = Wrong(
    (
        "PK480",
        "PK481",
        "PK482",
    ),
    5,
    _BC.format(cond="d * 2 <= ranks"),
)
WRONG["broadcast by doubling, one rank too many"] = Wrong(("PK707",), 2, _BC.format(cond="rank + d <= ranks"))
RIGHT["broadcast by doubling"] = Right((1, 2, 3, 5), _BC.format(cond="rank + d < ranks"))
_FOLD = """
kernel k(X: f32[M].symmetric(), Y: f32[M].symmetric(), S: f32[M].scratch(), G: f32[4,
         M].symmetric().scratch(), s: signal[4]):
    with role(communicator):
        p = 1
        for i in range(2):
            if p * 2 <= ranks:
                p = p * 2
        for m in tasks(blocks(M, 8)):
            S[m] = X[m]
        if rank >= p:
            for m in tasks(blocks(M, 8)):
                store(G.at(rank - p)[3, m], X[m])
            signal(s.at(rank - p)[3], 1)
        else:
            if rank + p < ranks:
                wait(s[3], 1)
                for m in tasks(blocks(M, 8)):
                    S[m] = S[m] + G[3, m]
            d = 1
            for i in range(2):
                if d < p:
                    q = rank + d - 2 * d * (rank // d % 2)
                    for m in tasks(blocks(M, 8)):
                        store(G.at(q)[i, m], S[m])
                    signal(s.at(q)[i], 1)
                    wait(s[i], 1)
                    for m in tasks(blocks(M, 8)):
                        S[m] = S[m] + G[i, m]
                d = d * 2
            for m in tasks(blocks(M, 8)):
                store(Y[m], S[m])
                {back}
"""
WRONG["folded ranks get nothing back"] = Wrong(("PK721",), 5, _FOLD.format(back="z = 0"))
RIGHT["folded ranks get the sum back"] = Right(
    (1, 2, 3, 5),
    _FOLD.format(
        back="""if rank + p < ranks:
                    store(Y.at(rank + p)[m], S[m])"""
    ),
)
_MM = """
kernel k(A: bf16[M, K].symmetric(), B: bf16[K, N], C: bf16[M, N], G: bf16[M, K].symmetric().scratch(),
         s: signal[1]):
    with role(communicator):
        for k in blocks(K, 64):
            for m in tasks(blocks(M, 64)):
                store(G.at((rank + 1) % ranks)[m, k], A[m, k])
            signal(s.at((rank + 1) % ranks)[0], 1)
    with role(consumer):
        for m, n in tasks(blocks(M, 64), blocks(N, 64)):
            acc = zeros(f32, m, n)
            for k in blocks(K, 64):
                wait(s[0], start(k) // 64{plus})
                acc += G[m, k] @ B[k, n]
            C[m, n] = acc
"""
WRONG["slices of K awaited one early"] = Wrong(
    (
        "PK705",
        "PK730",
        "PK480",
        "PK481",
        "PK482",
    ),
    3,
    _MM.format(plus=""),
)
WRONG["slices of K awaited one late"] = Wrong(
    (
        "PK480",
        "PK481",
        "PK482",
    ),
    3,
    _MM.format(plus=" + 2"),
)
RIGHT["slices of K awaited one by one"] = Right((1, 2, 3, 5), _MM.format(plus=" + 1"))
_TWO = """
kernel k(X: f32[M].symmetric(), Y: f32[M], Z: f32[M], G: f32[M].symmetric().scratch(),
         H: f32[M].symmetric().scratch(), s: signal[{n}]):
    with role(communicator):
        for m in tasks(blocks(M, 8)):
            store(G.at((rank + 1) % ranks)[m], X[m])
            signal(s.at((rank + 1) % ranks)[0], 1)
    with role(loader):
        for m in tasks(blocks(M, 8)):
            store(H.at((rank + 1) % ranks)[m], X[m])
            signal(s.at((rank + 1) % ranks)[{n} - 1], 1)
    with role(consumer):
        wait(s[0], len(blocks(M, 8)))
        for m in tasks(blocks(M, 8)):
            Y[m] = G[m]
        wait(s[{n} - 1], len(blocks(M, 8)) * (3 - {n}))
        for m in tasks(blocks(M, 8)):
            Z[m] = H[m]
"""
WRONG["two producers share a counter"] = Wrong(UNORDERED, 2, _TWO.format(n=1))
RIGHT["two producers, two counters"] = Right((1, 2, 3, 5), _TWO.format(n=2))
_EMP = """
kernel k(X: f32[M].shard(0), Y: f32[M], G: f32[M].symmetric().scratch(), s: signal[ranks]):
    with role(communicator):
        if len(blocks(M, 8, of=rank)) > {lim}:
            for m in tasks(blocks(M, 8, of=rank)):
                x = X[m]
                for r in ring():
                    store(G.at(r)[m], x)
            signal_all(s[rank], 1)
    with role(consumer):
        for r in ring():
            {cond}
            for m in tasks(blocks(M, 8, of=r)):
                Y[m] = G[m]
"""
WRONG["who has nothing says nothing, and is awaited"] = Wrong(
    (
        "PK480",
        "PK481",
        "PK482",
    ),
    3,
    _EMP.format(lim=0, cond="wait(s[r], 1)"),
)
WRONG["who has one block says nothing"] = Wrong(
    UNORDERED, 3, _EMP.format(lim=1, cond="if len(blocks(M, 8, of=r)) > 1:\n                wait(s[r], 1)")
)
RIGHT["who has nothing says nothing, and is not awaited"] = Right(
    (1, 2, 3, 5), _EMP.format(lim=0, cond="if len(blocks(M, 8, of=r)) > 0:\n                wait(s[r], 1)")
)
_PULL = """
kernel k(X: f32[3, M], Y: f32[3, ranks, M], G: f32[M].symmetric().scratch(), s: signal[ranks], t: signal[1]):
    with role(communicator):
        for i in range(3):
            wait(t[0], i * {n})
            for m in tasks(blocks(M, 8)):
                store(G[m], X[i, m])
            signal_all(s[rank], 1)
    with role(consumer):
        for i in range(3):
            for r in ring():
                wait(s[r], i + 1)
                for m in tasks(blocks(M, 8)):
                    Y[i, r, m] = G.at(r)[m]
                signal(t.at({to})[0], 1)
"""
WRONG["readers but for oneself counted"] = Wrong(UNORDERED, 3, _PULL.format(n="(ranks - 1)", to="r"))
WRONG["credits to oneself for what was read elsewhere"] = Wrong(UNORDERED, 3, _PULL.format(n="ranks", to="rank"))
RIGHT["an owner waits for all readers"] = Right((1, 2, 3, 5), _PULL.format(n="ranks", to="r"))
_LAST = """
kernel k(X: f32[M].symmetric(), Y: f32[M].symmetric(), G: f32[M].symmetric().scratch(), s: signal[1],
         t: signal[1]):
    with role(communicator):
        if rank > 0:
            {w}
            for m in tasks(blocks(M, 8)):
                store(G.at(0)[m], X[m])
            signal(s.at(0)[0], 1)
            if rank + 1 < ranks:
                signal(t.at(rank + 1)[0], 1)
    with role(consumer):
        if rank == 0:
            wait(s[0], ranks - 1)
            for m in tasks(blocks(M, 8)):
                if ranks > 1:
                    store(Y[m], G[m])
                else:
                    store(Y[m], X[m])
        else:
            for m in tasks(blocks(M, 8)):
                store(Y[m], X[m])
"""
WRONG["several writers of one buffer"] = Wrong(
    UNORDERED, 5, _LAST.format(w="if rank > 2:\n                wait(t[0], 1)")
)
RIGHT["several writers of one buffer, one after the other"] = Right(
    (1, 2, 3, 5), _LAST.format(w="if rank > 1:\n                wait(t[0], 1)")
)
_ACC = """
kernel k(X: f32[M].shard(0), Y: f32[M], G: f32[M].symmetric().scratch(), s: signal[{size}]):
    with role(communicator):
        for m in tasks(blocks(M, 8, of=rank)):
            x = X[m]
            for r in ring():
                store(G.at(r)[m], x)
                signal(s.at(r)[{which}], 1)
    with role(consumer):
        n = 0
        for r in range(ranks):
            n = n + len(blocks(M, 8, of=r))
            wait(s[{await_}], n)
            for m in tasks(blocks(M, 8, of=r)):
                Y[m] = G[m]
"""
WRONG["sums of counts for counters of each rank"] = Wrong(
    (
        "PK480",
        "PK481",
        "PK482",
    ),
    3,
    _ACC.format(size="ranks", which="rank", await_="r"),
)
WRONG["sums of counts for one counter of all ranks"] = Wrong(UNORDERED, 3, _ACC.format(size="1", which="0", await_="0"))
WRONG["a rank that leaves early"] = Wrong(
    (
        "PK480",
        "PK481",
        "PK482",
    ),
    3,
    """
kernel k(X: f32[6, M].symmetric(), Y: f32[6, M], G: f32[6, M].symmetric().scratch(), s: signal[1]):
    with role(communicator):
        for i in range(min(6, 2 + rank * 2)):
            for m in tasks(blocks(M, 8)):
                store(G.at((rank + 1) % ranks)[i, m], X[i, m])
            signal(s.at((rank + 1) % ranks)[0], 1)
    with role(consumer):
        for i in range(6):
            wait(s[0], i + 1)
            for m in tasks(blocks(M, 8)):
                Y[i, m] = G[i, m]
""",
)
RIGHT["ranks with different numbers of rounds"] = Right(
    (1, 2, 3, 5),
    """
kernel k(X: f32[6, M].symmetric(), Y: f32[6, M].symmetric(), G: f32[6, M].symmetric().scratch(), s: signal[1]):
    with role(communicator):
        for i in range(min(6, 2 + rank * 2)):
            for m in tasks(blocks(M, 8)):
                store(G.at((rank + 1) % ranks)[i, m], X[i, m])
            signal(s.at((rank + 1) % ranks)[0], 1)
    with role(consumer):
        n = min(6, 2 + (rank + ranks - 1) % ranks * 2)
        for i in range(6):
            if i < n:
                wait(s[0], i + 1)
                for m in tasks(blocks(M, 8)):
                    store(Y[i, m], G[i, m])
            else:
                for m in tasks(blocks(M, 8)):
                    store(Y[i, m], X[i, m])
""",
)
WRONG["block five is not stored in time"] = Wrong(
    UNORDERED,
    2,
    """
kernel k(X: f32[M].symmetric(), Y: f32[M], G: f32[M].symmetric().scratch(), s: signal[M]):
    with role(communicator):
        for m in tasks(blocks(M, 8)):
            if start(m) == 40:
                signal(s.at((rank + 1) % ranks)[start(m)], 1)
            store(G.at((rank + 1) % ranks)[m], X[m])
            if start(m) != 40:
                signal(s.at((rank + 1) % ranks)[start(m)], 1)
    with role(consumer):
        for m in tasks(blocks(M, 8)):
            wait(s[start(m)], 1)
            Y[m] = G[m]
""",
)
WRONG["more than six blocks"] = Wrong(
    UNORDERED,
    2,
    """
kernel k(X: f32[M].symmetric(), Y: f32[M], G: f32[M].symmetric().scratch(), s: signal[M]):
    with role(communicator):
        for m in tasks(blocks(M, 8)):
            if len(blocks(M, 8)) > 6:
                signal(s.at((rank + 1) % ranks)[start(m)], 1)
            store(G.at((rank + 1) % ranks)[m], X[m])
            if len(blocks(M, 8)) <= 6:
                signal(s.at((rank + 1) % ranks)[start(m)], 1)
    with role(consumer):
        for m in tasks(blocks(M, 8)):
            wait(s[start(m)], 1)
            Y[m] = G[m]
""",
)
WRONG["seven blocks exactly"] = Wrong(
    (
        "PK480",
        "PK481",
        "PK482",
    ),
    2,
    """
kernel k(X: f32[M].symmetric(), Y: f32[M], G: f32[M].symmetric().scratch(), s: signal[1]):
    with role(communicator):
        for m in tasks(blocks(M, 8)):
            store(G.at((rank + 1) % ranks)[m], X[m])
            signal(s.at((rank + 1) % ranks)[0], 1)
    with role(consumer):
        n = len(blocks(M, 8))
        wait(s[0], n - n // 7)
        for m in tasks(blocks(M, 8)):
            Y[m] = G[m]
""",
)
WRONG["a rule for up to four ranks"] = Wrong(
    UNORDERED,
    5,
    """
kernel k(X: f32[M].symmetric(), Y: f32[M], G: f32[4, M].symmetric().scratch(), s: signal[1]):
    with role(communicator):
        for m in tasks(blocks(M, 8)):
            for r in ring():
                store(G.at(r)[rank % 4, m], X[m])
        signal_all(s[0], 1)
    with role(consumer):
        wait(s[0], ranks)
        for m in tasks(blocks(M, 8)):
            Y[m] = G[rank % 4, m]
""",
)
_EPI = """
kernel k(X: f32[M].symmetric(), Y: f32[M].symmetric(), s: signal[1]):
    with role(communicator):
        {before}
        for m in tasks(blocks(M, 8)):
            store(Y[m], X[m] * 2.0)
        {tell}
        if rank == 0:
            wait(s[0], ranks)
            for r in range(1, ranks):
                for m in tasks(blocks(M, 8, stop=8)):
                    store(Y.at(r)[m], X[m])
"""
WRONG["rank 0 writes over others' outputs"] = Wrong(
    UNORDERED, 3, _EPI.format(before="signal(s.at(0)[0], 1)", tell="z = 0")
)
RIGHT["rank 0 writes over others' outputs when they are there"] = Right(
    (1, 2, 3, 5), _EPI.format(before="z = 0", tell="signal(s.at(0)[0], 1)")
)
_GRID = """
kernel k(X: f32[ranks, M].symmetric(), Y: f32[ranks, M], G: f32[ranks, M].symmetric().scratch(),
         s: signal[ranks, ranks]):
    with role(communicator):
        for r in ring():
            for m in tasks(blocks(M, 8)):
                store(G.at(r)[rank, m], X[r, m])
            signal(s.at(r)[{a}], 1)
    with role(consumer):
        for r in ring():
            wait(s[{b}], 1)
            for m in tasks(blocks(M, 8)):
                Y[r, m] = G[r, m]
"""
WRONG["a grid of counters, transposed"] = Wrong(
    (
        "PK480",
        "PK481",
        "PK482",
    ),
    3,
    _GRID.format(a="rank, r", b="rank, r"),
)
RIGHT["a grid of counters"] = Right((1, 2, 3, 5), _GRID.format(a="rank, r", b="r, rank"))
