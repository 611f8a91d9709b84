"""Tasks that read what they write: what is accepted, and what helps where it is not (PK404)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pkc.cli.main import main
from pkc.diagnostics import PkcError
from pkc.driver.compiler import compile_program
from pkc.frontend.parse import parse_text
from pkc.location import Source
from pkc.sim.run import simulate

RNG = np.random.default_rng(7)

PAIRS = """
kernel pairs(X: f32[T, 64, 2], c: f32[T, 64], s: f32[T, 64]):
    for t in tasks(blocks(T, 16)):
        a = X[t, :, 0]
        b = X[t, :, 1]
        X[t, :, 0] = a * c[t, :] - b * s[t, :]
        X[t, :, 1] = b * c[t, :] + a * s[t, :]
"""
BOTH = """
kernel both(X: f32[2, T, 64], Y: f32[T, 64]):
    for t in tasks(blocks(T, 16)):
        Y[t, :] = X[1, t, :] * 3.0
        X[0, t, :] = full(f32, 2.0, t, 64)
"""
EACH = """
kernel each(X: f32[T, 64, 2]):
    for t in tasks(blocks(T, 16)):
        a = X[t, :, 0]
        for i in range(2):
            X[t, :, i] = a * 2.0
"""
PICKED = """
kernel picked(X: f32[M, N], i: i32[M], Y: f32[M], N: const = 256):
    for m in tasks(M):
        x = X[m, :]
        Y[m] = rowsum(where(positions(N) == i[m], x, 0.0))
        X[m, :] = x * 2.0
"""
COLLECTED = """
kernel collected(S: f32[M, K], W: f32[M, K], K: const = 8):
    for m in tasks(blocks(M, 16)):
        total = zeros(f32, m)
        w = zeros(f32, m, K)
        for k in range(K):
            e = exp(S[m, k])
            w = where(positions(K) == k, e, w)
            total += e
        W[m, :] = w / total
"""
PHASES = """
kernel phases(S: f32[M, K], E: f32[M, K].scratch(), total: f32[M].scratch(), W: f32[M, K], K: const = 8):
    for m in tasks(blocks(M, 16)):
        t = zeros(f32, m)
        for k in range(K):
            e = exp(S[m, k])
            E[m, k] = e
            t += e
        total[m] = t
    for m in tasks(blocks(M, 16)):
        for k in range(K):
            W[m, k] = E[m, k] / total[m]
"""

SLOTS = """
kernel slots(X: f32[B, N], slot: i32[B], S: f32[P, N], Y: f32[B, N]):
    for b, n in tasks(B, blocks(N, 32)):
        s = S[slot[b], n] * 0.5 + X[b, n]
        S[slot[b], n] = s
        Y[b, n] = s * 2.0
"""


def _found(text: str, dims: dict[str, int], inputs: dict[str, Any]) -> dict[str, Any]:
    """What a kernel computes, the same at both levels and in several orders."""
    program = parse_text(Source("k.pk", text.lstrip()))
    tile, roles = (compile_program(program, level=level).module for level in ("tile", "roles"))
    given = {name: value[None] for name, value in inputs.items()}
    expected = simulate(tile, ranks=1, dims=dims, inputs=given)
    for seed in range(3):
        found = simulate(roles, ranks=1, dims=dims, inputs=given, seed=seed, ctas=2)
        for name, value in expected.items():
            np.testing.assert_array_equal(found[name], value)
    return {name: value[0] for name, value in expected.items()}


@pytest.mark.parametrize("rows", [1, 16, 37])
def test_pairs_at_constants(rows: int) -> None:
    x = RNG.standard_normal((rows, 64, 2), dtype=np.float32)
    c, s = RNG.standard_normal((2, rows, 64), dtype=np.float32)
    a, b = x[..., 0], x[..., 1]
    found = _found(PAIRS, {"T": rows}, {"X": x, "c": c, "s": s})["X"]
    np.testing.assert_allclose(found, np.stack([a * c - b * s, b * c + a * s], -1), atol=1e-5)


def test_what_is_written_elsewhere_need_not_follow() -> None:
    x = RNG.standard_normal((2, 20, 64), dtype=np.float32)
    found = _found(BOTH, {"T": 20}, {"X": x})
    np.testing.assert_array_equal(found["Y"], x[1] * np.float32(3))
    np.testing.assert_array_equal(found["X"], np.stack([np.full((20, 64), 2, np.float32), x[1]]))


def test_a_row_that_a_table_names_alike_is_the_same_tile() -> None:
    x, s = RNG.standard_normal((3, 40), dtype=np.float32), RNG.standard_normal((7, 40), dtype=np.float32)
    slot = np.array([5, 0, 3], np.int32)
    found = _found(SLOTS, {"B": 3, "P": 7, "N": 40}, {"X": x, "S": s, "slot": slot})
    new = s[slot] * np.float32(0.5) + x
    np.testing.assert_array_equal(found["Y"], new * 2)
    s[slot] = new
    np.testing.assert_array_equal(found["S"], s)


def test_every_order_of_pairs(tmp_path: Any) -> None:
    path = tmp_path / "pairs.pk"
    path.write_text(PAIRS.lstrip(), encoding="utf-8")
    assert main(["check", str(path), "--ranks", "1", "--seeds", "2"]) == 0


def test_numbers_of_a_loop_are_no_constants() -> None:
    with pytest.raises(PkcError) as raised:
        compile_program(parse_text(Source("k.pk", EACH.lstrip())))
    assert [found.code for found in raised.value.diagnostics] == ["PK404"]


def test_an_element_is_picked_out_of_its_row() -> None:
    x, i = RNG.standard_normal((5, 256), dtype=np.float32), RNG.integers(0, 256, 5).astype(np.int32)
    found = _found(PICKED, {"M": 5}, {"X": x, "i": i})
    np.testing.assert_array_equal(found["Y"], x[np.arange(5), i])
    np.testing.assert_array_equal(found["X"], x * 2)


@pytest.mark.parametrize("text", [COLLECTED, PHASES], ids=["collected", "phases"])
def test_what_a_task_has_made_is_used_again(text: str) -> None:
    s = RNG.standard_normal((37, 8), dtype=np.float32)
    expected = np.exp(s.astype(np.float64))
    found = _found(text, {"M": 37}, {"S": s})["W"]
    np.testing.assert_allclose(found, expected / expected.sum(1, keepdims=True), rtol=1e-5)
