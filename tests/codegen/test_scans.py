"""`cumsum` on the registers of a role: rows of some lanes, of several warps, of floats and integers; and simulated."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from xdsl.utils.test_value import create_ssa_value

from pkc.dialect.ranges import Bounded, ends
from pkc.dialect.scans import CumSumOp
from pkc.dialect.types import TileType, f32
from pkc.driver.compiler import compile_program
from pkc.frontend.parse import parse_text
from pkc.location import Source
from pkc.semantics.tile_ops import bounded
from pkc.sim.run import simulate
from tests.codegen.test_rows import run

OF_ROWS = """\
kernel rows(X: {kind}[M, {length}], Y: {kind}[M, {length}]):
    for m in tasks(blocks(M, {rows})):
        Y[m, :] = cumsum(X[m, :])
"""
OF_ONE = """\
kernel one(X: i32[N], Y: i32[N]):
    for n in tasks(blocks(N, 40)):
        Y[n] = cumsum(X[n]) - X[n]
"""


def whole(shape: tuple[int, ...]) -> np.ndarray:
    """Numbers whose sums are exact in any order."""
    return np.random.default_rng(1).integers(-1000, 1000, shape).astype(np.float64)


@pytest.mark.parametrize(
    ("rows", "length", "kind"),
    [(64, 24, "f32"), (8, 200, "i32"), (4, 21, "f32"), pytest.param(1, 1000, "f32", marks=pytest.mark.long)],
)
def test_of_rows(rows: int, length: int, kind: str) -> None:
    values = whole((rows - (rows > 1), length))
    found = run(OF_ROWS.format(kind=kind, rows=rows, length=length), {"M": len(values)}, values)
    np.testing.assert_array_equal(found, values.cumsum(axis=1))


@pytest.mark.parametrize("level", ["tile", "roles"])
def test_simulated(level: str) -> None:
    """Of what is widened, in rows that end inside of a block: what is behind them is in no sum."""
    text = """\
kernel rows(X: bf16[M, N], C: i8[N], Y: f32[M, N], I: i32[N]):
    for m, n in tasks(blocks(M, 16), blocks(N, 48)):
        Y[m, n] = cumsum(X[m, n])
    for n in tasks(blocks(N, 48)):
        I[n] = cumsum(C[n])
"""
    x, c = whole((21, 75)) / 8, whole((75,)) % 50
    inputs = {"X": x[None].astype(ml_dtypes.bfloat16), "C": c[None].astype(np.int8)}
    module = compile_program(parse_text(Source("rows.pk", text)), level=level).module
    found = simulate(module, ranks=1, dims={"M": 21, "N": 75}, inputs=inputs)
    x = inputs["X"][0].astype(np.float64)
    np.testing.assert_array_equal(found["Y"][0], np.hstack([x[:, :48].cumsum(axis=1), x[:, 48:].cumsum(axis=1)]))
    np.testing.assert_array_equal(found["I"][0], np.hstack([c[:48].cumsum(), c[48:].cumsum()]))


def test_in_any_order_a_sum_is_within_its_bound() -> None:
    op = CumSumOp(create_ssa_value(TileType((3, 200), f32)))
    x = (np.random.default_rng(2).standard_normal((3, 200)) * 1e3).astype(np.float32)
    x[1, 100:], x[2, 50] = 3e38, np.inf
    with np.errstate(over="ignore", invalid="ignore"):
        low, high = ends(bounded(op)(Bounded(x.astype(np.float64), None)))
    assert np.isfinite([low[0], high[0]]).all()
    assert low[1, 103] == np.inf
    halves = x.reshape(3, 2, 100)
    with np.errstate(over="ignore", invalid="ignore"):
        inside = np.cumsum(halves, axis=2, dtype=np.float32)
        inside[:, 1] += np.float32(0) + inside[:, :1, -1]
        found = [np.cumsum(x, axis=1, dtype=np.float32), inside.reshape(3, 200)]
    for one in found:
        assert ((one >= low) & (one <= high)).all()
    assert not ((found[0] * np.float32(1.001) >= low) & (found[0] * np.float32(1.001) <= high))[0].all()


def test_several_warps_share_a_row() -> None:
    values = whole((2, 264))
    found = run(OF_ROWS.format(kind="f32", rows=2, length=264), {"M": 2}, values)
    np.testing.assert_array_equal(found, values.cumsum(axis=1))


def test_of_a_tile_of_three_axes() -> None:
    values = whole((4, 6, 24))
    text = """\
kernel rows(X: f32[B, M, 24], Y: f32[B, M, 24]):
    for b, m in tasks(blocks(B, 4), blocks(M, 8)):
        Y[b, m, :] = cumsum(X[b, m, :])
"""
    np.testing.assert_array_equal(run(text, {"B": 4, "M": 6}, values), values.cumsum(axis=2))


def test_of_a_single_row_with_an_end() -> None:
    values = whole((29,))
    found = run(OF_ONE, {"N": 29}, values)
    np.testing.assert_array_equal(found, values.cumsum() - values)
