"""Protocols that an author could write: wrong ones, each with what it must be found by, and right ones.

Each is about one mistake, or one way of doing it right that a check could take for a mistake.
"""

from __future__ import annotations

from typing import NamedTuple


class Wrong(NamedTuple):
    """A program that must be refused for one of these reasons, on so many ranks with these options."""

    codes: tuple[str, ...]
    ranks: int
    text: str
    options: tuple[str, ...] = ()


class Right(NamedTuple):
    """A program that must not be accused, on any of these numbers of ranks."""

    ranks: tuple[int, ...]
    text: str
    options: tuple[str, ...] = ()


UNORDERED = ("PK705", "PK730")

GATHER = """
kernel k(X: f32[M].shard(0), Y: f32[M], G: f32[M].symmetric().scratch(), ready: signal[ranks]):
    with role(communicator):
        for m in tasks(blocks(M, 8, of=rank)):
            x = X[m]
            for r in ring():
                {send}
    with role(consumer):
        for r in ring():
            for m in tasks(blocks(M, 8, of=r)):
                {wait}
                Y[m] = G[m]
"""


def _gather(send: str = "", wait: str = "") -> str:
    stores = "store(G.at(r)[m], x)\n                signal(ready.at(r)[rank], 1)"
    return GATHER.format(send=send or stores, wait=wait or "wait(ready[r], len(blocks(M, 8, of=r)))")


AWAITED = """wait(ready[r], max(1, len(blocks(M, 8, of=r))))
            for m in tasks(blocks(M, 8, of=r)):"""

WRONG: dict[str, Wrong] = {
    "the count of its own blocks in place of the sender's": Wrong(
        ("PK481", "PK482"), 3, _gather(wait="wait(ready[r], len(blocks(M, 8, of=rank)))")
    ),
    "the same, with sizes at which all ranks have one block": Wrong(
        ("PK481", "PK482", *UNORDERED),
        3,
        _gather(wait="wait(ready[r], len(blocks(M, 8, of=rank)))"),
        ("--set", "M=24"),
    ),
    "a count that is right unless a rank has nothing": Wrong(
        ("PK481",),
        3,
        _gather(wait="t = X").replace("for m in tasks(blocks(M, 8, of=r)):\n                t = X", AWAITED),
    ),
    "one signal fewer": Wrong(("PK482",), 2, _gather(wait="wait(ready[r], len(blocks(M, 8, of=r)) - 1)")),
    "one signal more": Wrong(("PK481",), 2, _gather(wait="wait(ready[r], len(blocks(M, 8, of=r)) + 1)")),
    "a signal before what it announces": Wrong(
        UNORDERED, 2, _gather("signal(ready.at(r)[rank], 1)\n                store(G.at(r)[m], x)")
    ),
    "a signal to another rank than the store": Wrong(
        ("PK482", "PK481", *UNORDERED),
        3,
        _gather("store(G.at(r)[m], x)\n                signal(ready.at((r + 1) % ranks)[rank], 1)"),
    ),
    "a counter that is not there": Wrong(
        ("PK706",), 2, _gather("store(G.at(r)[m], x)\n                signal(ready.at(r)[rank + 1], 1)")
    ),
    "no wait on one of many ranks": Wrong(
        UNORDERED, 4, _gather(wait="if rank != 3:\n                    wait(ready[r], len(blocks(M, 8, of=r)))")
    ),
    "a wait for its own blocks alone": Wrong(
        UNORDERED, 2, _gather(wait="if r == rank:\n                    wait(ready[r], len(blocks(M, 8, of=r)))")
    ),
    "more than a counter of 32 bits holds": Wrong(
        ("PK715",),
        2,
        _gather(
            "store(G.at(r)[m], x)\n                signal(ready.at(r)[rank], 2147483648)",
            "wait(ready[r], len(blocks(M, 8, of=r)) * 2147483648)",
        ),
    ),
    "a sum of small signals that a counter does not hold": Wrong(
        ("PK715",),
        2,
        _gather(
            "store(G.at(r)[m], x)\n                signal(ready.at(r)[rank], 1073741824)",
            "wait(ready[r], len(blocks(M, 8, of=r)) * 1073741824)",
        ),
    ),
    "an output of which one rank alone writes its copy": Wrong(
        ("PK721",),
        3,
        """
kernel k(X: f32[M].symmetric(), Y: f32[M].symmetric()):
    with role(communicator):
        if rank == 1:
            for m in tasks(blocks(M, 8)):
                store(Y[m], X[m])
""",
    ),
    "an output of which the last block is not written": Wrong(
        ("PK721",),
        2,
        """
kernel k(X: f32[M].symmetric(), Y: f32[M].symmetric()):
    with role(communicator):
        for m in tasks(blocks(M, 8, stop=len(blocks(M, 8)) - 1)):
            store(Y[m], X[m])
""",
    ),
    "warps that no CTA has": Wrong(
        ("PK476",),
        2,
        """
kernel k(X: f32[M].symmetric(), Y: f32[M].symmetric()):
    with role(communicator, warps=33):
        for m in tasks(blocks(M, 8)):
            store(Y[m], X[m])
""",
    ),
    "tasks that wait for later ones, more than fit": Wrong(
        ("PK487",),
        1,
        """
kernel k(X: f32[M], Y: f32[M], done: signal[M]):
    with role(communicator, sms=2):
        for i in tasks(M):
            if i + 1 < M:
                wait(done[i + 1], 1)
            signal(done.at(rank)[i], 1)
        for m in tasks(blocks(M, 8)):
            Y[m] = X[m]
""",
        ("--set", "M=300"),
    ),
    "all ranks store to one": Wrong(
        ("PK730",),
        2,
        """
kernel k(X: f32[M].symmetric(), Y: f32[M].symmetric()):
    with role(communicator):
        for m in tasks(blocks(M, 8)):
            store(Y.at(0)[m], X[m])
            store(Y.at(rank)[m], X[m])
""",
    ),
    "an owner writes what others still read": Wrong(
        ("PK730",),
        2,
        """
kernel k(X: f32[M].symmetric(), Y: f32[M], done: signal[1]):
    with role(communicator):
        for m in tasks(blocks(M, 8)):
            t = X.at((rank + 1) % ranks)[m]
            Y[m] = t
            store(X[m], t * 2.0)
        barrier(done[0])
""",
    ),
    "buffers of a ring that come round without a credit": Wrong(
        ("PK730",),
        4,
        """
kernel k(X: f32[M].symmetric(), Y: f32[8, M].symmetric(), G: f32[2, M].symmetric().scratch(), full: signal[8]):
    with role(communicator):
        for m in blocks(M, 8, stop=1):
            store(G[0, m], X[m])
            for s in range(ranks):
                if s > 0:
                    wait(full[s], 1)
                t = G[s % 2, m]
                store(Y[s, m], t)
                if s + 1 < ranks:
                    store(G.at((rank + 1) % ranks)[(s + 1) % 2, m], t)
                    signal(full.at((rank + 1) % ranks)[s + 1], 1)
""",
        ("--set", "M=8"),
    ),
    "roles that wait for each other": Wrong(
        ("PK480",),
        2,
        """
kernel k(X: f32[M], Y: f32[M], a: signal[1], b: signal[1]):
    with role(communicator):
        wait(a[0], 1)
        signal(b.at(rank)[0], 1)
    with role(consumer):
        wait(b[0], 1)
        signal(a.at(rank)[0], 1)
        for m in tasks(blocks(M, 8)):
            Y[m] = X[m]
""",
    ),
    "an addition to what nobody has stored": Wrong(
        ("PK705",),
        2,
        """
kernel k(X: f32[M].symmetric(), S: f32[M].symmetric().scratch(), Y: f32[M], b: signal[1]):
    with role(communicator):
        for m in tasks(blocks(M, 8)):
            store_add(S.at((rank + 1) % ranks)[m], X[m])
        barrier(b[0])
        for m in tasks(blocks(M, 8)):
            Y[m] = S[m]
""",
    ),
    "a sum that is read before all have added": Wrong(
        ("PK730",),
        2,
        """
kernel k(X: f32[M].symmetric(), S: f32[M].symmetric().scratch(), Y: f32[M].symmetric(), b: signal[1]):
    with role(communicator):
        for m in tasks(blocks(M, 8)):
            store(S[m], zeros(f32, m))
        barrier(b[0])
        for m in tasks(blocks(M, 8)):
            for r in ring():
                store_add(S.at(r)[m], X[m])
        for m in tasks(blocks(M, 8)):
            store(Y[m], S[m])
""",
    ),
    "a signal that only some data sends": Wrong(
        ("PK481", "PK701"),
        2,
        """
kernel k(X: f32[M].symmetric(), f: i32[E], Y: f32[M].symmetric(), s: signal[1]):
    with role(communicator):
        if f[0] > 50:
            signal(s.at((rank + 1) % ranks)[0], 1)
        wait(s[0], 1)
        for m in tasks(blocks(M, 8)):
            store(Y[m], X[m])
""",
    ),
    "a number of blocks from memory that another rank writes, not awaited": Wrong(
        ("PK705", "PK730"),
        2,
        """
kernel k(X: f32[M].symmetric(), n: i32[4], H: i32[4].symmetric().scratch(), Y: f32[M].symmetric(), s: signal[1]):
    with role(communicator):
        for e in blocks(4, 4):
            store(H.at((rank + 1) % ranks)[e], n[e])
        signal(s.at((rank + 1) % ranks)[0], 1)
    with role(consumer):
        for m in tasks(blocks(M, 8, stop=H[0])):
            store(Y[m], X[m])
        wait(s[0], 1)
""",
    ),
    "as many signals as one's own table says, awaited by that of another": Wrong(
        ("PK481", "PK482"),
        2,
        """
kernel k(X: f32[P].symmetric(), count: i32[E], G: f32[P].symmetric().scratch(), Y: f32[P].symmetric(), s: signal[1]):
    with role(communicator):
        for p in tasks(blocks(P, 8, stop=count[rank])):
            store(G.at((rank + 1) % ranks)[p], X[p])
            signal(s.at((rank + 1) % ranks)[0], 1)
    with role(consumer):
        wait(s[0], len(blocks(P, 8, stop=count[0])))
        for p in tasks(blocks(P, 8, stop=count[0])):
            store(Y[p], G[p])
""",
        ("--set", "P=64"),
    ),
    "two roles at one barrier": Wrong(
        ("PK482", *UNORDERED),
        2,
        """
kernel k(X: f32[M].symmetric(), G: f32[M].symmetric().scratch(), Y: f32[M].symmetric(), Z: f32[M], b: signal[1]):
    with role(communicator):
        for m in tasks(blocks(M, 8)):
            store(G.at((rank + 1) % ranks)[m], X[m])
        barrier(b[0])
        for m in tasks(blocks(M, 8)):
            store(Y[m], G[m])
    with role(consumer):
        barrier(b[0])
        for m in tasks(blocks(M, 8)):
            Z[m] = X[m]
""",
    ),
    "one counter for two rounds": Wrong(
        UNORDERED,
        3,
        """
kernel k(X: f32[M].symmetric(), G: f32[ranks, M].symmetric().scratch(), Y: f32[ranks, M].symmetric(), s: signal[1]):
    with role(communicator):
        for i in range(2):
            for m in tasks(blocks(M, 8)):
                for r in ring():
                    store(G.at(r)[rank, m], X[m] * cast(i + 1, f32))
            signal_all(s[0], 1)
            wait(s[0], (i + 1) * ranks)
            for m in tasks(blocks(M, 8)):
                for r in range(ranks):
                    store(Y[r, m], G[r, m])
""",
    ),
}

RIGHT: dict[str, Right] = {
    "sums that are added to in any order": Right(
        (1, 2, 3),
        """
kernel k(X: f16[M].symmetric(), S: f16[M].symmetric().scratch(), Y: f16[M].symmetric(), b: signal[2]):
    with role(communicator, sms=4):
        for m in tasks(blocks(M, 8)):
            store(S[m], zeros(f16, m))
        barrier(b[0])
        for m in tasks(blocks(M, 8)):
            for r in ring():
                store_add(S.at(r)[m], X[m])
        barrier(b[1])
        for m in tasks(blocks(M, 8)):
            store(Y[m], S[m])
""",
    ),
    "a ring with credits, which one and two ranks do not await": Right(
        (1, 2, 3, 4),
        """
kernel k(X: f32[M].symmetric(), Y: f32[M].symmetric(), G: f32[2, M].symmetric().scratch(), full: signal[ranks],
         free: signal[ranks]):
    with role(communicator):
        for m in tasks(blocks(M, 8)):
            store(G.at(rank)[0, m], X[m])
            signal(full.at(rank)[0], 1)
    with role(consumer):
        count = len(blocks(M, 8))
        for s in range(ranks):
            wait(full[s], count)
            for m in tasks(blocks(M, 8)):
                t = G[s % 2, m]
                if s == 0:
                    store(Y[m], t)
                else:
                    store(Y[m], Y[m] + t)
                if s + 1 < ranks:
                    if s >= 1:
                        wait(free[s], count)
                    store(G.at((rank + 1) % ranks)[(s + 1) % 2, m], t)
                    signal(full.at((rank + 1) % ranks)[s + 1], 1)
                signal(free.at((rank + ranks - 1) % ranks)[(s + 1) % ranks], 1)
""",
    ),
    "tiles for which no CTA has room": Right(
        (2, 3),
        """
kernel k(X: f32[M, N].symmetric(), Y: f32[M, N].symmetric(), G: f32[M, N].symmetric().scratch(), full: signal[1]):
    with role(consumer):
        for m, n in tasks(blocks(M, 256), blocks(N, 256)):
            store(G.at((rank + 1) % ranks)[m, n], X[m, n])
            signal(full.at((rank + 1) % ranks)[0], 1)
        wait(full[0], len(blocks(M, 256)) * len(blocks(N, 256)))
        for m, n in tasks(blocks(M, 256), blocks(N, 256)):
            store(Y[m, n], G[m, n] * 2.0 + X[m, n])
""",
    ),
    "what a third rank passes on": Right(
        (2, 3, 5),
        """
kernel k(X: f32[M].symmetric(), Y: f32[M].symmetric(), G: f32[M].symmetric().scratch(), told: signal[1],
         done: signal[1]):
    with role(communicator):
        for m in tasks(blocks(M, 8)):
            store(G.at((rank + 2) % ranks)[m], X[m])
        signal(told.at((rank + 1) % ranks)[0], 1)
        wait(told[0], 1)
        signal(done.at((rank + 1) % ranks)[0], 1)
    with role(consumer):
        wait(done[0], 1)
        for m in tasks(blocks(M, 8)):
            store(Y[m], G[m])
""",
    ),
    "a counter that its only waiter takes down again": Right(
        (1, 2, 3),
        """
kernel k(X: f32[M].symmetric(), G: f32[M].symmetric().scratch(), Y: f32[M].symmetric(), s: signal[1]):
    with role(communicator):
        for m in tasks(blocks(M, 8)):
            store(G.at((rank + 1) % ranks)[m], X[m])
        signal_all(s[0], 1)
        wait(s[0], ranks)
        signal(s.at(rank)[0], 0 - ranks)
        for m in tasks(blocks(M, 8)):
            store(Y[m], G[m])
""",
    ),
    "counts from a table as long as the user says": Right(
        (2, 3),
        """
kernel k(X: f32[P].symmetric(), count: i32[E].replicate(), Y: f32[P].symmetric(), s: signal[1]):
    with role(communicator):
        for i in range(count[6]):
            signal(s.at((rank + 1) % ranks)[0], 1)
        wait(s[0], count[6])
        for p in tasks(blocks(P, 8)):
            store(Y[p], X[p])
""",
        ("--set", "P=20,E=7"),
    ),
    "one rank that counts for all": Right(
        (1, 2, 5),
        """
kernel k(X: f32[M].symmetric(), G: f32[M].symmetric().scratch(), Y: f32[M].symmetric(), here: signal[1],
         go: signal[1]):
    with role(communicator):
        for m in tasks(blocks(M, 8)):
            store(G.at((rank + 1) % ranks)[m], X[m])
        signal(here.at(0)[0], 1)
        if rank == 0:
            wait(here[0], ranks)
            signal_all(go[0], 1)
        wait(go[0], 1)
        for m in tasks(blocks(M, 8)):
            store(Y[m], G[m])
""",
    ),
}
