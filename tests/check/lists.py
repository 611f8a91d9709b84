"""Protocols as an author could write them: lists, additions and counts of several dimensions.

Most right ones stand beside a wrong one that differs from them in its mistake alone.
"""

from __future__ import annotations

from tests.check.protocols import UNORDERED, Right, Wrong

WRONG: dict[str, Wrong] = {}
RIGHT: dict[str, Right] = {}

WRONG["tasks over two dims write one"] = Wrong(
    ("PK401",),
    2,
    """
kernel k(X: f32[M, N], Y: f32[M]):
    for m, n in tasks(blocks(M, 8), blocks(N, 8)):
        Y[m] = rowsum(X[m, n])
""",
)
WRONG["sequences that overlap by one"] = Wrong(
    ("PK702",),
    2,
    """
kernel k(X: f32[S], rows: i32[N], Y: f32[S]):
    for b in tasks(N - 1):
        for q in tasks(blocks(S, 8, start=rows[b], stop=min(rows[b + 1] + 1, S))):
            Y[q] = X[q] * 2.0
""",
)
WRONG["two ranks store to the same neighbour"] = Wrong(
    UNORDERED,
    3,
    """
kernel k(X: f32[M], C: f32[M].symmetric()):
    for m in tasks(blocks(M, 8)):
        C.at(rank // 2)[m] = X[m]
""",
)
WRONG["stored to the next, and to oneself in the last"] = Wrong(
    UNORDERED,
    3,
    """
kernel k(X: f32[M], C: f32[M].symmetric()):
    for m in tasks(blocks(M, 8)):
        if rank + 1 < ranks:
            C.at(rank + 1)[m] = X[m]
        else:
            C.at(1)[m] = X[m]
""",
)
RIGHT["stored to the next, and to the first in the last"] = Right(
    (1, 2, 3, 5),
    """
kernel k(X: f32[M], C: f32[M].symmetric()):
    for m in tasks(blocks(M, 8)):
        if rank + 1 < ranks:
            C.at(rank + 1)[m] = X[m]
        else:
            C.at(0)[m] = X[m]
""",
)
WRONG["read of the neighbour's tile that it writes itself in that phase"] = Wrong(
    ("PK404",),
    3,
    """
kernel k(C: f32[M].symmetric(), Y: f32[M]):
    for m in tasks(blocks(M, 8)):
        Y[m] = C.at((rank + 1) % ranks)[m]
        C[m] = C[m] * 2.0
""",
)
RIGHT["two lists of blocks inside of tasks"] = Right(
    (1, 2),
    """
kernel k(X: f32[E, P, D], count: i32[E], Y: f32[E, P, D]):
    for e in tasks(E):
        for p in tasks(blocks(P, 16, stop=count[e])):
            for d in blocks(D, 32):
                Y[e, p, d] = X[e, p, d]
        for p in tasks(blocks(P, 16, start=count[e])):
            for d in blocks(D, 32):
                Y[e, p, d] = X[e, p, d] * 0.0
""",
)
RIGHT["sequences by offsets, cut off at the end"] = Right(
    (1, 2),
    """
kernel k(X: f32[S], rows: i32[N], Y: f32[S]):
    for b in tasks(N - 1):
        for q in tasks(blocks(S, 8, start=rows[b], stop=min(rows[b + 1], S))):
            Y[q] = X[q] * 2.0
""",
)
WRONG["shards of the rank behind, so that the last block has two writers"] = Wrong(
    UNORDERED,
    3,
    """
kernel k(X: f32[M].symmetric(), Y: f32[M].shard(0)):
    for m in tasks(blocks(M, 8, of=max(rank - 1, 0))):
        Y[m] = X[m]
""",
)
RIGHT["shards of the rank behind, stored at their owner"] = Right(
    (1, 2, 3, 5),
    """
kernel k(X: f32[M].symmetric(), Y: f32[M].shard(0)):
    for m in tasks(blocks(M, 8, of=(rank + ranks - 1) % ranks)):
        Y[m] = X[m]
""",
)
_RED = """
kernel k(X: f32[2, M], S: f32[M].symmetric().scratch(), Y: f32[2, M], b: signal[2]):
    with role(communicator):
        for i in range(2):
            for m in tasks(blocks(M, 8)):
                store(S[m], X[i, m])
            {a}
            for m in tasks(blocks(M, 8)):
                Y[i, m] = reduce(S[m], max)
            {b}
"""
WRONG["maxima of copies, overwritten by who is faster"] = Wrong(
    UNORDERED, 3, _RED.format(a="barrier(b[0])", b="signal(b.at(rank)[1], 1)\n            wait(b[1], i + 1)")
)
WRONG["maxima of copies behind a barrier of the wrong half"] = Wrong(
    UNORDERED,
    5,
    _RED.format(a="barrier(b[1])", b="signal(b.at((rank + 1) % ranks)[0], 1)\n            wait(b[0], i + 1)"),
)
RIGHT["maxima of copies with two barriers"] = Right((1, 2, 3, 5), _RED.format(a="barrier(b[0])", b="barrier(b[1])"))
RIGHT["maxima of copies, two ranks tell each other"] = Right(
    (1, 2), _RED.format(a="barrier(b[1])", b="signal(b.at((rank + 1) % ranks)[0], 1)\n            wait(b[0], i + 1)")
)
_ADD = """
kernel k(X: f16[M, N], S: f16[M, N].symmetric().scratch(), Y: f16[M, N].shard(0), z: signal[1],
         s: signal[ranks]):
    with role(communicator):
        for m, n in tasks(blocks(M, 16, of=rank), blocks(N, 16)):
            store(S[m, n], zeros(f16, m, n))
        signal_all(z[0], 1)
    with role(consumer):
        wait(z[0], ranks)
        for r in ring():
            for m, n in tasks(blocks(M, 16, of=r), blocks(N, 16)):
                store_add(S.at(r)[m, n], X[m, n])
                signal(s.at(r)[{c}], 1)
    with role(storer):
        {wait}
        for m, n in tasks(blocks(M, 16, of=rank), blocks(N, 16)):
            Y[m, n] = S[m, n]
"""
WRONG["contributions of all but the last counted"] = Wrong(
    UNORDERED,
    3,
    _ADD.format(
        c="rank",
        wait="for r in range(ranks - 1):\n            wait(s[r], len(blocks(M, 16, of=rank)) * len(blocks(N, 16)))",
    ),
)
WRONG["contributions counted by the adder's rows"] = Wrong(
    (
        "PK480",
        "PK481",
        "PK482",
    ),
    3,
    _ADD.format(
        c="rank", wait="for r in range(ranks):\n            wait(s[r], len(blocks(M, 16, of=r)) * len(blocks(N, 16)))"
    ),
)
WRONG["contributions counted by rows alone"] = Wrong(
    (
        "PK480",
        "PK481",
        "PK482",
    ),
    3,
    _ADD.format(c="0", wait="wait(s[0], len(blocks(M, 16, of=rank)) * ranks)"),
)
RIGHT["contributions counted by the owner's rows"] = Right(
    (1, 2, 3, 5),
    _ADD.format(
        c="rank",
        wait="for r in range(ranks):\n            wait(s[r], len(blocks(M, 16, of=rank)) * len(blocks(N, 16)))",
    ),
)
RIGHT["contributions of all on one counter"] = Right(
    (1, 2, 3, 5), _ADD.format(c="0", wait="wait(s[0], len(blocks(M, 16, of=rank)) * len(blocks(N, 16)) * ranks)")
)
WRONG["rounds counted by a variable that a branch leaves out"] = Wrong(
    (
        "PK705",
        "PK730",
        "PK480",
        "PK481",
        "PK482",
    ),
    2,
    """
kernel k(X: f32[8, M].symmetric(), Y: f32[8, M], G: f32[8, M].symmetric().scratch(), s: signal[1]):
    with role(communicator):
        for i in range(8):
            if i % 3 != 1:
                for m in tasks(blocks(M, 8)):
                    store(G.at((rank + 1) % ranks)[i, m], X[i, m])
                signal(s.at((rank + 1) % ranks)[0], 1)
    with role(consumer):
        n = 0
        for i in range(8):
            if i % 3 != 1:
                wait(s[0], n)
                n = n + 1
                for m in tasks(blocks(M, 8)):
                    Y[i, m] = G[i, m]
            else:
                for m in tasks(blocks(M, 8)):
                    Y[i, m] = X[i, m]
""",
)
RIGHT["rounds counted by a variable"] = Right(
    (1, 2, 3, 5),
    """
kernel k(X: f32[8, M].symmetric(), Y: f32[8, M], G: f32[8, M].symmetric().scratch(), s: signal[1]):
    with role(communicator):
        for i in range(8):
            if i % 3 != 1:
                for m in tasks(blocks(M, 8)):
                    store(G.at((rank + 1) % ranks)[i, m], X[i, m])
                signal(s.at((rank + 1) % ranks)[0], 1)
    with role(consumer):
        n = 0
        for i in range(8):
            if i % 3 != 1:
                n = n + 1
                wait(s[0], n)
                for m in tasks(blocks(M, 8)):
                    Y[i, m] = G[i, m]
            else:
                for m in tasks(blocks(M, 8)):
                    Y[i, m] = X[i, m]
""",
)
_KB = """
kernel k(A: bf16[M, K].symmetric(), B: bf16[K, N], C: bf16[M, N], G: bf16[M, K].symmetric().scratch(),
         s: signal[M]):
    with role(communicator):
        for m, k in tasks(blocks(M, 64), blocks(K, {ks})):
            store(G.at((rank + 1) % ranks)[m, k], A[m, k])
            signal(s.at((rank + 1) % ranks)[start(m) // 64], 1)
    with role(consumer):
        for m, n in tasks(blocks(M, 64), blocks(N, 64)):
            wait(s[start(m) // 64], {count})
            acc = zeros(f32, m, n)
            for k in blocks(K, 32):
                acc += G[m, k] @ B[k, n]
            C[m, n] = acc
"""
WRONG["blocks of K counted at the reader's size"] = Wrong(
    (
        "PK480",
        "PK481",
        "PK482",
    ),
    2,
    _KB.format(ks=64, count="len(blocks(K, 32))"),
)
WRONG["blocks of K counted at half the writer's size"] = Wrong(
    (
        "PK480",
        "PK481",
        "PK482",
    ),
    2,
    _KB.format(ks=32, count="len(blocks(K, 64))"),
)
RIGHT["blocks of K counted at the writer's size"] = Right((1, 2, 3, 5), _KB.format(ks=64, count="len(blocks(K, 64))"))
_FIRST = """
kernel k(X: f32[M].shard(0), Y: f32[M], G: f32[M].symmetric().scratch(), s: signal[ranks]):
    with role(communicator):
        for m in tasks(blocks(M, 8, of=rank)):
            x = X[m]
            for r in ring():
                store(G.at(r)[m], x)
                signal(s.at(r)[rank], 1)
    with role(consumer):
        for r in ring():
            {body}
"""
WRONG["a signal in a task for all tasks of the list before"] = Wrong(
    ("PK705", "PK730"),
    2,
    """
kernel k(X: f32[M, 64], G: f32[M, 64].symmetric().scratch(), Y: f32[M, 64], done: signal[L]):
    with role(communicator, sms=4):
        for m in tasks(blocks(M, 16)):
            store(G.at((rank + 1) % ranks)[m, :], X[m, :])
        for i in tasks(L):
            signal(done.at((rank + 1) % ranks)[i], 1)
    with role(consumer):
        wait(done[0], 1)
        for m in tasks(blocks(M, 16)):
            Y[m, :] = G[m, :]
        for i in range(1, L):
            wait(done[i], 1)
""",
)
WRONG["signals of a list of fewer, longer tasks for those of the list before"] = Wrong(
    ("PK705", "PK730"),
    2,
    """
kernel k(X: bf16[M, N], Y: bf16[M, N], Z: bf16[M, N], P: bf16[M, N].symmetric().scratch(), done: signal[1]):
    with role(communicator, sms=8):
        for m, n in tasks(blocks(M, 16), blocks(N, 64)):
            store(P.at((rank + 1) % ranks)[m, n], X[m, n])
        for m, n in tasks(blocks(M, 32), blocks(N, 32)):
            Z[m, n] = X[m, n] * 2.0
            signal(done.at((rank + 1) % ranks)[0], 1)
    with role(consumer):
        for m, n in tasks(blocks(M, 16), blocks(N, 64)):
            wait(done[0], len(blocks(M, 32)) * len(blocks(N, 32)))
            Y[m, n] = P[m, n]
""",
)
WRONG["a signal in a task for what stands in front of the tasks"] = Wrong(
    ("PK730",),
    2,
    """
kernel k(X: f32[M, 64], S: f32[64], G: f32[64].symmetric().scratch(), H: f32[M, 64].symmetric().scratch(),
         Y: f32[M, 64], done: signal[M]):
    with role(communicator, sms=4):
        store(G.at((rank + 1) % ranks)[:], S[:])
        for m in tasks(blocks(M, 16)):
            store(H.at((rank + 1) % ranks)[m, :], X[m, :])
            signal(done.at((rank + 1) % ranks)[start(m) // 16], 1)
    with role(consumer):
        for m in tasks(blocks(M, 16)):
            wait(done[start(m) // 16], 1)
            Y[m, :] = H[m, :] + G[:]
""",
)
RIGHT["a signal outside of tasks for all that stands in front of it"] = Right(
    (1, 2, 3),
    """
kernel k(X: f32[M, 64], S: f32[64], G: f32[64].symmetric().scratch(), H: f32[M, 64].symmetric().scratch(),
         Y: f32[M, 64], done: signal[1]):
    with role(communicator, sms=4):
        store(G.at((rank + 1) % ranks)[:], S[:])
        for m in tasks(blocks(M, 16)):
            store(H.at((rank + 1) % ranks)[m, :], X[m, :])
        signal(done.at((rank + 1) % ranks)[0], 1)
    with role(consumer):
        wait(done[0], 1)
        for m in tasks(blocks(M, 16)):
            Y[m, :] = H[m, :] + G[:]
""",
)
RIGHT["a credit for four rows at once, of which the last ones may come early"] = Right(
    (1, 2, 3, 5),
    """
kernel k(X: f32[T, D], Y: f32[T, D], B: f32[8, D].symmetric().scratch(), full: signal[1], free: signal[1],
         D: const = 256):
    with role(communicator, sms=1):
        for t in range(T):
            if t > 7:
                wait(free[0], t // 4 - 1)
            store(B.at((rank + 1) % ranks)[t % 8], X[t])
            signal(full.at((rank + 1) % ranks)[0], 1)
    with role(consumer):
        for t in range(T):
            wait(full[0], t + 1)
            Y[t] = B[t % 8] * 3.0
            if t % 4 == 3:
                signal(free.at((rank + ranks - 1) % ranks)[0], 1)
""",
)
RIGHT["every other row awaited of those that one role announces in order"] = Right(
    (1, 2, 3, 5),
    """
kernel k(X: f32[T, D], Y: f32[T, D].symmetric(), Z: f32[T, D], got: signal[1], D: const = 256):
    with role(communicator, sms=1):
        for t in range(T):
            store(Y.at((rank + 1) % ranks)[t], X[t])
            signal(got.at((rank + 1) % ranks)[0], 1)
    with role(communicator, sms=1):
        for u in range((T + 1) // 2):
            wait(got[0], 2 * u + 1)
            Z[2 * u] = Y[2 * u]
            if 2 * u + 1 < T:
                Z[2 * u + 1] = X[2 * u + 1]
""",
)
WRONG["a wait in the first task of each rank's blocks alone"] = Wrong(
    UNORDERED,
    3,
    _FIRST.format(
        body="""for m in tasks(blocks(M, 8, of=r)):
                if start(m) % ((M + ranks - 1) // ranks) == 0:
                    wait(s[r], len(blocks(M, 8, of=r)))
                Y[m] = G[m]"""
    ),
)
WRONG["each task awaits as many as it is"] = Wrong(
    UNORDERED,
    3,
    _FIRST.format(
        body="""for m in tasks(blocks(M, 8, of=r)):
                wait(s[r], (start(m) - r * ((M + ranks - 1) // ranks)) // 8 + 1)
                Y[m] = G[m]"""
    ),
)
WRONG["tasks beyond the first hundred do not signal"] = Wrong(
    (
        "PK480",
        "PK481",
        "PK482",
    ),
    2,
    """
kernel k(X: f32[M], Y: f32[M], s: signal[1]):
    with role(communicator):
        for i in tasks(M):
            if i < 100:
                signal(s.at((rank + 1) % ranks)[0], 1)
    with role(consumer):
        wait(s[0], M)
        for m in tasks(blocks(M, 8)):
            Y[m] = X[m]
""",
)
WRONG["a task that stores after the last has announced"] = Wrong(
    ("PK487",),
    2,
    """
kernel k(X: f32[M].symmetric(), Y: f32[M], G: f32[M].symmetric().scratch(), s: signal[1], t: signal[1]):
    with role(communicator):
        for m in tasks(blocks(M, 8)):
            if start(m) > 0:
                store(G.at((rank + 1) % ranks)[m], X[m])
                signal(t.at(rank)[0], 1)
            else:
                wait(t[0], len(blocks(M, 8)) - 1)
                signal(s.at((rank + 1) % ranks)[0], 1)
                store(G.at((rank + 1) % ranks)[m], X[m])
    with role(consumer):
        wait(s[0], 1)
        for m in tasks(blocks(M, 8)):
            Y[m] = G[m]
""",
)
RIGHT["a counter with a number, of a dimension"] = Right(
    (1, 2, 3, 5),
    """
kernel k(X: f32[M].symmetric(), Y: f32[M], G: f32[M].symmetric().scratch(), s: signal[N]):
    with role(communicator):
        for m in tasks(blocks(M, 8)):
            store(G.at((rank + 1) % ranks)[m], X[m])
            signal(s.at((rank + 1) % ranks)[5], 1)
    with role(consumer):
        wait(s[5], len(blocks(M, 8)))
        for m in tasks(blocks(M, 8)):
            Y[m] = G[m]
""",
)
RIGHT["blocks up to position forty"] = Right(
    (1, 2, 3, 5),
    """
kernel k(X: f32[M].symmetric(), Y: f32[M].symmetric(), G: f32[M].symmetric().scratch(), s: signal[1]):
    with role(communicator):
        for m in tasks(blocks(M, 8, stop=40)):
            store(G.at((rank + 1) % ranks)[m], X[m])
            signal(s.at((rank + 1) % ranks)[0], 1)
    with role(consumer):
        wait(s[0], len(blocks(M, 8, stop=40)))
        for m in tasks(blocks(M, 8, stop=40)):
            store(Y[m], G[m])
        for m in tasks(blocks(M, 8, start=40)):
            store(Y[m], X[m])
""",
)
WRONG["what lies behind position forty, not awaited"] = Wrong(
    UNORDERED,
    2,
    """
kernel k(X: f32[M].symmetric(), Y: f32[M].symmetric(), G: f32[M].symmetric().scratch(), s: signal[1]):
    with role(communicator):
        for m in tasks(blocks(M, 8, stop=40)):
            store(G.at((rank + 1) % ranks)[m], X[m])
            signal(s.at((rank + 1) % ranks)[0], 1)
        for m in tasks(blocks(M, 8, start=40)):
            store(G.at((rank + 1) % ranks)[m], X[m])
    with role(consumer):
        wait(s[0], len(blocks(M, 8, stop=40)))
        for m in tasks(blocks(M, 8)):
            store(Y[m], G[m])
""",
)
WRONG["a product sent back before it is stored by both"] = Wrong(
    UNORDERED,
    2,
    """
kernel k(A: bf16[M, K], B: bf16[K, N], C: bf16[M, N], H: bf16[M, N].symmetric().scratch(), s: signal[1]):
    with role(consumer):
        for m, n in tasks(blocks(M, 64), blocks(N, 64)):
            acc = zeros(f32, m, n)
            for k in blocks(K, 64):
                acc += A[m, k] @ B[k, n]
            signal(s.at((rank + 1) % ranks)[0], 1)
            store(H.at((rank + 1) % ranks)[m, n], acc)
    with role(storer):
        for m, n in tasks(blocks(M, 64), blocks(N, 64)):
            wait(s[0], len(blocks(M, 64)) * len(blocks(N, 64)))
            C[m, n] = H[m, n]
""",
)
RIGHT["a product sent on"] = Right(
    (1, 2, 3, 5),
    """
kernel k(A: bf16[M, K], B: bf16[K, N], C: bf16[M, N], H: bf16[M, N].symmetric().scratch(), s: signal[1]):
    with role(consumer):
        for m, n in tasks(blocks(M, 64), blocks(N, 64)):
            acc = zeros(f32, m, n)
            for k in blocks(K, 64):
                acc += A[m, k] @ B[k, n]
            store(H.at((rank + 1) % ranks)[m, n], acc)
            signal(s.at((rank + 1) % ranks)[0], 1)
    with role(storer):
        for m, n in tasks(blocks(M, 64), blocks(N, 64)):
            wait(s[0], len(blocks(M, 64)) * len(blocks(N, 64)))
            C[m, n] = H[m, n]
""",
)
WRONG["columns awaited by the flags of rows"] = Wrong(
    UNORDERED,
    2,
    """
kernel k(X: f32[64, 64].symmetric(), Y: f32[64, 64], G: f32[64, 64].symmetric().scratch(), s: signal[8]):
    with role(communicator):
        for m in tasks(blocks(64, 8)):
            for n in blocks(64, 32):
                store(G.at((rank + 1) % ranks)[m, n], X[m, n])
            signal(s.at((rank + 1) % ranks)[start(m) // 8], 1)
    with role(consumer):
        for n in tasks(blocks(64, 8)):
            wait(s[start(n) // 8], 1)
            for m in blocks(64, 32):
                Y[m, n] = G[m, n]
""",
)
