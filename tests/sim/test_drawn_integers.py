"""Integers that are drawn for arrays: what loops, divisions and stores ask of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from pkc.driver.compiler import compile_program
from pkc.frontend.parse import parse_text
from pkc.location import Source
from pkc.sim.draw import draw_inputs
from pkc.sim.run import simulate

ENTRIES = """
kernel rows(ptr: i32[Q], column: i32[Z], x: f32[K], y: f32[M]):
    for m in tasks(M):
        acc = zeros(f32)
        for z in range(ptr[m], ptr[m + 1]):
            acc += x[column[z]]
        y[m] = acc
"""
PAGES = """
kernel pages(length: i32[B], page: i32[B, J], X: f32[P, 16, 8], Y: f32[B, 8]):
    for b in tasks(B):
        acc = zeros(f32, 8)
        for j in range((length[b] + 15) // 16):
            acc += X[page[b, j], 3]
        Y[b] = acc
"""
BLOCKS = """
kernel listed(count: i32[A], which: i32[A, J], X: f32[T], Y: f32[A]):
    for a in tasks(A):
        acc = zeros(f32)
        for j in range(count[a]):
            for t in blocks(T, 16, start=which[a, j] * 16, stop=which[a, j] * 16 + 16):
                acc += rowsum(X[t])
        Y[a] = acc
"""
NUMBERED = """
kernel numbered(many: i32[1], X: f32[T], Y: f32[T]):
    for t in tasks(many[0]):
        Y[t] = X[t]
"""
PADDED = """
kernel padded(first: i32[Q], X: f32[T, 8], Y: f32[B, S, 8]):
    for b, s in tasks(B, blocks(S, 16)):
        at = first[b] + positions(s)
        Y[b, s, :] = gather(X, where(at < first[b + 1], at, -1))
"""
PERMUTED = """
kernel permuted(p: i32[T], q: i32[N]):
    for t in tasks(T):
        q[p[t] + 1] = t
"""
PLACED = """
kernel placed(place: i32[E, P], X: f32[E, P], Y: f32[E, N]):
    for e, p in tasks(E, P):
        if place[e, p] >= 0:
            Y[e, place[e, p]] = X[e, p]
"""


APPENDED = """
kernel append(slot: i32[T], X: f32[T, H], C: f32[P, 16, H]):
    for t, h in tasks(blocks(T, 16), blocks(H, 8)):
        C[slot[t] // 16, slot[t] % 16, h] = X[t, h]
"""
SHARED = """
kernel permute(to: i32[T], X: f32[T, H], Y: f32[P, H].shard(0)):
    for t, h in tasks(blocks(T, 16), blocks(H, 8)):
        Y[to[t], h] = X[t, h]
"""
SORTED = """
kernel sort(bucket: i32[T], place: i32[T], first: i32[E], X: f32[T], Y: f32[T]):
    for t in tasks(blocks(T, 16)):
        Y[first[bucket[t]] + place[t]] = X[t]
"""
JAGGED = """
kernel jagged(first: i32[Q], X: f32[B, S], Y: f32[T]):
    for b, s in tasks(B, blocks(S, 16)):
        Y[where(positions(s) < first[b + 1] - first[b], first[b] + positions(s), -1)] = X[b, s]
"""


def _drawn(text: str, seed: int = 0, **dims: int) -> dict[str, Any]:
    """What is drawn for two ranks; the kernel runs with it."""
    module = compile_program(parse_text(Source("drawn.pk", text))).module
    inputs = draw_inputs(module, ranks=2, dims=dims, seed=seed)
    simulate(module, ranks=2, dims=dims, inputs=inputs)
    return inputs


def test_loops_from_one_element_to_the_next() -> None:
    ptr = _drawn(ENTRIES, Q=200, M=199, Z=5, K=4)["ptr"]
    assert sorted(set(ptr.flat)) == [0, 1, 2, 3, 4, 5]
    assert (np.diff(ptr) >= 0).all()


def test_lengths_that_are_divided() -> None:
    drawn = _drawn(PAGES, B=500, J=2, P=3)
    assert (drawn["length"].min(), drawn["length"].max()) == (0, 32)
    assert sorted(set(drawn["page"].flat)) == [0, 1, 2]


def test_numbers_of_blocks() -> None:
    drawn = _drawn(BLOCKS, A=200, J=2, T=48)
    assert sorted(set(drawn["count"].flat)) == [0, 1, 2]
    assert sorted(set(drawn["which"].flat)) == [0, 1, 2]


def test_numbers_of_tasks() -> None:
    assert {int(_drawn(NUMBERED, seed, T=2)["many"][0, 0]) for seed in range(20)} == {0, 1, 2}


def test_rows_behind_a_first_one() -> None:
    assert sorted(set(_drawn(PADDED, Q=300, B=299, S=4, T=7)["first"].flat)) == [0, 1, 2, 3]


def test_places_of_stores_are_distinct() -> None:
    for of_rank in _drawn(PERMUTED, T=7, N=8)["p"]:
        assert len(set(of_rank)) == 7
        assert -1 <= of_rank.min() <= of_rank.max() <= 6
    for row in _drawn(PLACED, E=3, P=5, N=6)["place"].reshape(-1, 5):
        assert len(set(row)) == 5
    whole = _drawn(PLACED, E=3, P=5, N=40)["place"]
    assert len(set(whole.flat)) == 30


def test_tables_name_each_place_of_a_store_once() -> None:
    for of_rank in _drawn(APPENDED, T=30, P=3, H=8)["slot"]:
        named = of_rank[of_rank >= 0]
        assert 20 < len(named) < 30 and len(set(named)) == len(named)
        assert 32 <= named.max() < 48
    for rows in (70, 20):  # enough for all ranks, and not for one
        named = _drawn(SHARED, T=30, P=rows, H=8)["to"].ravel()
        named = named[named >= 0]
        assert rows // 2 < len(named) == len(set(named)) and named.max() < rows


def test_sums_of_tables_stay_inside() -> None:
    """As one is 0, or ascends, no place is named twice, and the kernel runs."""
    for seed in range(5):
        assert len(set(_drawn(SORTED, seed, T=37, E=3)["place"][0])) > 30
        _drawn(JAGGED, seed, B=3, Q=4, S=50, T=50)
