"""Protocols that are wrong only at sizes, or on numbers of ranks, that nobody asks for: sizes below the numbers that a
program takes off them, rests of several numbers at once, more rounds than slots on three ranks, numbers of ranks that a
program tells from others."""

from __future__ import annotations

from tests.check.protocols import UNORDERED, Right, Wrong

WRONG: dict[str, Wrong] = {
    "as many signals as a loop over T - 3 leaves, awaited where it has no iterations": Wrong(
        ("PK481",),
        2,
        """
kernel k(X: f32[T, 64].symmetric(), Y: f32[T, 64], G: f32[T, 64].symmetric().scratch(), s: signal[1]):
    with role(communicator):
        for t in range(T):
            store(G.at((rank + 1) % ranks)[t, :], X[t, :])
            signal(s.at((rank + 1) % ranks)[0], 1)
    with role(consumer):
        wait(s[0], 3)
        for t in range(T - 3):
            Y[t, :] = G[t, :]
            wait(s[0], t + 4)
        for t in range(max(T - 3, 0), T):
            Y[t, :] = G[t, :]
""",
    ),
    "a steady loop over T - 4 and a tail of four, where there are fewer": Wrong(
        (*UNORDERED, "PK482"),
        2,
        """
kernel k(X: f32[T, 64].symmetric(), Y: f32[T, 64], G: f32[T, 64].symmetric().scratch(), s: signal[1]):
    with role(communicator):
        for t in range(T - 4):
            store(G.at((rank + 1) % ranks)[t, :], X[t, :])
            signal(s.at((rank + 1) % ranks)[0], 1)
        for t in range(4):
            store(G.at((rank + 1) % ranks)[max(T - 4 + t, 0), :], X[max(T - 4 + t, 0), :])
            signal(s.at((rank + 1) % ranks)[0], 1)
    with role(consumer):
        wait(s[0], T)
        for t in range(T):
            Y[t, :] = G[t, :]
""",
    ),
    "one step fewer than rows, and one at least awaited": Wrong(
        ("PK481",),
        2,
        """
kernel k(X: f32[T, 64].symmetric(), Y: f32[T, 64], G: f32[T, 64].symmetric().scratch(), s: signal[1]):
    with role(communicator):
        for t in range(T - 1):
            store(G.at((rank + 1) % ranks)[t, :], X[t + 1, :])
            signal(s.at((rank + 1) % ranks)[0], 1)
    with role(consumer):
        wait(s[0], max(T - 1, 1))
        for t in range(T):
            if t + 1 < T:
                Y[t, :] = G[t, :]
            else:
                Y[t, :] = X[t, :]
""",
    ),
    "a flag that only more than seven rows send": Wrong(
        ("PK481",),
        2,
        """
kernel k(X: f32[T, 64].symmetric(), Y: f32[T, 64], G: f32[T, 64].symmetric().scratch(), s: signal[1]):
    with role(communicator):
        for t in range(T):
            store(G.at((rank + 1) % ranks)[t, :], X[t, :])
        if T > 7:
            store(G.at((rank + 1) % ranks)[7, :], X[7, :])
            signal(s.at((rank + 1) % ranks)[0], 1)
    with role(consumer):
        wait(s[0], 1)
        for t in range(T):
            Y[t, :] = G[t, :]
""",
    ),
    "the rest of chunks behind their last flag": Wrong(
        ("PK730",),
        2,
        """
kernel k(X: f32[T, 64].symmetric(), V: f32[N, 64], Y: f32[T, 64], Z: f32[N, 64], G: f32[T,
         64].symmetric().scratch(), s: signal[N]):
    with role(communicator):
        w = T // N
        for j in range(N):
            for t in range(j * w, (j + 1) * w):
                store(G.at((rank + 1) % ranks)[t, :], X[t, :])
            signal(s.at((rank + 1) % ranks)[j], 1)
        for t in range(N * w, N * w + T % N):
            store(G.at((rank + 1) % ranks)[t, :], X[t, :])
    with role(consumer):
        w = T // N
        for j in range(N):
            wait(s[j], 1)
            for t in range(j * w, (j + 1) * w):
                Y[t, :] = G[t, :]
            Z[j, :] = V[j, :]
        for t in range(N * w, T):
            Y[t, :] = G[t, :]
""",
    ),
    "flags of two moduli, without the one where both rests are the last": Wrong(
        ("PK481",),
        2,
        """
kernel k(X: f32[T, 64].symmetric(), Y: f32[T, 64], G: f32[T, 64].symmetric().scratch(), s: signal[5],
         u: signal[7]):
    with role(communicator):
        for t in range(T):
            store(G.at((rank + 1) % ranks)[t, :], X[t, :])
            signal(s.at((rank + 1) % ranks)[t % 5], 1)
            if t % 5 != 4 or t % 7 != 6:
                signal(u.at((rank + 1) % ranks)[t % 7], 1)
    with role(consumer):
        for t in range(T):
            wait(s[t % 5], t // 5 + 1)
            wait(u[t % 7], t // 7 + 1)
            Y[t, :] = G[t, :]
""",
    ),
}

RIGHT: dict[str, Right] = {
    "a tree of steps that double, each in a branch": Right(
        (1, 2, 3, 5),
        """
kernel k(X: f32[M].symmetric(), Y: f32[M].symmetric(), s: signal[1]):
    with role(communicator):
        if rank > 0:
            wait(s[0], 1)
        else:
            for m in tasks(blocks(M, 64)):
                store(Y[m], X[m])
        d = 1
        for j in range(4):
            if rank < d and rank + d < ranks:
                for m in tasks(blocks(M, 64)):
                    store(Y.at(rank + d)[m], Y[m])
                signal(s.at(rank + d)[0], 1)
            d = d * 2
""",
    ),
    "borders without neighbours at both ends": Right(
        (1, 2, 3),
        """
kernel k(X: f32[5, M].symmetric(), Y: f32[5, M], L: f32[2, M].symmetric().scratch(), H: f32[2,
         M].symmetric().scratch(), a: signal[1], b: signal[1]):
    with role(communicator):
        for i in range(5):
            if rank > 0:
                for m in tasks(blocks(M, 64)):
                    store(H.at(rank - 1)[i % 2, m], X[i, m])
                signal(b.at(rank - 1)[0], 1)
            if rank + 1 < ranks:
                for m in tasks(blocks(M, 64)):
                    store(L.at(rank + 1)[i % 2, m], X[i, m])
                signal(a.at(rank + 1)[0], 1)
            if rank > 0:
                wait(a[0], i + 1)
            if rank + 1 < ranks:
                wait(b[0], i + 1)
            for m in tasks(blocks(M, 64)):
                t = X[i, m]
                if rank > 0:
                    t = t + L[i % 2, m]
                if rank + 1 < ranks:
                    t = t + H[i % 2, m]
                Y[i, m] = t
""",
    ),
    "a server that answers each client in turn": Right(
        (2, 3),
        """
kernel k(X: f32[3, M].symmetric(), Y: f32[3, M].symmetric(), Q: f32[ranks, M].symmetric().scratch(),
         A: f32[M].symmetric().scratch(), q: signal[ranks], a: signal[1]):
    with role(communicator):
        for i in range(3):
            if rank == 0:
                for r in range(1, ranks):
                    wait(q[r], i + 1)
                    for m in tasks(blocks(M, 64)):
                        store(A.at(r)[m], Q[r, m] * 2.0)
                    signal(a.at(r)[0], 1)
                for m in tasks(blocks(M, 64)):
                    store(Y[i, m], X[i, m])
            else:
                for m in tasks(blocks(M, 64)):
                    store(Q.at(0)[rank, m], X[i, m])
                signal(q.at(0)[rank], 1)
                wait(a[0], i + 1)
                for m in tasks(blocks(M, 64)):
                    store(Y[i, m], A[m])
""",
    ),
}

ON_OTHER_RANKS: dict[str, tuple[tuple[str, ...], str]] = {
    "two slots of a ring, without a credit": (
        ("PK730",),
        """
kernel k(X: f32[T, 64].symmetric(), Y: f32[T, 64], G: f32[2, 64].symmetric().scratch(), s: signal[1]):
    with role(communicator):
        for t in range(T):
            store(G.at((rank + 1) % ranks)[t % 2, :], X[t, :])
            signal(s.at((rank + 1) % ranks)[0], 1)
            wait(s[0], t + 1)
            Y[t, :] = G[t % 2, :]
""",
    ),
    "four slots of a ring of as many rounds as ranks, without a credit": (
        ("PK730",),
        """
kernel k(X: f32[ranks, 64], Y: f32[64], B: f32[4, 64].symmetric().scratch(), got: signal[1]):
    with role(communicator, sms=1):
        acc = X[(rank + ranks - 1) % ranks, :]
        for s in range(ranks - 1):
            store(B.at((rank + 1) % ranks)[s % 4, :], acc)
            signal(got.at((rank + 1) % ranks)[0], 1)
            wait(got[0], s + 1)
            acc = B[s % 4, :] + X[(rank + 2 * ranks - 2 - s) % ranks, :]
        Y[:] = acc
""",
    ),
    "two halos in turn, as many rounds as the caller says, without a credit": (
        ("PK730",),
        """
kernel k(X: f32[64], Y: f32[64], S: i32, H: f32[2, 64].symmetric().scratch(), got: signal[1]):
    with role(communicator, sms=1):
        cur = X[:]
        for i in range(S):
            store(H.at((rank + 1) % ranks)[i % 2, :], cur)
            signal(got.at((rank + 1) % ranks)[0], 1)
            wait(got[0], i + 1)
            cur = cur * 0.5 + H[i % 2, :]
        Y[:] = cur
""",
    ),
    "two slots of a ring, with credits for the next rank": (
        ("PK730",),
        """
kernel k(X: f32[T, 64].symmetric(), Y: f32[T, 64], G: f32[2, 64].symmetric().scratch(),
         full: signal[1], free: signal[1]):
    with role(communicator):
        for t in range(T):
            wait(free[0], t - 1)
            store(G.at((rank + 1) % ranks)[t % 2, :], X[t, :])
            signal(full.at((rank + 1) % ranks)[0], 1)
    with role(consumer):
        for t in range(T):
            wait(full[0], t + 1)
            Y[t, :] = G[t % 2, :]
            signal(free.at((rank + 1) % ranks)[0], 1)
""",
    ),
    "both neighbours on one counter": (
        ("PK705", "PK730"),
        """
kernel k(X: f32[T, 64].symmetric(), Y: f32[T, 64], L: f32[T, 64].symmetric().scratch(), H: f32[T,
         64].symmetric().scratch(), s: signal[1]):
    with role(communicator):
        left = (rank + ranks - 1) % ranks
        right = (rank + 1) % ranks
        for t in range(T):
            store(H.at(left)[t, :], X[t, :])
            signal(s.at(left)[0], 1)
            store(L.at(right)[t, :], X[t, :])
            signal(s.at(right)[0], 1)
            wait(s[0], 2 * (t + 1))
            Y[t, :] = L[t, :] + H[t, :]
""",
    ),
    "acks of all receivers on one counter": (
        ("PK730",),
        """
kernel k(X: f32[T, 64].symmetric(), Y: f32[T, 64].symmetric(), G: f32[4, 64].symmetric().scratch(),
         full: signal[1], free: signal[1]):
    with role(communicator):
        if rank == 0:
            for t in range(T):
                wait(free[0], (ranks - 1) * (t - 3))
                x = X[t, :]
                for r in range(1, ranks):
                    store(G.at(r)[t % 4, :], x)
                for r in range(1, ranks):
                    signal(full.at(r)[0], 1)
    with role(consumer):
        for t in range(T):
            if rank > 0:
                wait(full[0], t + 1)
                store(Y[t, :], G[t % 4, :])
                signal(free.at(0)[0], 1)
            else:
                store(Y[t, :], X[t, :])
""",
    ),
    "an offset that counts the rank before alone": (
        ("PK730",),
        """
kernel k(X: f32[ranks, P, 64].symmetric(), n: i32[ranks, ranks].replicate(), Y: f32[P, 64], G: f32[P,
         64].symmetric().scratch(), s: signal[1]):
    with role(communicator):
        cap = P // ranks
        for r in ring():
            first = 0
            for q in range(max(rank - 1, 0), rank):
                first = first + min(n[q, r], cap)
            for p in range(min(n[rank, r], cap)):
                store(G.at(r)[first + p, :], X[r, p, :])
            signal(s.at(r)[0], 1)
    with role(consumer):
        total = 0
        for q in range(ranks):
            total = total + min(n[q, rank], P // ranks)
        wait(s[0], ranks)
        for p in tasks(P):
            if p < total:
                Y[p, :] = G[p, :]
            else:
                Y[p, :] = zeros(f32, 64)
""",
    ),
    "a rest of two counted as one": (
        ("PK482",),
        """
kernel k(X: f32[T, 64].replicate(), Y: f32[T, 64], G: f32[T, 64].symmetric().scratch(), s: signal[1]):
    with role(communicator):
        for t in range(T):
            if t % ranks == rank:
                x = X[t, :]
                for r in ring():
                    store(G.at(r)[t, :], x)
                    signal(s.at(r)[0], 1)
    with role(consumer):
        wait(s[0], T // ranks * ranks + min(T % ranks, 1))
        for t in range(T):
            Y[t, :] = G[t, :]
""",
    ),
    "two slots of a ring, by blocks": (
        ("PK730",),
        """
kernel k(X: f32[M].symmetric(), Y: f32[M], G: f32[2, M].symmetric().scratch(), s: signal[1]):
    with role(communicator):
        i = 0
        for m in blocks(M, 32):
            for n in blocks(M, 32):
                store(G.at((rank + 1) % ranks)[i % 2, n], X[n] * cast(i, f32))
            signal(s.at((rank + 1) % ranks)[0], 1)
            wait(s[0], i + 1)
            Y[m] = G[i % 2, m]
            i = i + 1
""",
    ),
    "two slots of a ring, by elements": (
        ("PK730",),
        """
kernel k(X: f32[M].symmetric(), Y: f32[M], G: f32[2, 64].symmetric().scratch(), s: signal[1]):
    with role(communicator):
        i = 0
        for m in blocks(M, 32):
            for j in range(32):
                if start(m) + j < M:
                    store(G.at((rank + 1) % ranks)[i % 2, j], X[start(m) + j] * 2.0)
            signal(s.at((rank + 1) % ranks)[0], 1)
            i = i + 1
            wait(s[0], i)
            for j in range(32):
                if start(m) + j < M:
                    Y[start(m) + j] = G[(i + 1) % 2, j]
""",
    ),
    "a rest of one on five ranks": (
        ("PK705",),
        """
kernel k(X: f32[T, 64].replicate(), Y: f32[T, 64], G: f32[T, 64].symmetric().scratch(), s: signal[1]):
    with role(communicator):
        w = T // ranks
        rest = T % ranks
        first = rank * w + min(rank, rest)
        if rest == 1 and rank > 1:
            first = rank * w + rest + rank // 4
        mine = w
        if rank < rest:
            mine = w + 1
        for t in range(first, min(first + mine, T)):
            x = X[t, :]
            for r in ring():
                store(G.at(r)[t, :], x)
        signal_all(s[0], 1)
    with role(consumer):
        wait(s[0], ranks)
        for t in range(T):
            Y[t, :] = G[t, :]
""",
    ),
    "a tree whose last level may be one past the end": (
        ("PK707",),
        """
kernel k(X: f32[M].symmetric(), Y: f32[M].symmetric(), s: signal[1]):
    with role(communicator):
        if rank > 0:
            wait(s[0], 1)
        else:
            for m in tasks(blocks(M, 64)):
                store(Y[m], X[m])
        d = 1
        for j in range(4):
            if d < ranks and rank < d and rank + d <= ranks:
                for m in tasks(blocks(M, 64)):
                    store(Y.at(rank + d)[m], Y[m])
                signal(s.at(rank + d)[0], 1)
            d = d * 2
""",
    ),
    "a row one past the last rank's": (
        ("PK706",),
        """
kernel k(X: f32[M].symmetric(), Y: f32[ranks, M].symmetric(), G: f32[ranks, M].symmetric().scratch(),
         s: signal[ranks]):
    with role(communicator):
        for m in tasks(blocks(M, 64)):
            x = X[m]
            for r in ring():
                store(G.at(r)[rank, m], x)
        signal_all(s[rank], 1)
    with role(consumer):
        for r in range(ranks):
            wait(s[r], 1)
        for m in tasks(blocks(M, 64)):
            for r in range(ranks):
                store(Y[r, m], G[r, m])
            if ranks > 2 and rank + 2 <= ranks:
                store(Y[rank, m], G[rank, m] + G[rank + 2, m])
""",
    ),
    "two senders on one counter, the first of which may be late": (
        ("PK705", "PK730"),
        """
kernel k(X: f32[2, M].symmetric(), Y: f32[2, M].symmetric(), G: f32[2, 2, M].symmetric().scratch(),
         s: signal[1], go: signal[1], b: signal[1]):
    with role(communicator):
        if ranks > 4:
            if rank == 4:
                for i in range(2):
                    if i == 0:
                        signal(b.at(2)[0], 1)
                    wait(go[0], i)
                    for m in tasks(blocks(M, 64)):
                        store(G.at(0)[i, 1, m], X[i, m])
                    signal(s.at(0)[0], 1)
            if rank == 2:
                wait(b[0], 1)
                signal(b.at(1)[0], 1)
            if rank == 1:
                wait(b[0], 1)
                signal(b.at(3)[0], 1)
            if rank == 3:
                for i in range(2):
                    wait(b[0], i)
                    for m in tasks(blocks(M, 64)):
                        store(G.at(0)[i, 0, m], X[i, m])
                    signal(s.at(0)[0], 1)
    with role(consumer):
        for i in range(2):
            if rank == 0 and ranks > 4:
                wait(s[0], 2 * (i + 1))
                for m in tasks(blocks(M, 64)):
                    store(Y[i, m], G[i, 0, m] + G[i, 1, m])
                signal(go.at(4)[0], 1)
            else:
                for m in tasks(blocks(M, 64)):
                    store(Y[i, m], X[i, m])
""",
    ),
    "seven signals awaited on eight ranks": (
        ("PK482",),
        """
kernel k(X: f32[M].symmetric(), Y: f32[M].symmetric(), G: f32[ranks, M].symmetric().scratch(), s: signal[1]):
    with role(communicator):
        for m in tasks(blocks(M, 64)):
            store(G.at(0)[rank, m], X[m])
        signal(s.at(0)[0], 1)
    with role(consumer):
        if rank == 0:
            if ranks < 8:
                wait(s[0], ranks)
            else:
                wait(s[0], 7)
            for m in tasks(blocks(M, 64)):
                t = zeros(f32, m)
                for r in range(ranks):
                    t = t + G[r, m]
                store(Y[m], t)
        else:
            for m in tasks(blocks(M, 64)):
                store(Y[m], X[m])
""",
    ),
    "nodes of four ranks, of which the sixth is not held": (
        ("PK730",),
        """
kernel k(X: f32[M].symmetric(), Y: f32[ranks, M], G: f32[ranks, M].symmetric().scratch(),
         a: signal[1], b: signal[1], c: signal[1]):
    with role(communicator):
        lead = rank // 4 * 4
        size = min(4, ranks - lead)
        for m in tasks(blocks(M, 64)):
            x = X[m]
            for r in ring():
                store(G.at(r)[rank, m], x)
        signal(a.at(lead)[0], 1)
        if rank == lead:
            wait(a[0], size)
            for g in range((ranks + 3) // 4):
                signal(b.at(4 * g)[0], 1)
            wait(b[0], (ranks + 3) // 4)
            for i in range(size):
                signal(c.at(lead + i)[0], 1)
        if rank < 5:
            wait(c[0], 1)
        for m in tasks(blocks(M, 64)):
            for r in range(ranks):
                Y[r, m] = G[r, m]
""",
    ),
    "a dissemination barrier without its third round on six ranks": (
        ("PK730",),
        """
kernel k(X: f32[M].symmetric(), Y: f32[ranks, M], G: f32[ranks, M].symmetric().scratch(), b: signal[3]):
    with role(communicator):
        for m in tasks(blocks(M, 64)):
            x = X[m]
            for r in ring():
                store(G.at(r)[rank, m], x)
        d = 1
        for i in range(3):
            if d < ranks and (i < 2 or ranks == 5 or ranks > 6):
                signal(b.at((rank + d) % ranks)[i], 1)
                wait(b[i], 1)
            d = d * 2
        for m in tasks(blocks(M, 64)):
            for r in range(ranks):
                Y[r, m] = G[r, m]
""",
    ),
}
"""Right on the two ranks that are looked at if nobody asks for others; the codes of what is found, and the program."""
