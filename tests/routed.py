"""Tables of mixtures of experts at their limits: nobody chooses, all choose one expert, or one expert twice."""

from __future__ import annotations

from typing import Any

import numpy as np

from pkc import routing

EXPERTS, TOP, CAPACITY = 3, 2, 128
"""Experts of a rank, choices of a token, and the most rows of an expert."""

ROUTINGS = ("nobody", "one expert", "the same twice", "some none")

SUMS = {
    "parts of a table": """
kernel k(Y: f32[M, N], rows: i32[M], ends: i32[S], O: f32[T, N].shard(0)):
    for s in tasks(S - 1):
        for m, n in tasks(blocks(M, 16, start=ends[s], stop=ends[s + 1]), blocks(N, 16)):
            O[rows[m], n] += Y[m, n]
""",
    "parts that cannot overlap": """
kernel k(Y: f32[M, N], rows: i32[M], ends: i32[S], O: f32[T, N].shard(0)):
    for s in tasks(S):
        for m, n in tasks(blocks(M, 16, start=s * 32, stop=s * 32 + min(ends[s], 32)), blocks(N, 16)):
            O[rows[m], n] += Y[m, n]
""",
    "two statements of a task": """
kernel k(Y: f32[M, N], rows: i32[M], O: f32[T, N].shard(0)):
    for m, n in tasks(blocks(M, 16), blocks(N, 16)):
        O[rows[m], n] += Y[m, n]
        O[rows[m] - 1, n] += Y[m, n] * 3.0
""",
    "rows that tasks name one by one": """
kernel k(Y: f32[M, N], rows: i32[M], O: f32[T, N].shard(0)):
    for m, n in tasks(M, blocks(N, 16)):
        O[rows[m], n] += Y[m, n]
        if rows[m] > 0:
            O[rows[m] - 1, n] += Y[m, n] * 3.0
""",
    "rows of a table and of blocks": """
kernel k(Y: f32[M, N], rows: i32[M], O: f32[M, N].replicate()):
    for m, n in tasks(blocks(M, 16), blocks(N, 16)):
        O[rows[m], n] += Y[m, n]
        O[m, n] += Y[m, n] * 3.0
""",
    "two tasks": """
kernel k(Y: f32[M, N], rows: i32[M], O: f32[T, N].shard(0)):
    for m, n in tasks(blocks(M, 16), blocks(N, 16)):
        O[rows[m], n] += Y[m, n]
    for m, n in tasks(blocks(M, 32), blocks(N, 16)):
        O[rows[m] - 1, n] += Y[m, n] * 3.0
""",
}
"""Sums into rows of tables that are listed in parts, and of several statements."""


def choices(routing_name: str, tokens: int, ranks: int) -> routing.Integers:
    """What the tokens of all ranks choose: `[tokens, TOP]`."""
    experts = EXPERTS * ranks
    found = np.full((tokens, TOP), -1, np.int32)
    token = np.arange(tokens, dtype=np.int32)
    if routing_name == "one expert":
        found[:, 0] = experts - 2
    elif routing_name == "the same twice":
        found[:, 0] = found[:, 1] = token % experts
    elif routing_name == "some none":
        found[:, 1] = np.where(token % 3 == 0, -1, (token * 5 + 1) % experts)
    return found


def tokens_of(ranks: int) -> int:
    """Tokens of all ranks: of an even number each, at most as many as an expert has room for."""
    return 2 * (CAPACITY // (2 * ranks) - 3) * ranks


def given(example: str, routing_name: str, ranks: int) -> dict[str, Any]:
    """The tables of all ranks as an example takes them."""
    tokens = tokens_of(ranks)
    chosen = choices(routing_name, tokens, ranks)
    own = [routing.tables(chosen, EXPERTS * ranks, rank=rank, ranks=ranks, step=CAPACITY) for rank in range(ranks)]
    rows, count = np.stack([each.rows for each in own]), np.stack([each.count for each in own])
    where = routing.places(chosen, EXPERTS * ranks, ranks=ranks, step=CAPACITY)
    places = np.stack(np.split(where, ranks, axis=1))
    if example == "moe_mlp":
        return {"rows": rows.reshape(ranks, -1), "count": count, "places": places}
    return {"places": places} if example == "moe_gather_combine" else {"rows": rows, "count": count}


def dims(example: str, ranks: int) -> dict[str, int]:
    """Sizes that go with the tables, and short rows."""
    tokens, rows = tokens_of(ranks), EXPERTS * CAPACITY
    if example == "moe_mlp":
        each = {"S": tokens, "T": tokens // ranks, "K": TOP, "H": 72, "N": 40, "E": EXPERTS, "R": rows}
    elif example == "moe_gather_combine":
        each = {"T": tokens // ranks, "K": TOP, "H": 72, "R": rows}
    else:
        each = {"T": tokens, "E": EXPERTS, "P": CAPACITY, "N": 72} | ({"H": 136} if "dispatch" in example else {})
    return each
