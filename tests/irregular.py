"""Programs whose indices, bounds and conditions memory has: ragged lists, tables, pages, permutations, and counts that
earlier tasks of the same kernel have written. Each with its sizes and with a formula of its own in float64."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

Arrays = dict[str, Any]
Dims = dict[str, int]
Formula = Callable[[Arrays, int], Arrays]
"""From arrays and dimensions, by the number of ranks, to what is written; NaN elsewhere. Arrays that are private or
symmetric have a leading axis of ranks."""


@dataclass(frozen=True)
class Irregular:
    """A program; its sizes by the number of ranks, small and ragged first; `alone` if no rank waits for another."""

    text: str
    sizes: Callable[[int], Sequence[Dims]]
    formula: Formula
    alone: bool = True


def f64(array: Any) -> np.ndarray:
    return np.asarray(array).astype(np.float64)


def each(ranks: int, of: Callable[[int], Any]) -> np.ndarray:
    return np.stack([of(rank) for rank in range(ranks)])


def below(count: Any, rows: np.ndarray) -> np.ndarray:
    """The first rows, NaN behind them; `count` has the leading axes."""
    seen = np.arange(rows.shape[np.ndim(count)]) < np.asarray(count)[..., None]
    return np.where(seen.reshape(*seen.shape, *[1] * (rows.ndim - seen.ndim)), rows, np.nan)


def lists(offsets: Any) -> list[tuple[int, slice]]:
    return [(number, slice(*ends)) for number, ends in enumerate(pairwise(offsets))]


def fixed(*sizes: Dims) -> Callable[[int], Sequence[Dims]]:
    return lambda ranks: sizes


# Ragged lists


def _sparse_rows(i: Arrays, ranks: int) -> Arrays:
    def of(r: int) -> Any:
        entries = f64(i["value"])[r][:, None] * f64(i["B"])[r][i["column"][r]]
        return np.stack([entries[part].sum(0) for _, part in lists(i["ptr"][r])])

    return {"Y": each(ranks, of)}


def _greatest(i: Arrays, ranks: int) -> Arrays:
    def of(r: int) -> Any:
        return np.stack([f64(i["X"])[r][part].max(0, initial=-100.0) for _, part in lists(i["ptr"][r])])

    return {"Y": each(ranks, of)}


def _bags(i: Arrays, ranks: int) -> Arrays:
    def of(r: int) -> Any:
        rows = f64(i["W"])[r][i["index"][r]]
        return np.stack([rows[part].sum(0) / max(1, len(rows[part])) for _, part in lists(i["offset"][r])])

    return {"Y": each(ranks, of)}


def _softmax_of_lists(i: Arrays, ranks: int) -> Arrays:
    found = np.full(i["X"].shape, np.nan)
    for r in range(ranks):
        for _, part in lists(i["ptr"][r]):
            e = np.exp(f64(i["X"])[r][part])
            found[r][part] = e / e.sum()
    return {"Y": found}


def _products_of_lists(i: Arrays, ranks: int) -> Arrays:
    def of(r: int) -> Any:
        a, b = f64(i["A"])[r], f64(i["B"])[r]
        return np.stack([a[:, part] @ b[part] for _, part in lists(i["offset"][r])])

    return {"C": each(ranks, of)}


def _adapters(i: Arrays, ranks: int) -> Arrays:
    found = np.full((ranks, i["T"], i["N"]), np.nan)
    for r in range(ranks):
        for group, part in lists(i["offset"][r]):
            which = i["which"][r, group]
            found[r][part] = f64(i["X"])[r][part] @ f64(i["A"])[r, which] @ f64(i["B"])[r, which]
    return {"Y": found}


def _padded(i: Arrays, ranks: int) -> Arrays:
    found = np.zeros((ranks, i["B"], i["S"], i["H"]))
    for r in range(ranks):
        for b, part in lists(i["first"][r]):
            rows = f64(i["X"])[r][part][: i["S"]]
            found[r, b, : len(rows)] = rows
    return {"Y": found}


RAGGED = {
    "sparse rows": Irregular(
        """
kernel sparse(ptr: i32[Q], column: i32[Z], value: f32[Z], B: bf16[K, N], Y: f32[M, N]):
    for m, n in tasks(M, blocks(N, 64)):
        acc = zeros(f32, n)
        for z in range(ptr[m], ptr[m + 1]):
            acc += value[z] * B[column[z], n]
        Y[m, n] = acc
""",
        fixed({"M": 5, "Q": 6, "K": 9, "Z": 23, "N": 21}, {"M": 300, "Q": 301, "K": 77, "Z": 2500, "N": 136}),
        _sparse_rows,
    ),
    "the greatest of lists": Irregular(
        """
kernel greatest(ptr: i32[Q], X: bf16[T, H], Y: f32[S, H]):
    for s, h in tasks(S, blocks(H, 64)):
        top = full(f32, -100.0, h)
        for t in range(ptr[s], ptr[s + 1]):
            top = max(top, X[t, h])
        Y[s, h] = top
""",
        fixed({"S": 5, "Q": 6, "T": 41, "H": 23}, {"S": 200, "Q": 201, "T": 1500, "H": 136}),
        _greatest,
    ),
    "means of bags": Irregular(
        """
kernel bags(offset: i32[Q], index: i32[L], W: bf16[V, H], Y: f32[B, H]):
    for b, h in tasks(B, blocks(H, 128)):
        acc = zeros(f32, h)
        for l in range(offset[b], offset[b + 1]):
            acc += W[index[l], h]
        Y[b, h] = acc / cast(max(offset[b + 1] - offset[b], 1), f32)
""",
        fixed({"B": 4, "Q": 5, "L": 17, "V": 11, "H": 37}, {"B": 150, "Q": 151, "L": 900, "V": 333, "H": 264}),
        _bags,
    ),
    "softmax of lists": Irregular(
        """
kernel softmax(ptr: i32[Q], X: f32[T], Y: f32[T]):
    for s in tasks(Q - 1):
        top = full(f32, -inf)
        for t in blocks(T, 64, start=ptr[s], stop=ptr[s + 1]):
            top = max(top, rowmax(X[t]))
        total = 0.0
        for t in blocks(T, 64, start=ptr[s], stop=ptr[s + 1]):
            total += rowsum(exp(X[t] - top))
        for t in blocks(T, 64, start=ptr[s], stop=ptr[s + 1]):
            Y[t] = exp(X[t] - top) / total
""",
        fixed({"Q": 6, "T": 41}, {"Q": 200, "T": 6001}),
        _softmax_of_lists,
    ),
    "products that sum over lists": Irregular(
        """
kernel products(offset: i32[Q], A: bf16[M, K], B: bf16[K, N], C: f32[G, M, N]):
    for g, m, n in tasks(G, blocks(M, 64), blocks(N, 64)):
        acc = zeros(f32, m, n)
        for k in blocks(K, 64, start=offset[g], stop=offset[g + 1]):
            acc += A[m, k] @ B[k, n]
        C[g, m, n] = acc
""",
        fixed({"G": 3, "Q": 4, "M": 19, "K": 90, "N": 23}, {"G": 9, "Q": 10, "M": 130, "K": 1000, "N": 264}),
        _products_of_lists,
    ),
    "adapters of groups": Irregular(
        """
kernel adapters(offset: i32[Q], which: i32[G], X: bf16[T, H], A: bf16[L, H, 16], B: bf16[L, 16, N], Y: bf16[T, N]):
    for g in tasks(G):
        for t, n in tasks(blocks(T, 64, start=offset[g], stop=offset[g + 1]), blocks(N, 64)):
            low = zeros(f32, t, 16)
            for h in blocks(H, 64):
                low += X[t, h] @ A[which[g], h, :]
            Y[t, n] = cast(low, bf16) @ B[which[g], :, n]
""",
        fixed(
            {"G": 3, "Q": 4, "T": 50, "H": 23, "N": 37, "L": 5},
            {"G": 20, "Q": 21, "T": 900, "H": 264, "N": 136, "L": 7},
        ),
        _adapters,
    ),
    "rows behind a first one, padded": Irregular(
        """
kernel padded(first: i32[Q], X: bf16[T, H], Y: bf16[B, S, H]):
    for b, s, h in tasks(B, blocks(S, 32), blocks(H, 64)):
        at = first[b] + positions(s)
        Y[b, s, h] = gather(X, where(at < first[b + 1], at, -1), h)
""",
        fixed({"B": 3, "Q": 4, "T": 30, "H": 23, "S": 12}, {"B": 50, "Q": 51, "T": 500, "H": 136, "S": 100}),
        _padded,
    ),
}


# Tables, pages, permutations


def _attended(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
    if len(k) == 0:
        return np.zeros(q.shape)
    s = q @ k.T * 0.125
    p = np.exp(s - s.max(1, keepdims=True))
    return p / p.sum(1, keepdims=True) @ v


def _pages(i: Arrays, ranks: int) -> Arrays:
    def of(r: int, b: int) -> Any:
        named = i["page"][r, b]
        k, v = (f64(i[name])[r][named] * (named >= 0)[:, None, None] for name in "KV")
        k, v = (rows.reshape(-1, 64)[: i["length"][r, b]] for rows in (k, v))
        return _attended(f64(i["Q"])[r, b], k, v)

    return {"O": each(ranks, lambda r: np.stack([of(r, b) for b in range(i["B"])]))}


def _flat(i: Arrays, ranks: int) -> Arrays:
    def of(r: int, b: int) -> Any:
        page = i["page"][r, b]
        rows = f64(i["C"])[r].reshape(-1, 32, i["D"])[page] * (page >= 0)[:, None, None] * 2
        return rows.reshape(-1, i["D"])[: i["T"]]

    return {"Y": each(ranks, lambda r: below(i["length"][r], np.stack([of(r, b) for b in range(i["B"])])))}


def _listed_blocks(i: Arrays, ranks: int) -> Arrays:
    found = np.zeros((ranks, i["S"], 64))
    for r in range(ranks):
        for a in range(-(-i["S"] // 16)):
            listed = i["which"][r, a, : i["count"][r, a]]
            keys = [np.arange(w * 16, min(i["T"], w * 16 + 16)) for w in listed]
            picked = np.concatenate([np.array([], int), *keys])
            rows = slice(a * 16, a * 16 + 16)
            found[r][rows] = _attended(f64(i["Q"])[r][rows], f64(i["K"])[r][picked], f64(i["V"])[r][picked])
    return {"O": found}


def _inverse(i: Arrays, ranks: int) -> Arrays:
    found = np.full((ranks, i["N"]), np.nan)
    for r in range(ranks):
        found[r][i["p"][r]] = np.arange(i["T"])
    return {"q": found}


def _appended(i: Arrays, ranks: int) -> Arrays:
    found = np.full((ranks, i["P"], i["H"]), np.nan)
    for r in range(ranks):
        kept = i["slot"][r] != 3
        found[r][i["slot"][r][kept]] = f64(i["X"])[r][kept]
    return {"C": found}


def _up_to(i: Arrays, ranks: int) -> Arrays:
    return {"Y": below(i["n"][:, 0], f64(i["X"]) * 3)}


TABLES = {
    "attention of pages": Irregular(
        """
kernel pages(length: i32[B], page: i32[B, J], Q: bf16[B, H, 64], K: bf16[P, 16, 64], V: bf16[P, 16, 64],
             O: bf16[B, H, 64]):
    for b, h in tasks(B, blocks(H, 16)):
        m = full(f32, -1e30, h)
        d = zeros(f32, h)
        acc = zeros(f32, h, 64)
        for j in range((length[b] + 15) // 16):
            s = Q[b, h, :] @ K[page[b, j]].T * 0.125
            s = where(positions(16) < length[b] - j * 16, s, -inf)
            top = max(m, rowmax(s))
            p = exp(s - top)
            a = exp(m - top)
            d = d * a + rowsum(p)
            acc = acc * a + cast(p, bf16) @ V[page[b, j]]
            m = top
        O[b, h, :] = acc / max(d, 1e-30)
""",
        fixed({"B": 3, "H": 5, "P": 7, "J": 3}, {"B": 40, "H": 20, "P": 99, "J": 12}),
        _pages,
    ),
    "attention of pages, by positions": Irregular(
        """
kernel positioned(length: i32[B], page: i32[B, J], Q: bf16[B, H, 64], K: bf16[P, 16, 64], V: bf16[P, 16, 64],
                  O: bf16[B, H, 64]):
    for b, h in tasks(B, blocks(H, 16)):
        m = full(f32, -1e30, h)
        d = zeros(f32, h)
        acc = zeros(f32, h, 64)
        for j in range((length[b] + 31) // 32):
            at = j * 32 + positions(32)
            named = page[b, at // 16]
            s = where(at < length[b], Q[b, h, :] @ K[named, at % 16, :].T * 0.125, -inf)
            top = max(m, rowmax(s))
            p = exp(s - top)
            a = exp(m - top)
            d = d * a + rowsum(p)
            acc = acc * a + cast(p, bf16) @ V[named, at % 16, :]
            m = top
        O[b, h, :] = acc / max(d, 1e-30)
""",
        fixed({"B": 3, "H": 5, "P": 7, "J": 4}, {"B": 40, "H": 20, "P": 99, "J": 12}),
        _pages,
    ),
    "attention of pages, by blocks": Irregular(
        """
kernel cached(length: i32[B], page: i32[B, J], Q: bf16[B, H, 64], K: bf16[P, 16, 64], V: bf16[P, 16, 64],
              O: bf16[B, H, 64], T: const = 64):
    for b, h in tasks(B, blocks(H, 16)):
        m = full(f32, -1e30, h)
        d = zeros(f32, h)
        acc = zeros(f32, h, 64)
        for t in blocks(T, 64, stop=length[b]):
            s = Q[b, h, :] @ K[page[b, t // 16], t % 16].T * 0.125
            top = max(m, rowmax(s))
            p = exp(s - top)
            a = exp(m - top)
            d = d * a + rowsum(p)
            acc = acc * a + cast(p, bf16) @ V[page[b, t // 16], t % 16]
            m = top
        O[b, h, :] = acc / max(d, 1e-30)
""",
        fixed({"B": 3, "H": 5, "P": 7, "J": 4}, {"B": 40, "H": 20, "P": 99, "J": 12}),
        _pages,
    ),
    "rows of a flat cache": Irregular(
        """
kernel flat(length: i32[B], page: i32[B, J], C: f32[R, D], Y: f32[B, T, D]):
    for b in tasks(B):
        for t, d in tasks(blocks(T, 64, stop=length[b]), blocks(D, 64)):
            Y[b, t, d] = C[page[b, t // 32] * 32 + t % 32, d] * 2.0
""",
        fixed({"B": 3, "J": 4, "R": 7 * 32, "T": 128, "D": 36}, {"B": 40, "J": 12, "R": 99 * 32, "T": 384, "D": 200}),
        _flat,
    ),
    "attention of listed blocks": Irregular(
        """
kernel listed(count: i32[A], which: i32[A, J], Q: bf16[S, 64], K: bf16[T, 64], V: bf16[T, 64], O: bf16[S, 64]):
    for i in tasks(A):
        for q in tasks(blocks(S, 16, start=i * 16, stop=i * 16 + 16)):
            m = full(f32, -1e30, q)
            d = zeros(f32, q)
            acc = zeros(f32, q, 64)
            for j in range(count[i]):
                for t in blocks(T, 16, start=which[i, j] * 16, stop=which[i, j] * 16 + 16):
                    s = Q[q, :] @ K[t, :].T * 0.125
                    top = max(m, rowmax(s))
                    p = exp(s - top)
                    a = exp(m - top)
                    d = d * a + rowsum(p)
                    acc = acc * a + cast(p, bf16) @ V[t, :]
                    m = top
            O[q, :] = acc / max(d, 1e-30)
""",
        fixed({"A": 3, "J": 4, "S": 40, "T": 60}, {"A": 50, "J": 9, "S": 793, "T": 1000}),
        _listed_blocks,
    ),
    "an inverse permutation": Irregular(
        """
kernel inverse(p: i32[T], q: i32[N]):
    for t in tasks(T):
        q[p[t]] = t
""",
        fixed({"T": 29, "N": 30}, {"T": 1000, "N": 1000}),
        _inverse,
    ),
    "rows appended to a cache": Irregular(
        """
kernel append(slot: i32[T], X: bf16[T, H], C: bf16[P, H]):
    for t, h in tasks(T, blocks(H, 64)):
        if slot[t] != 3:
            C[slot[t], h] = X[t, h]
""",
        fixed({"T": 17, "P": 20, "H": 23}, {"T": 300, "P": 512, "H": 136}),
        _appended,
    ),
    "a list that ends where memory says": Irregular(
        """
kernel up_to(n: i32[1], X: f32[T, H], Y: f32[T, H]):
    for t, h in tasks(blocks(T, 16, stop=n[0]), blocks(H, 64)):
        Y[t, h] = X[t, h] * 3.0
""",
        fixed({"T": 21, "H": 23}, {"T": 700, "H": 136}),
        _up_to,
    ),
}


# Over ranks


def _sent(i: Arrays, ranks: int) -> Arrays:
    return {"Y": np.swapaxes(below(i["count"], f64(i["X"])), 0, 1)}


def _sums_of_a_part(i: Arrays, ranks: int) -> Arrays:
    total = f64(i["X"]).sum(0)

    def of(r: int) -> Any:
        at = np.arange(i["T"])
        seen = (at >= i["offset"][r, r]) & (at < i["offset"][r, r + 1])
        return np.where(seen[:, None], total, np.nan)

    return {"Y": each(ranks, of)}


def _messages(i: Arrays, ranks: int) -> Arrays:
    found = np.zeros((i["V"], i["N"]))
    for r in range(ranks):
        rows, to = f64(i["X"])[r], i["to"][r]
        source = i["source"][r]
        sent = np.where(source[:, None] >= 0, rows[source], 0) * f64(i["weight"])[r][:, None]
        np.add.at(found, to[to >= 0], sent[to >= 0])
    return {"O": found}


def _seen_before(i: Arrays, ranks: int) -> Arrays:
    q, k, v = (f64(i[name]) for name in "QKV")
    return {
        "O": np.stack(
            [_attended(q[s : s + 1], k[max(0, s - 79) : s + 1], v[max(0, s - 79) : s + 1])[0] for s in range(i["S"])]
        )
    }


OVER_RANKS = {
    "attention to a window of all shards": Irregular(
        """
kernel window(Q: bf16[S, 64].shard(0), K: bf16[S, 64].shard(0), V: bf16[S, 64].shard(0), O: bf16[S, 64].shard(0)):
    for q in tasks(blocks(S, 64, of=rank)):
        m = full(f32, -1e30, q)
        d = zeros(f32, q)
        acc = zeros(f32, q, 64)
        for kv in blocks(S, 64):
            s = Q[q] @ K[kv].T * 0.125
            s = where(positions(q) >= positions(kv) and positions(q) - positions(kv) < 80, s, -inf)
            top = max(m, rowmax(s))
            p = exp(s - top)
            a = exp(m - top)
            d = d * a + rowsum(p)
            acc = acc * a + cast(p, bf16) @ V[kv]
            m = top
        O[q] = acc / max(d, 1e-30)
""",
        fixed({"S": 131}, {"S": 1111}),
        _seen_before,
        alone=False,
    ),
    "as many rows to each rank as memory says": Irregular(
        """
kernel sent(count: i32[ranks], X: bf16[ranks, P, H], Y: bf16[ranks, P, H].symmetric()):
    for r in tasks(ranks):
        for p, h in tasks(blocks(P, 64, stop=count[r]), blocks(H, 64)):
            Y.at(r)[rank, p, h] = X[r, p, h]
""",
        fixed({"P": 21, "H": 37}, {"P": 300, "H": 264}),
        _sent,
        alone=False,
    ),
    "as many rows from each rank as its memory says": Irregular(
        """
kernel taken(count: i32[ranks].symmetric(), X: bf16[ranks, P, H].symmetric(), Y: bf16[ranks, P, H]):
    for r in tasks(ranks):
        for p, h in tasks(blocks(P, 64, stop=count.at(r)[rank]), blocks(H, 64)):
            Y[r, p, h] = X.at(r)[rank, p, h]
""",
        fixed({"P": 21, "H": 37}, {"P": 300, "H": 264}),
        _sent,
        alone=False,
    ),
    "sums of a part of other lengths on each rank": Irregular(
        """
kernel parts(offset: i32[Q], X: bf16[T, H].symmetric(), Y: f32[T, H]):
    for t, h in tasks(blocks(T, 32, start=offset[rank], stop=offset[rank + 1]), blocks(H, 64)):
        acc = zeros(f32, t, h)
        for r in range(ranks):
            acc += X.at(r)[t, h]
        Y[t, h] = acc
""",
        lambda ranks: ({"Q": ranks + 1, "T": 50, "H": 23}, {"Q": ranks + 1, "T": 900, "H": 136}),
        _sums_of_a_part,
        alone=False,
    ),
    "messages along the edges of a graph": Irregular(
        """
kernel messages(source: i32[Z], to: i32[Z], weight: f32[Z], X: bf16[V, N], O: f32[V, N].replicate()):
    for z, n in tasks(blocks(Z, 64), blocks(N, 64)):
        O[to[z], n] += gather(X, source[z], n) * weight[z]
""",
        fixed({"Z": 23, "V": 9, "N": 21}, {"Z": 900, "V": 200, "N": 72}),
        _messages,
        alone=False,
    ),
}
