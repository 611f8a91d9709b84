"""Programs that write the tables and counts by which their later tasks go, and sums that memory leaves out: each with
sizes and a formula."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.irregular import Arrays, Irregular, below, each, f64, fixed


def _flagged(i: Arrays, ranks: int) -> Arrays:
    return {"Y": below((i["flag"] % 2).sum(1), f64(i["X"]) * 2)}


def _by_a_total(i: Arrays, ranks: int) -> Arrays:
    many = (f64(i["X"]) > 0.0).sum((1, 2)) * 2 > i["T"] * i["H"]
    return {"Y": f64(i["X"]) * np.where(many, 1, 2)[:, None, None]}


def _written_twice(i: Arrays, ranks: int) -> Arrays:
    count = i["a"] % (i["P"] + 1)
    return {"Y": below(count, f64(i["X"]) * 2), "Z": below(count // 2, f64(i["X"]) * 3)}


def _experts(i: Arrays, ranks: int) -> Arrays:
    def of(r: int) -> Any:
        return np.einsum("th,thn->tn", f64(i["X"])[r], f64(i["W"])[r][i["expert"][r]])

    return {"Y": each(ranks, of)}


def _counted(i: Arrays, ranks: int) -> np.ndarray:
    """How many entries each rank has for each."""
    return each(ranks, lambda s: np.bincount(i["to"][s] % ranks, minlength=ranks))


def _exchanged(i: Arrays, ranks: int) -> Arrays:
    sent = below(np.minimum(_counted(i, ranks), i["P"]), f64(i["X"]))
    return {"Y": np.swapaxes(sent, 0, 1)}


def _told(i: Arrays, ranks: int) -> Arrays:
    counts, rows = np.minimum(_counted(i, ranks), i["P"]), f64(i["X"])
    whole = np.stack([rows] * ranks)
    return {"Y": whole, "Z": below(counts.T, whole)}


def _added(i: Arrays, ranks: int) -> Arrays:
    found = np.zeros((i["T"], i["N"]))
    for r in range(ranks):
        for e, count in enumerate((i["on"][r] % 2).sum(1)):
            rows = i["rows"][r, e, :count]
            np.add.at(found, rows[rows >= 0], f64(i["Y"])[r, e, :count][rows >= 0])
    return {"O": found}


def _added_by_remainders(i: Arrays, ranks: int) -> Arrays:
    found = np.zeros((i["T"], i["N"]))
    for r in range(ranks):
        np.add.at(found, i["a"][r] % i["T"], f64(i["Y"])[r])
    return {"O": found}


def _gathered(i: Arrays, ranks: int) -> Arrays:
    rows = f64(i["X"])[i["a"] % i["T"]]
    return {"Y": below(np.full(ranks, i["M"] // 2), rows)}


def _stepped(i: Arrays, ranks: int) -> Arrays:
    x = f64(i["X"])
    for step in range(3):
        x = x * 0.5 + np.roll(x, 1, 0) * (step + 1)
    return {"Y": x}


def _alive(i: Arrays, ranks: int) -> Arrays:
    live = (i["a"][:, 0] % 2 == 1)[:, None, None]
    x = f64(i["X"])
    return {"Y": np.where(live, x * 2, x), "Z": np.where(live, x, np.nan)}


COUNTED = {
    "steps of which each reads what the one before stores": Irregular(
        """
kernel stepped(X: f32[M, N], B: f32[M, N].symmetric().scratch(), Y: f32[M, N]):
    for m, n in tasks(blocks(M, 32), blocks(N, 64)):
        Y[m, n] = X[m, n]
    for step in range(3):
        for m, n in tasks(blocks(M, 32), blocks(N, 64)):
            B.at((rank + 1) % ranks)[m, n] = Y[m, n]
        for m, n in tasks(blocks(M, 32), blocks(N, 64)):
            Y[m, n] = Y[m, n] * 0.5 + B[m, n] * cast(step + 1, f32)
""",
        fixed({"M": 37, "N": 23}, {"M": 300, "N": 136}),
        _stepped,
        alone=False,
    ),
    "branches around tasks": Irregular(
        """
kernel alive(a: i32[K], X: f32[M, N], Y: f32[M, N], Z: f32[M, N]):
    if a[0] % 2 == 1:
        for m, n in tasks(blocks(M, 32), blocks(N, 64)):
            Y[m, n] = X[m, n] * 2.0
        for m in tasks(M):
            for n in tasks(blocks(N, 64)):
                Z[m, n] = X[m, n]
    else:
        for m, n in tasks(blocks(M, 32), blocks(N, 64)):
            Y[m, n] = X[m, n]
""",
        fixed({"K": 1, "M": 37, "N": 23}, {"K": 1, "M": 300, "N": 136}),
        _alive,
    ),
    "a total outside of tasks": Irregular(
        """
kernel flagged(flag: i32[T], X: f32[T, H], n: i32[1].scratch(), Y: f32[T, H]):
    total = zeros(i32)
    for t in blocks(T, 64):
        total += rowsum(flag[t] % 2)
    n[0] = total
    for t, h in tasks(blocks(T, 16, stop=min(n[0], T)), blocks(H, 64)):
        Y[t, h] = X[t, h] * 2.0
""",
        fixed({"T": 50, "H": 23}, {"T": 900, "H": 136}),
        _flagged,
    ),
    "a condition that a task has found": Irregular(
        """
kernel found(X: f32[T, H], many: i32[1].scratch(), Y: f32[T, H]):
    for i in tasks(1):
        count = zeros(i32)
        for t in blocks(T, 64):
            for h in blocks(H, 64):
                count += rowsum(rowsum(where(X[t, h] > 0.0, 1, 0)))
        many[0] = count
    for t, h in tasks(blocks(T, 16), blocks(H, 64)):
        if many[0] * 2 > T * H:
            Y[t, h] = X[t, h]
        else:
            Y[t, h] = X[t, h] * 2.0
""",
        fixed({"T": 50, "H": 23}, {"T": 300, "H": 136}),
        _by_a_total,
    ),
    "counts that are written twice": Irregular(
        """
kernel twice(a: i32[E], X: f32[E, P], n: i32[E].scratch(), Y: f32[E, P], Z: f32[E, P]):
    for e in tasks(blocks(E, 16)):
        n[e] = a[e] % (P + 1)
    for e in tasks(E):
        for p in tasks(blocks(P, 16, stop=n[e])):
            Y[e, p] = X[e, p] * 2.0
    for e in tasks(blocks(E, 16)):
        n[e] = (a[e] % (P + 1)) // 2
    for e in tasks(E):
        for p in tasks(blocks(P, 16, stop=n[e])):
            Z[e, p] = X[e, p] * 3.0
""",
        fixed({"E": 5, "P": 41}, {"E": 70, "P": 300}),
        _written_twice,
    ),
    "experts of which a kernel makes the tables": Irregular(
        """
kernel experts(expert: i32[T], X: bf16[T, H], W: bf16[E, H, N], count: i32[E].scratch(), rows: i32[E, T].scratch(),
               place: i32[T].scratch(), U: bf16[E, T, N].scratch(), Y: bf16[T, N]):
    for e in tasks(E):
        many = zeros(i32)
        for t in blocks(T, 64):
            many += rowsum(where(expert[t] == e, 1, 0))
        count[e] = many
    for t in tasks(T):
        before = zeros(i32)
        for s in blocks(T, 64):
            before += rowsum(where(positions(s) < t, where(expert[s] == expert[t], 1, 0), 0))
        place[t] = before
    for t in tasks(T):
        rows[expert[t], place[t]] = t
    for e in tasks(E):
        for p, n in tasks(blocks(T, 64, stop=min(count[e], T)), blocks(N, 64)):
            acc = zeros(f32, p, n)
            for h in blocks(H, 64):
                acc += gather(X, rows[e, p], h) @ W[e, h, n]
            U[e, p, n] = acc
    for t, n in tasks(T, blocks(N, 64)):
        Y[t, n] = U[expert[t], place[t], n]
""",
        fixed({"T": 30, "E": 4, "H": 23, "N": 37}, {"T": 300, "E": 9, "H": 136, "N": 264}),
        _experts,
    ),
    "what all ranks send, counted by them": Irregular(
        """
kernel exchanged(to: i32[T], X: bf16[ranks, P, H].symmetric(), sent: i32[ranks, ranks].replicate().scratch(),
                 Y: bf16[ranks, P, H]):
    for r in tasks(ranks):
        many = zeros(i32)
        for t in blocks(T, 64):
            many += rowsum(where(to[t] % ranks == r, 1, 0))
        sent[rank, r] = many
    for r in tasks(ranks):
        for p, h in tasks(blocks(P, 32, stop=min(sent[r, rank], P)), blocks(H, 64)):
            Y[r, p, h] = X.at(r)[rank, p, h]
""",
        fixed({"T": 30, "P": 21, "H": 23}, {"T": 900, "P": 300, "H": 136}),
        _exchanged,
        alone=False,
    ),
    "counts that others store here": Irregular(
        """
kernel told(to: i32[T], X: bf16[P, H], got: i32[ranks].symmetric().scratch(), Y: bf16[ranks, P, H].symmetric(),
            Z: bf16[ranks, P, H]):
    for r in tasks(ranks):
        many = zeros(i32)
        for t in blocks(T, 64):
            many += rowsum(where(to[t] % ranks == r, 1, 0))
        got.at(r)[rank] = min(many, P)
    for r, p, h in tasks(ranks, blocks(P, 32), blocks(H, 64)):
        Y.at(r)[rank, p, h] = X[p, h]
    for r in tasks(ranks):
        for p, h in tasks(blocks(P, 32, stop=got[r]), blocks(H, 64)):
            Z[r, p, h] = Y[r, p, h]
""",
        fixed({"T": 30, "P": 21, "H": 23}, {"T": 900, "P": 300, "H": 136}),
        _told,
        alone=False,
    ),
    "sums into rows, of which tasks have counted how many": Irregular(
        """
kernel added(on: i32[E, P], rows: i32[E, P], Y: f32[E, P, N], count: i32[E].scratch(), O: f32[T, N].shard(0)):
    for e in tasks(E):
        many = zeros(i32)
        for p in blocks(P, 64):
            many += rowsum(on[e, p] % 2)
        count[e] = many
    for e in tasks(E):
        for p, n in tasks(blocks(P, 16, stop=min(count[e], P)), blocks(N, 64)):
            O[rows[e, p], n] += Y[e, p, n]
""",
        fixed({"E": 3, "P": 21, "T": 12, "N": 23}, {"E": 9, "P": 129, "T": 200, "N": 72}),
        _added,
        alone=False,
    ),
    "sums into rows that tasks have named": Irregular(
        """
kernel named(a: i32[M], rows: i32[M].scratch(), Y: f32[M, N], O: f32[T, N].replicate()):
    for m in tasks(blocks(M, 16)):
        rows[m] = a[m] % T
    for m, n in tasks(blocks(M, 16), blocks(N, 64)):
        O[rows[m], n] += Y[m, n]
""",
        fixed({"M": 40, "T": 12, "N": 23}, {"M": 900, "T": 200, "N": 72}),
        _added_by_remainders,
        alone=False,
    ),
    "rows of all ranks that tasks have named": Irregular(
        """
kernel gathered(a: i32[M], X: bf16[T, N].shard(0), rows: i32[M].scratch(), n: i32[1].scratch(), Y: bf16[M, N]):
    for m in tasks(blocks(M, 16)):
        rows[m] = a[m] % T
    n[0] = M // 2
    for m, c in tasks(blocks(M, 16, stop=min(n[0], M)), blocks(N, 64)):
        Y[m, c] = gather(X, rows[m], c)
""",
        fixed({"M": 40, "T": 12, "N": 23}, {"M": 900, "T": 200, "N": 72}),
        _gathered,
        alone=False,
    ),
}


def _received(i: Arrays, ranks: int) -> Arrays:
    return {"Z": np.swapaxes(below(i["count"], f64(i["X"]) * 2), 0, 1)}


def _multiplied(i: Arrays, ranks: int) -> Arrays:
    products = np.einsum("srph,thn->tsrpn", f64(i["X"]), f64(i["W"]))
    return {"Z": each(ranks, lambda t: below(i["count"][:, t], products[t, :, t]))}


def _shortened(i: Arrays, ranks: int) -> Arrays:
    return {"Z": below(i["a"] % (i["P"] + 1), f64(i["X"]) * 2)}


BY_HAND = {
    "counts that a communicator sends": Irregular(
        """
kernel sent(count: i32[ranks], X: bf16[ranks, P, H], got: i32[ranks].symmetric().scratch(),
            G: bf16[ranks, P, H].symmetric().scratch(), Z: bf16[ranks, P, H],
            told: signal[ranks], ready: signal[ranks]):
    with role(communicator):
        for r in ring():
            store(got.at(r)[rank], count[r])
            signal(told.at(r)[rank], 1)
        for r in tasks(ranks):
            for p, h in tasks(blocks(P, 16, stop=count[r]), blocks(H, 64)):
                store(G.at(r)[rank, p, h], X[r, p, h])
                signal(ready.at(r)[rank], 1)
    with role(consumer):
        for r in ring():
            wait(told[r], 1)
            wait(ready[r], len(blocks(P, 16, stop=got[r])) * len(blocks(H, 64)))
            for p, h in tasks(blocks(P, 16, stop=got[r]), blocks(H, 64)):
                Z[r, p, h] = G[r, p, h] * 2.0
""",
        fixed({"P": 21, "H": 37}, {"P": 300, "H": 264}),
        _received,
        alone=False,
    ),
    "rows that a communicator sends, multiplied": Irregular(
        """
kernel multiplied(count: i32[ranks], X: bf16[ranks, P, H], W: bf16[H, N], got: i32[ranks].symmetric().scratch(),
                  G: bf16[ranks, P, H].symmetric().scratch(), Z: bf16[ranks, P, N], ready: signal[ranks]):
    with role(communicator, sms=4):
        for r in tasks(ranks):
            store(got.at(r)[rank], count[r])
        for r in tasks(ranks):
            for p in blocks(P, 16, stop=count[r]):
                for h in blocks(H, 64):
                    store(G.at(r)[rank, p, h], X[r, p, h])
        for r in ring():
            signal(ready.at(r)[rank], 1)
    with role(consumer):
        for r in ring():
            wait(ready[r], 1)
            for p, n in tasks(blocks(P, 16, stop=got[r]), blocks(N, 64)):
                acc = zeros(f32, p, n)
                for h in blocks(H, 64):
                    acc += G[r, p, h] @ W[h, n]
                Z[r, p, n] = acc
""",
        fixed({"P": 21, "H": 37, "N": 23}, {"P": 300, "H": 264, "N": 136}),
        _multiplied,
        alone=False,
    ),
    "counts of another role": Irregular(
        """
kernel shortened(a: i32[E], X: f32[E, P], n: i32[E].scratch(), Z: f32[E, P], told: signal[1]):
    with role(communicator):
        for e in tasks(blocks(E, 16)):
            n[e] = a[e] % (P + 1)
        signal(told.at(rank)[0], 1)
    with role(consumer):
        wait(told[0], 1)
        for e in tasks(E):
            for p in tasks(blocks(P, 16, stop=n[e])):
                Z[e, p] = X[e, p] * 2.0
""",
        fixed({"E": 5, "P": 41}, {"E": 70, "P": 300}),
        _shortened,
        alone=False,
    ),
}
"""Roles that an author wrote, which go by counts of other roles."""


def _sometimes(i: Arrays, ranks: int) -> Arrays:
    return {"C": (f64(i["A"]) * (i["on"] > 50)[..., None]).sum(0)}


def _either(i: Arrays, ranks: int) -> Arrays:
    first, second = (i["on"] > 50).T
    times = np.where(first, 1 + 2 * second, 4)
    return {"C": (f64(i["A"]) @ f64(i["B"]) * times[:, None, None]).sum(0)}


def _some_of_a_loop(i: Arrays, ranks: int) -> Arrays:
    return {"C": (f64(i["A"]) * (i["on"] > 50)[..., None, None]).sum((0, 1))}


IN_BRANCHES = {
    "sums that a flag leaves out": Irregular(
        """
kernel sometimes(A: bf16[M, N], on: i32[1], C: f32[M, N].shard(0)):
    for m, n in tasks(blocks(M, 16), blocks(N, 32)):
        if on[0] > 50:
            C[m, n] += A[m, n]
""",
        fixed({"M": 40, "N": 23}, {"M": 300, "N": 264}),
        _sometimes,
        alone=False,
    ),
    "sums of either side": Irregular(
        """
kernel either(A: bf16[M, K], B: bf16[K, N], on: i32[2], C: f32[M, N].replicate()):
    for m, n in tasks(blocks(M, 64), blocks(N, 64)):
        acc = zeros(f32, m, n)
        for k in blocks(K, 64):
            acc += A[m, k] @ B[k, n]
        if on[0] > 50:
            C[m, n] += acc
            if on[1] > 50:
                C[m, n] += acc * 2.0
        else:
            C[m, n] += acc * 4.0
""",
        fixed({"M": 40, "N": 23, "K": 37}, {"M": 300, "N": 264, "K": 136}),
        _either,
        alone=False,
    ),
    "sums that a loop leaves out": Irregular(
        """
kernel some(A: bf16[H, M, N], on: i32[H], C: f32[M, N].shard(0)):
    for m, n in tasks(blocks(M, 16), blocks(N, 32)):
        for h in range(H):
            if on[h] > 50:
                C[m, n] += A[h, m, n]
""",
        fixed({"M": 40, "N": 23, "H": 4}, {"M": 300, "N": 264, "H": 9}),
        _some_of_a_loop,
        alone=False,
    ),
}
"""Sums over ranks to which tasks contribute if memory says so."""
