"""The roles pipeline on small programs: the bits of the tile level, in any order, for any number of CTAs."""

from __future__ import annotations

import re
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp, UnknownLoc

from pkc.check.run import TRIALS, baseline_of, check_roles
from pkc.diagnostics import PkcError
from pkc.dialect.by_table import ScatterStoreOp
from pkc.dialect.roles import ConsumeOp, ReleaseOp
from pkc.dialect.types import i32
from pkc.driver.compiler import compile_program, load
from pkc.frontend.parse import parse_text
from pkc.location import Source
from pkc.passes import ROLES_PIPELINE
from pkc.passes.run import run_pipeline
from pkc.sim.draw import draw_inputs
from pkc.sim.run import simulate
from tests.sweeps import sweep

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.pk"))
OVERLAPS = ("", "none", "intra_sm", "inter_sm", "copy_engine")
ON_SMS = ("", "none", "intra_sm", "inter_sm")
ILLEGAL = {("decode_attention", "copy_engine")}
PLANNED = [(path, overlap) for path in EXAMPLES for overlap in OVERLAPS if (path.stem, overlap) not in ILLEGAL]
DIMS = {"M": 50, "N": 40, "K": 36, "H": 3, "L": 5, "P": 20}
TABLE = np.random.default_rng(0).integers(-2, 30, (3, DIMS["L"], DIMS["P"])).astype(np.int32)

PROGRAMS: dict[str, tuple[str, tuple[str, ...]]] = {
    "another array shards the other dimension of a sum": (
        """
kernel k(A: bf16[M, K], B: bf16[K, N].shard(1), C: bf16[M, N].shard(0)):
    for m, n in tasks(blocks(M, 16), blocks(N, 16)):
        acc = zeros(f32, m, n)
        for k in blocks(K, 16):
            acc += A[m, k] @ B[k, n]
        C[m, n] += acc
""",
        OVERLAPS,
    ),
    "a sum over nested tasks and plain integers": (
        """
kernel k(A: f32[H, 2, M, N], C: f32[H, 2, M, N].shard(2)):
    for h, c in tasks(H, 2):
        for m, n in tasks(blocks(M, 16), blocks(N, 16)):
            C[h, c, m, n] += A[h, c, m, n]
""",
        OVERLAPS,
    ),
    "lists of tasks in one set, of which each role needs others": (
        """
kernel k(A: f32[H, M, N], c: i32[H], B: f32[H, M, N], C: f32[H, M, N], D: f32[H, M]):
    for h in tasks(H):
        for m, n in tasks(blocks(M, 16), blocks(N, 16)):
            B[h, m, n] = A[h, m, n]
        for m in tasks(blocks(M, 16, stop=min(c[h], 37))):
            D[h, m] = zeros(f32, m)
        for m, n in tasks(blocks(M, 16), blocks(N, 16)):
            C[h, m, n] = exp(A[h, m, n])
        for m in tasks(blocks(M, 16, start=min(c[h], 37))):
            D[h, m] = full(f32, 1.0, m)
""",
        OVERLAPS,
    ),
    "tasks that add to what a private array has": (
        """
kernel k(A: bf16[M, K], B: bf16[K, N], C: f32[M, N]):
    schedule(deterministic=False)
    for m, n in tasks(blocks(M, 16), blocks(N, 16)):
        C[m, n] = zeros(f32, m, n)
    for m, n, k in tasks(blocks(M, 16), blocks(N, 16), blocks(K, 16)):
        store_add(C[m, n], A[m, k] @ B[k, n])
""",
        OVERLAPS,
    ),
    "sums to which several tasks of a rank contribute": (
        """
kernel k(X: bf16[H, M, N], C: bf16[N].shard(0), R: f32[M].replicate(), Z: i32[8].replicate(), I: i32[M]):
    for h, m, n in tasks(H, blocks(M, 16), blocks(N, 16)):
        C[n] += rowsum(X[h, m, n].T)
        R[m] += rowsum(X[h, m, n])
    for m in tasks(blocks(M, 16)):
        Z[:] += rowsum(where(positions(8) == I[m] % 8, 1, 0))
""",
        ("", "none", "intra_sm", "inter_sm"),
    ),
    "sums of columns of long rows, which are reduced too": (
        """
kernel k(X: bf16[M, 260], W: f32[260], Z: bf16[M, 260], dw: f32[260].replicate(), db: bf16[260].replicate()):
    for m in tasks(blocks(M, 16)):
        x = cast(X[m, :], f32)
        r = rsqrt(rowsum(x * x) / 260.0 + 0.00001)
        Z[m, :] = (x - rowsum(x * W[:]) * r) * W[:]
        dw[:] += rowsum((x * r).T)
        db[:] += rowsum((x + cast(positions(m), f32)).T)
""",
        ("", "none", "intra_sm", "inter_sm"),
    ),
    "one number that all ranks get, and go on with": (
        """
kernel k(G: f32[M, N], Y: f32[M, N], norm: f32[1].replicate().scratch(), last: f32[1].replicate()):
    for m, n in tasks(blocks(M, 16), N):
        norm[0] += rowsum(G[m, n] * G[m, n])
    for m, n in tasks(blocks(M, 16), blocks(N, 16)):
        Y[m, n] = G[m, n] * min(1.0, 3.0 / sqrt(norm[0]))
    for i in tasks(1):
        last[0] += norm[0]
""",
        ("", "none", "intra_sm", "inter_sm"),
    ),
    "statements before, between and behind tasks": (
        """
kernel k(X: f32[M, N], P: f32[M].scratch(), Y: f32[M, N], L: f32[1], Z: f32[8], S: f32[1].replicate()):
    Z[:] = cast(positions(8), f32)
    for m in tasks(blocks(M, 16)):
        s = zeros(f32, m)
        for n in blocks(N, 16):
            s += rowsum(X[m, n])
        P[m] = s
    total = zeros(f32)
    for m in blocks(M, 16):
        total += rowsum(P[m])
    mean = total / cast(M, f32)
    L[0] = mean
    for m, n in tasks(blocks(M, 16), blocks(N, 16)):
        Y[m, n] = X[m, n] - mean
    S[0] += mean
""",
        ("", "none", "intra_sm", "inter_sm"),
    ),
    "a sum whose sharded dimension has blocks of one": (
        """
kernel k(A: f32[H, M], C: f32[H, M].shard(0)):
    for h, m in tasks(blocks(H, 1), blocks(M, 16)):
        C[h, m] += A[h, m]
""",
        OVERLAPS,
    ),
    "an all-reduce without blocks in its first dimension": (
        """
kernel k(A: f32[H, M, D], C: f32[H, M, D].replicate(), D: const = 32):
    for h, m in tasks(H, blocks(M, 16)):
        C[h, m] += A[h, m]
""",
        OVERLAPS,
    ),
    "a sum of integers": (
        """
kernel k(A: i32[M, N], C: i32[M, N].shard(1)):
    for m, n in tasks(blocks(M, 16), blocks(N, 16)):
        C[m, n] += A[m, n]
""",
        OVERLAPS,
    ),
    "an operand that depends on no task": (
        """
kernel k(X: bf16[K, M].shard(0), B: bf16[M, N], Y: f32[N]):
    for n in tasks(blocks(N, 16)):
        acc = zeros(f32, n)
        for k in blocks(K, 16):
            for m in blocks(M, 16):
                acc += rowsum((X[k, m] @ B[m, n]).T)
        Y[n] = acc
""",
        OVERLAPS,
    ),
    "two loops over one operand": (
        """
kernel k(X: f32[H, K].shard(1), Y: f32[H, N]):
    for h, n in tasks(H, blocks(N, 16)):
        acc = zeros(f32, n)
        for i in range(1, 3):
            for k in blocks(K, 8):
                acc = acc + rowsum(X[h, k]) * cast(i, f32)
        Y[h, n] = acc
""",
        OVERLAPS,
    ),
    "operands that loops do not change": (
        """
kernel k(X: bf16[M, D].shard(0), B: bf16[H, D, N], Y: f32[M, N], D: const = 16):
    for m, n in tasks(blocks(M, 16), blocks(N, 16)):
        acc = zeros(f32, m, n)
        for h in range(H):
            for i in range(h):
                acc += X[m] @ B[h, :, n]
        Y[m, n] = acc
""",
        OVERLAPS,
    ),
    "a loop that does not begin at zero": (
        """
kernel k(X: f32[M, H].shard(0), Y: f32[M, N]):
    for m, n in tasks(blocks(M, 8), blocks(N, 16)):
        acc = zeros(f32, m, n)
        for j in range(1, 3):
            acc = acc + X[m, j]
        Y[m, n] = acc
""",
        OVERLAPS,
    ),
    "scalars and a count that depends on the task": (
        """
kernel k(X: f32[M, H].shard(0), W: f32[H], Y: f32[M, H, N]):
    for m, h, n in tasks(blocks(M, 8), H, blocks(N, 16)):
        acc = zeros(f32, m, n)
        for j in range(h + 1):
            acc = acc + X[m, j] * W[j]
        Y[m, h, n] = acc
""",
        ("", "none", "intra_sm"),
    ),
    "an index that a loop carries": (
        """
kernel k(X: f32[M, N].shard(0), Y: f32[L, N]):
    for l, n in tasks(L, blocks(N, 16)):
        acc = zeros(f32, n)
        i = 0
        for k in range(3):
            i = (i + 2) % 3
            acc = acc + X[i, n]
        Y[l, n] = acc
""",
        ("", "intra_sm"),
    ),
    "an address that a branch guards": (
        """
kernel k(X: f32[M, N].shard(0), T: i32[L, P], Y: f32[L, N]):
    for l, n in tasks(L, blocks(N, 16)):
        t = zeros(f32, n)
        if T[l, 0] >= 0:
            t = X[T[l, 0], n] * 2.0
        Y[l, n] = t
""",
        ("", "intra_sm"),
    ),
    "branches that load what the other does not": (
        """
kernel k(X: f32[M, N], V: f32[M, N], Y: f32[L, M, N]):
    for l, m, n in tasks(L, blocks(M, 8), blocks(N, 16)):
        if l > 1:
            t = X[m, n] * V[m, n]
        else:
            t = X[m, n] + 1.0
        Y[l, m, n] = t
""",
        OVERLAPS,
    ),
    "a gathered operand": (
        """
kernel k(X: f32[M, N].shard(0), T: i32[L, P], Y: f32[L, P, N]):
    for l in tasks(L):
        for p, n in tasks(blocks(P, 8), blocks(N, 16)):
            Y[l, p, n] = gather(X, T[l, p], n)
""",
        OVERLAPS,
    ),
    "a table that is computed": (
        """
kernel k(X: f32[M, N].shard(0), T: i32[L, P], Y: f32[L, N]):
    for l, n in tasks(L, blocks(N, 16)):
        acc = zeros(f32, n)
        for p in blocks(P, 8):
            acc = acc + rowsum(gather(X, T[l, p] + 1, n).T)
        Y[l, n] = acc
""",
        ("", "intra_sm", "inter_sm", "copy_engine"),
    ),
    "a loaded tile that a loop without iterations gives back": (
        """
kernel k(X: f32[M, N], V: f32[K, N], T: i32[L, P], Y: f32[M, N]):
    for m, n in tasks(blocks(M, 16), blocks(N, 16)):
        u = X[m, n]
        for i in range(T[0, 0] - T[0, 0]):
            u = u + 1.0
        s = zeros(f32, n)
        for k in blocks(K, 8):
            s += rowsum(V[k, n].T)
        Y[m, n] = u + s
""",
        OVERLAPS,
    ),
    "a loaded tile that a branch gives back": (
        """
kernel k(X: f32[M, N], V: f32[K, N], T: i32[L, P], Y: f32[M, N]):
    for m, n in tasks(blocks(M, 16), blocks(N, 16)):
        u = X[m, n]
        if T[0, 0] == T[0, 0]:
            t = u
        else:
            t = u + 1.0
        s = zeros(f32, n)
        for k in blocks(K, 8):
            s += rowsum(V[k, n].T)
        Y[m, n] = t + s
""",
        OVERLAPS,
    ),
    "a view that waits for another tile": (
        """
kernel k(X: f32[M, N], T: i32[L, P], Y: f32[N, M], Z: f32[M, N]):
    for m, n in tasks(blocks(M, 16), blocks(N, 16)):
        x = X[m, n]
        w = exp2(zeros(f32, m, n) + 1.0)
        if T[0, 0] == T[0, 0]:
            Y[n, m] = x.T
            Z[m, n] = w
""",
        OVERLAPS,
    ),
    "two phases of each rank by itself": (
        """
kernel k(X: f32[M], T: f32[M].scratch(), Y: f32[M]):
    for m in tasks(blocks(M, 16)):
        T[m] = X[m] + 1.0
    for m in tasks(blocks(M, 8)):
        Y[m] = T[m] * 2.0
""",
        OVERLAPS,
    ),
    "a phase that stores what the one before it stored": (
        """
kernel k(X: f32[M, N], Y: f32[M, N]):
    for m, n in tasks(blocks(M, 16), blocks(N, 16)):
        Y[m, n] = X[m, n] * 2.0
    for m, n in tasks(blocks(M, 8, start=1, stop=27), blocks(N, 32)):
        Y[m, n] = X[m, n] * 3.0
    for m, n in tasks(blocks(M, 8), blocks(N, 8)):
        Y[m, n] = X[m, n] * 4.0
""",
        OVERLAPS,
    ),
    "a phase that stores zeros, of which the next one stores some again": (
        """
kernel k(X: f32[M, N], S: f32[M, N].scratch(), Y: f32[M, N]):
    for m, n in tasks(blocks(M, 16), blocks(N, 16)):
        S[m, n] = zeros(f32, m, n)
    for m, n in tasks(blocks(M, 8, start=1, stop=27), blocks(N, 16)):
        S[m, n] = X[m, n] * 2.0
    for m, n in tasks(blocks(M, 8), blocks(N, 8)):
        Y[m, n] = S[m, n]
""",
        OVERLAPS,
    ),
    "a phase that spreads what the next one reads": (
        """
kernel k(X: bf16[M, K].shard(0), G: bf16[M, K].replicate().scratch(), B: bf16[K, N], C: bf16[M, N]):
    for m, k in tasks(blocks(M, 16, of=rank), blocks(K, 16)):
        G[m, k] = X[m, k]
    for m, n in tasks(blocks(M, 32), blocks(N, 16)):
        acc = zeros(f32, m, n)
        for k in blocks(K, 16):
            acc += G[m, k] @ B[k, n]
        C[m, n] = acc
""",
        ON_SMS,
    ),
    "a sum that the next phase reads": (
        """
kernel k(A: bf16[M, N], C: bf16[M, N].shard(0), Y: bf16[M, N]):
    for m, n in tasks(blocks(M, 16), blocks(N, 16)):
        C[m, n] += A[m, n]
    for m, n in tasks(blocks(M, 16), blocks(N, 32)):
        Y[m, n] = C[m, n]
""",
        ON_SMS,
    ),
    "a sum for each iteration of phases": (
        """
kernel k(A: f32[M, K].shard(0), x: f32[M].replicate(), t: f32[M].shard(0).scratch(), norm: f32[3].replicate().scratch(),
         s: f32[4, M].shard(1).scratch(), last: f32[3], I: const = 3):
    for i in range(I):
        for m in tasks(blocks(M, 16, of=rank)):
            a = zeros(f32, m)
            for k in blocks(K, 16):
                a += rowsum(A[m, k] * A[m, k])
            t[m] = a + x[m]
            norm[i] += rowsum(a + x[m])
        for m in tasks(blocks(M, 16, of=rank)):
            x[m] = t[m] / norm[i]
        for m in tasks(blocks(M, 16)):
            s[i, m] += x[m]
        for m in tasks(blocks(M, 16, of=rank)):
            x[m] = s[i, m]
    for i in tasks(I):
        last[i] = norm[i]
""",
        ON_SMS,
    ),
    "a sum of matmuls that the next phase reads": (
        """
kernel k(A: bf16[M, K], B: bf16[K, N], C: bf16[M, N].shard(0), Y: bf16[M, N]):
    for m, n in tasks(blocks(M, 16), blocks(N, 16)):
        acc = zeros(f32, m, n)
        for k in blocks(K, 16):
            acc += A[m, k] @ B[k, n]
        C[m, n] += acc
    for m, n in tasks(blocks(M, 16), blocks(N, 16)):
        Y[m, n] = C[m, n] * 2.0
""",
        ON_SMS,
    ),
    "an epilogue behind a sum, with rows and columns": (
        """
kernel k(A: bf16[M, K], B: bf16[K, N], b: bf16[N], s: f32[M].shard(0), R: f32[M, N].shard(0),
         C: bf16[M, N].shard(0).scratch(), Y: bf16[M, N].shard(0)):
    for m, n in tasks(blocks(M, 32), blocks(N, 16)):
        acc = zeros(f32, m, n)
        for k in blocks(K, 16):
            acc += A[m, k] @ B[k, n]
        C[m, n] += acc
    for n, m in tasks(blocks(N, 32), blocks(M, 16, of=rank)):
        Y[m, n] = (C[m, n] + b[n]) * s[m] + where(positions(m) > positions(n), R[m, n], 1.0)
""",
        ON_SMS,
    ),
    "four phases that write and read alternately": (
        """
kernel k(X: f32[M].shard(0), S: f32[M].shard(0).scratch(), Y: f32[M], Z: f32[M]):
    for m in tasks(blocks(M, 16, of=rank)):
        S[m] = X[m] + 1.0
    for m in tasks(blocks(M, 16)):
        Y[m] = S[m] * 2.0
    for m in tasks(blocks(M, 16, of=rank)):
        S[m] = X[m] + 5.0
    for m in tasks(blocks(M, 8)):
        Z[m] = S[m] * Y[m]
""",
        ON_SMS,
    ),
    "operands that are computed, one of them transposed": (
        """
kernel k(A: bf16[M, K], B: f32[N, K], s: f32[M].shard(0), C: f32[M, N]):
    for m, n in tasks(blocks(M, 16), blocks(N, 16)):
        acc = zeros(f32, m, n)
        for k in blocks(K, 16):
            acc += cast(A[m, k] * 0.5, bf16) @ cast(B[n, k], bf16).T
        C[m, n] = acc * s[m]
""",
        OVERLAPS,
    ),
    "a residual, and a product of 8 bits that is computed": (
        """
kernel k(A: e4m3[M, K], B: e4m3[K, N], V: e4m3[N, 32], R: f32[M, 32], C: f32[M, 32]):
    for m in tasks(blocks(M, 16)):
        acc = zeros(f32, m, 32)
        for n in blocks(N, 32):
            p = zeros(f32, m, n)
            for k in blocks(K, 32):
                p += A[m, k] @ B[k, n]
            acc += cast(p, e4m3) @ V[n, :]
        C[m, :] = acc + R[m, :]
""",
        OVERLAPS,
    ),
    "rows that another table names in each iteration": (
        """
kernel k(X: f32[M, N].shard(0), T: i32[L, P], Y: f32[P, N]):
    for p, n in tasks(blocks(P, 16), blocks(N, 16)):
        acc = zeros(f32, p, n)
        for l in range(L):
            acc += gather(X, T[l, p], n)
        Y[p, n] = acc
""",
        OVERLAPS,
    ),
    "an operand that several tasks share, as their index is divided": (
        """
kernel k(X: f32[M, N].shard(0), Y: f32[K, N]):
    for i, n in tasks(K, blocks(N, 16)):
        Y[i, n] = X[i // 2, n]
""",
        ("", "intra_sm"),
    ),
    "a quotient and a remainder, which are an index together": (
        """
kernel k(X: f32[M, L, N].shard(0), Y: f32[M, L, N], L: const = 5):
    for t, n in tasks(M * L, blocks(N, 16)):
        Y[t // L, t % L, n] = X[t // L, t % L, n]
""",
        OVERLAPS,
    ),
    "what belongs to rows, beside parts of these that tasks number": (
        """
kernel k(A: f32[M, K], Q: f32[K, N].shard(0), L: f32[K].shard(0), Y: f32[M, N]):
    for m, n in tasks(blocks(M, 16), blocks(N, 16)):
        acc = zeros(f32, m, n)
        for r in ring():
            for q in blocks(K, 16, of=r):
                acc += A[m, q] @ (L[q] * Q[q, n])
        Y[m, n] = acc
""",
        OVERLAPS,
    ),
    "two masks in front, of which one may leave nothing": (
        """
kernel k(Q: f32[M, N].shard(0), K: f32[P, N].shard(0), V: f32[P, N].shard(0), O: f32[M, N].shard(0), N: const = 16):
    for q in tasks(blocks(M, 16, of=rank)):
        o = zeros(f32, q, N)
        for r in ring():
            for kv in blocks(P, 16, of=r):
                s = Q[q] @ K[kv].T
                s = where(positions(kv) + 9 >= positions(q) and positions(kv) >= 70, s, -inf)
                o += exp(s) @ V[kv]
        O[q] = o
""",
        OVERLAPS,
    ),
    "a tile in place": (
        """
kernel k(X: f32[M, N], Y: f32[M, N]):
    for m, n in tasks(blocks(M, 16), blocks(N, 16)):
        Y[m, n] = Y[m, n] * X[m, n]
""",
        OVERLAPS,
    ),
}
"""Each with the overlaps that it may have; all others are refused, since nothing can be fetched ahead (PK432)."""

NOT_COPIED = {
    "an address that a branch guards",
    "a phase that spreads what the next one reads",
    "a sum that the next phase reads",
    "a sum for each iteration of phases",
    "a sum of matmuls that the next phase reads",
    "an epilogue behind a sum, with rows and columns",
    "four phases that write and read alternately",
    "one number that all ranks get, and go on with",
    "statements before, between and behind tasks",
    "sums of columns of long rows, which are reduced too",
    "sums to which several tasks of a rank contribute",
}
"""Where data say what is read, or several phases: a copy engine is refused for that reason (PK430)."""


NOT_STRADDLING = {
    "scalars and a count that depends on the task",
    "a phase that spreads what the next one reads",
    "a sum that the next phase reads",
    "a sum for each iteration of phases",
    "a sum of matmuls that the next phase reads",
    "an epilogue behind a sum, with rows and columns",
    "four phases that write and read alternately",
    "two masks in front, of which one may leave nothing",
    "what belongs to rows, beside parts of these that tasks number",
}
"""Where a block cannot straddle shards: it is one rank's, or the SM that computes fetches it (PK443)."""


def compiled(text: str, overlap: str, level: str) -> ModuleOp:
    program = parse_text(Source("k.pk", text.strip() + "\n"))
    schedule = {"straddle": "true"} if overlap == "across" else {"overlap": overlap} if overlap else {}
    return compile_program(program, schedule=schedule, level=level).module


@cache
def at_roles_level(name: str) -> tuple[dict[str, ModuleOp], dict[str, ModuleOp]]:
    """The modules of a program with each overlap, and of these the ones that are as one before."""
    text, overlaps = PROGRAMS[name]
    first: dict[str, str] = {}
    modules: dict[str, ModuleOp] = {}
    for overlap in (*overlaps, *(() if name in NOT_STRADDLING else ("across",))):
        modules[overlap] = compiled(text, overlap, "roles")
        first.setdefault(re.sub(r"schedule = \{[^}]*\}", "", str(modules[overlap])), overlap)
    distinct = {overlap: modules[overlap] for overlap in first.values()}
    return distinct, {overlap: module for overlap, module in modules.items() if overlap not in distinct}


ORDERS = ((1, 0), (2, 1), (3, 2))
"""Numbers of CTAs, and seeds of the order in which they run."""


@pytest.mark.parametrize("turn", sweep(range(len(ORDERS)), lambda turn: turn == 0))
@pytest.mark.parametrize("repeated", sweep((False, True), lambda repeated: not repeated), ids=["once", "again"])
@pytest.mark.parametrize("ranks", sweep((1, 2, 3), lambda ranks: ranks > 1))
@pytest.mark.parametrize("name", PROGRAMS)
def test_bits_are_those_of_the_tile_level(name: str, ranks: int, repeated: bool, turn: int) -> None:
    """In each turn another order for each overlap."""
    tile, modules = compiled(PROGRAMS[name][0], "", "tile"), at_roles_level(name)[repeated]
    kernel = next(iter(tile.ops))
    used = {dim for arg in kernel.regions[0].block.args for dim in getattr(arg.type, "dimensions", ())}
    dims = {dim: size for dim, size in DIMS.items() if dim in used}
    wrong: list[str] = []
    inputs = draw_inputs(tile, ranks=ranks, dims=dims, seed=1)
    if "T" in inputs:
        inputs["T"] = TABLE[:ranks]
    expected = {key: value.tobytes() for key, value in simulate(tile, ranks=ranks, dims=dims, inputs=inputs).items()}
    for number, (overlap, module) in enumerate(modules.items(), start=turn + ranks):
        ctas, seed = ORDERS[number % len(ORDERS)]
        outputs = simulate(module, ranks=ranks, dims=dims, inputs=inputs, seed=seed, ctas=ctas)
        if {key: value.tobytes() for key, value in outputs.items()} != expected:
            wrong.append(f"overlap={overlap} ctas={ctas} seed={seed}")
    assert not wrong


@pytest.mark.long
@pytest.mark.parametrize("name", PROGRAMS)
def test_each_pass_leaves_valid_ir(name: str) -> None:
    """As each does for every example, below."""
    for overlap in PROGRAMS[name][1]:
        run_pipeline(compiled(PROGRAMS[name][0], overlap, "tile"), ROLES_PIPELINE)


@pytest.mark.parametrize("name", sorted(NOT_STRADDLING))
def test_blocks_that_cannot_straddle_shards_are_refused(name: str) -> None:
    with pytest.raises(PkcError) as raised:
        compiled(PROGRAMS[name][0], "across", "roles")
    assert {finding.code for finding in raised.value.diagnostics} == {"PK443"}


PHASES = [name for name in PROGRAMS if "phase" in name]


@pytest.mark.parametrize(
    ("name", "overlap"),
    sweep(product(PHASES, ("", "none", "inter_sm")), lambda name, overlap: not overlap or name == PHASES[0]),
)
def test_phases_are_launched_again(name: str, overlap: str) -> None:
    program = parse_text(Source("k.pk", f"{PROGRAMS[name][0].strip()}\n"))
    tile = compile_program(program, level="tile")
    used = {dim for arg in tile.kernel.body.block.args for dim in getattr(arg.type, "dimensions", ())}
    meaning = baseline_of(tile, ranks=3, dims={dim: DIMS[dim] for dim in used & set(DIMS)}, launches=3)
    roles = compile_program(program, schedule={"overlap": overlap} if overlap else {}, level="roles")
    assert check_roles(roles, meaning, TRIALS[:6]) == []


@pytest.mark.parametrize("name", [name for name, (_, overlaps) in PROGRAMS.items() if overlaps != OVERLAPS])
def test_what_cannot_be_fetched_ahead_is_refused(name: str) -> None:
    text, overlaps = PROGRAMS[name]
    for overlap in sorted(set(OVERLAPS) - set(overlaps)):
        with pytest.raises(PkcError) as raised:
            compiled(text, overlap, "roles")
        expected = "PK430" if overlap == "copy_engine" and name in NOT_COPIED else "PK432"
        assert [finding.code for finding in raised.value.diagnostics] == [expected], overlap


BY_EXAMPLE = [[case for case in PLANNED if case[0] == path] for path in EXAMPLES]
TURNS = [cases[number % len(cases)] for number, cases in enumerate(BY_EXAMPLE) if cases]
"""Each example with one overlap, each overlap with several."""


@pytest.mark.parametrize(
    ("path", "overlap"),
    sweep(PLANNED, lambda *case: case in TURNS),
    ids=lambda value: getattr(value, "stem", value) or "default",
)
def test_every_operation_keeps_a_line_of_the_program(path: Path, overlap: str) -> None:
    module = load(path, schedule={"overlap": overlap} if overlap else {}).module
    lost: list[str] = []

    def watch(done: object, current: ModuleOp) -> None:
        inner = [op for op in current.walk() if op is not current]
        lost.extend(f"{done}: {op.name}" for op in inner if isinstance(op.location, UnknownLoc))

    run_pipeline(module, ROLES_PIPELINE, after=watch)  # which also verifies after each pass
    assert not lost


@pytest.mark.parametrize("page", ["slot[t] // 16", "other[slot[t]]"])
def test_a_table_keeps_its_stage_until_what_is_computed_of_it_is_used(page: str) -> None:
    """Accesses evaluate it where they need an element: what a role released before would be another task's."""
    text = f"""
kernel k(slot: i32[T], other: i32[T], X: f16[T, G, 64], C: f16[P, 16, G, 64]):
    for t, g in tasks(blocks(T, 32), blocks(G, 2)):
        C[{page}, slot[t] % 16, g, :] = X[t, g, :]
"""
    (kernel,) = compile_program(parse_text(Source("k.pk", text.lstrip())), level="roles").module.ops
    scatter = next(op for op in kernel.walk() if isinstance(op, ScatterStoreOp))
    storer = scatter.parent
    assert storer is not None
    channels = [op.channel for op in storer.ops if isinstance(op, ConsumeOp) and op.tiles[0].type.element_type == i32]
    assert channels
    releases = [op for op in storer.ops if isinstance(op, ReleaseOp) and op.channel in channels]
    assert releases and all(scatter.is_before_in_block(op) for op in releases)
