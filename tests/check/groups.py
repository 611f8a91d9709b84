"""Protocols as an author could write them: parts, tables and groups of ranks.

Most right ones stand beside a wrong one that differs from them in its mistake alone.
"""

from __future__ import annotations

from tests.check.protocols import UNORDERED, Right, Wrong

WRONG: dict[str, Wrong] = {}
RIGHT: dict[str, Right] = {}

WRONG["equal parts by hand, which leave a rest"] = Wrong(
    (*UNORDERED, "PK721"),
    3,
    """
kernel k(X: f32[M].replicate(), Y: f32[M], G: f32[M].symmetric().scratch(), s: signal[1]):
    with role(communicator):
        for m in tasks(blocks(M, 8, start=rank * (M // ranks), stop=(rank + 1) * (M // ranks))):
            x = X[m]
            for r in ring():
                store(G.at(r)[m], x)
        signal_all(s[0], 1)
    with role(consumer):
        wait(s[0], ranks)
        for m in tasks(blocks(M, 8)):
            Y[m] = G[m]
""",
)
WRONG["the first task waits for all others"] = Wrong(
    ("PK487", "PK480"),
    1,
    """
kernel k(X: f32[M], Y: f32[M], done: signal[1]):
    with role(communicator, sms=2):
        for i in tasks(M):
            if i == 0:
                wait(done[0], M - 1)
            else:
                signal(done.at(rank)[0], 1)
    with role(consumer):
        for m in tasks(blocks(M, 8)):
            Y[m] = X[m]
""",
    ("--set", "M=300"),
)
RIGHT["the last task waits for all others"] = Right(
    (1, 2), WRONG["the first task waits for all others"].text.replace("if i == 0", "if i == M - 1"), ("--set", "M=300")
)
WRONG["as many blocks as a number in memory says, rounded down"] = Wrong(
    ("PK482", *UNORDERED),
    2,
    """
kernel k(X: f32[M].symmetric(), n: i32[1].replicate(), Y: f32[M].symmetric(),
         G: f32[M].symmetric().scratch(), s: signal[1]):
    with role(communicator):
        for m in tasks(blocks(M, 8, stop=n[0])):
            store(G.at((rank + 1) % ranks)[m], X[m])
            signal(s.at((rank + 1) % ranks)[0], 1)
    with role(consumer):
        wait(s[0], n[0] // 8)
        for m in tasks(blocks(M, 8, stop=n[0])):
            store(Y[m], G[m])
""",
    ("--set", "M=64"),
)
RIGHT["as many blocks as a number in memory says"] = Right(
    (1, 2, 3),
    WRONG["as many blocks as a number in memory says, rounded down"].text.replace("n[0] // 8", "(n[0] + 7) // 8"),
    ("--set", "M=64"),
)
WRONG["tasks that announce what the tasks before them have stored"] = Wrong(
    UNORDERED,
    2,
    """
kernel k(X: f32[M].symmetric(), Y: f32[M], G: f32[M].symmetric().scratch(), H: f32[M].symmetric().scratch(),
         s: signal[1]):
    with role(communicator):
        for m in tasks(blocks(M, 8)):
            store(G.at((rank + 1) % ranks)[m], X[m])
        for m in tasks(blocks(M, 16)):
            store(H.at((rank + 1) % ranks)[m], X[m])
            signal(s.at((rank + 1) % ranks)[0], 1)
    with role(consumer):
        wait(s[0], len(blocks(M, 16)))
        for m in tasks(blocks(M, 8)):
            Y[m] = G[m] + H[m]
""",
    ("--set", "M=80"),
)
WRONG["the last block announced twice where it is ragged"] = Wrong(
    ("PK482",),
    2,
    """
kernel k(X: f32[M].symmetric(), Y: f32[M], G: f32[M].symmetric().scratch(), s: signal[1]):
    with role(communicator):
        for m in tasks(blocks(M, 8)):
            store(G.at((rank + 1) % ranks)[m], X[m])
            if start(m) + 8 > M:
                signal(s.at((rank + 1) % ranks)[0], 1)
            signal(s.at((rank + 1) % ranks)[0], 1)
    with role(consumer):
        wait(s[0], len(blocks(M, 8)))
        for m in tasks(blocks(M, 8)):
            Y[m] = G[m]
""",
)
_HALO = """
kernel k(X: f32[M].symmetric(), Y: f32[M].symmetric(), L: f32[8].symmetric().scratch(),
         F: f32[8].symmetric().scratch(), s: signal[2]):
    with role(communicator):
        for m in tasks(blocks(M, 8)):
            if start(m) == 0:
                for h in blocks(8, 8):
                    store(L.at((rank + ranks - 1) % ranks)[h], zeros(f32, h) + 1.0)
                signal(s.at((rank + ranks - 1) % ranks)[0], 1)
            {els} start(m) + 8 >= M:
                for h in blocks(8, 8):
                    store(F.at((rank + 1) % ranks)[h], zeros(f32, h) + 2.0)
                signal(s.at((rank + 1) % ranks)[1], 1)
    with role(consumer):
        wait(s[0], 1)
        wait(s[1], 1)
        for m in tasks(blocks(M, 8)):
            store(Y[m], X[m])
"""
WRONG["a first block that is the last one, too"] = Wrong(
    ("PK480", "PK481"), 2, _HALO.format(els="elif"), ("--set", "M=7")
)
RIGHT["borders of a first block that may be the last one"] = Right(
    (1, 2, 3, 5), _HALO.format(els="if"), ("--set", "M=7")
)
WRONG["sums over ranks read by the role that adds them"] = Wrong(
    ("PK703", *UNORDERED, "PK510"),
    2,
    """
kernel k(X: f32[M], C: f32[M].shard(0), Y: f32[M].shard(0)):
    with role(communicator):
        for m in tasks(blocks(M, 8)):
            C[m] += X[m]
        for m in tasks(blocks(M, 8, of=rank)):
            Y[m] = C[m]
""",
)
RIGHT["a pipeline of stages, one on each rank"] = Right(
    (1, 2, 3, 5),
    """
kernel k(X: f32[4, M].symmetric(), Y: f32[4, M].symmetric(), G: f32[2, M].symmetric().scratch(),
         full: signal[1], free: signal[1]):
    with role(communicator):
        for i in range(4):
            if rank > 0:
                wait(full[0], i + 1)
            if rank + 1 < ranks:
                wait(free[0], i - 1)
            for m in tasks(blocks(M, 8)):
                t = X[i, m]
                if rank > 0:
                    t = t + G[i % 2, m]
                if rank + 1 < ranks:
                    store(G.at(rank + 1)[i % 2, m], t)
                else:
                    store(Y[i, m], t)
            if rank + 1 < ranks:
                signal(full.at(rank + 1)[0], 1)
                for m in tasks(blocks(M, 8)):
                    store(Y[i, m], zeros(f32, m))
            if rank > 0:
                signal(free.at(rank - 1)[0], 1)
""",
)
WRONG["a pipeline of stages that frees what it has not read"] = Wrong(
    ("PK730",),
    3,
    """
kernel k(X: f32[4, M].symmetric(), Y: f32[4, M].symmetric(), G: f32[2, M].symmetric().scratch(),
         full: signal[1], free: signal[1]):
    with role(communicator):
        for i in range(4):
            if rank > 0:
                wait(full[0], i + 1)
                signal(free.at(rank - 1)[0], 1)
            if rank + 1 < ranks:
                wait(free[0], i - 1)
            for m in tasks(blocks(M, 8)):
                t = X[i, m]
                if rank > 0:
                    t = t + G[i % 2, m]
                if rank + 1 < ranks:
                    store(G.at(rank + 1)[i % 2, m], t)
                else:
                    store(Y[i, m], t)
            if rank + 1 < ranks:
                signal(full.at(rank + 1)[0], 1)
                for m in tasks(blocks(M, 8)):
                    store(Y[i, m], zeros(f32, m))
""",
)
RIGHT["two ranks play ping-pong, the others watch"] = Right(
    (2, 3, 5),
    """
kernel k(X: f32[M].symmetric(), Y: f32[M].symmetric(), G: f32[M].symmetric().scratch(), s: signal[1]):
    with role(communicator):
        if rank < 2:
            for i in range(6):
                if rank == i % 2:
                    if i > 0:
                        wait(s[0], (i + 1) // 2)
                    for m in tasks(blocks(M, 8)):
                        t = X[m]
                        if i > 0:
                            t = t + G[m]
                        store(G.at(1 - rank)[m], t)
                    signal(s.at(1 - rank)[0], 1)
        if rank == 0:
            wait(s[0], 3)
            for m in tasks(blocks(M, 8)):
                store(Y[m], G[m])
        else:
            for m in tasks(blocks(M, 8)):
                store(Y[m], X[m])
""",
)
WRONG["ping-pong that takes its own return for the other's"] = Wrong(
    (*UNORDERED, "PK482"), 2, RIGHT["two ranks play ping-pong, the others watch"].text.replace("(i + 1) // 2", "i // 2")
)
RIGHT["leaders of groups of two add up, and tell each other"] = Right(
    (2, 3, 4, 5),
    """
kernel k(X: f32[M].symmetric(), Y: f32[M].symmetric(), G: f32[2, M].symmetric().scratch(), H: f32[ranks,
         M].symmetric().scratch(), s: signal[1], t: signal[1]):
    with role(communicator):
        lead = rank // 2 * 2
        for m in tasks(blocks(M, 8)):
            store(G.at(lead)[rank % 2, m], X[m])
        signal(s.at(lead)[0], 1)
        if rank == lead:
            n = min(2, ranks - rank)
            wait(s[0], n)
            for m in tasks(blocks(M, 8)):
                x = zeros(f32, m)
                for i in range(n):
                    x = x + G[i, m]
                for g in range((ranks + 1) // 2):
                    store(H.at(2 * g)[lead, m], x)
            for g in range((ranks + 1) // 2):
                signal(t.at(2 * g)[0], 1)
            wait(t[0], (ranks + 1) // 2)
            for m in tasks(blocks(M, 8)):
                y = zeros(f32, m)
                for g in range((ranks + 1) // 2):
                    y = y + H[2 * g, m]
                for i in range(n):
                    store(Y.at(lead + i)[m], y)
""",
)
WRONG["leaders of groups of two, where one has nobody"] = Wrong(
    ("PK480", "PK481"),
    5,
    RIGHT["leaders of groups of two add up, and tell each other"].text.replace(
        "n = min(2, ranks - rank)\n            wait(s[0], n)", "n = min(2, ranks - rank)\n            wait(s[0], 2)"
    ),
)
WRONG["counts of one's expert from the table of another one"] = Wrong(
    ("PK481", "PK482"),
    3,
    """
kernel k(X: f32[E, P].symmetric(), count: i32[E].replicate(), Y: f32[ranks, P].symmetric(), G: f32[ranks,
         P].symmetric().scratch(), s: signal[ranks]):
    with role(communicator):
        for r in ring():
            for p in tasks(blocks(P, 8, stop=count[r])):
                store(G.at(r)[rank, p], X[r, p])
                signal(s.at(r)[rank], 1)
    with role(consumer):
        for r in ring():
            wait(s[r], (count[r] + 7) // 8)
            for p in tasks(blocks(P, 8, stop=count[rank])):
                store(Y[r, p], G[r, p])
""",
    ("--set", "P=64,E=9"),
)
RIGHT["counts of one's expert from one table"] = Right(
    (1, 2, 3, 5),
    WRONG["counts of one's expert from the table of another one"].text.replace("(count[r] +", "(count[rank] +"),
    ("--set", "P=64,E=9"),
)
WRONG["expert 8 of nine, which nobody announces"] = Wrong(
    ("PK480", "PK481"),
    2,
    """
kernel k(X: f32[E, P].symmetric(), Y: f32[E, P].symmetric(), G: f32[E, P].symmetric().scratch(), s: signal[E]):
    with role(communicator):
        for e in range(E):
            for p in tasks(blocks(P, 8)):
                store(G.at((rank + 1) % ranks)[e, p], X[e, p])
            if e < 8:
                signal(s.at((rank + 1) % ranks)[e], 1)
    with role(consumer):
        for e in range(E):
            wait(s[e], 1)
            for p in tasks(blocks(P, 8)):
                store(Y[e, p], G[e, p])
""",
    ("--set", "E=9"),
)
RIGHT["a store to each other rank's output, which nobody awaits"] = Right(
    (1, 2, 3, 5),
    """
kernel k(X: f32[ranks, M].symmetric(), Y: f32[ranks, M].symmetric()):
    with role(communicator):
        for r in ring():
            for m in tasks(blocks(M, 8)):
                store(Y.at(r)[rank, m], X[r, m])
""",
)
RIGHT["sums over ranks in a role"] = Right(
    (1, 2, 3),
    """
kernel k(X: f32[M], W: f32[M], C: f32[M].shard(0), Y: f32[M]):
    with role(communicator):
        for m in tasks(blocks(M, 8)):
            C[m] += X[m]
    with role(consumer):
        for m in tasks(blocks(M, 8)):
            Y[m] = W[m] * 2.0
""",
)
WRONG["a sum of products behind the flag of half its operand"] = Wrong(
    (*UNORDERED, "PK482", "PK483"),
    2,
    """
kernel k(A: bf16[M, K].symmetric(), B: bf16[K, N], C: bf16[M, N], G: bf16[M, K].symmetric().scratch(),
         s: signal[2]):
    with role(communicator):
        for m in tasks(blocks(M, 64)):
            for k in blocks(K, 32):
                store(G.at((rank + 1) % ranks)[m, k], A[m, k])
                signal(s.at((rank + 1) % ranks)[start(k) // 32 % 2], 1)
    with role(consumer):
        wait(s[0], len(blocks(M, 64)) * (len(blocks(K, 64))))
        for m, n in tasks(blocks(M, 64), blocks(N, 64)):
            acc = zeros(f32, m, n)
            for k in blocks(K, 64):
                acc += G[m, k] @ B[k, n]
            C[m, n] = acc
""",
    ("--set", "M=100,K=128,N=64"),
)
WRONG["fp8 tiles sent on by one who only awaits their scales"] = Wrong(
    UNORDERED,
    3,
    """
kernel k(X: e4m3[M, 32].symmetric(), F: f32[M].symmetric(), Y: f32[M, 32], G: e4m3[M,
         32].symmetric().scratch(), S: f32[M].symmetric().scratch(), G2: e4m3[M, 32].symmetric().scratch(),
         S2: f32[M].symmetric().scratch(), s: signal[2], t: signal[1]):
    with role(communicator):
        for m in tasks(blocks(M, 16)):
            store(S.at((rank + 1) % ranks)[m], F[m])
        signal(s.at((rank + 1) % ranks)[0], 1)
        for m in tasks(blocks(M, 16)):
            store(G.at((rank + 1) % ranks)[m, :], X[m, :])
        signal(s.at((rank + 1) % ranks)[1], 1)
    with role(loader):
        wait(s[0], 1)
        for m in tasks(blocks(M, 16)):
            store(S2.at((rank + 1) % ranks)[m], S[m])
            store(G2.at((rank + 1) % ranks)[m, :], G[m, :])
        signal(t.at((rank + 1) % ranks)[0], 1)
    with role(consumer):
        wait(t[0], 1)
        wait(s[1], 1)
        for m in tasks(blocks(M, 16)):
            Y[m, :] = cast(G2[m, :], f32) * S2[m]
""",
)
_HALF = """
kernel k(X: f32[64].symmetric(), Y: f32[64], G: f32[64].symmetric().scratch(), s: signal[8]):
    with role(communicator):
        for m in tasks(blocks(64, 8)):
            store(G.at((rank + 1) % ranks)[m], X[m])
            signal(s.at((rank + 1) % ranks)[start(m) // 8], 1)
    with role(consumer):
        for m in tasks(blocks(64, 16)):
            wait(s[start(m) // 8], 1)
            {second}
            Y[m] = G[m]
"""
WRONG["a block of sixteen behind the flag of its first eight"] = Wrong(
    (*UNORDERED, "PK483"), 2, _HALF.format(second="y = 1")
)
RIGHT["a block of sixteen behind the flags of both its halves"] = Right(
    (1, 2, 3), _HALF.format(second="wait(s[start(m) // 8 + 1], 1)")
)
