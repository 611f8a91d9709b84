"""Whole dimensions of few elements that MMAs have padded: right against numpy, and the same bits at both levels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from pkc.codegen.build import machine_level
from pkc.dialect.tile import AnyMmaOp, tile_type
from pkc.driver.compiler import Compiled, compile_program
from pkc.frontend.parse import parse_text
from pkc.location import Source
from pkc.sim.draw import draw_inputs
from pkc.sim.reference import compare, reference
from pkc.sim.run import simulate
from tests.tiles import EPILOGUES

Arrays = Mapping[str, np.ndarray[Any, Any]]
DIMS = {"M": 150, "N": 136, "K": 72}


def low_rank(of: Arrays) -> dict[str, Any]:
    return {"Y": of["X"] @ of["W"] + of["X"] @ of["A"] @ of["B"]}


def route(of: Arrays) -> dict[str, Any]:
    s = of["X"] @ of["W"] + of["b"][:, None, :]
    p = np.exp(s - s.max(-1, keepdims=True))
    return {"P": p / p.sum(-1, keepdims=True), "top": s.max(-1)}


def rows(of: Arrays) -> dict[str, Any]:
    return {"Y": of["X"] @ of["W"]}


def attention(of: Arrays) -> dict[str, Any]:
    p = np.exp(of["Q"] @ of["K"].swapaxes(1, 2) * 0.15625)
    return {"O": p @ of["V"] / p.sum(-1, keepdims=True)}


CASES: dict[tuple[str, str, int], Callable[[Arrays], dict[str, Any]]] = {
    ("low_rank", "R", 8): low_rank,
    ("low_rank", "R", 20): low_rank,
    ("low_rank", "R", 1): low_rank,
    ("route_20", "E", 20): route,
    ("route_20", "E", 9): route,
    ("rows_20", "R", 20): rows,
    ("rows_20", "R", 9): rows,
    ("attention_40", "D", 40): attention,
    ("attention_40", "D", 36): attention,
}


def _compiled(name: str, level: str, constants: Mapping[str, int]) -> Compiled:
    program = parse_text(Source(name, EPILOGUES[name]).remember())
    return compile_program(program, constants=constants, level=level)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_padded_axes_change_nothing(case: tuple[str, str, int]) -> None:
    name, constant, length = case
    tile, roles = (_compiled(name, level, {constant: length}) for level in ("tile", "roles"))
    mmas = [op for op in tile.kernel.walk() if isinstance(op, AnyMmaOp)]
    shapes = {(tile_type(op.a).shape[1] % 16, tile_type(op.b).shape[1] % 16) for op in mmas}
    assert mmas and shapes == {(0, 0)}
    assert machine_level(roles.kernel) is not None
    used = {dim for op in tile.kernel.body.block.args for dim in getattr(op.type, "dimensions", ())}
    dims = {dim: size for dim, size in DIMS.items() if dim in used}
    inputs = draw_inputs(tile.module, ranks=1, dims=dims, seed=length)
    expected = reference(tile.module, ranks=1, dims=dims, inputs=inputs)
    outputs = simulate(tile.module, ranks=1, dims=dims, inputs=inputs, seed=1)
    wide = {array: np.asarray(value, np.float64) for array, value in inputs.items() if np.ndim(value)}
    for array, want in CASES[case](wide).items():
        np.testing.assert_allclose(expected[array].value, want, rtol=1e-9, atol=1e-9)
    assert all(item.ok for item in compare(outputs, expected))
    again = simulate(roles.module, ranks=1, dims=dims, inputs=inputs, seed=2, ctas=2)
    for array, got in again.items():
        np.testing.assert_array_equal(got, outputs[array])


def test_infinities_stay_in_their_rows() -> None:
    """Past the end of a padded axis, an infinity times zero would be NaN in what is summed over next."""
    tile = _compiled("low_rank", "tile", {"R": 8})
    inputs = dict(draw_inputs(tile.module, ranks=1, dims=DIMS, seed=3))
    inputs["X"] = np.abs(inputs["X"])
    inputs["X"][:, 5, 7] = np.inf
    for name in ("W", "A", "B"):
        inputs[name] = np.abs(inputs[name]) + np.ones((), inputs[name].dtype)
    outputs = simulate(tile.module, ranks=1, dims=DIMS, inputs=inputs, seed=1)
    got = np.asarray(outputs["Y"], np.float64)
    assert np.isposinf(got[:, 5]).all()
    assert np.isfinite(np.delete(got, 5, axis=1)).all()


WRITTEN = """\
kernel k(X: bf16[M, 64], A: bf16[64, R], Y: f32[M, R], R: const = 20):
    with role(consumer):
        for m in tasks(blocks(M, 64)):
            Y[m, :] = X[m, :] @ A[:, :]
"""


def test_roles_that_an_author_wrote() -> None:
    """Each has the padded block for itself."""
    program = parse_text(Source("written.pk", WRITTEN).remember())
    tile, roles = (compile_program(program, level=level) for level in ("tile", "roles"))
    assert machine_level(roles.kernel) is not None
    inputs = draw_inputs(tile.module, ranks=1, dims={"M": 150}, seed=1)
    expected = reference(tile.module, ranks=1, dims={"M": 150}, inputs=inputs)
    want = np.asarray(inputs["X"], np.float64) @ np.asarray(inputs["A"], np.float64)
    np.testing.assert_allclose(expected["Y"].value, want, rtol=1e-9, atol=1e-9)
    for level in (tile, roles):
        assert all(
            item.ok for item in compare(simulate(level.module, ranks=1, dims={"M": 150}, inputs=inputs), expected)
        )
