"""Sums of more shares than there are tasks for, by both levels, against numpy."""

from __future__ import annotations

import numpy as np
import pytest

from pkc.driver.compiler import compile_program
from pkc.frontend.parse import parse_text
from pkc.location import Source
from pkc.sim.draw import draw_inputs
from pkc.sim.run import simulate

NUMBERS = """
kernel numbers(X: f32[M], Y: f32[M], S: f32[1].replicate(), T: f32[1].replicate()):
    for m in tasks(M):
        Y[m] = X[m] * 2.0
        S[0] += X[m]
        if m > 3:
            T[0] += X[m] * X[m]
"""

COLUMNS = """
kernel columns(X: f32[B, M, 2], S: f32[2].replicate()):
    for b, m in tasks(B, M):
        S[:] += X[b, m, :]
"""

SMALL = """
kernel small(X: f32[B, M, H, 2], S: f32[H].replicate()):
    for b, m, h in tasks(B, M, H):
        for i in range(2):
            S[h] += X[b, m, h, i] * X[b, m, h, i]
"""

INNER = """
kernel inner(X: f32[M, N], S: f32[N].replicate()):
    for m in tasks(blocks(M, 16)):
        for n in blocks(N, 16):
            S[n] += rowsum(X[m, n].T)
"""

TABLE = """
kernel table(X: f32[M, N], r: i32[M], S: f32[L, N].replicate(), T: f32[N].replicate()):
    for m, n in tasks(blocks(M, 16), blocks(N, 16)):
        S[r[m], n] += X[m, n]
        T[n] += rowsum(X[m, n].T)
"""

NORM = """
kernel norm(X: bf16[M, {n}], dY: bf16[M, {n}], w: f32[{n}], dX: bf16[M, {n}], {arrays}):
    for m in tasks({tasks}):
        x = cast(X[m, :], f32)
        g = cast(dY[m, :], f32)
        mean = rowsum(x) / {n}.0
        r = rsqrt(rowsum((x - mean) * (x - mean)) / {n}.0 + 0.00001)
        h = (x - mean) * r
        gw = g * w[:]
        c1 = rowsum(gw * h) / {n}.0
        c2 = rowsum(gw) / {n}.0
        dX[m, :] = (gw - c2 - h * c1) * r
{sums}
"""


@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.parametrize(("length", "count"), [(4096, 2), (4096, 3), (8192, 3)])
def test_sums_fit_into_registers(length: int, count: int, rows: int) -> None:
    """All sums of a set of tasks, beside what a task needs."""
    shares = ["g * h", "g", "g * g"][:count]
    arrays = ", ".join(f"S{i}: f32[{length}].replicate()" for i in range(count))
    sums = "\n".join(
        f"        S{i}[:] += " + (share if rows == 1 else f"rowsum(({share}).T)") for i, share in enumerate(shares)
    )
    tasks = "M" if rows == 1 else f"blocks(M, {rows})"
    text = NORM.format(n=length, arrays=arrays, tasks=tasks, sums=sums)
    compiled = compile_program(parse_text(Source("k.pk", text.strip() + "\n")), level="roles")
    assert not any("contributes by itself" in str(remark) for remark in compiled.remarks)


@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize("count", [5, 1024, 2051])
def test_one_index(count: int, ranks: int) -> None:
    inputs, found = _found(NUMBERS, {"M": count}, ranks)
    x = inputs["X"].astype(np.float64).reshape(ranks, count)
    error = np.abs(x).sum() * 2.0**-20
    np.testing.assert_array_equal(found["Y"].reshape(ranks, count), inputs["X"].reshape(ranks, count) * 2)
    np.testing.assert_allclose(found["S"].ravel()[0], x.sum(), atol=error)
    np.testing.assert_allclose(found["T"].ravel()[0], (x[:, 4:] ** 2).sum(), rtol=2.0**-18)


def test_two_indices() -> None:
    inputs, found = _found(COLUMNS, {"B": 3, "M": 1030}, 1)
    x = inputs["X"].astype(np.float64).reshape(-1, 2)
    np.testing.assert_allclose(found["S"].reshape(-1, 2)[0], x.sum(0), atol=np.abs(x).sum() * 2.0**-20)


@pytest.mark.parametrize("dims", [{"B": 1, "M": 1030, "H": 2}, {"B": 1030, "M": 1, "H": 1}, {"B": 3, "M": 400, "H": 1}])
def test_indices_are_counted_together(dims: dict[str, int]) -> None:
    inputs, found = _found(SMALL, dims, 1)
    x = inputs["X"].astype(np.float64).reshape(-1, dims["H"], 2)
    np.testing.assert_allclose(found["S"].ravel(), (x**2).sum((0, 2)), atol=(x**2).sum() * 2.0**-20)


def test_tiles_of_an_inner_loop() -> None:
    inputs, found = _found(INNER, {"M": 40, "N": 24}, 1)
    x = inputs["X"].astype(np.float64).reshape(40, 24)
    np.testing.assert_allclose(found["S"].ravel(), x.sum(0), atol=abs(x).sum() * 2.0**-20)


def test_beside_rows_of_a_table() -> None:
    inputs, found = _found(TABLE, {"M": 40, "N": 24, "L": 3}, 1)
    x = inputs["X"].astype(np.float64).reshape(40, 24)
    np.testing.assert_allclose(found["T"].ravel(), x.sum(0), atol=abs(x).sum() * 2.0**-20)


def _found(text: str, dims: dict[str, int], ranks: int) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Inputs, and what the roles level makes of them: the same bits as the tile level."""
    program = parse_text(Source("k.pk", text.strip() + "\n"))
    tile, roles = (compile_program(program, level=level) for level in ("tile", "roles"))
    inputs = draw_inputs(tile.module, ranks=ranks, dims=dims, seed=1)
    expected = simulate(tile.module, ranks=ranks, dims=dims, inputs=inputs)
    found = simulate(roles.module, ranks=ranks, dims=dims, inputs=inputs, seed=2, ctas=3)
    assert {key: value.tobytes() for key, value in found.items()} == {
        key: value.tobytes() for key, value in expected.items()
    }
    return inputs, found
