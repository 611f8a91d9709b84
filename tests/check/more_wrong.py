"""Protocols that are wrong in ways that programs of PTX, NCCL and NVSHMEM are: more of tests/check/protocols.py."""

from __future__ import annotations

from tests.check.protocols import UNORDERED, Wrong

_PUSH = """
kernel k(X: f32[M].symmetric(), Y: f32[M], G: f32[M].symmetric().scratch(), {counters}):
    with role(communicator):
{send}
    with role(consumer):
{receive}
"""


def _indented(text: str) -> str:
    return "\n".join(f"        {line}" for line in text.strip("\n").split("\n"))


def push(send: str, receive: str) -> str:
    counters = "s: signal[ranks], t: signal[ranks]" if "t[0]" in receive + send else "s: signal[ranks]"
    return _PUSH.format(counters=counters, send=_indented(send), receive=_indented(receive))


TO_NEXT = """
for m in tasks(blocks(M, 8)):
    store(G.at((rank + 1) % ranks)[m], X[m])
    signal(s.at((rank + 1) % ranks)[0], 1)
"""
READ = """
for m in tasks(blocks(M, 8)):
    Y[m] = G[m]
"""
_ROUNDS = """
kernel k(X: f32[5, M].symmetric(), Y: f32[5, M], G: f32[{depth}, M].symmetric().scratch(), full: signal[1],
         free: signal[1]):
    with role(communicator):
        for i in range(5):
            wait(free[0], {credit})
            for m in tasks(blocks(M, 8)):
                store(G.at((rank + {to}) % ranks)[i % {depth}, m], X[i, m])
                signal(full.at((rank + {to}) % ranks)[0], 1)
    with role(consumer):
        for i in range(5):
            wait(full[0], (i + 1) * len(blocks(M, 8)))
            for m in tasks(blocks(M, 8)):
                Y[i, m] = G[i % {depth}, m]
            {told}signal(free.at((rank + {back}) % ranks)[0], 1)
"""


def rounds(depth: int, credit: str, to: str = "1", back: str = "ranks - 1", told: str = "") -> str:
    """Five rounds through a few buffers, with a credit for each round, or for each task."""
    return _ROUNDS.format(depth=depth, credit=credit, to=to, back=back, told=told)


EACH_TASK = "    "


MORE_WRONG: dict[str, Wrong] = {
    # Counts
    "a wait that counts blocks of another size": Wrong(
        ("PK482",), 2, push(TO_NEXT, "wait(s[0], len(blocks(M, 16)))" + READ)
    ),
    "a wait for whole blocks alone": Wrong(
        ("PK482",), 2, push(TO_NEXT, "wait(s[0], M // 8)" + READ), ("--set", "M=20")
    ),
    "an equal part of all blocks, where parts differ": Wrong(
        ("PK481", "PK482"),
        3,
        """
kernel k(X: f32[M].shard(0), Y: f32[M], G: f32[M].symmetric().scratch(), s: signal[ranks]):
    with role(communicator):
        for m in tasks(blocks(M, 8, of=rank)):
            x = X[m]
            for r in ring():
                store(G.at(r)[m], x)
                signal(s.at(r)[rank], 1)
    with role(consumer):
        for r in ring():
            for m in tasks(blocks(M, 8, of=r)):
                wait(s[r], len(blocks(M, 8)) // ranks)
                Y[m] = G[m]
""",
    ),
    "a count for two ranks": Wrong(
        ("PK482",),
        3,
        push(
            "for m in tasks(blocks(M, 8)):\n    store(G.at((rank + 1) % ranks)[m], X[m])\nsignal_all(s[0], 1)",
            "wait(s[0], 2)" + READ,
        ),
    ),
    "signals of eight awaited as one": Wrong(
        ("PK482",),
        2,
        push(TO_NEXT.replace("[0], 1)", "[0], 8)"), "wait(s[0], len(blocks(M, 8)))" + READ),
    ),
    "one of two senders counted": Wrong(
        ("PK482",),
        2,
        """
kernel k(A: f32[M].symmetric(), B: f32[M].symmetric(), Y: f32[M], G: f32[2, M].symmetric().scratch(), s: signal[1]):
    with role(communicator):
        for m in tasks(blocks(M, 8)):
            store(G.at((rank + 1) % ranks)[0, m], A[m])
            signal(s.at((rank + 1) % ranks)[0], 1)
    with role(loader):
        for m in tasks(blocks(M, 8)):
            store(G.at((rank + 1) % ranks)[1, m], B[m])
            signal(s.at((rank + 1) % ranks)[0], 1)
    with role(consumer):
        wait(s[0], len(blocks(M, 8)))
        for m in tasks(blocks(M, 8)):
            Y[m] = G[0, m] + G[1, m]
""",
    ),
    "at least one of many": Wrong(
        ("PK482",), 2, push(TO_NEXT, "wait(s[0], min(1, len(blocks(M, 8))))" + READ), ("--set", "M=40")
    ),
    "two blocks with one counter, of which one is awaited": Wrong(
        ("PK482", *UNORDERED),
        2,
        """
kernel k(X: f32[64].symmetric(), Y: f32[64], G: f32[64].symmetric().scratch(), s: signal[4]):
    with role(communicator):
        for m in tasks(blocks(64, 8)):
            store(G.at((rank + 1) % ranks)[m], X[m])
            signal(s.at((rank + 1) % ranks)[start(m) // 16], 1)
    with role(consumer):
        for m in tasks(blocks(64, 8)):
            wait(s[start(m) // 16], 1)
            Y[m] = G[m]
""",
    ),
    "a counter named by the position, not by the number of the block": Wrong(
        ("PK706",),
        2,
        """
kernel k(X: f32[64].symmetric(), Y: f32[64], G: f32[64].symmetric().scratch(), s: signal[8]):
    with role(communicator):
        for m in tasks(blocks(64, 8)):
            store(G.at((rank + 1) % ranks)[m], X[m])
            signal(s.at((rank + 1) % ranks)[start(m)], 1)
    with role(consumer):
        for m in tasks(blocks(64, 8)):
            wait(s[start(m)], 1)
            Y[m] = G[m]
""",
    ),
    "a cumulated count that begins one block late": Wrong(
        ("PK482", *UNORDERED),
        3,
        """
kernel k(X: f32[M].shard(0), Y: f32[M], G: f32[M].symmetric().scratch(), s: signal[1]):
    with role(communicator):
        for m in tasks(blocks(M, 8, of=rank)):
            x = X[m]
            for r in ring():
                store(G.at(r)[m], x)
                signal(s.at(r)[0], 1)
    with role(consumer):
        n = 0 - 1
        for r in range(ranks):
            n = n + len(blocks(M, 8, of=r))
        wait(s[0], n)
        for m in tasks(blocks(M, 8)):
            Y[m] = G[m]
""",
    ),
    "everybody is awaited, and nobody sends to itself": Wrong(
        ("PK481", "PK480"),
        3,
        push(
            """
for m in tasks(blocks(M, 8)):
    x = X[m]
    for r in ring():
        if r != rank:
            store(G.at(r)[m], x)
for r in ring():
    if r != rank:
        signal(s.at(r)[0], 1)
""",
            "wait(s[0], ranks)" + READ,
        ),
    ),
    # Buffers
    "two buffers, taken again one round too early": Wrong(("PK730",), 2, rounds(2, "i - 2")),
    "three buffers, taken again one round too early": Wrong(("PK730",), 2, rounds(3, "i - 3")),
    "two buffers, whose credit comes with the data that it is for": Wrong(("PK480", "PK481"), 2, rounds(2, "i + 1")),
    "credits of tasks that overtake those of the round before": Wrong(
        ("PK730",), 2, rounds(2, "(i - 1) * len(blocks(M, 8))", told=EACH_TASK)
    ),
    "credits for half of the tasks": Wrong(("PK730", "PK482"), 2, rounds(1, "i", told=EACH_TASK)),
    "credits to the rank halfway round, back from there": Wrong(
        ("PK730",), 3, rounds(1, "i", "ranks // 2", "ranks // 2")
    ),
    # Order
    "a flag before its data on every second rank": Wrong(
        UNORDERED,
        2,
        push(
            """
for m in tasks(blocks(M, 8)):
    if rank % 2 == 0:
        store(G.at((rank + 1) % ranks)[m], X[m])
        signal(s.at((rank + 1) % ranks)[0], 1)
    else:
        signal(s.at((rank + 1) % ranks)[0], 1)
        store(G.at((rank + 1) % ranks)[m], X[m])
""",
            "wait(s[0], len(blocks(M, 8)))" + READ,
        ),
    ),
    "a role announces what another one stores": Wrong(
        UNORDERED,
        2,
        """
kernel k(X: f32[M].symmetric(), Y: f32[M], G: f32[M].symmetric().scratch(), s: signal[1]):
    with role(communicator):
        for m in tasks(blocks(M, 8)):
            store(G.at((rank + 1) % ranks)[m], X[m])
    with role(storer):
        signal(s.at((rank + 1) % ranks)[0], 1)
    with role(consumer):
        wait(s[0], 1)
        for m in tasks(blocks(M, 8)):
            Y[m] = G[m]
""",
    ),
    "all but the first block await": Wrong(
        UNORDERED,
        2,
        push(
            TO_NEXT,
            """
for m in tasks(blocks(M, 8)):
    if start(m) > 0:
        wait(s[0], len(blocks(M, 8)))
    Y[m] = G[m]
""",
        ),
        ("--set", "M=32"),
    ),
    "the last task announces all": Wrong(
        UNORDERED,
        2,
        push(
            """
for m in tasks(blocks(M, 8)):
    store(G.at((rank + 1) % ranks)[m], X[m])
    if start(m) + 8 >= M:
        signal(s.at((rank + 1) % ranks)[0], 1)
""",
            "wait(s[0], 1)" + READ,
        ),
        ("--set", "M=60"),
    ),
    "the block behind the one that was awaited": Wrong(
        UNORDERED,
        2,
        """
kernel k(X: f32[64].symmetric(), Y: f32[64], G: f32[64].symmetric().scratch(), s: signal[8]):
    with role(communicator):
        for m in tasks(blocks(64, 8)):
            store(G.at((rank + 1) % ranks)[m], X[m])
            signal(s.at((rank + 1) % ranks)[start(m) // 8], 1)
    with role(consumer):
        for i in tasks(8):
            wait(s[i], 1)
            for m in blocks(64, 8, start=(i + 1) % 8 * 8, stop=(i + 1) % 8 * 8 + 8):
                Y[m] = G[m]
""",
    ),
    "a load in front of its wait": Wrong(
        UNORDERED,
        2,
        push(
            TO_NEXT,
            "for m in tasks(blocks(M, 8)):\n    g = G[m]\n    wait(s[0], len(blocks(M, 8)))\n    Y[m] = g * 2.0",
        ),
    ),
    "scales of 8-bit data behind their flag": Wrong(
        UNORDERED,
        2,
        """
kernel k(X: e4m3[M, K].symmetric(), F: f32[M].symmetric(), Y: f32[M, K], G: e4m3[M, K].symmetric().scratch(),
         S: f32[M].symmetric().scratch(), s: signal[1]):
    with role(communicator):
        for m in tasks(blocks(M, 16)):
            for k in blocks(K, 32):
                store(G.at((rank + 1) % ranks)[m, k], X[m, k])
            signal(s.at((rank + 1) % ranks)[0], 1)
            store(S.at((rank + 1) % ranks)[m], F[m])
    with role(consumer):
        wait(s[0], len(blocks(M, 16)))
        for m, k in tasks(blocks(M, 16), blocks(K, 32)):
            Y[m, k] = cast(G[m, k], f32) * S[m]
""",
    ),
    "a flag between the stores of two halves": Wrong(
        UNORDERED,
        2,
        """
kernel k(X: bf16[M, 64].symmetric(), Y: bf16[M, 64], G: bf16[M, 64].symmetric().scratch(), s: signal[1]):
    with role(communicator):
        for m in tasks(blocks(M, 16)):
            for n in blocks(64, 32):
                if start(n) == 32:
                    signal(s.at((rank + 1) % ranks)[0], 1)
                store(G.at((rank + 1) % ranks)[m, n], X[m, n])
    with role(consumer):
        wait(s[0], len(blocks(M, 16)))
        for m, n in tasks(blocks(M, 16), blocks(64, 32)):
            Y[m, n] = G[m, n]
""",
    ),
    "one's own part, which nobody stored": Wrong(
        UNORDERED,
        3,
        """
kernel k(X: f32[M].shard(0), Y: f32[M], G: f32[M].symmetric().scratch(), s: signal[ranks]):
    with role(communicator):
        for m in tasks(blocks(M, 8, of=rank)):
            x = X[m]
            for r in ring():
                if r != rank:
                    store(G.at(r)[m], x)
                signal(s.at(r)[rank], 1)
    with role(consumer):
        for r in ring():
            for m in tasks(blocks(M, 8, of=r)):
                wait(s[r], len(blocks(M, 8, of=r)))
                Y[m] = G[m]
""",
    ),
    "the slot of another rank than the one that was awaited": Wrong(
        UNORDERED,
        3,
        """
kernel k(X: f32[M].symmetric(), Y: f32[ranks, M], G: f32[ranks, M].symmetric().scratch(), s: signal[ranks]):
    with role(communicator):
        for m in tasks(blocks(M, 8)):
            x = X[m]
            for r in ring():
                store(G.at(r)[rank, m], x)
                signal(s.at(r)[rank], 1)
    with role(consumer):
        for r in ring():
            for m in tasks(blocks(M, 8)):
                wait(s[r], len(blocks(M, 8)))
                Y[r, m] = G[(r + 1) % ranks, m]
""",
    ),
    "slots that are counted from one": Wrong(
        ("PK706",),
        2,
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
                t = t + G[r + 1, m]
            Y[m] = t
""",
    ),
    "rank 0 says go before all are there": Wrong(
        UNORDERED,
        3,
        push(
            """
for m in tasks(blocks(M, 8)):
    store(G.at((rank + 1) % ranks)[m], X[m])
if rank == 0:
    signal_all(s[0], 1)
""",
            "wait(s[0], 1)" + READ,
        ),
    ),
    "a result at rank 0, which the others do not await": Wrong(
        UNORDERED,
        2,
        """
kernel k(X: f32[M].symmetric(), Y: f32[M], S: f32[M].symmetric().scratch(), s: signal[1]):
    with role(communicator):
        signal(s.at(0)[0], 1)
        if rank == 0:
            wait(s[0], ranks)
            for m in tasks(blocks(M, 8)):
                store(S[m], reduce(X[m]))
    with role(consumer):
        for m in tasks(blocks(M, 8)):
            Y[m] = S.at(0)[m]
""",
    ),
    "data in a third rank's memory, announced to that one alone": Wrong(
        UNORDERED,
        3,
        push(
            TO_NEXT,
            "for m in tasks(blocks(M, 8)):\n    Y[m] = G.at((rank + 1) % ranks)[m]\nwait(s[0], len(blocks(M, 8)))",
        ),
    ),
    "who passes a flag on does not await it": Wrong(
        UNORDERED,
        3,
        push(
            """
for m in tasks(blocks(M, 8)):
    store(G.at((rank + 2) % ranks)[m], X[m])
signal(s.at((rank + 1) % ranks)[0], 1)
signal(t.at((rank + 1) % ranks)[0], 1)
wait(s[0], 1)
""",
            "wait(t[0], 1)" + READ,
        ),
    ),
    # Collectives
    "a tree that sends on before it has received": Wrong(
        UNORDERED,
        4,
        """
kernel k(X: f32[M].symmetric(), Y: f32[M], G: f32[M].symmetric().scratch(), s: signal[1]):
    with role(communicator):
        if rank == 0:
            for m in tasks(blocks(M, 8)):
                store(G[m], X[m])
            signal(s.at(0)[0], 1)
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
    "a tree that leaves out an only child": Wrong(
        ("PK481", "PK480"),
        4,
        """
kernel k(X: f32[M].symmetric(), Y: f32[M], G: f32[M].symmetric().scratch(), s: signal[1]):
    with role(communicator):
        if rank == 0:
            for m in tasks(blocks(M, 8)):
                store(G[m], X[m])
            signal(s.at(0)[0], 1)
        wait(s[0], 1)
        if 2 * rank + 2 < ranks:
            for c in range(2 * rank + 1, 2 * rank + 3):
                for m in tasks(blocks(M, 8)):
                    store(G.at(c)[m], G[m])
                signal(s.at(c)[0], 1)
    with role(consumer):
        wait(s[0], 1)
        for m in tasks(blocks(M, 8)):
            Y[m] = G[m]
""",
    ),
    "a dissemination barrier of one round for three ranks": Wrong(
        UNORDERED,
        3,
        """
kernel k(X: f32[M].symmetric(), Y: f32[M], G: f32[M].symmetric().scratch(), s: signal[4]):
    with role(communicator):
        for m in tasks(blocks(M, 8)):
            store(G[m], X[m])
        for i in range(1):
            signal(s.at((rank + 1) % ranks)[i], 1)
            wait(s[i], 1)
        for m in tasks(blocks(M, 8)):
            Y[m] = G.at((rank + 1) % ranks)[m]
""",
    ),
    "sums in place, of which every rank makes all": Wrong(
        ("PK730",),
        2,
        """
kernel k(X: f32[M], S: f32[M].symmetric().scratch(), Y: f32[M], b: signal[2]):
    with role(communicator):
        for m in tasks(blocks(M, 8)):
            store(S[m], X[m])
        barrier(b[0])
        for m in tasks(blocks(M, 8)):
            all_reduce(S[m])
        barrier(b[1])
        for m in tasks(blocks(M, 8)):
            Y[m] = S[m]
""",
    ),
    "a memory that its owner clears while others add to it": Wrong(
        UNORDERED,
        2,
        """
kernel k(X: f32[M], S: f32[M].symmetric().scratch(), Y: f32[M], s: signal[1]):
    with role(communicator):
        for m in tasks(blocks(M, 8)):
            store(S[m], zeros(f32, m))
        for m in tasks(blocks(M, 8)):
            for r in ring():
                store_add(S.at(r)[m], X[m])
        signal_all(s[0], 1)
        wait(s[0], ranks)
        for m in tasks(blocks(M, 8)):
            Y[m] = S[m]
""",
    ),
    # Tasks and CTAs
    "pairs of tasks that wait for each other": Wrong(
        ("PK487", "PK480"),
        1,
        """
kernel k(X: f32[M], Y: f32[M], done: signal[M]):
    with role(communicator, sms=2):
        for i in tasks(M):
            signal(done.at(rank)[i], 1)
            j = i + 1 - 2 * (i % 2)
            if j < M:
                wait(done[j], 1)
        for m in tasks(blocks(M, 8)):
            Y[m] = X[m]
""",
        ("--set", "M=300"),
    ),
    "tasks that wait for those of a neighbour in the other order": Wrong(
        ("PK487", "PK480"),
        2,
        """
kernel k(X: f32[M], Y: f32[M], done: signal[M]):
    with role(communicator, sms=2):
        for i in tasks(M):
            signal(done.at((rank + 1) % ranks)[i], 1)
            wait(done[M - 1 - i], 1)
        for m in tasks(blocks(M, 8)):
            Y[m] = X[m]
""",
        ("--set", "M=300"),
    ),
    "a ring in which all wait first": Wrong(
        ("PK480", "PK481"),
        3,
        push(
            "wait(t[0], 1)" + TO_NEXT + "signal(t.at((rank + 1) % ranks)[0], 1)",
            "wait(s[0], len(blocks(M, 8)))" + READ,
        ),
    ),
    # Tables
    "rows stored at half of what a table says, where two meet": Wrong(
        ("PK730",),
        2,
        """
kernel k(X: f32[P, D].symmetric(), rows: i32[P].replicate(), Y: f32[P, D].symmetric(),
         G: f32[P, D].symmetric().scratch(), s: signal[1]):
    with role(communicator):
        for p in tasks(P):
            for d in blocks(D, 32):
                store(G.at((rank + 1) % ranks)[rows[p] // 2, d], X[p, d])
        signal(s.at((rank + 1) % ranks)[0], 1)
    with role(consumer):
        wait(s[0], 1)
        for p in tasks(P):
            for d in blocks(D, 32):
                store(Y[p, d], G[rows[p] // 2, d])
""",
        ("--set", "P=20,D=32"),
    ),
    "rows added where a table says, read when one's own are there": Wrong(
        ("PK730",),
        2,
        """
kernel k(X: f32[P, D], rows: i32[P], S: f32[T, D].symmetric().scratch(), Y: f32[T, D], b: signal[1], s: signal[1]):
    with role(communicator):
        for t in tasks(T):
            for d in blocks(D, 32):
                store(S[t, d], zeros(f32, d))
        barrier(b[0])
        for p in tasks(P):
            for d in blocks(D, 32):
                store_add(S.at(rows[p] % ranks)[rows[p] % T, d], X[p, d])
        signal(s.at(rank)[0], 1)
        wait(s[0], 1)
        for t in tasks(T):
            for d in blocks(D, 32):
                Y[t, d] = S[t, d]
""",
        ("--set", "P=20,T=20,D=32"),
    ),
    "what a rank gets placed by what it sends": Wrong(
        ("PK730", *UNORDERED),
        3,
        """
kernel k(X: f32[P].symmetric(), count: i32[E], Y: f32[P].symmetric(), G: f32[P].symmetric().scratch(), s: signal[1]):
    with role(communicator):
        n = count[0] // ranks
        for r in range(ranks):
            for p in tasks(blocks(P, 1, start=r * n, stop=r * n + n)):
                store(G.at((rank + r) % ranks)[p], X[p])
        signal_all(s[0], 1)
    with role(consumer):
        wait(s[0], ranks)
        for p in tasks(blocks(P, 1, stop=ranks * (count[0] // ranks))):
            store(Y[p], G[p])
""",
        ("--set", "P=30,E=1"),
    ),
    "who takes a counter down, while another role still awaits it": Wrong(
        ("PK480", "PK481", "PK482", "PK701"),
        2,
        """
kernel k(X: f32[M].symmetric(), Y: f32[M], Z: f32[M], G: f32[M].symmetric().scratch(), s: signal[1]):
    with role(communicator):
        for m in tasks(blocks(M, 8)):
            store(G.at((rank + 1) % ranks)[m], X[m])
        signal(s.at((rank + 1) % ranks)[0], 1)
        wait(s[0], 1)
        signal(s.at(rank)[0], 0 - 1)
        for m in tasks(blocks(M, 8)):
            Z[m] = G[m]
    with role(consumer):
        wait(s[0], 1)
        for m in tasks(blocks(M, 8)):
            Y[m] = G[m]
""",
    ),
}
