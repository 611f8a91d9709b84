"""Protocols as an author could write them: phases, hand-overs between roles, numbers of the caller's.

Most right ones stand beside a wrong one that differs from them in its mistake alone.
"""

from __future__ import annotations

from tests.check.protocols import UNORDERED, Right, Wrong

WRONG: dict[str, Wrong] = {}
RIGHT: dict[str, Right] = {}

_SC = """
kernel k(X: f32[M, 64].symmetric(), Y: f32[M, 64], G: i8[M, 64].symmetric().scratch(),
         S: f32[M].symmetric().scratch(), s: signal[M]):
    with role(communicator):
        for m in tasks(blocks(M, 16)):
            x = X[m, :]
            f = rowmax(abs(x)) / 127.0 + 1e-9
            {body}
    with role(consumer):
        for m in tasks(blocks(M, 16)):
            wait(s[start(m) // 16], {n})
            Y[m, :] = cast(G[m, :], f32) * S[m]
"""
_Q = "store(G.at((rank + 1) % ranks)[m, :], cast(round(x / f), i8))"
_F = "store(S.at((rank + 1) % ranks)[m], f)"
_SG = "signal(s.at((rank + 1) % ranks)[start(m) // 16], 1)"
_NL = "\n            "
RIGHT["8-bit rows and scales, one flag"] = Right((1, 2, 3, 5), _SC.format(body=_NL.join((_Q, _F, _SG)), n=1))
RIGHT["8-bit rows and scales, a flag for each"] = Right(
    (1, 2, 3, 5), _SC.format(body=_NL.join((_Q, _SG, _F, _SG)), n=2)
)
WRONG["8-bit rows and scales, the first flag for both"] = Wrong(
    UNORDERED, 2, _SC.format(body=_NL.join((_Q, _SG, _F)), n=1)
)
WRONG["8-bit rows and scales, a flag for each, one awaited"] = Wrong(
    (
        "PK705",
        "PK730",
        "PK480",
        "PK481",
        "PK482",
    ),
    2,
    _SC.format(body=_NL.join((_Q, _SG, _F, _SG)), n=1),
)
_PH = """
kernel k(X: f32[M], Y: f32[M], A: f32[M].symmetric().scratch(), B: f32[M].symmetric().scratch(), s: signal[1]):
    with role(communicator):
        for m in tasks(blocks(M, 8)):
            store(A.at((rank + 1) % ranks)[m], X[m])
        signal_all(s[0], 1)
        wait(s[0], {a})
        for m in tasks(blocks(M, 8)):
            store(B.at((rank + 1) % ranks)[m], A[m])
        signal_all(s[0], 1)
        wait(s[0], {b})
        for m in tasks(blocks(M, 8)):
            Y[m] = B[m]
"""
WRONG["two phases on one counter, one too few"] = Wrong(
    (
        "PK480",
        "PK481",
        "PK482",
    ),
    3,
    _PH.format(a="ranks", b="2 * ranks - 1"),
)
RIGHT["two phases on one counter"] = Right((1, 2, 3, 5), _PH.format(a="ranks", b="2 * ranks"))
_PEER = """
kernel k(X: f32[P, D], rows: i32[P, 2], Y: f32[2, P, D], G: f32[P, D].symmetric().scratch(), b: signal[{nb}]):
    with role(communicator):
        for i in range(2):
            for p in tasks(blocks(P, 8)):
                for d in blocks(D, 32):
                    store(G[p, d], X[p, d] * cast(i + 1, f32))
            barrier(b[0])
            for p in tasks(blocks(P, 8)):
                for d in blocks(D, 32):
                    Y[i, p, d] = gather(G, rows[p, :], d)
            {second}
"""
WRONG["rows fetched by tables, overwritten in the next round"] = Wrong(
    UNORDERED, 3, _PEER.format(nb=1, second="z = 0"), ("--set", "P=20,D=32")
)
RIGHT["rows fetched by tables in rounds"] = Right(
    (1, 2, 3), _PEER.format(nb=2, second="barrier(b[1])"), ("--set", "P=20,D=32")
)
_SCAL = """
kernel k(X: f32[M].symmetric(), n: i32, Y: f32[M].symmetric(), G: f32[M].symmetric().scratch(), s: signal[1]):
    with role(communicator):
        for m in tasks(blocks(M, 8, stop=min(n, M))):
            store(G.at((rank + 1) % ranks)[m], X[m])
            signal(s.at((rank + 1) % ranks)[0], 1)
    with role(consumer):
        wait(s[0], {c})
        for m in tasks(blocks(M, 8, stop=min(n, M))):
            store(Y[m], G[m])
        for m in tasks(blocks(M, 8, start=min(n, M))):
            store(Y[m], zeros(f32, m))
"""
WRONG["a number from the caller, in whole blocks"] = Wrong(
    (
        "PK480",
        "PK481",
        "PK482",
    ),
    2,
    _SCAL.format(c="min(n, M) // 8"),
)
RIGHT["a number from the caller, in blocks"] = Right((1, 2, 3, 5), _SCAL.format(c="len(blocks(M, 8, stop=min(n, M)))"))
_CH = """
kernel k(X: f32[4, M].symmetric(), Y: f32[4, M], G: f32[M].symmetric().scratch(), H: f32[M].scratch(),
         a: signal[1], b: signal[1], c: signal[1], d: signal[1]):
    with role(communicator):
        for i in range(4):
            wait(c[0], i)
            for m in tasks(blocks(M, 8)):
                store(G.at((rank + 1) % ranks)[m], X[i, m])
            signal(a.at((rank + 1) % ranks)[0], 1)
    with role(consumer):
        for i in range(4):
            wait(a[0], i + 1)
            wait(d[0], {d})
            for m in tasks(blocks(M, 8)):
                H[m] = G[m] * 2.0
            signal(b.at(rank)[0], 1)
            signal(c.at((rank + ranks - 1) % ranks)[0], 1)
    with role(storer):
        for i in range(4):
            wait(b[0], i + 1)
            for m in tasks(blocks(M, 8)):
                Y[i, m] = H[m] + 1.0
            signal(d.at(rank)[0], 1)
"""
WRONG["a hand-over between roles one round ahead"] = Wrong(UNORDERED, 2, _CH.format(d="i - 1"))
RIGHT["a hand-over between roles"] = Right((1, 2, 3, 5), _CH.format(d="i"))
WRONG["columns of the owner, rows of all"] = Wrong(
    (
        "PK480",
        "PK481",
        "PK482",
    ),
    3,
    """
kernel k(X: f32[M, N].shard(1), Y: f32[M, N], G: f32[M, N].symmetric().scratch(), s: signal[ranks]):
    with role(communicator):
        for m, n in tasks(blocks(M, 8), blocks(N, 8, of=rank)):
            x = X[m, n]
            for r in ring():
                store(G.at(r)[m, n], x)
                signal(s.at(r)[rank], 1)
    with role(consumer):
        for r in ring():
            wait(s[r], len(blocks(M, 8)) * len(blocks(N, 8)) // ranks)
            for m, n in tasks(blocks(M, 8), blocks(N, 8, of=r)):
                Y[m, n] = G[m, n]
""",
)
RIGHT["columns of the owner"] = Right(
    (1, 2, 3, 5),
    """
kernel k(X: f32[M, N].shard(1), Y: f32[M, N], G: f32[M, N].symmetric().scratch(), s: signal[ranks]):
    with role(communicator):
        for m, n in tasks(blocks(M, 8), blocks(N, 8, of=rank)):
            x = X[m, n]
            for r in ring():
                store(G.at(r)[m, n], x)
                signal(s.at(r)[rank], 1)
    with role(consumer):
        for r in ring():
            wait(s[r], len(blocks(M, 8)) * len(blocks(N, 8, of=r)))
            for m, n in tasks(blocks(M, 8), blocks(N, 8, of=r)):
                Y[m, n] = G[m, n]
""",
)
WRONG["as many as the largest share, of every rank"] = Wrong(
    (
        "PK480",
        "PK481",
        "PK482",
    ),
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
        wait(s[0], len(blocks(M, 8, of=0)) * ranks)
        for m in tasks(blocks(M, 8)):
            Y[m] = G[m]
""",
)
RIGHT["ranks pad their shares with empty signals"] = Right(
    (1, 2, 3, 5),
    """
kernel k(X: f32[M].shard(0), Y: f32[M], G: f32[M].symmetric().scratch(), s: signal[1]):
    with role(communicator):
        for m in tasks(blocks(M, 8, of=rank)):
            x = X[m]
            for r in ring():
                store(G.at(r)[m], x)
                signal(s.at(r)[0], 1)
        signal_all(s[0], len(blocks(M, 8, of=0)) - len(blocks(M, 8, of=rank)))
    with role(consumer):
        wait(s[0], len(blocks(M, 8, of=0)) * ranks)
        for r in range(ranks):
            for m in tasks(blocks(M, 8, of=r)):
                Y[m] = G[m]
""",
)
_RS = """
kernel k(X: f32[ranks, M].symmetric(), Y: f32[M], G: f32[{buf}, M].symmetric().scratch(), s: signal[1],
         t: signal[1]):
    with role(communicator):
        for i in range(1, ranks):
            c = (rank + ranks - i) % ranks
            {credit}
            for m in tasks(blocks(M, 8)):
                x = X[c, m]
                if i > 1:
                    x = x + G[(i - 1) % {buf}, m]
                store(G.at((rank + 1) % ranks)[i % {buf}, m], x)
            signal(s.at((rank + 1) % ranks)[0], 1)
            wait(s[0], i)
            signal(t.at((rank + ranks - 1) % ranks)[0], 1)
        for m in tasks(blocks(M, 8)):
            if ranks > 1:
                Y[m] = X[rank, m] + G[(ranks - 1) % {buf}, m]
            else:
                Y[m] = X[rank, m]
"""
WRONG["a reduce-scatter ring whose credit comes with the flag"] = Wrong(
    UNORDERED, 5, _RS.format(buf=2, credit="wait(t[0], i - 2)")
)
_LJ = """
kernel k(X: f32[3, 4, M].symmetric(), Y: f32[3, 4, M], G: f32[3, 4, M].symmetric().scratch(), s: signal[12]):
    with role(communicator):
        for i in range(3):
            for j in range(4):
                for m in tasks(blocks(M, 8)):
                    store(G.at((rank + 1) % ranks)[i, j, m], X[i, j, m])
                signal(s.at((rank + 1) % ranks)[{a}], 1)
    with role(consumer):
        for j in range(4):
            for i in range(3):
                wait(s[{b}], 1)
                for m in tasks(blocks(M, 8)):
                    Y[i, j, m] = G[i, j, m]
"""
WRONG["numbers of pairs by the other width"] = Wrong(UNORDERED, 2, _LJ.format(a="i * 4 + j", b="j * 3 + i"))
WRONG["numbers of pairs that meet"] = Wrong(
    (
        "PK705",
        "PK730",
        "PK480",
        "PK481",
        "PK482",
    ),
    2,
    _LJ.format(a="i * 3 + j", b="i * 3 + j"),
)
RIGHT["numbers of pairs"] = Right((1, 2, 3), _LJ.format(a="i * 4 + j", b="i * 4 + j"))
WRONG["additions announced by the role that does not add"] = Wrong(
    UNORDERED,
    2,
    """
kernel k(X: f32[M], S: f32[M].symmetric().scratch(), Y: f32[M], z: signal[1], s: signal[1]):
    with role(communicator):
        for m in tasks(blocks(M, 8)):
            store(S[m], zeros(f32, m))
        signal_all(z[0], 1)
        wait(z[0], ranks)
        for m in tasks(blocks(M, 8)):
            store_add(S.at((rank + 1) % ranks)[m], X[m])
    with role(loader):
        wait(z[0], ranks)
        signal(s.at((rank + 1) % ranks)[0], 1)
    with role(consumer):
        wait(s[0], 1)
        for m in tasks(blocks(M, 8)):
            Y[m] = S[m]
""",
)
WRONG["an input that is output too, read by the neighbour"] = Wrong(
    UNORDERED,
    3,
    """
kernel k(X: f32[M].symmetric(), s: signal[1]):
    with role(consumer):
        for m in tasks(blocks(M, 8)):
            t = X.at((rank + 1) % ranks)[m]
            signal(s.at((rank + 1) % ranks)[0], 1)
            store(X[m], t)
        wait(s[0], len(blocks(M, 8)))
""",
)
WRONG["a table's count rounded by the sender, not by the reader"] = Wrong(
    UNORDERED,
    2,
    """
kernel k(X: f32[E, P].symmetric(), count: i32[E].replicate(), Y: f32[E, P].symmetric(), G: f32[E,
         P].symmetric().scratch(), s: signal[E]):
    with role(communicator):
        for e in range(E):
            for p in tasks(blocks(P, 8, stop=count[e] // 8 * 8)):
                store(G.at((rank + 1) % ranks)[e, p], X[e, p])
            signal(s.at((rank + 1) % ranks)[e], 1)
    with role(consumer):
        for e in range(E):
            wait(s[e], 1)
            for p in tasks(blocks(P, 8, stop=count[e])):
                store(Y[e, p], G[e, p])
""",
)
WRONG["wraps round by ranks minus one"] = Wrong(
    UNORDERED,
    5,
    """
kernel k(X: f32[M].symmetric(), Y: f32[M], G: f32[M].symmetric().scratch(), s: signal[1]):
    with role(communicator):
        for m in tasks(blocks(M, 8)):
            store(G.at((rank + 1) % max(ranks - 1, 1))[m], X[m])
        signal(s.at((rank + 1) % ranks)[0], 1)
    with role(consumer):
        wait(s[0], 1)
        for m in tasks(blocks(M, 8)):
            Y[m] = G[m]
""",
)
RIGHT["8-bit cache: decode"] = Right(
    (1, 2),
    """
kernel kv(Q: bf16[B, H, D], K: i8[B, G, S, D], sk: f32[B, G, S], V: i8[B, G, S, D], sv: f32[B, G, S],
          O: bf16[B, H, D], n: i32, scale: f32, D: const = 64, group: const = 4):
    for b, g in tasks(B, G):
        for h in blocks(H, 4, start=g * 4, stop=g * 4 + 4):
            top = full(f32, -inf, h); total = zeros(f32, h); o = zeros(f32, h, D)
            for kv in blocks(S, 64, stop=n):
                s = (Q[b, h] @ cast(K[b, g, kv], bf16).T) * sk[b, g, kv] * scale
                t = max(top, rowmax(s)); p = exp2(s - t); c = exp2(top - t)
                total = total * c + rowsum(p)
                o = o * c + cast(p * sv[b, g, kv], bf16) @ cast(V[b, g, kv], bf16)
                top = t
            O[b, h] = o / total
""",
)
RIGHT["8-bit cache: append"] = Right(
    (1, 2),
    """
kernel kv(X: bf16[B, G, D], K: i8[B, G, S, D], s: f32[B, G, S], n: i32, D: const = 64):
    for b, g in tasks(B, blocks(G, 8)):
        x = cast(X[b, g], f32)
        f = rowmax(abs(x)) / 127.0 + 1e-9
        K[b, g, n] = cast(round(x / f), i8)
        s[b, g, n] = f
""",
)
RIGHT["8-bit cache: scales of groups"] = Right(
    (1, 2),
    """
kernel kv(Q: bf16[B, H, D], K: i8[B, S, H, D], sk: f32[B, P, H], O: f32[B, H, D], n: i32, D: const = 64):
    for b, h in tasks(B, blocks(H, 16)):
        O[b, h] = cast(Q[b, h], f32) * cast(K[b, n, h], f32) * sk[b, n // 32, h]
""",
)
RIGHT["8-bit cache: pages loop"] = Right(
    (1, 2),
    """
kernel kv(Q: bf16[B, H, D], K: i8[P, T, H, D], sk: f32[P, T, H], page: i32[B, L], O: f32[B, H, D], n: i32,
          D: const = 64, T: const = 16):
    for b, h in tasks(B, blocks(H, 16)):
        o = zeros(f32, h, D)
        for i in range(n):
            p = page[b, i // 16]
            o = o + cast(Q[b, h], f32) * cast(K[p, i % 16, h], f32) * sk[p, i % 16, h]
        O[b, h] = o
""",
)
RIGHT["8-bit cache: lengths, window"] = Right(
    (1, 2),
    """
kernel kv(Q: bf16[B, H, D], K: i8[B, S, H, D], sk: f32[B, S, H], n: i32, O: f32[B, H, D], D: const = 64,
          window: const = 64):
    for b, h in tasks(B, blocks(H, 16)):
        o = zeros(f32, h, D)
        for i in range(max(n - window, 0), n):
            o = o + cast(Q[b, h], f32) * cast(K[b, i, h], f32) * sk[b, i, h]
        O[b, h] = o
""",
)
