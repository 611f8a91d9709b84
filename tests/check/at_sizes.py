"""Protocols that are wrong at a few sizes, or numbers of ranks, alone: one more than a number, multiples of another,
where one dimension is longer than another, on an odd number of ranks.

The right ones have tables that one phase makes for the next, counters that are taken down, and additions by blocks.
"""

from __future__ import annotations

from tests.check.protocols import UNORDERED, Right, Wrong

WRONG: dict[str, Wrong] = {
    "a phase of 0 and 1 in turn, of counters that only grow": Wrong(
        (*UNORDERED, "PK482"),
        2,
        """
kernel k(X: f32[T, 64].symmetric(), Y: f32[T, 64], G: f32[4, 64].symmetric().scratch(),
         full: signal[4], free: signal[4]):
    with role(communicator):
        slot = 0
        phase = 0
        for t in range(T):
            wait(free[slot], phase)
            store(G.at((rank + 1) % ranks)[slot, :], X[t, :])
            signal(full.at((rank + 1) % ranks)[slot], 1)
            slot = slot + 1
            if slot == 4:
                slot = 0
                phase = 1 - phase
    with role(consumer):
        slot = 0
        phase = 1
        for t in range(T):
            wait(full[slot], phase)
            Y[t, :] = G[slot, :]
            signal(free.at((rank + ranks - 1) % ranks)[slot], 1)
            slot = slot + 1
            if slot == 4:
                slot = 0
                phase = 1 - phase
""",
    ),
    "a credit before the read, slots in turn": Wrong(
        ("PK730",),
        2,
        """
kernel k(X: f32[T, 64].symmetric(), Y: f32[T, 64], G: f32[3, 64].symmetric().scratch(),
         full: signal[3], free: signal[3]):
    with role(communicator):
        slot = 0
        phase = 0
        for t in range(T):
            wait(free[slot], phase)
            store(G.at((rank + 1) % ranks)[slot, :], X[t, :])
            signal(full.at((rank + 1) % ranks)[slot], 1)
            slot = slot + 1
            if slot == 3:
                slot = 0
                phase = phase + 1
    with role(consumer):
        slot = 0
        phase = 1
        for t in range(T):
            wait(full[slot], phase)
            signal(free.at((rank + ranks - 1) % ranks)[slot], 1)
            Y[t, :] = G[slot, :]
            slot = slot + 1
            if slot == 3:
                slot = 0
                phase = phase + 1
""",
    ),
    "a rest of three behind groups of four": Wrong(
        ("PK481",),
        2,
        """
kernel k(X: f32[T, 64].symmetric(), Y: f32[T, 64], G: f32[T, 64].symmetric().scratch(), s: signal[1]):
    with role(communicator):
        for g in range(T // 4):
            for j in range(4):
                store(G.at((rank + 1) % ranks)[g * 4 + j, :], X[g * 4 + j, :])
            signal(s.at((rank + 1) % ranks)[0], 4)
        base = T // 4 * 4
        if T % 4 >= 1:
            store(G.at((rank + 1) % ranks)[base, :], X[base, :])
            signal(s.at((rank + 1) % ranks)[0], 1)
        if T % 4 >= 2:
            store(G.at((rank + 1) % ranks)[base + 1, :], X[base + 1, :])
            signal(s.at((rank + 1) % ranks)[0], 1)
        z = 0
    with role(consumer):
        wait(s[0], T)
        for t in range(T):
            Y[t, :] = G[t, :]
""",
    ),
    "a share by hand, at least one": Wrong(
        ("PK705",),
        2,
        """
kernel k(X: f32[T, 64].replicate(), Y: f32[T, 64], G: f32[T, 64].symmetric().scratch(), s: signal[1]):
    with role(communicator):
        per = T // ranks
        if per == 0:
            per = 1
        for t in range(min(rank * per, T), min((rank + 1) * per, T)):
            x = X[t, :]
            for r in ring():
                store(G.at(r)[t, :], x * 2.0)
        signal_all(s[0], 1)
    with role(consumer):
        wait(s[0], ranks)
        for t in range(T):
            Y[t, :] = G[t, :]
""",
    ),
    "as many flags as another dimension is long": Wrong(
        ("PK706",),
        2,
        """
kernel k(X: f32[M, N].symmetric(), Y: f32[M, N], G: f32[M, N].symmetric().scratch(), s: signal[N]):
    with role(communicator):
        for m in tasks(blocks(M, 8)):
            for n in blocks(N, 16):
                store(G.at((rank + 1) % ranks)[m, n], X[m, n])
            signal(s.at((rank + 1) % ranks)[start(m) // 8], 1)
    with role(consumer):
        for m in tasks(blocks(M, 8)):
            wait(s[start(m) // 8], 1)
            for n in blocks(N, 16):
                Y[m, n] = G[m, n]
""",
    ),
    "rows that 8 bits name": Wrong(
        ("PK702",),
        2,
        """
kernel k(X: f32[M, N], T: i8[M].scratch(), Y: f32[M, N]):
    for m in tasks(blocks(M, 16)):
        T[m] = cast(positions(m), i8)
    for m, n in tasks(blocks(M, 16), blocks(N, 32)):
        Y[cast(T[m], i32), n] = X[m, n]
""",
    ),
    "rows at the rest of a division by 48": Wrong(
        ("PK702",),
        2,
        """
kernel k(X: f32[M, N], Y: f32[48, N]):
    for m, n in tasks(blocks(M, 16), blocks(N, 32)):
        Y[positions(m) % 48, n] = X[m, n]
""",
    ),
    "a total that the room does not hold": Wrong(
        ("PK705",),
        2,
        """
kernel k(X: f32[M].symmetric(), count: i32[E].replicate(), Y: f32[M], G: f32[M].symmetric().scratch(),
         s: signal[1]):
    with role(communicator):
        total = 0
        for e in range(E):
            total = total + count[e]
        if total > 256:
            signal(s.at((rank + 1) % ranks)[0], 1)
            for m in tasks(blocks(M, 8)):
                store(G.at((rank + 1) % ranks)[m], X[m] * 0.5)
        else:
            for m in tasks(blocks(M, 8)):
                store(G.at((rank + 1) % ranks)[m], X[m])
            signal(s.at((rank + 1) % ranks)[0], 1)
    with role(consumer):
        wait(s[0], 1)
        for m in tasks(blocks(M, 8)):
            Y[m] = G[m]
""",
    ),
    "four flags in turn, each awaited once": Wrong(
        (*UNORDERED, "PK482"),
        2,
        """
kernel k(X: bf16[M, 128].symmetric(), Y: bf16[M, 128], G: bf16[4, M, 128].symmetric().scratch(),
         s: signal[4]):
    with role(communicator):
        i = 0
        for m in blocks(M, 64):
            store(G.at((rank + 1) % ranks)[i, m, :], X[m, :])
            signal(s.at((rank + 1) % ranks)[i], 1)
            i = i + 1
            if i > 3:
                i = 0
    with role(consumer):
        i = 0
        for m in blocks(M, 64):
            wait(s[i], 1)
            Y[m, :] = G[i, m, :]
            i = i + 1
            if i > 3:
                i = 0
""",
    ),
    "more than 64, and at least 64": Wrong(
        ("PK481",),
        2,
        """
kernel k(X: f32[M].symmetric(), Y: f32[M], G: f32[M].symmetric().scratch(), s: signal[1]):
    with role(communicator):
        for m in tasks(blocks(M, 8)):
            store(G.at((rank + 1) % ranks)[m], X[m])
        if M > 64:
            signal(s.at((rank + 1) % ranks)[0], 1)
    with role(consumer):
        if M >= 64:
            wait(s[0], 1)
            for m in tasks(blocks(M, 8)):
                Y[m] = G[m]
        else:
            for m in tasks(blocks(M, 8)):
                Y[m] = X[m]
""",
    ),
    "more than six blocks, and at least six": Wrong(
        ("PK481",),
        2,
        """
kernel k(X: f32[M].symmetric(), Y: f32[M], G: f32[M].symmetric().scratch(), s: signal[1]):
    with role(communicator):
        for m in tasks(blocks(M, 8)):
            store(G.at((rank + 1) % ranks)[m], X[m])
        if len(blocks(M, 8)) > 6:
            signal(s.at((rank + 1) % ranks)[0], 1)
    with role(consumer):
        if len(blocks(M, 8)) >= 6:
            wait(s[0], 1)
            for m in tasks(blocks(M, 8)):
                Y[m] = G[m]
        else:
            for m in tasks(blocks(M, 8)):
                Y[m] = X[m]
""",
    ),
    "a row left free behind each four": Wrong(
        ("PK706",),
        2,
        """
kernel k(X: f32[T, D], Y: f32[T, D]):
    for t, d in tasks(T, blocks(D, 64)):
        Y[t + t // 4, d] = X[t, d]
""",
    ),
    "even places of as many heads": Wrong(
        ("PK706",),
        2,
        """
kernel k(Q: f32[B, H, D], O: f32[B, H, D]):
    for b, h, d in tasks(B, H, blocks(D, 64)):
        O[b, 2 * h, d] = Q[b, h, d] * 2.0
""",
    ),
    "every seventh row": Wrong(
        ("PK702",),
        2,
        """
kernel k(X: f32[M, N], Y: f32[M, N]):
    for m, n in tasks(blocks(M, 16), blocks(N, 32)):
        Y[positions(m) * 7 % M, n] = X[m, n]
""",
    ),
    "a stride of three": Wrong(
        ("PK481",),
        2,
        """
kernel k(X: f32[T, 64].symmetric(), Y: f32[T, 64], G: f32[T, 64].symmetric().scratch(), s: signal[T]):
    with role(communicator):
        for i in range(T):
            t = (i * 3 + rank) % T
            z = 0
            store(G.at((rank + 1) % ranks)[t, :], X[t, :])
            signal(s.at((rank + 1) % ranks)[t], 1)
    with role(consumer):
        for t in range(T):
            wait(s[t], 1)
            Y[t, :] = G[t, :]
""",
    ),
    "two hundred flags in turn": Wrong(
        ("PK482",),
        2,
        """
kernel k(X: f32[T, 64].symmetric(), Y: f32[T, 64], G: f32[T, 64].symmetric().scratch(), s: signal[200]):
    with role(communicator):
        for t in tasks(T):
            store(G.at((rank + 1) % ranks)[t, :], X[t, :])
            signal(s.at((rank + 1) % ranks)[t % 200], 1)
    with role(consumer):
        for t in tasks(T):
            wait(s[t % 200], 1)
            Y[t, :] = G[t, :]
""",
    ),
    "sixty-four flags": Wrong(
        ("PK706",),
        2,
        """
kernel k(X: f32[M].symmetric(), Y: f32[M], G: f32[M].symmetric().scratch(), s: signal[64]):
    with role(communicator):
        for m in tasks(blocks(M, 8)):
            store(G.at((rank + 1) % ranks)[m], X[m])
            signal(s.at((rank + 1) % ranks)[start(m) // 8], 1)
    with role(consumer):
        for m in tasks(blocks(M, 8)):
            wait(s[start(m) // 8], 1)
            Y[m] = G[m]
""",
    ),
    "more queries than keys": Wrong(
        ("PK481",),
        2,
        """
kernel k(Q: f32[M, 64].symmetric(), K: f32[N, 64].symmetric(), O: f32[M, 64], G: f32[N,
         64].symmetric().scratch(), s: signal[M]):
    with role(communicator):
        for n in blocks(N, 16):
            store(G.at((rank + 1) % ranks)[n, :], K[n, :])
            if start(n) < M:
                signal(s.at((rank + 1) % ranks)[start(n) // 16], 1)
    with role(consumer):
        for m in blocks(M, 16):
            wait(s[start(m) // 16], 1)
            o = zeros(f32, m, 64)
            for n in blocks(N, 16, stop=min(start(m) + 16, N)):
                p = where(positions(m) >= positions(n), Q[m, :] @ G[n, :].T, 0.0)
                o += cast(p, bf16) @ cast(G[n, :], bf16)
            O[m, :] = o
""",
    ),
    "flags of owners, of their first block": Wrong(
        ("PK482",),
        2,
        """
kernel k(X: f32[M].symmetric(), Y: f32[M], G: f32[ranks, M].symmetric().scratch(),
         R: f32[M].symmetric().scratch(), a: signal[1], s: signal[ranks]):
    with role(communicator):
        for m in tasks(blocks(M, 8)):
            store(G.at(start(m) // 8 % ranks)[rank, m], X[m])
        signal_all(a[0], 1)
    with role(storer):
        wait(a[0], ranks)
        for m in tasks(blocks(M, 8)):
            if start(m) // 8 % ranks == rank:
                t = zeros(f32, m)
                for r in range(ranks):
                    t = t + G[r, m]
                for r in range(ranks):
                    store(R.at(r)[m], t)
                    signal(s.at(r)[rank], 1)
    with role(consumer):
        for m in tasks(blocks(M, 8)):
            wait(s[start(m) // 8 % ranks], 1)
            Y[m] = R[m]
""",
    ),
    "rows of four heads": Wrong(
        ("PK702",),
        2,
        """
kernel k(X: f32[B, H, D], Y: f32[R, D]):
    for b, h, d in tasks(B, H, blocks(D, 64)):
        Y[b * 4 + h, d] = X[b, h, d]
""",
    ),
    "blocks that begin behind forty, signalled too early": Wrong(
        ("PK705",),
        2,
        """
kernel k(X: f32[M].symmetric(), Y: f32[M], G: f32[M].symmetric().scratch(), s: signal[M]):
    with role(communicator):
        for m in tasks(blocks(M, 8)):
            if start(m) > 40:
                signal(s.at((rank + 1) % ranks)[start(m) // 8], 1)
            store(G.at((rank + 1) % ranks)[m], X[m])
            if start(m) <= 40:
                signal(s.at((rank + 1) % ranks)[start(m) // 8], 1)
    with role(consumer):
        for m in tasks(blocks(M, 8)):
            wait(s[start(m) // 8], 1)
            Y[m] = G[m]
""",
    ),
    "positions in seven bits": Wrong(
        ("PK702",),
        2,
        """
kernel k(X: f32[M, N], Y: f32[M, N]):
    for m, n in tasks(blocks(M, 16), blocks(N, 32)):
        Y[(positions(m) & 63) * 2 + (positions(m) >> 6 & 1), n] = X[m, n]
""",
    ),
    "more than two blocks for each rank, and at least two": Wrong(
        ("PK481",),
        2,
        """
kernel k(X: f32[M].symmetric(), Y: f32[M], G: f32[ranks, M].symmetric().scratch(), s: signal[ranks]):
    with role(communicator):
        for m in tasks(blocks(M, 8)):
            for r in ring():
                store(G.at(r)[rank, m], X[m])
        if len(blocks(M, 8)) > 2 * ranks:
            signal_all(s[0], 1)
        else:
            signal_all(s[rank], 1)
    with role(consumer):
        if len(blocks(M, 8)) >= 2 * ranks:
            wait(s[0], ranks)
        else:
            for r in range(ranks):
                wait(s[r], 1)
        for m in tasks(blocks(M, 8)):
            y = zeros(f32, m)
            for r in range(ranks):
                y = y + G[r, m]
            Y[m] = y
""",
    ),
    "a credit of the expert before the last": Wrong(
        ("PK730",),
        2,
        """
kernel k(X: f32[E, P].symmetric(), count: i32[E].replicate(), Y: f32[E, P].symmetric(),
         G: f32[P].symmetric().scratch(),
         full: signal[1], free: signal[1]):
    with role(communicator):
        for e in range(E):
            wait(free[0], e - 1)
            for p in tasks(blocks(P, 8, stop=count[e])):
                store(G.at((rank + 1) % ranks)[p], X[e, p])
            signal(full.at((rank + 1) % ranks)[0], 1)
    with role(consumer):
        for e in range(E):
            wait(full[0], e + 1)
            for p in tasks(blocks(P, 8, stop=count[e])):
                store(Y[e, p], G[p])
            signal(free.at((rank + ranks - 1) % ranks)[0], 1)
""",
    ),
    "leaders of two ranks each, of an odd number": Wrong(
        ("PK482",),
        3,
        """
kernel k(X: f32[M].symmetric(), Y: f32[M], G: f32[2, M].symmetric().scratch(), H: f32[ranks,
         M].symmetric().scratch(),
         s: signal[1], t: signal[1], u: signal[1], R: f32[M].symmetric().scratch()):
    with role(communicator):
        lead = rank - rank % 2
        for m in tasks(blocks(M, 8)):
            store(G.at(lead)[rank % 2, m], X[m])
        signal(s.at(lead)[0], 1)
        if rank == lead:
            wait(s[0], min(2, ranks - lead))
            for m in tasks(blocks(M, 8)):
                x = G[0, m]
                if lead + 1 < ranks:
                    x = x + G[1, m]
                for g in range((ranks + 1) // 2):
                    store(H.at(2 * g)[rank // 2, m], x)
            for g in range((ranks + 1) // 2):
                signal(t.at(2 * g)[0], 1)
            wait(t[0], ranks // 2)
            for m in tasks(blocks(M, 8)):
                y = zeros(f32, m)
                for g in range((ranks + 1) // 2):
                    y = y + H[g, m]
                for i in range(min(2, ranks - lead)):
                    store(R.at(lead + i)[m], y)
            for i in range(min(2, ranks - lead)):
                signal(u.at(lead + i)[0], 1)
    with role(consumer):
        wait(u[0], 1)
        for m in tasks(blocks(M, 8)):
            Y[m] = R[m]
""",
    ),
    "one of two readers answers": Wrong(
        ("PK730",),
        3,
        """
kernel k(X: f32[T, 64].symmetric(), L: f32[64].scratch(), U: f32[64].scratch(), s: signal[1]):
    with role(consumer):
        for d in blocks(64, 64):
            L[d] = X.at((rank + ranks - 1) % ranks)[T - 1, d]
            U[d] = X.at((rank + 1) % ranks)[0, d]
        signal(s.at((rank + 1) % ranks)[0], 1)
        wait(s[0], 1)
        for t in range(T):
            for d in blocks(64, 64):
                x = X[t, d]
                if t == 0:
                    x = x + L[d]
                if t == T - 1:
                    x = x + U[d]
                store(X[t, d], x)
""",
    ),
    "a read before the last turn": Wrong(
        ("PK730",),
        3,
        """
kernel k(X: f32[M].symmetric(), A: f32[M].symmetric().scratch(), Y: f32[M].symmetric(), tok: signal[1],
         fin: signal[1]):
    with role(communicator):
        if rank > 0:
            wait(tok[0], 1)
        for m in tasks(blocks(M, 8)):
            if rank == 0:
                store(A[m], X[m])
            else:
                store(A.at(0)[m], A.at(0)[m] + X[m])
        if rank + 1 < ranks:
            signal(tok.at(rank + 1)[0], 1)
        if rank <= 1:
            signal(fin.at(0)[0], 1)
        if rank == 0:
            wait(fin[0], min(2, ranks))
            for m in tasks(blocks(M, 8)):
                for r in range(ranks):
                    store(Y.at(r)[m], A[m])
""",
    ),
    "a credit for the next rank, not for the one before": Wrong(
        ("PK730",),
        3,
        """
kernel k(X: f32[6, M].symmetric(), Y: f32[6, M], G: f32[M].symmetric().scratch(), full: signal[1],
         free: signal[1]):
    with role(communicator):
        for i in range(6):
            wait(free[0], i)
            for m in tasks(blocks(M, 8)):
                store(G.at((rank + 1) % ranks)[m], X[i, m])
            signal(full.at((rank + 1) % ranks)[0], 1)
    with role(consumer):
        for i in range(6):
            wait(full[0], i + 1)
            for m in tasks(blocks(M, 8)):
                Y[i, m] = G[m]
            signal(free.at((rank + 1) % ranks)[0], 1)
""",
    ),
    "a ring through one stage without credits": Wrong(
        ("PK730",),
        3,
        """
kernel k(X: f32[M].symmetric(), Y: f32[ranks, M].symmetric(), G: f32[M].symmetric().scratch(),
         full: signal[1]):
    with role(communicator):
        for m in tasks(blocks(M, 8)):
            store(Y[rank, m], X[m])
            store(G.at((rank + 1) % ranks)[m], X[m])
        signal(full.at((rank + 1) % ranks)[0], 1)
        for i in range(1, ranks):
            wait(full[0], i)
            for m in tasks(blocks(M, 8)):
                t = G[m]
                store(Y[(rank + ranks - i) % ranks, m], t)
                if i + 1 < ranks:
                    store(G.at((rank + 1) % ranks)[m], t)
            if i + 1 < ranks:
                signal(full.at((rank + 1) % ranks)[0], 1)
""",
    ),
    "a wait for others where there are none": Wrong(
        ("PK481",),
        1,
        """
kernel k(X: f32[M].symmetric(), Y: f32[M], G: f32[ranks, M].symmetric().scratch(), s: signal[1]):
    with role(communicator):
        for m in tasks(blocks(M, 8)):
            for i in range(1, ranks):
                store(G.at((rank + i) % ranks)[rank, m], X[m])
        for i in range(1, ranks):
            signal(s.at((rank + i) % ranks)[0], 1)
    with role(consumer):
        wait(s[0], max(ranks - 1, 1))
        for m in tasks(blocks(M, 8)):
            x = X[m]
            for i in range(1, ranks):
                x = x + G[(rank + i) % ranks, m]
            Y[m] = x
""",
    ),
}

RIGHT: dict[str, Right] = {
    "a table of rows that an earlier phase has made, stored by": Right(
        (1, 2, 3),
        """
kernel k(X: f32[M, N], T: i32[M].scratch(), Y: f32[M, N]):
    for m in tasks(blocks(M, 16)):
        T[m] = positions(m)
    for m, n in tasks(blocks(M, 16), blocks(N, 32)):
        Y[T[m], n] = X[m, n]
""",
    ),
    "a table of rows that an earlier phase has made, read by": Right(
        (2,),
        """
kernel k(X: f32[M, N], T: i32[M], Y: f32[M, N]):
    for m in tasks(blocks(M, 16)):
        T[m] = M - 1 - positions(m)
    for m, n in tasks(blocks(M, 16), blocks(N, 32)):
        Y[m, n] = X[T[m], n]
""",
    ),
    "additions behind the first store of each block": Right(
        (2, 3, 4),
        """
kernel k(X: f32[M].symmetric(), S: f32[M].symmetric().scratch(), Y: f32[M], z: signal[M], s: signal[M]):
    with role(communicator):
        for m in tasks(blocks(M, 8)):
            if rank == 0:
                for r in range(ranks):
                    store(S.at(r)[m], X[m])
                signal_all(z[start(m) // 8], 1)
            else:
                wait(z[start(m) // 8], 1)
                for r in range(ranks):
                    store_add(S.at(r)[m], X[m])
                signal_all(s[start(m) // 8], 1)
    with role(consumer):
        for m in tasks(blocks(M, 8)):
            wait(z[start(m) // 8], 1)
            wait(s[start(m) // 8], ranks - 1)
            Y[m] = S[m]
""",
    ),
    "three additions to each block": Right(
        (2, 3),
        """
kernel k(X: f32[M].symmetric(), S: f32[M].symmetric().scratch(), Y: f32[M], z: signal[1], s: signal[M]):
    with role(communicator):
        for m in tasks(blocks(M, 8)):
            store(S[m], zeros(f32, m))
        barrier(z[0])
        for m in tasks(blocks(M, 8)):
            store_add(S.at((rank + 1) % ranks)[m], X[m] * 0.1)
            store_add(S.at((rank + 2) % ranks)[m], X[m])
            store_add(S[m], X[m] * 0.3)
            signal_all(s[start(m) // 8], 1)
    with role(consumer):
        for m in tasks(blocks(M, 8)):
            wait(s[start(m) // 8], ranks)
            Y[m] = S[m]
""",
    ),
    "a semaphore of a communicator": Right(
        (1, 2, 3),
        """
kernel k(X: f32[4, M].symmetric(), Y: f32[4, M].symmetric(), G: f32[M].symmetric().scratch(),
         full: signal[1], free: signal[1]):
    with role(communicator):
        for i in range(4):
            if i > 0:
                wait(free[0], 1)
                signal(free.at(rank)[0], 0 - 1)
            for m in tasks(blocks(M, 8)):
                store(G.at((rank + 1) % ranks)[m], X[i, m])
            signal(full.at((rank + 1) % ranks)[0], 1)
    with role(communicator):
        for i in range(4):
            wait(full[0], 1)
            signal(full.at(rank)[0], 0 - 1)
            for m in tasks(blocks(M, 8)):
                store(Y[i, m], G[m])
            signal(free.at((rank + ranks - 1) % ranks)[0], 1)
""",
    ),
    "a semaphore of a consumer": Right(
        (2,),
        """
kernel k(X: f32[4, M].symmetric(), Y: f32[4, M], G: f32[M].symmetric().scratch(), full: signal[1],
         free: signal[1]):
    with role(communicator):
        for i in range(4):
            if i > 0:
                wait(free[0], 1)
                signal(free.at(rank)[0], 0 - 1)
            for m in tasks(blocks(M, 8)):
                store(G.at((rank + 1) % ranks)[m], X[i, m])
            signal(full.at((rank + 1) % ranks)[0], 1)
    with role(consumer):
        for i in range(4):
            wait(full[0], 1)
            signal(full.at(rank)[0], 0 - 1)
            for m in tasks(blocks(M, 8)):
                Y[i, m] = G[m]
            signal(free.at((rank + ranks - 1) % ranks)[0], 1)
""",
    ),
    "groups of four and a rest": Right(
        (2,),
        """
kernel k(X: f32[T, 64].symmetric(), Y: f32[T, 64], G: f32[T, 64].symmetric().scratch(), s: signal[1]):
    with role(communicator):
        for g in range(T // 4):
            for j in range(4):
                store(G.at((rank + 1) % ranks)[g * 4 + j, :], X[g * 4 + j, :])
            signal(s.at((rank + 1) % ranks)[0], 4)
        base = T // 4 * 4
        if T % 4 >= 1:
            store(G.at((rank + 1) % ranks)[base, :], X[base, :])
            signal(s.at((rank + 1) % ranks)[0], 1)
        if T % 4 >= 2:
            store(G.at((rank + 1) % ranks)[base + 1, :], X[base + 1, :])
            signal(s.at((rank + 1) % ranks)[0], 1)
        if T % 4 >= 3:
            store(G.at((rank + 1) % ranks)[base + 2, :], X[base + 2, :])
            signal(s.at((rank + 1) % ranks)[0], 1)
    with role(consumer):
        wait(s[0], T)
        for t in range(T):
            Y[t, :] = G[t, :]
""",
    ),
    "a stride of three unless it divides": Right(
        (2,),
        """
kernel k(X: f32[T, 64].symmetric(), Y: f32[T, 64], G: f32[T, 64].symmetric().scratch(), s: signal[T]):
    with role(communicator):
        for i in range(T):
            t = (i * 3 + rank) % T
            if T % 3 == 0:
                t = (i + rank) % T
            store(G.at((rank + 1) % ranks)[t, :], X[t, :])
            signal(s.at((rank + 1) % ranks)[t], 1)
    with role(consumer):
        for t in range(T):
            wait(s[t], 1)
            Y[t, :] = G[t, :]
""",
    ),
    "flags of owners, counted": Right(
        (2,),
        """
kernel k(X: f32[M].symmetric(), Y: f32[M], G: f32[ranks, M].symmetric().scratch(),
         R: f32[M].symmetric().scratch(), a: signal[1], s: signal[ranks]):
    with role(communicator):
        for m in tasks(blocks(M, 8)):
            store(G.at(start(m) // 8 % ranks)[rank, m], X[m])
        signal_all(a[0], 1)
    with role(storer):
        wait(a[0], ranks)
        for m in tasks(blocks(M, 8)):
            if start(m) // 8 % ranks == rank:
                t = zeros(f32, m)
                for r in range(ranks):
                    t = t + G[r, m]
                for r in range(ranks):
                    store(R.at(r)[m], t)
                    signal(s.at(r)[rank], 1)
    with role(consumer):
        for m in tasks(blocks(M, 8)):
            wait(s[start(m) // 8 % ranks], (len(blocks(M, 8)) + ranks - 1 - start(m) // 8 % ranks) // ranks)
            Y[m] = R[m]
""",
    ),
    "flags of queries and keys, causal": Right(
        (2,),
        """
kernel k(Q: f32[M, 64].symmetric(), K: f32[N, 64].symmetric(), O: f32[M, 64], G: f32[N,
         64].symmetric().scratch(), s: signal[M]):
    with role(communicator):
        for n in blocks(N, 16):
            store(G.at((rank + 1) % ranks)[n, :], K[n, :])
            if start(n) < M:
                signal(s.at((rank + 1) % ranks)[start(n) // 16], 1)
    with role(consumer):
        for m in blocks(M, 16):
            if start(m) < N:
                wait(s[start(m) // 16], 1)
            else:
                wait(s[(N - 1) // 16], 1)
            o = zeros(f32, m, 64)
            for n in blocks(N, 16, stop=min(start(m) + 16, N)):
                p = where(positions(m) >= positions(n), Q[m, :] @ G[n, :].T, 0.0)
                o += cast(p, bf16) @ cast(G[n, :], bf16)
            O[m, :] = o
""",
    ),
    "tiles in place": Right(
        (2,),
        """
kernel k(X: f32[M, N].symmetric()):
    for m, n in tasks(blocks(M, 8), blocks(N, 32)):
        X[m, n] = X[m, n] * 2.0 + 1.0
""",
    ),
}
RIGHT["credits of experts that may have nothing"] = Right(
    (2, 3), WRONG["a credit of the expert before the last"].text.replace("e - 1)", "e)")
)
RIGHT["credits of all ranks for experts that may have nothing"] = Right(
    (2, 3),
    """
kernel k(X: f32[E, P].symmetric(), count: i32[E].replicate(), Y: f32[ranks, E, P].symmetric(),
         G: f32[ranks, P].symmetric().scratch(),
         full: signal[ranks], free: signal[1]):
    with role(communicator):
        for e in range(E):
            wait(free[0], e * ranks)
            for p in tasks(blocks(P, 8, stop=count[e])):
                for r in range(ranks):
                    store(G.at(r)[rank, p], X[e, p])
            for r in range(ranks):
                signal(full.at(r)[rank], 1)
    with role(consumer):
        for e in range(E):
            for r in range(ranks):
                wait(full[r], e + 1)
            for p in tasks(blocks(P, 8, stop=count[e])):
                for r in range(ranks):
                    store(Y[r, e, p], G[r, p])
            for r in range(ranks):
                signal(free.at(r)[0], 1)
""",
)
RIGHT["slots in turn, counted by a variable"] = Right(
    (2, 3), WRONG["a phase of 0 and 1 in turn, of counters that only grow"].text.replace("1 - phase", "phase + 1")
)
RIGHT["turns for a critical section"] = Right(
    (3,),
    WRONG["a read before the last turn"].text.replace("rank <= 1:", "rank == ranks - 1:").replace("min(2, ranks)", "1"),
)
RIGHT["slots that double, of which the first is its own (Bruck)"] = Right(
    (2, 3, 5),
    """
kernel k(X: f32[64].symmetric(), Y: f32[ranks, 64], G: f32[ranks, 64].symmetric().scratch(),
         f: signal[4]):
    with role(communicator):
        store(G[0, :], X[:])
        d = 1
        got = 1
        for i in range(4):
            if d < ranks:
                n = min(d, ranks - d)
                to = (rank + ranks - d) % ranks
                for q in range(n):
                    store(G.at(to)[d + q, :], G[q, :])
                signal(f.at(to)[i], 1)
                wait(f[i], 1)
                d = d * 2
        for q in range(ranks):
            Y[(rank + q) % ranks, :] = G[q, :]
""",
)
RIGHT["credits for two slots at once"] = Right(
    (2, 3),
    """
kernel k(X: f32[T, 64].symmetric(), Y: f32[T, 64], G: f32[3, 64].symmetric().scratch(),
         full: signal[1], free: signal[1]):
    with role(communicator):
        for t in range(T):
            wait(free[0], t - 2)
            store(G.at((rank + 1) % ranks)[t % 3, :], X[t, :])
            signal(full.at((rank + 1) % ranks)[0], 1)
    with role(consumer):
        for t in range(T):
            wait(full[0], t + 1)
            Y[t, :] = G[t % 3, :]
            if t % 2 == 1:
                signal(free.at((rank + ranks - 1) % ranks)[0], 2)
""",
)
WRONG["credits for two slots at once, one too few awaited"] = Wrong(
    ("PK730",), 2, RIGHT["credits for two slots at once"].text.replace("t - 2", "t - 3")
)
WRONG["credits for two slots after the first of them"] = Wrong(
    ("PK730", "PK705"), 2, RIGHT["credits for two slots at once"].text.replace("t % 2 == 1", "t % 2 == 0")
)
_SLOTS = """
kernel k(X: f32[T, 64].symmetric(), Y: f32[T, 64], G: f32[{slots}, 64].symmetric().scratch(), full: signal[1],
         free: signal[1]):
    with role(communicator):
        i = 0
        for t in {loop}:
            wait(free[0], {credits})
            store(G.at((rank + 1) % ranks)[i, :], X[t, :])
            signal(full.at((rank + 1) % ranks)[0], 1)
            i = i + 1
            if i == {slots}:
                i = 0
    with role(consumer):
        i = 0
        for t in {loop}:
            wait(full[0], {sent})
            Y[t, :] = G[i, :]
            if {kept}:
                signal(free.at((rank + ranks - 1) % ranks)[0], 1)
            i = i + 1
            if i == {slots}:
                i = 0
"""
_ELEVEN = {"slots": "11", "loop": "range(T)", "credits": "t - 10", "sent": "t + 1", "kept": "t >= 0"}
RIGHT["eleven slots in turn, counted by a variable"] = Right((2, 3), _SLOTS.format(**_ELEVEN))
WRONG["eleven slots in turn, one credit too few"] = Wrong(
    ("PK730",), 2, _SLOTS.format(**_ELEVEN | {"credits": "t - 11"})
)
RIGHT["eleven slots, without the credits that nobody awaits"] = Right(
    (2,), _SLOTS.format(**_ELEVEN | {"kept": "t + 11 < T"})
)
WRONG["eleven slots, without one credit that is awaited"] = Wrong(
    ("PK481",), 2, _SLOTS.format(**_ELEVEN | {"kept": "t + 12 < T"})
)
_OF_RANKS = {**_ELEVEN, "slots": "4 * ranks", "credits": "t - 4 * ranks + 1"}
_BY_RANKS = _SLOTS.replace("[{slots}, 64]", "[4, ranks, 64]").replace("[i, :]", "[i // ranks, i % ranks, :]")
RIGHT["four slots for each rank"] = Right((2, 4), _BY_RANKS.format(**_OF_RANKS))
WRONG["four slots for each rank, one credit too few"] = Wrong(
    ("PK730",), 4, _BY_RANKS.format(**_OF_RANKS | {"credits": "t - 4 * ranks"})
)
_BEHIND_TEN = """
kernel k(X: f32[T, 64].symmetric(), Y: f32[T, 64], G: f32[T, 64].symmetric().scratch(), s: signal[1]):
    with role(communicator):
        for t in range(10):
            if t < T:
                store(G.at((rank + 1) % ranks)[t, :], X[t, :])
                signal(s.at((rank + 1) % ranks)[0], 1)
        for t in range(10, T):
            {0}
            {1}
    with role(consumer):
        for t in range(T):
            wait(s[0], t + 1)
            Y[t, :] = G[t, :]
"""
_SENT = ("store(G.at((rank + 1) % ranks)[t, :], X[t, :])", "signal(s.at((rank + 1) % ranks)[0], 1)")
RIGHT["ten rows first, then the others"] = Right((2,), _BEHIND_TEN.format(*_SENT))
WRONG["ten rows first, then the others too early"] = Wrong(("PK730", "PK705"), 2, _BEHIND_TEN.format(*_SENT[::-1]))
_COUNTED = """
kernel k(X: f32[P, 64].symmetric(), n: i32[ranks].replicate(), Y: f32[P, 64].symmetric(),
         G: f32[14, 64].symmetric().scratch(), full: signal[1], free: signal[1]):
    with role(communicator):
        for p in range(n[rank]):
            wait(free[0], p - {credits})
            store(G.at((rank + 1) % ranks)[p % 14, :], X[p, :])
            signal(full.at((rank + 1) % ranks)[0], 1)
    with role(storer):
        count = n[(rank + ranks - 1) % ranks]
        for p in range(count):
            wait(full[0], p + 1)
            store(Y[p, :], G[p % 14, :] * 1.0)
            signal(free.at((rank + ranks - 1) % ranks)[0], 1)
        for p in range(count, P):
            store(Y[p, :], zeros(f32, 64))
"""
RIGHT["fourteen slots for as many rows as memory says"] = Right((2, 3), _COUNTED.format(credits=13))
WRONG["fourteen slots for as many rows as memory says, one credit too few"] = Wrong(
    ("PK730",), 2, _COUNTED.format(credits=14)
)
_OWN_BLOCKS = """
kernel k(A: f32[M].shard(0), Z: f32[1], G: f32[10, 64].symmetric().scratch(), full: signal[1], free: signal[1]):
    with role(communicator):
        own = (M + ranks - 1) // ranks
        for m in blocks(M, 8, of=rank):
            b = (start(m) - rank * own) // 8
            wait(free[0], b - {credits})
            store(G.at((rank + 1) % ranks)[b % 10, :], zeros(f32, 64) + A[start(m)])
            signal(full.at((rank + 1) % ranks)[0], 1)
    with role(consumer):
        own = (M + ranks - 1) // ranks
        q = (rank + ranks - 1) % ranks
        sum = 0.0
        for m in blocks(M, 8, of=q):
            b = (start(m) - q * own) // 8
            wait(full[0], b + 1)
            sum = sum + G[b % 10, 3]
            signal(free.at(q)[0], 1)
        Z[0] = sum
"""
RIGHT["ten slots for the blocks of a rank"] = Right((2, 4), _OWN_BLOCKS.format(credits=9))
WRONG["ten slots for the blocks of a rank, one credit too few"] = Wrong(("PK730",), 4, _OWN_BLOCKS.format(credits=10))
_COUNTS_OF_TWO = """
kernel k(X: f32[T, 64].symmetric(), Y: f32[T, 64], G: f32[T, 64].symmetric().scratch(), s: signal[1]):
    with role(communicator):
        for t in range(T):
            store(G.at((rank + 1) % ranks)[t, :], X[t, :])
            signal(s.at((rank + 1) % ranks)[0], 2)
    with role(consumer):
        for t in range(T):
            wait(s[0], {awaited})
            Y[t, :] = G[t, :]
"""
RIGHT["each row counts two, odd numbers are awaited"] = Right((1, 2, 3), _COUNTS_OF_TWO.format(awaited="2 * t + 1"))
WRONG["each row counts two, those before it are awaited"] = Wrong(
    (*UNORDERED, "PK482"),
    2,
    _COUNTS_OF_TWO.format(awaited="2 * t"),
)
_WHOLE_BLOCKS = """
kernel k(X: f32[M].symmetric(), Y: f32[M], G: f32[M].symmetric().scratch(), s: signal[1]):
    with role(communicator):
        for m in tasks(blocks(M, 8)):
            store(G.at((rank + 1) % ranks)[m], X[m])
            signal(s.at((rank + 1) % ranks)[0], 8)
    with role(consumer):
        wait(s[0], {awaited})
        for m in tasks(blocks(M, 8)):
            Y[m] = G[m]
"""
RIGHT["each block counts as a whole one, rows are awaited"] = Right((1, 2, 3), _WHOLE_BLOCKS.format(awaited="M"))
WRONG["each block counts as a whole one, whole ones are awaited"] = Wrong(
    ("PK482",), 2, _WHOLE_BLOCKS.format(awaited="M // 8 * 8")
)
