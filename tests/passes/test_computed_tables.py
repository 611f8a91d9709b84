"""Tables that follow from floats, or from rows: consumers compute them, and pass them on to what they address."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pkc.driver.compiler import compile_program
from pkc.frontend.parse import parse_text
from pkc.location import Source
from pkc.sim.run import simulate

RNG = np.random.default_rng(11)

BUCKETS = """
kernel buckets(X: f32[N], H: i32[8].replicate()):
    for n in tasks(blocks(N, 16)):
        b = cast(floor(X[n] * 8.0), i32)
        H[min(max(b, 0), 7)] += full(i32, 1, n)
"""
BEST = """
kernel best(L: f32[T, E], W: f32[E, H], Y: f32[T, H], E: const = 8):
    for t, h in tasks(blocks(T, 16), blocks(H, 32)):
        x = L[t, :]
        Y[t, h] = W[rowmin(where(x == rowmax(x), positions(E), E)), h]
"""
NEAREST = """
kernel nearest(X: bf16[N, D], C: bf16[K, D], Y: bf16[N, D], D: const = 64):
    for n in tasks(blocks(N, 64)):
        top = full(f32, -inf, n)
        at = zeros(i32, n)
        for k in blocks(K, 64):
            s = X[n, :] @ C[k, :].T
            m = rowmax(s)
            at = where(m > top, rowmin(where(s == m, positions(k), 2147483647)), at)
            top = max(top, m)
        Y[n, :] = C[at, :]
"""
PLACES = """
kernel places(X: f32[N], Y: f32[P]):
    for n in tasks(blocks(N, 16)):
        x = X[n]
        Y[where(x > 0.5, cast(x, i32) + positions(n), -1)] = x
"""


def _found(text: str, dims: dict[str, int], inputs: dict[str, Any], ranks: int = 1) -> dict[str, Any]:
    """What a kernel computes, the same at both levels and in several orders; it is compiled as well."""
    program = parse_text(Source("k.pk", text.lstrip()))
    tile, roles, _ = (compile_program(program, level=level).module for level in ("tile", "roles", "machine"))
    given = {name: np.stack([value] * ranks) for name, value in inputs.items()}
    expected = simulate(tile, ranks=ranks, dims=dims, inputs=given)
    for seed in range(3):
        found = simulate(roles, ranks=ranks, dims=dims, inputs=given, seed=seed, ctas=2)
        for name, value in expected.items():
            np.testing.assert_array_equal(found[name], value)
    return expected


def test_what_is_counted_follows_from_floats() -> None:
    x = RNG.random(100, dtype=np.float32)
    found = _found(BUCKETS, {"N": 100}, {"X": x}, ranks=2)["H"]
    np.testing.assert_array_equal(found, 2 * np.histogram(x, 8, (0, 1))[0])


def test_rows_of_the_greatest() -> None:
    scores, w = RNG.standard_normal((20, 8), dtype=np.float32), RNG.standard_normal((8, 40), dtype=np.float32)
    found = _found(BEST, {"T": 20, "H": 40}, {"L": scores, "W": w})["Y"][0]
    np.testing.assert_array_equal(found, w[scores.argmax(1)])


@pytest.mark.parametrize("size", [50, 130])
def test_rows_that_matmuls_find(size: int) -> None:
    x, c = (RNG.integers(-3, 4, (rows, 64)).astype(np.float32) for rows in (size, size))
    found = _found(NEAREST, {"N": size, "K": size}, {"X": x, "C": c})["Y"][0]
    np.testing.assert_array_equal(np.float32(found), c[(x @ c.T).argmax(1)])


def test_what_is_stored_goes_where_floats_say() -> None:
    x = RNG.random(40, dtype=np.float32)
    found = _found(PLACES, {"N": 40, "P": 41}, {"X": x})["Y"][0]
    np.testing.assert_array_equal(found[:40][x > 0.5], x[x > 0.5])
