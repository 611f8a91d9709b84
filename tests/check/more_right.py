"""Protocols that are right, and that a check could take for mistakes: more of tests/check/protocols.py."""

from __future__ import annotations

from tests.check.more_wrong import EACH_TASK, READ, TO_NEXT, push, rounds
from tests.check.protocols import Right

MORE_RIGHT: dict[str, Right] = {
    "blocks of 16 read as blocks of 8": Right(
        (1, 2, 3),
        push(TO_NEXT.replace("blocks(M, 8)", "blocks(M, 16)"), "wait(s[0], len(blocks(M, 16)))" + READ),
    ),
    "signals of eight": Right(
        (1, 2, 3), push(TO_NEXT.replace("[0], 1)", "[0], 8)"), "wait(s[0], 8 * len(blocks(M, 8)))" + READ)
    ),
    "more awaited than is needed, twice": Right(
        (2, 3),
        push(TO_NEXT, "wait(s[0], 1)\nwait(s[0], len(blocks(M, 8)))\nwait(s[0], len(blocks(M, 8)))" + READ),
        ("--set", "M=20"),
    ),
    "two buffers with credits": Right((1, 2, 3, 5), rounds(2, "i - 1")),
    "three buffers with credits": Right((1, 2, 5), rounds(3, "i - 2")),
    "three buffers with a credit more than is needed": Right((1, 2, 3), rounds(3, "i - 1")),
    "one buffer with credits from the rank halfway round": Right(
        (1, 2, 3, 5), rounds(1, "i * len(blocks(M, 8))", "ranks // 2", "ranks - ranks // 2", told=EACH_TASK)
    ),
    "blocks in order, counted one by one": Right(
        (1, 2, 3),
        push(
            """
for m in blocks(M, 8):
    store(G.at((rank + 1) % ranks)[m], X[m])
    signal(s.at((rank + 1) % ranks)[0], 1)
""",
            """
for m in blocks(M, 8):
    wait(s[0], start(m) // 8 + 1)
    Y[m] = G[m]
""",
        ),
    ),
    "flags in the other order than they are awaited": Right(
        (1, 2, 3),
        """
kernel k(X: f32[64].symmetric(), Y: f32[64], G: f32[64].symmetric().scratch(), s: signal[8]):
    with role(communicator):
        for i in range(8):
            for m in blocks(64, 8, start=56 - 8 * i, stop=64 - 8 * i):
                store(G.at((rank + 1) % ranks)[m], X[m])
            signal(s.at((rank + 1) % ranks)[7 - i], 1)
    with role(consumer):
        for m in tasks(blocks(64, 8)):
            wait(s[start(m) // 8], 1)
            Y[m] = G[m]
""",
    ),
    "tasks that wait for earlier ones of their list": Right(
        (1, 2),
        """
kernel k(X: f32[M], Y: f32[M], done: signal[M]):
    with role(communicator, sms=2):
        for i in tasks(M):
            if i > 0:
                wait(done[i - 1], 1)
            signal(done.at(rank)[i], 1)
        for m in tasks(blocks(M, 8)):
            Y[m] = X[m]
""",
        ("--set", "M=300"),
    ),
    "as many tasks as fit, which wait for each other in pairs": Right(
        (1, 2),
        """
kernel k(X: f32[M], Y: f32[M], done: signal[12]):
    with role(consumer):
        for i in tasks(12):
            signal(done.at(rank)[i], 1)
            wait(done[i + 1 - 2 * (i % 2)], 1)
        for m in tasks(blocks(M, 8)):
            Y[m] = X[m]
""",
    ),
    "a prefix sum from rank to rank": Right(
        (1, 2, 3, 5),
        """
kernel k(X: f32[M].symmetric(), Y: f32[M].symmetric(), P: f32[M].symmetric().scratch(), s: signal[1]):
    with role(communicator):
        if rank > 0:
            wait(s[0], len(blocks(M, 8)))
        for m in tasks(blocks(M, 8)):
            t = X[m]
            if rank > 0:
                t = t + P[m]
            store(Y[m], t)
            if rank + 1 < ranks:
                store(P.at(rank + 1)[m], t)
                signal(s.at(rank + 1)[0], 1)
""",
    ),
    "a tree": Right(
        (1, 2, 3, 4, 5),
        """
kernel k(X: f32[M].symmetric(), Y: f32[M], G: f32[M].symmetric().scratch(), s: signal[1]):
    with role(communicator):
        if rank == 0:
            for m in tasks(blocks(M, 8)):
                store(G[m], X[m])
            signal(s.at(0)[0], 1)
        wait(s[0], 1)
        for c in range(2 * rank + 1, min(2 * rank + 3, ranks)):
            for m in tasks(blocks(M, 8)):
                store(G.at(c)[m], G[m])
            signal(s.at(c)[0], 1)
    with role(consumer):
        wait(s[0], 1)
        for m in tasks(blocks(M, 8)):
            Y[m] = G[m]
""",
    ),
    "a dissemination barrier with a counter for each round": Right(
        (2, 3, 4, 5),
        """
kernel k(X: f32[M].symmetric(), Y: f32[M], G: f32[M].symmetric().scratch(), s: signal[3]):
    with role(communicator):
        for m in tasks(blocks(M, 8)):
            store(G[m], X[m])
        d = 1
        for i in range(3):
            signal(s.at((rank + d) % ranks)[i], 1)
            wait(s[i], 1)
            d = d * 2
        for m in tasks(blocks(M, 8)):
            Y[m] = G.at((rank + 1) % ranks)[m]
""",
    ),
    "data that are fetched when their owner says that they are there": Right(
        (1, 2, 3),
        """
kernel k(X: f32[M], Y: f32[ranks, M], G: f32[M].symmetric().scratch(), s: signal[ranks]):
    with role(communicator):
        for m in tasks(blocks(M, 8)):
            store(G[m], X[m] * 2.0)
        signal_all(s[rank], 1)
    with role(consumer):
        for r in ring():
            wait(s[r], 1)
            for m in tasks(blocks(M, 8)):
                Y[r, m] = G.at(r)[m]
""",
    ),
    "an array that is read elsewhere before its owner changes it": Right(
        (1, 2, 3),
        """
kernel k(X: f32[M].symmetric(), Y: f32[M], s: signal[1]):
    with role(communicator):
        for m in tasks(blocks(M, 8)):
            Y[m] = X.at((rank + 1) % ranks)[m]
        signal(s.at((rank + 1) % ranks)[0], 1)
        wait(s[0], 1)
        for m in tasks(blocks(M, 8)):
            store(X[m], zeros(f32, m))
""",
    ),
    "neighbours on a line, of which the ends have one": Right(
        (1, 2, 3, 5),
        """
kernel k(X: f32[M].symmetric(), Y: f32[M].symmetric(), L: f32[M].symmetric().scratch(), R: f32[M].symmetric().scratch(),
         s: signal[1]):
    with role(communicator):
        if rank > 0:
            for m in tasks(blocks(M, 8)):
                store(R.at(rank - 1)[m], X[m])
            signal(s.at(rank - 1)[0], 1)
        if rank + 1 < ranks:
            for m in tasks(blocks(M, 8)):
                store(L.at(rank + 1)[m], X[m])
            signal(s.at(rank + 1)[0], 1)
        n = 2
        if rank == 0:
            n = n - 1
        if rank == ranks - 1:
            n = n - 1
        wait(s[0], n)
        for m in tasks(blocks(M, 8)):
            t = X[m]
            if rank > 0:
                t = t + L[m]
            if rank + 1 < ranks:
                t = t + R[m]
            store(Y[m], t)
""",
    ),
    "pairs, of which an odd rank has none": Right(
        (1, 2, 3, 5),
        """
kernel k(X: f32[M].symmetric(), Y: f32[M], G: f32[M].symmetric().scratch(), s: signal[1]):
    with role(communicator):
        p = min(rank + 1 - 2 * (rank % 2), ranks - 1)
        for m in tasks(blocks(M, 8)):
            store(G.at(p)[m], X[m])
        signal(s.at(p)[0], 1)
        wait(s[0], 1)
        for m in tasks(blocks(M, 8)):
            Y[m] = G[m]
""",
    ),
    "all to all, each block in its slot": Right(
        (1, 2, 3),
        """
kernel k(X: f32[ranks, M].symmetric(), Y: f32[ranks, M], G: f32[ranks, M].symmetric().scratch(), s: signal[ranks]):
    with role(communicator):
        for m in tasks(blocks(M, 8)):
            for r in ring():
                store(G.at(r)[rank, m], X[r, m])
                signal(s.at(r)[rank], 1)
    with role(consumer):
        for r in ring():
            wait(s[r], len(blocks(M, 8)))
            for m in tasks(blocks(M, 8)):
                Y[r, m] = G[r, m]
""",
    ),
    "shares of several sizes, counted by their sender": Right(
        (1, 2, 3, 5),
        """
kernel k(X: f32[M].shard(0), Y: f32[M], G: f32[M].symmetric().scratch(), s: signal[1]):
    with role(communicator):
        for m in tasks(blocks(M, 8, of=rank)):
            x = X[m]
            for r in ring():
                store(G.at(r)[m], x)
                signal(s.at(r)[0], 1)
    with role(consumer):
        n = 0
        for r in range(ranks):
            n = n + len(blocks(M, 8, of=r))
        wait(s[0], n)
        for m in tasks(blocks(M, 8)):
            Y[m] = G[m]
""",
    ),
    "a sum in the order of ranks, of slots that come in any order": Right(
        (1, 2, 3),
        """
kernel k(X: f32[M].symmetric(), Y: f32[M], G: f32[ranks, M].symmetric().scratch(), s: signal[1]):
    with role(communicator):
        for m in tasks(blocks(M, 8)):
            x = X[m]
            for r in ring():
                store(G.at(r)[rank, m], x)
        signal_all(s[0], 1)
    with role(consumer):
        wait(s[0], ranks)
        for m in tasks(blocks(M, 8)):
            t = zeros(f32, m)
            for r in range(ranks):
                t = t + G[r, m]
            Y[m] = t
""",
    ),
    "8-bit data with scales": Right(
        (1, 2, 3),
        """
kernel k(X: e4m3[M, K].symmetric(), F: f32[M].symmetric(), Y: f32[M, K], G: e4m3[M, K].symmetric().scratch(),
         S: f32[M].symmetric().scratch(), s: signal[1]):
    with role(communicator):
        for m in tasks(blocks(M, 16)):
            for k in blocks(K, 32):
                store(G.at((rank + 1) % ranks)[m, k], X[m, k])
            store(S.at((rank + 1) % ranks)[m], F[m])
            signal(s.at((rank + 1) % ranks)[0], 1)
    with role(consumer):
        wait(s[0], len(blocks(M, 16)))
        for m, k in tasks(blocks(M, 16), blocks(K, 32)):
            Y[m, k] = cast(G[m, k], f32) * S[m]
""",
    ),
    "integers added in any order": Right(
        (1, 2, 3),
        """
kernel k(X: i32[M], S: i32[M].symmetric().scratch(), Y: i32[M], s: signal[2]):
    with role(communicator):
        for m in tasks(blocks(M, 8)):
            store(S[m], X[m] * 0)
        signal_all(s[0], 1)
        wait(s[0], ranks)
        for m in tasks(blocks(M, 8)):
            for r in ring():
                store_add(S.at(r)[m], X[m])
        signal_all(s[1], 1)
        wait(s[1], ranks)
        for m in tasks(blocks(M, 8)):
            Y[m] = S[m]
""",
    ),
    "a chain of three roles": Right(
        (1, 2, 3),
        """
kernel k(X: f32[M].symmetric(), Y: f32[M], G: f32[M].symmetric().scratch(), H: f32[M].symmetric().scratch(),
         s: signal[1], t: signal[1]):
    with role(communicator):
        for m in tasks(blocks(M, 8)):
            store(G.at((rank + 1) % ranks)[m], X[m])
        signal(s.at((rank + 1) % ranks)[0], 1)
    with role(consumer):
        wait(s[0], 1)
        for m in tasks(blocks(M, 8)):
            store(H[m], G[m] * 2.0)
        signal(t.at(rank)[0], 1)
    with role(storer):
        wait(t[0], 1)
        for m in tasks(blocks(M, 8)):
            Y[m] = H[m] + G[m]
""",
    ),
    "two roles that write halves of one array": Right(
        (1, 2),
        """
kernel k(X: f32[M, 32], Y: f32[M, 32].symmetric()):
    with role(communicator):
        for m in tasks(blocks(M, 8)):
            for n in blocks(32, 16, stop=16):
                store(Y[m, n], X[m, n])
    with role(consumer):
        for m in tasks(blocks(M, 8)):
            for n in blocks(32, 16, start=16):
                store(Y[m, n], X[m, n] * 2.0)
""",
    ),
    "one element written by two ranks, one after the other": Right(
        (2, 3),
        """
kernel k(X: f32[M].symmetric(), Y: f32[M].symmetric(), s: signal[1]):
    with role(communicator):
        for m in tasks(blocks(M, 8)):
            store(Y[m], X[m])
        signal(s.at((rank + 1) % ranks)[0], 1)
        wait(s[0], 1)
        for m in tasks(blocks(M, 8)):
            store(Y.at((rank + ranks - 1) % ranks)[m], X[m] * 2.0)
""",
    ),
    "odd ranks receive before they send": Right(
        (1, 2, 3, 4),
        """
kernel k(X: f32[M].symmetric(), Y: f32[M], G: f32[M].symmetric().scratch(), s: signal[1]):
    with role(communicator):
        if rank % 2 == 1:
            wait(s[0], 1)
        for m in tasks(blocks(M, 8)):
            store(G.at((rank + 1) % ranks)[m], X[m])
        signal(s.at((rank + 1) % ranks)[0], 1)
        if rank % 2 == 0:
            wait(s[0], 1)
        for m in tasks(blocks(M, 8)):
            Y[m] = G[m]
""",
    ),
    "a number of rounds that the ranks hand round": Right(
        (2, 3),
        """
kernel k(X: f32[M], Y: f32[M], s: signal[1]):
    with role(communicator):
        for i in range(5):
            if rank == i % ranks:
                signal(s.at((rank + 1) % ranks)[0], 1)
            if rank == (i + 1) % ranks:
                wait(s[0], i // ranks + 1)
        for m in tasks(blocks(M, 8)):
            Y[m] = X[m]
""",
    ),
    "shares placed behind each other by sums of a table": Right(
        (1, 2, 3),
        """
kernel k(X: f32[P].symmetric(), count: i32[E].replicate(), Y: f32[P].symmetric(), G: f32[P].symmetric().scratch(),
         s: signal[1]):
    with role(communicator):
        at = 0
        for e in range(rank):
            at = at + count[e]
        for p in tasks(blocks(P, 1, start=at, stop=min(at + count[rank], P))):
            x = X[p]
            for r in ring():
                store(G.at(r)[p], x)
        signal_all(s[0], 1)
    with role(consumer):
        wait(s[0], ranks)
        n = 0
        for e in range(ranks):
            n = n + count[e]
        for p in tasks(blocks(P, 8, stop=n)):
            store(Y[p], G[p])
        for p in tasks(blocks(P, 8, start=n)):
            store(Y[p], zeros(f32, p))
""",
        ("--set", "P=40,E=3"),
    ),
    "a ring that adds up shares and hands the sums round": Right(
        (1, 2, 3),
        """
kernel k(X: f32[ranks, M].symmetric(), Y: f32[M], G: f32[ranks, M].symmetric().scratch(), s: signal[ranks]):
    with role(communicator):
        for m in tasks(blocks(M, 8)):
            store(G[0, m], X[(rank + ranks - 1) % ranks, m])
        for i in range(1, ranks):
            for m in tasks(blocks(M, 8)):
                if i == 1:
                    t = X[(rank + ranks - 1) % ranks, m]
                else:
                    t = G[i - 1, m] + X[(rank + ranks - i) % ranks, m]
                store(G.at((rank + 1) % ranks)[i, m], t)
            signal(s.at((rank + 1) % ranks)[i], 1)
            wait(s[i], 1)
        for m in tasks(blocks(M, 8)):
            Y[m] = G[ranks - 1, m]
""",
    ),
    "a memory that is cleared by another rank before it is added to": Right(
        (1, 2, 3),
        """
kernel k(X: f32[M], S: f32[M].symmetric().scratch(), Y: f32[M], b: signal[2]):
    with role(communicator):
        for m in tasks(blocks(M, 8)):
            store(S.at((rank + 1) % ranks)[m], zeros(f32, m))
        barrier(b[0])
        for m in tasks(blocks(M, 8)):
            for r in ring():
                store_add(S.at(r)[m], X[m])
        barrier(b[1])
        for m in tasks(blocks(M, 8)):
            Y[m] = S[m]
""",
    ),
    "a dissemination barrier with one counter for its rounds": Right(
        (3,),
        """
kernel k(X: f32[M].symmetric(), Y: f32[M], G: f32[M].symmetric().scratch(), s: signal[1]):
    with role(communicator):
        for m in tasks(blocks(M, 8)):
            store(G[m], X[m])
        signal(s.at((rank + 1) % ranks)[0], 1)
        wait(s[0], 1)
        signal(s.at((rank + 2) % ranks)[0], 1)
        wait(s[0], 2)
        for m in tasks(blocks(M, 8)):
            Y[m] = G.at((rank + 1) % ranks)[m]
""",
    ),
    "a slot that each rank in turn stores to, untouched, when the reader lets it": Right(
        (1, 2, 3),
        """
kernel k(X: f32[64].symmetric(), Y: f32[ranks, 64], G: f32[64].symmetric().scratch(), s: signal[ranks], f: signal[1]):
    with role(communicator):
        if rank > 0:
            wait(f[0], 1)
        store(G.at(0)[:], X[:])
        signal(s.at(0)[rank], 1)
    with role(consumer):
        for q in range(ranks):
            if rank == 0:
                wait(s[q], 1)
                Y[q, :] = G[:] * 1.0
                if q + 1 < ranks:
                    signal(f.at(q + 1)[0], 1)
            else:
                Y[q, :] = X[:]
""",
    ),
}
