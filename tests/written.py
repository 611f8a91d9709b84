"""Kernels whose roles an author wrote: every primitive, and each way in which CTAs of a role wait for each other."""

from __future__ import annotations

WRITTEN: dict[str, str] = {
    "a signal behind tasks": """
kernel k(X: f32[M, N], Y: f32[M, N].symmetric(), Z: f32[M, N], done: signal[1]):
    with role(communicator, sms=4):
        for m, n in tasks(blocks(M, 8, of=rank), blocks(N, 16)):
            t = X[m, n] + 1.0
            for r in ring():
                store(Y.at(r)[m, n], t)
        signal_all(done[0], 1)
    with role(consumer):
        wait(done[0], ranks)
        for m, n in tasks(blocks(M, 16), blocks(N, 8)):
            Z[m, n] = Y[m, n] * 2.0
""",
    "a signal behind tasks in a loop": """
kernel k(X: f32[3, M].symmetric(), Y: f32[3, M].symmetric(), G: f32[3, M].symmetric().scratch(), s: signal[3]):
    with role(communicator):
        for e in range(3):
            for m in tasks(blocks(M, 8)):
                store(G.at((rank + 1) % ranks)[e, m], X[e, m])
            signal(s.at((rank + 1) % ranks)[e], 1)
    with role(consumer):
        for e in range(3):
            wait(s[e], 1)
            for m in tasks(blocks(M, 8)):
                store(Y[e, m], G[e, m])
""",
    "tasks that read what earlier tasks wrote": """
kernel k(X: f32[M, N], S: f32[M, N].symmetric().scratch(), Y: f32[M, N]):
    with role(communicator):
        for m, n in tasks(blocks(M, 8), blocks(N, 8)):
            store(S.at(rank)[m, n], X[m, n])
        for m, n in tasks(blocks(M, 16), blocks(N, 16)):
            Y[m, n] = S[m, n] + 1.0
""",
    "tasks that write what earlier tasks read": """
kernel k(X: f32[M, N], S: f32[M, N].symmetric().scratch(), Y: f32[M, N], Z: f32[M, N]):
    with role(consumer):
        for m, n in tasks(blocks(M, 8), blocks(N, 8)):
            store(S.at(rank)[m, n], X[m, n])
        for m, n in tasks(blocks(M, 16), blocks(N, 16)):
            Y[m, n] = S[m, n] + 1.0
        for m, n in tasks(blocks(M, 16), blocks(N, 8)):
            store(S.at(rank)[m, n], X[m, n] * 2.0)
        for m, n in tasks(blocks(M, 8), blocks(N, 16)):
            Z[m, n] = S[m, n]
""",
    "iterations that store what others stored": """
kernel k(X: f32[3, M], Y: f32[M]):
    with role(consumer):
        for i in range(3):
            for m in tasks(blocks(M, 8, start=i * 8)):
                Y[m] = X[i, m] * 2.0
""",
    "tasks that wait for earlier ones": """
kernel k(X: f32[M, N], Y: f32[M, N], done: signal[M]):
    with role(communicator):
        for m in tasks(M):
            for n in blocks(N, 64):
                if m == 0:
                    Y[m, n] = X[m, n]
                else:
                    wait(done[m - 1], 1)
                    Y[m, n] = X[m, n] + Y[m - 1, n]
            signal(done.at(rank)[m], 1)
""",
    "rounds with a barrier": """
kernel k(X: f32[M, N], S: f32[M, N].symmetric().scratch(), Y: f32[3, M, N], at: signal[1],
         read: signal[1]):
    with role(communicator, sms=4):
        for i in range(3):
            for m, n in tasks(blocks(M, 8, of=rank), blocks(N, 16)):
                t = X[m, n] + cast(i, f32)
                for r in ring():
                    store(S.at(r)[m, n], t)
            barrier(at[0])
            for m, n in tasks(blocks(M, 16), blocks(N, 8)):
                Y[i, m, n] = S[m, n] * 2.0
            signal_all(read[0], 1)
            wait(read[0], (i + 1) * ranks)
""",
    "barriers one after the other": """
kernel k(X: f32[M, N].symmetric(), Y: f32[M, N].symmetric(), at: signal[2]):
    with role(communicator):
        barrier(at[0])
        barrier(at[1])
        for m, n in tasks(blocks(M, 8, of=rank), blocks(N, 16)):
            t = reduce(X[m, n])
            for r in ring():
                store(Y.at(r)[m, n], t)
        barrier(at[0])
        barrier(at[0])
""",
    "a barrier of each task": """
kernel k(X: f32[M, N].symmetric(), Y: f32[M, N], at: signal[ranks]):
    with role(communicator):
        for i in tasks(ranks):
            barrier(at[i])
            for m in blocks(M, 32):
                for n in blocks(N, 32):
                    if i == 0:
                        Y[m, n] = reduce(X[m, n])
""",
    "sums in place": """
kernel k(X: f32[M, N], S: f32[M, N].symmetric().scratch(), Y: f32[M, N], at: signal[1], done: signal[1]):
    with role(communicator):
        for m, n in tasks(blocks(M, 16), blocks(N, 8)):
            store(S.at(rank)[m, n], X[m, n])
        barrier(at[0])
        for m, n in tasks(blocks(M, 8, of=rank), blocks(N, 16)):
            all_reduce(S[m, n])
        barrier(done[0])
        for m, n in tasks(blocks(M, 16), blocks(N, 16)):
            Y[m, n] = S[m, n]
""",
    "maxima and minima": """
kernel k(X: f32[M, N], S: f32[M, N].symmetric().scratch(), Y: f32[M, N], Z: f32[M, N], at: signal[1], done: signal[1]):
    with role(communicator):
        for m, n in tasks(blocks(M, 16), blocks(N, 8)):
            store(S.at(rank)[m, n], X[m, n])
        barrier(at[0])
        for m, n in tasks(blocks(M, 16), blocks(N, 16)):
            Z[m, n] = reduce(S[m, n], min)
        barrier(at[0])
        for m, n in tasks(blocks(M, 8, of=rank), blocks(N, 16)):
            all_reduce(S[m, n], max)
        barrier(done[0])
        for m, n in tasks(blocks(M, 16), blocks(N, 16)):
            Y[m, n] = S[m, n]
""",
    "sums in any order": """
kernel k(X: f32[M, N], S: f32[M, N].symmetric().scratch(), Y: f32[M, N], at: signal[1], done: signal[1]):
    schedule(deterministic=False)
    with role(communicator, sms=4):
        for m, n in tasks(blocks(M, 16), blocks(N, 8)):
            store(S.at(rank)[m, n], zeros(f32, m, n))
        barrier(at[0])
        for m, n in tasks(blocks(M, 8), blocks(N, 16)):
            t = cast(cast(X[m, n] * 4.0, i32), f32)
            for r in ring():
                store_add(S.at(r)[m, n], t)
        barrier(done[0])
        for m, n in tasks(blocks(M, 16), blocks(N, 16)):
            Y[m, n] = S[m, n]
""",
    "a consumer that tells when it has read": """
kernel k(A: bf16[2, M, K], B: bf16[K, N], C: bf16[2, M, N], G: bf16[M, K].symmetric().scratch(),
         full: signal[1], free: signal[1]):
    with role(communicator):
        for i in range(2):
            wait(free[0], i * len(blocks(M, 16)) * len(blocks(N, 16)))
            for m, k in tasks(blocks(M, 16), blocks(K, 16)):
                store(G.at(rank)[m, k], A[i, m, k])
                signal(full.at(rank)[0], 1)
        wait(free[0], 2 * len(blocks(M, 16)) * len(blocks(N, 16)))
    with role(consumer):
        for i in range(2):
            for m, n in tasks(blocks(M, 16), blocks(N, 16)):
                wait(full[0], (i + 1) * len(blocks(M, 16)) * len(blocks(K, 16)))
                acc = zeros(f32, m, n)
                for k in blocks(K, 16):
                    acc += G[m, k] @ B[k, n]
                signal(free.at(rank)[0], 1)
                C[i, m, n] = acc
""",
    "tiles in pieces": """
kernel k(X: f32[M, N].symmetric(), Y: f32[M, N].symmetric(), Z: f32[M, N], go: signal[1], done: signal[1]):
    with role(consumer):
        barrier(go[0])
        for m, n in tasks(blocks(M, 128, of=rank), blocks(N, 256)):
            t = exp(reduce(X[m, n]))
            for r in ring():
                store(Y.at(r)[m, n], t)
            Z[m, n] = X[m, n] * 2.0
        signal_all(done[0], 1)
        wait(done[0], ranks)
""",
    "a store that no load orders": """
kernel k(Y: f32[M, N].symmetric(), Z: f32[M, N], go: signal[1], done: signal[1]):
    with role(communicator):
        signal_all(go[0], 1)
    with role(consumer):
        wait(go[0], ranks)
        for m, n in tasks(blocks(M, 16, of=rank), blocks(N, 16)):
            for r in ring():
                store(Y.at(r)[m, n], full(f32, 3.0, m, n))
        signal_all(done[0], 1)
        wait(done[0], ranks)
        for m, n in tasks(blocks(M, 16), blocks(N, 16)):
            Z[m, n] = Y[m, n]
""",
    "statements outside of tasks": """
kernel k(X: f32[8, 16], Y: f32[ranks, 8, 16].symmetric(), Z: f32[ranks, 8, 16], done: signal[1]):
    with role(communicator):
        t = X[:, :] + 1.0
        for r in ring():
            store(Y.at(r)[rank, :, :], t)
            signal(done.at(r)[0], 1)
        wait(done[0], ranks)
        for i in tasks(ranks):
            Z[i, :, :] = Y[i, :, :]
""",
    "a tree of sums": """
kernel k(X: f32[M, N], Y: f32[M, N], S: f32[3, M, N].symmetric().scratch(), got: signal[3, M]):
    with role(consumer):
        for m, n in tasks(blocks(M, 16), blocks(N, 8)):
            t = cast(X[m, n], f32)
            step = 1
            for l in range(3):
                if rank % (2 * step) == 0:
                    if rank + step < ranks:
                        wait(got[l, start(m) // 16], len(blocks(N, 8)))
                        t += S[l, m, n]
                else:
                    if rank % step == 0:
                        store(S.at(rank - step)[l, m, n], t)
                        signal(got.at(rank - step)[l, start(m) // 16], 1)
                step = step * 2
            if rank == 0:
                Y[m, n] = t
""",
    "a tree of sums by a communicator": """
kernel k(X: f32[M, N], Y: f32[M, N], S: f32[3, M, N].symmetric().scratch(), got: signal[3, M]):
    with role(communicator):
        for m, n in tasks(blocks(M, 16), blocks(N, 8)):
            t = cast(X[m, n], f32)
            step = 1
            for l in range(3):
                if rank % (2 * step) == 0:
                    if rank + step < ranks:
                        wait(got[l, start(m) // 16], len(blocks(N, 8)))
                        t += S[l, m, n]
                else:
                    if rank % step == 0:
                        store(S.at(rank - step)[l, m, n], t)
                        signal(got.at(rank - step)[l, start(m) // 16], 1)
                step = step * 2
            if rank == 0:
                Y[m, n] = t
""",
    "a butterfly": """
kernel k(X: f32[M], Y: f32[M], S: f32[3, M].symmetric().scratch(), got: signal[3, M]):
    with role(communicator):
        for m in tasks(blocks(M, 8)):
            t = cast(X[m], f32)
            step = 1
            for l in range(3):
                peer = rank + step
                if rank // step % 2 == 1:
                    peer = rank - step
                if peer < ranks:
                    store(S.at(peer)[l, m], t)
                    signal(got.at(peer)[l, start(m) // 8], 1)
                    wait(got[l, start(m) // 8], 1)
                    t += S[l, m]
                step = step * 2
            Y[m] = t
""",
    "a chain of sums": """
kernel k(X: f32[M, N], Y: f32[M, N], S: f32[M, N].symmetric().scratch(), got: signal[M]):
    with role(communicator):
        for m, n in tasks(blocks(M, 16), blocks(N, 8)):
            t = cast(X[m, n], f32)
            if rank > 0:
                wait(got[start(m) // 16], len(blocks(N, 8)))
                t += S[m, n]
            if rank + 1 < ranks:
                store(S.at(rank + 1)[m, n], t)
                signal(got.at(rank + 1)[start(m) // 16], 1)
            Y[m, n] = t
""",
    "sums in one branch, and stores in the other": """
kernel k(X: f32[M], Y: f32[M], Z: f32[4, M].symmetric(), S: f32[4, M].symmetric().scratch(), got: signal[4, M]):
    with role(communicator):
        for m in tasks(blocks(M, 8)):
            for l in range(4):
                store(S.at((rank + 1) % ranks)[l, m], X[m] * cast(l, f32))
                signal(got.at((rank + 1) % ranks)[l, start(m) // 8], 1)
    with role(consumer):
        for m in tasks(blocks(M, 8)):
            t = cast(X[m], f32)
            for l in range(4):
                wait(got[l, start(m) // 8], 1)
                if l % 2 == 0:
                    t += S[l, m]
                else:
                    store(Z.at((rank + 1) % ranks)[l, m], t)
            Y[m] = t
""",
    "a signal of a branch beside one that reads": """
kernel k(X: f32[M], Y: f32[M], S: f32[M].symmetric().scratch(), got: signal[M]):
    with role(consumer):
        for m in tasks(blocks(M, 8)):
            t = cast(X[m], f32)
            if rank % 2 == 0:
                if rank + 1 < ranks:
                    wait(got[start(m) // 8], 1)
                    t += S[m]
            else:
                store(S.at(rank - 1)[m], t)
                signal(got.at(rank - 1)[start(m) // 8], 1)
            Y[m] = t
""",
}
