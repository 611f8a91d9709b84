"""Programs that store, or add, where tables name rows or elements: caches, permutations, sorted tokens, exchanges. Each
with sizes and a formula."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import pairwise

import numpy as np

from tests.irregular import Arrays, Irregular, each, f64, fixed


def _put(shape: tuple[int, ...], rows: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Rows of an array, NaN where none is put; negative ones are left out."""
    found = np.full(shape, np.nan)
    found[rows[rows >= 0]] = values[rows >= 0]
    return found


def _appended(i: Arrays, ranks: int) -> Arrays:
    return {"C": each(ranks, lambda r: _put((i["P"], i["H"]), i["slot"][r], f64(i["X"])[r]))}


def _paged(i: Arrays, ranks: int) -> Arrays:
    def of(r: int) -> np.ndarray:
        return _put((i["P"] * 16, i["G"], 64), i["slot"][r], f64(i["X"])[r]).reshape(i["P"], 16, i["G"], 64)

    return {"C": each(ranks, of)}


def _by_pages(i: Arrays, ranks: int) -> Arrays:
    found = np.full((ranks, i["P"], 16, i["H"]), np.nan)
    for r, b, s in np.ndindex(ranks, i["B"], i["S"]):
        page = i["page"][r, b, s // 16]
        if page >= 0:
            found[r, page, s % 16] = f64(i["X"])[r, b, s]
    return {"C": found}


def _behind(i: Arrays, ranks: int) -> Arrays:
    found = np.full((ranks, i["B"], i["T"], i["H"]), np.nan)
    for r, b, s in np.ndindex(ranks, i["B"], i["S"]):
        if i["length"][r, b] + s < i["T"]:
            found[r, b, i["length"][r, b] + s] = f64(i["X"])[r, b, s]
    return {"C": found}


def _columns(i: Arrays, ranks: int) -> Arrays:
    return {"Y": each(ranks, lambda r: _put((i["P"], i["M"]), i["to"][r], f64(i["X"])[r].T).T)}


def _inverse(i: Arrays, ranks: int) -> Arrays:
    return {"q": each(ranks, lambda r: _put((i["N"],), i["p"][r], np.arange(i["T"])))}


def _added(i: Arrays, ranks: int) -> Arrays:
    found = np.zeros((ranks, i["P"], i["N"]))
    for r in range(ranks):
        to = i["to"][r]
        np.add.at(found[r], to[to >= 0], f64(i["X"])[r][to >= 0])
    return {"Y": found}


def _products(i: Arrays, ranks: int) -> Arrays:
    products = f64(i["A"]) @ f64(i["B"])
    return {"Y": each(ranks, lambda r: _put((i["P"], i["N"]), i["to"][r], products[r]))}


def _unsorted(i: Arrays, ranks: int) -> Arrays:
    def of(r: int) -> np.ndarray:
        seen = np.arange(i["P"]) < i["count"][r][:, None]
        rows = np.where(seen, i["row"][r], -1).ravel()
        return _put((i["T"], i["N"]), rows, f64(i["X"])[r].reshape(-1, i["N"]))

    return {"Y": each(ranks, of)}


def _permuted(i: Arrays, ranks: int) -> Arrays:
    shape = (i["T"], i["N"])
    return {"Y": _put(shape, i["to"].ravel(), 2 * f64(i["X"]).reshape(-1, i["N"]))}


def _sent(i: Arrays, ranks: int) -> Arrays:
    def of(r: int) -> np.ndarray:
        sent = [_put((i["P"], i["H"]), i["to"][s, r], f64(i["X"])[s]) for s in range(ranks)]
        return np.stack(sent)

    return {"Y": each(ranks, of)}


def _dispatched(i: Arrays, ranks: int) -> Arrays:
    found = np.full((ranks, ranks, i["P"], i["H"]), np.nan)
    for r, t in np.ndindex(ranks, i["T"]):
        if i["slot"][r, t] >= 0:
            found[i["dest"][r, t] % ranks, r, i["slot"][r, t]] = 2 * f64(i["X"])[r, t]
    return {"Y": found}


def _sums(i: Arrays, ranks: int, entries: Callable[[int], Iterable[tuple[int, ...]]]) -> Arrays:
    """Sums of the rows of each rank's entries."""
    found = np.zeros((i["T"], i["N"]))
    for r in range(ranks):
        for entry in entries(r):
            if i["to"][r][entry] >= 0:
                found[i["to"][r][entry]] += f64(i["X"])[r][entry]
    return {"O": found}


def _counted_sums(i: Arrays, ranks: int) -> Arrays:
    return _sums(i, ranks, lambda r: [(e, p) for e, n in enumerate(i["count"][r]) for p in range(n)])


def _bounded_sums(i: Arrays, ranks: int) -> Arrays:
    return _sums(i, ranks, lambda r: [(p,) for ends in pairwise(i["ends"][r].tolist()) for p in range(*ends)])


def _sums_of_shards(i: Arrays, ranks: int) -> Arrays:
    length = -(-i["P"] // ranks)
    whole = i | {"X": np.stack([i["X"]] * ranks), "to": np.broadcast_to(i["to"], (ranks, i["P"]))}
    return _sums(whole, ranks, lambda r: [(p,) for p in range(r * length, min((r + 1) * length, i["P"]))])


def _sums_of_all_shards(i: Arrays, ranks: int) -> Arrays:
    return {"O": ranks * np.asarray(_sums_of_shards(i, ranks)["O"])}


def _followed(i: Arrays, ranks: int) -> Arrays:
    """The row behind each, where there is one, is looked up twice; what names no row is left out."""
    found = np.zeros((i["T"], i["N"]))
    for r in range(ranks):
        for p in range(i["P"] - 1):
            to = i["to"][r, p + 1]
            if 0 <= to < i["K"]:
                row = i["row"][r, to]
                found[row] += f64(i["X"])[r, p] * (row >= 0)
    return {"O": found}


SCATTERED = {
    "tiles of rows appended to a cache": Irregular(
        """
kernel append(slot: i32[T], X: bf16[T, H], C: bf16[P, H]):
    for t, h in tasks(blocks(T, 32), blocks(H, 64)):
        C[slot[t], h] = X[t, h]
""",
        fixed({"T": 37, "P": 50, "H": 23}, {"T": 1000, "P": 1100, "H": 136}),
        _appended,
    ),
    "rows of 8 bits": Irregular(
        """
kernel append(slot: i32[T], X: e4m3[T, H], C: e4m3[P, H]):
    for t, h in tasks(blocks(T, 32), blocks(H, 64)):
        C[slot[t], h] = X[t, h]
""",
        fixed({"T": 37, "P": 50, "H": 23}, {"T": 1000, "P": 1100, "H": 144}),
        _appended,
    ),
    "slots of pages": Irregular(
        """
kernel paged(slot: i32[T], X: f16[T, G, 64], C: f16[P, 16, G, 64]):
    for t, g in tasks(blocks(T, 32), blocks(G, 2)):
        C[slot[t] // 16, slot[t] % 16, g, :] = X[t, g, :]
""",
        fixed({"T": 37, "P": 5, "G": 3}, {"T": 1000, "P": 70, "G": 4}, {"T": 50000, "P": 3200, "G": 4}),
        _paged,
    ),
    "pages that a table names": Irregular(
        """
kernel pages(page: i32[B, J], X: bf16[B, S, H], C: bf16[P, 16, H]):
    for b, s, h in tasks(B, blocks(S, 32), blocks(H, 64)):
        C[page[b, positions(s) // 16], positions(s) % 16, h] = X[b, s, h]
""",
        fixed({"B": 3, "J": 3, "S": 41, "P": 11, "H": 23}, {"B": 20, "J": 10, "S": 150, "P": 220, "H": 136}),
        _by_pages,
    ),
    "rows behind those that are there": Irregular(
        """
kernel behind(length: i32[B], X: bf16[B, S, H], C: bf16[B, T, H]):
    for b, s, h in tasks(B, blocks(S, 16), blocks(H, 64)):
        C[b, length[b] + s, h] = X[b, s, h]
""",
        fixed({"B": 3, "S": 21, "T": 40, "H": 23}, {"B": 30, "S": 100, "T": 300, "H": 136}),
        _behind,
    ),
    "columns that a table names": Irregular(
        """
kernel columns(to: i32[N], X: f32[M, N], Y: f32[M, P]):
    for m, n in tasks(blocks(M, 32), blocks(N, 64)):
        Y[m, to[n]] = X[m, n]
""",
        fixed({"M": 37, "N": 50, "P": 60}, {"M": 300, "N": 500, "P": 700}),
        _columns,
    ),
    "an inverse permutation, by blocks": Irregular(
        """
kernel inverse(p: i32[T], q: i32[N]):
    for t in tasks(blocks(T, 64)):
        q[p[t]] = positions(t)
""",
        fixed({"T": 29, "N": 30}, {"T": 1000, "N": 1000}),
        _inverse,
    ),
    "rows added to an array of one's own, which is zero at first": Irregular(
        """
kernel added(to: i32[T], X: f32[T, N], Y: f32[P, N]):
    schedule(deterministic=False)
    for p, n in tasks(blocks(P, 32), blocks(N, 64)):
        Y[p, n] = zeros(f32, p, n)
    for t, n in tasks(blocks(T, 32), blocks(N, 64)):
        store_add(Y[to[t], n], X[t, n])
""",
        fixed({"T": 37, "N": 23, "P": 10}, {"T": 1000, "N": 136, "P": 100}),
        _added,
    ),
    "rows of products": Irregular(
        """
kernel products(to: i32[M], A: bf16[M, K], B: bf16[K, N], Y: f32[P, N]):
    for m, n in tasks(blocks(M, 64), blocks(N, 64)):
        acc = zeros(f32, m, n)
        for k in blocks(K, 64):
            acc += A[m, k] @ B[k, n]
        Y[to[m], n] = acc
""",
        fixed({"M": 37, "K": 90, "N": 23, "P": 40}, {"M": 500, "K": 264, "N": 136, "P": 600}),
        _products,
    ),
    "sorted rows put back": Irregular(
        """
kernel unsort(count: i32[E], row: i32[E, P], X: bf16[E, P, N], Y: f32[T, N]):
    for e in tasks(E):
        for p, n in tasks(blocks(P, 32, stop=count[e]), blocks(N, 64)):
            Y[row[e, p], n] = X[e, p, n]
""",
        fixed({"E": 3, "P": 40, "N": 23, "T": 150}, {"E": 8, "P": 200, "N": 136, "T": 2000}),
        _unsorted,
    ),
    "rows to their owners": Irregular(
        """
kernel permuted(to: i32[M], X: f32[M, N], Y: bf16[T, N].shard(0)):
    for m, n in tasks(blocks(M, 32), blocks(N, 64)):
        Y[to[m], n] = X[m, n] * 2.0
""",
        fixed({"M": 21, "N": 23, "T": 70}, {"M": 300, "N": 136, "T": 1300}),
        _permuted,
        alone=False,
    ),
    "rows to all ranks": Irregular(
        """
kernel told(to: i32[M], X: f32[M, N], Y: bf16[T, N].replicate()):
    for m, n in tasks(blocks(M, 32), blocks(N, 64)):
        Y[to[m], n] = X[m, n] * 2.0
""",
        fixed({"M": 21, "N": 23, "T": 70}, {"M": 300, "N": 136, "T": 1300}),
        _permuted,
        alone=False,
    ),
    "rows to the ranks that a table names": Irregular(
        """
kernel dispatched(dest: i32[T], slot: i32[T], X: bf16[T, H], Y: bf16[ranks, P, H].symmetric()):
    for t, h in tasks(blocks(T, 32), blocks(H, 64)):
        Y.at(dest[t] % ranks)[rank, slot[t], h] = X[t, h] * 2.0
""",
        fixed({"T": 37, "P": 41, "H": 23}, {"T": 700, "P": 800, "H": 136}),
        _dispatched,
        alone=False,
    ),
    "rows to places on each rank": Irregular(
        """
kernel sent(to: i32[ranks, T], X: bf16[T, H], Y: bf16[ranks, P, H].symmetric()):
    for r, t, h in tasks(ranks, blocks(T, 32), blocks(H, 64)):
        Y.at(r)[rank, to[r, t], h] = X[t, h]
""",
        fixed({"T": 37, "P": 41, "H": 23}, {"T": 700, "P": 800, "H": 136}),
        _sent,
        alone=False,
    ),
    "sums of rows one by one, as many as memory says": Irregular(
        """
kernel summed(X: bf16[E, P, N], to: i32[E, P], count: i32[E], O: f32[T, N].shard(0)):
    for e, n in tasks(E, blocks(N, 64)):
        for p in range(count[e]):
            if to[e, p] >= 0:
                O[to[e, p], n] += X[e, p, n]
""",
        fixed({"E": 3, "P": 11, "N": 23, "T": 17}, {"E": 8, "P": 70, "N": 136, "T": 300}),
        _counted_sums,
        alone=False,
    ),
    "sums of blocks of one row, as many as memory says": Irregular(
        """
kernel summed(X: f32[E, P, N], to: i32[E, P], count: i32[E], O: f32[T, N].replicate()):
    for n in tasks(blocks(N, 64)):
        for e in range(E):
            for p in blocks(P, 1, stop=count[e]):
                O[to[e, p], n] += X[e, p, n]
""",
        fixed({"E": 3, "P": 11, "N": 23, "T": 17}, {"E": 5, "P": 30, "N": 136, "T": 100}),
        _counted_sums,
        alone=False,
    ),
    "sums of rows one by one, of ragged lists": Irregular(
        """
kernel summed(X: f32[P, N], to: i32[P], ends: i32[S], O: f32[T, N].shard(0)):
    for s, n in tasks(S - 1, blocks(N, 64)):
        for p in range(ends[s], ends[s + 1]):
            O[to[p], n] += X[p, n]
""",
        fixed({"S": 4, "P": 29, "N": 23, "T": 17}, {"S": 9, "P": 300, "N": 136, "T": 100}),
        _bounded_sums,
        alone=False,
    ),
    "sums of the rows of each rank's shard": Irregular(
        """
kernel summed(X: f32[P, N].shard(0), to: i32[P].shard(0), O: f32[T, N].replicate()):
    for p, n in tasks(blocks(P, 32, of=rank), blocks(N, 64)):
        O[to[p], n] += X[p, n]
""",
        fixed({"P": 37, "N": 23, "T": 17}, {"P": 1000, "N": 136, "T": 300}),
        _sums_of_shards,
        alone=False,
    ),
    "sums of rows of all shards, on every rank": Irregular(
        """
kernel summed(X: f32[P, N].shard(0), to: i32[P].shard(0), O: f32[T, N].shard(0)):
    for p, n in tasks(blocks(P, 32), blocks(N, 64)):
        O[to[p], n] += X[p, n]
""",
        fixed({"P": 37, "N": 23, "T": 17}, {"P": 1000, "N": 136, "T": 300}),
        _sums_of_all_shards,
        alone=False,
    ),
    "sums of rows that a condition keeps inside of tables": Irregular(
        """
kernel summed(X: f32[P, N], to: i32[P], row: i32[K], O: f32[T, N].shard(0)):
    for p, n in tasks(P, blocks(N, 64)):
        if p + 1 < P:
            if to[p + 1] >= 0:
                if to[p + 1] < K:
                    O[row[to[p + 1]], n] += X[p, n]
""",
        fixed({"P": 29, "N": 23, "K": 11, "T": 17}, {"P": 300, "N": 136, "K": 200, "T": 100}),
        _followed,
        alone=False,
    ),
}
