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
