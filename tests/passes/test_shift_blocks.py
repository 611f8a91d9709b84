"""Tiles at shifted blocks, by both levels, against numpy: ends that lie inside of arrays, and past them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pkc.driver.autoschedule import autoschedule
from pkc.driver.compiler import compile_program
from pkc.frontend.parse import parse_text
from pkc.location import Source
from pkc.sim.draw import draw_inputs
from pkc.sim.run import simulate

PACKED = """
kernel packed(X: bf16[M, K], W: bf16[K, L], Y: f32[M, N]):
    for m, n in tasks(blocks(M, 64), blocks(N, 32)):
        g = zeros(f32, m, n)
        u = zeros(f32, m, n)
        for k in blocks(K, 32):
            g += X[m, k] @ W[k, n + 0]
            u += X[m, k] @ W[k, N + n]
        Y[m, n] = g - u
"""

INNER = """
kernel inner(X: bf16[M, L], W: bf16[K, N], Y: f32[M, N]):
    for m, n in tasks(blocks(M, 64), blocks(N, 32)):
        acc = zeros(f32, m, n)
        for k in blocks(K, 32):
            acc += X[m, k + 16] @ W[k, n]
        Y[m, n] = acc
"""

TAPS = """
kernel taps(X: f32[M, 64], Y: f32[M, 64], S: f32[M]):
    for m in tasks(blocks(M, 16)):
        total = zeros(f32, m, 64)
        for i in range(3):
            total = total + X[m + 5 * i, :]
        Y[m, :] = total
        S[m] = rowsum(X[m + 1, :])
"""

STORED = """
kernel stored(A: f32[M, N], B: f32[M, K], Y: f32[M, L]):
    for m, n in tasks(blocks(M, 16), blocks(N, 32)):
        Y[m, n + 0] = A[m, n]
    for m, k in tasks(blocks(M, 16), blocks(K, 32)):
        Y[m, N + k] = B[m, k] * 2.0
"""

HALVES = """
kernel halves(X: f32[M, 64], Y: f32[M, 64]):
    for m in tasks(blocks(M, 16)):
        for d in blocks(32, 32):
            Y[m, d + 0] = X[m, d + 32]
            Y[m, d + 32] = X[m, d + 0] * 3.0
"""


@pytest.mark.parametrize("length", [144, 180, 150, 100, 80, 40])
def test_columns_of_an_operand(length: int) -> None:
    inputs, found = _found(PACKED, {"M": 70, "K": 72, "N": 90, "L": length}, "pk.load")
    x, w = (inputs[name].reshape(inputs[name].shape[-2:]).astype(np.float64) for name in "XW")
    wide = np.zeros((72, 180))
    wide[:, :length] = w[:, :180]
    _compare(found["Y"], x @ wide[:, :90] - x @ wide[:, 90:], 1e-3)


@pytest.mark.parametrize("length", [104, 72, 40])
def test_what_is_summed_over(length: int) -> None:
    inputs, found = _found(INNER, {"M": 70, "K": 72, "N": 40, "L": length}, "pk.load")
    x, w = (inputs[name].reshape(inputs[name].shape[-2:]).astype(np.float64) for name in "XW")
    wide = np.zeros((70, 88))
    wide[:, : min(length, 88)] = x[:, :88]
    _compare(found["Y"], wide[:, 16:] @ w, 1e-3)


@pytest.mark.parametrize("rows", [1, 37, 64])
def test_rows(rows: int) -> None:
    inputs, found = _found(TAPS, {"M": rows}, "pk.load")
    x = np.zeros((rows + 10, 64))
    x[:rows] = inputs["X"].reshape(rows, 64)
    _compare(found["Y"], x[:rows] + x[5 : rows + 5] + x[10 : rows + 10], 1e-5)
    _compare(found["S"], x[1 : rows + 1].sum(1), 1e-4)


BEFORE = """
kernel before(X: f32[M, 64], A: f32[2, L, 64], Y: f32[M, 64], Z: f32[M, 64], T: f32[M, 64]):
    for m in tasks(blocks(M, 16)):
        total = zeros(f32, m, 64)
        for i in range(3):
            total = total + X[m - 20 + 5 * i, :]
        Y[m, :] = total
        Z[m, :] = A[1, m - 1, :] * 2.0
        T[m, :] = X[m - 1 + (M // 2 - M), :] + 1.0
"""


@pytest.mark.parametrize(("rows", "length"), [(1, 1), (37, 37), (64, 70), (64, 50), (18, 3)])
def test_rows_in_front_of_the_array(rows: int, length: int) -> None:
    inputs, found = _found(BEFORE, {"M": rows, "L": length}, "pk.load")
    x = np.zeros((rows + 20, 64))
    x[20:] = inputs["X"].reshape(rows, 64)
    _compare(found["Y"], x[:rows] + x[5 : rows + 5] + x[10 : rows + 10], 1e-5)
    a = np.zeros((rows + length, 64))
    a[1 : length + 1] = inputs["A"].reshape(2, length, 64)[1]
    _compare(found["Z"], 2 * a[:rows], 0)
    later = rows - rows // 2 + 1
    t = np.zeros((rows + later, 64))
    t[later:] = inputs["X"].reshape(rows, 64)
    _compare(found["T"], t[:rows] + 1, 1e-6)


@pytest.mark.parametrize("length", [120, 100, 60])
def test_stores(length: int) -> None:
    inputs, found = _found(STORED, {"M": 35, "N": 70, "K": 50, "L": length}, "pk.store")
    a, b = (inputs[name].reshape(35, -1).astype(np.float64) for name in "AB")
    _compare(found["Y"], np.concatenate([a, 2 * b], 1)[:, :length], 0)


def test_halves() -> None:
    inputs, found = _found(HALVES, {"M": 35}, "pk.store")
    x = inputs["X"].reshape(35, 64).astype(np.float64)
    _compare(found["Y"], np.concatenate([x[:, 32:], (3 * inputs["X"]).reshape(35, 64)[:, :32]], 1), 0)


def _compare(found: Any, expected: Any, error: float) -> None:
    np.testing.assert_allclose(np.asarray(found, np.float64).reshape(expected.shape), expected, rtol=0, atol=error)


def _found(text: str, dims: dict[str, int], op: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Inputs, and what the roles level makes of them: the same bits as the tile level, and of blocks alone."""
    program = parse_text(Source("k.pk", text.strip() + "\n"))
    tile, roles = (compile_program(program, level=level) for level in ("tile", "roles"))
    names = {found.name for found in tile.kernel.walk()}
    assert op in names and not names & {"pk.gather", "pk.scatter_store", "pk.positions"}
    inputs = draw_inputs(tile.module, ranks=1, dims=dims, seed=1)
    expected = simulate(tile.module, ranks=1, dims=dims, inputs=inputs)
    found = simulate(roles.module, ranks=1, dims=dims, inputs=inputs, seed=2, ctas=3)
    assert {key: value.tobytes() for key, value in found.items()} == {
        key: value.tobytes() for key, value in expected.items()
    }
    return inputs, found


def test_the_schedule_sets_sizes_of_the_programs_blocks() -> None:
    """Not of the dimension that a shifted block lies in, of which the program has no blocks."""
    program = parse_text(Source("k.pk", PACKED.strip() + "\n"))
    found = autoschedule(program, dims={"M": 4096, "K": 1024, "N": 4096, "L": 8192}, ranks=1, measured=False)
    tiles = {key for key in found.schedule if key.startswith("tile_")}
    assert tiles <= {"tile_M", "tile_N", "tile_K"}
    assert tiles  # blocks of 64 by 32 are too small
