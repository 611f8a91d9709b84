"""The maximum and the minimum over ranks, beside the sum: values, error bounds, and every order of roles."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import pkc
from pkc.cli.main import main
from pkc.driver.compiler import compile_program
from pkc.frontend.parse import parse_text
from pkc.location import Source
from pkc.sim.reference import compare, reference
from pkc.sim.run import simulate
from tests.tiles import OVER_RANKS

REDUCE = """\
kernel k(X: {t}[M, N].symmetric(), Y: f32[M, N]):
    for m, n in tasks(blocks(M, 8), blocks(N, 16)):
        Y[m, n] = reduce(X[m, n]{by})
"""
EVERYWHERE = """\
kernel k(X: {t}[M].symmetric(), done: signal[1], Y: {t}[M]):
    with role(communicator):
        barrier(done[0])
        for m in tasks(blocks(M, 8, of=rank)):
            all_reduce(X[m]{by})
        barrier(done[0])
        for m in tasks(blocks(M, 8)):
            Y[m] = X[m]
"""
NUMPY = {"": np.sum, ", max": np.max, ", min": np.min}
TYPES = {"f32": np.float32, "bf16": ml_dtypes.bfloat16}


def drawn(element: str, *shape: int) -> np.ndarray:
    return np.random.default_rng(3).standard_normal(shape).astype(TYPES[element])


@pytest.mark.parametrize("element", TYPES)
@pytest.mark.parametrize("by", NUMPY)
@pytest.mark.parametrize("level", ["tile", "roles"])
def test_over_the_copies_of_all_ranks(by: str, element: str, level: str) -> None:
    module = compile_program(parse_text(Source("k.pk", REDUCE.format(t=element, by=by))), level=level).module
    x = drawn(element, 3, 13, 21)
    found = simulate(module, ranks=3, dims={"M": 13, "N": 21}, inputs={"X": x})["Y"]
    exact = NUMPY[by](x.astype(np.float64), axis=0)
    if by:
        assert np.array_equal(found, np.broadcast_to(exact, found.shape))
    else:
        np.testing.assert_allclose(found, np.broadcast_to(exact, found.shape), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("element", TYPES)
@pytest.mark.parametrize("by", NUMPY)
def test_stored_to_all_copies(by: str, element: str, tmp_path: Path) -> None:
    path = tmp_path / "k.pk"
    path.write_text(EVERYWHERE.format(t=element, by=by), encoding="utf-8")
    x = drawn(element, 3, 29)
    found = pkc.simulate(path, ranks=3, X=x)["Y"].astype(np.float64)
    exact = NUMPY[by](x.astype(np.float64), axis=0).astype(TYPES[element]).astype(np.float64)
    np.testing.assert_allclose(found, np.broadcast_to(exact, found.shape), rtol=0 if by else 2**-7, atol=1e-6)


def test_nan_wins_and_integers_stay() -> None:
    module = compile_program(parse_text(Source("k.pk", REDUCE.format(t="f32", by=", max")))).module
    x = np.zeros((2, 1, 2), np.float32)
    x[1, 0, 0] = np.nan
    found = simulate(module, ranks=2, dims={"M": 1, "N": 2}, inputs={"X": x})["Y"]
    assert np.isnan(found[:, 0, 0]).all() and (found[:, 0, 1] == 0).all()
    module = compile_program(parse_text(Source("k.pk", REDUCE.format(t="i32", by=", min")))).module
    given = np.array([[[5, -7]], [[-2, 9]]], np.int32)
    found = simulate(module, ranks=2, dims={"M": 1, "N": 2}, inputs={"X": given})["Y"]
    assert found.tolist() == [[[-2, -7]]] * 2


def test_the_bound_is_that_of_the_copies() -> None:
    """Sums round, the greatest of exact copies does not: its bound is zero."""
    x = drawn("f32", 2, 8, 16)
    bounds = {}
    for by in NUMPY:
        module = compile_program(parse_text(Source("k.pk", REDUCE.format(t="f32", by=by)))).module
        given = {"ranks": 2, "dims": {"M": 8, "N": 16}, "inputs": {"X": x}}
        (item,) = compare(simulate(module, **given), reference(module, **given))
        assert item.ok
        bounds[by] = item.bound_there
    assert bounds[""] > 0 == bounds[", max"] == bounds[", min"]


@pytest.mark.parametrize("by", [", max", ", min"])
def test_every_order_gives_the_same(by: str, tmp_path: Path) -> None:
    path = tmp_path / "k.pk"
    path.write_text(REDUCE.format(t="f32", by=by), encoding="utf-8")
    assert main(["check", str(path), "--ranks", "2", "--set", "M=13,N=21"]) == 0


@pytest.mark.parametrize("level", ["tile", "roles"])
@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_statements_of_several_tasks_contribute_to_one_sum(ranks: int, level: str) -> None:
    """Each rank has its rows of X, and all of Z."""
    module = compile_program(parse_text(Source("k.pk", OVER_RANKS["clip_norms"])), level=level).module
    x, z = drawn("bf16", 70, 140), drawn("f32", ranks, 140)
    found = simulate(module, ranks=ranks, dims={"M": 70, "N": 140}, inputs={"X": x, "Z": z})
    exact_x, exact_z = x.astype(np.float64), z.astype(np.float64)
    total = (exact_x**2).sum() + (exact_z**2).sum() + 0.5 * ranks
    scale = min(1.0, 3.0 / np.sqrt(total))
    # Each of 70 * 140 squares is added in f32, in some order: half of 2^-23 for each of them.
    bound = (70 * 140 + 140 * ranks) * 2.0**-24
    np.testing.assert_allclose(found["norm"], [total], rtol=bound)
    np.testing.assert_allclose(found["Y"], exact_x * scale, rtol=bound)
    np.testing.assert_allclose(found["S"], exact_z * scale, rtol=bound)


@pytest.mark.parametrize("level", ["tile", "roles"])
@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_sums_in_no_order_into_arrays_of_three_axes(ranks: int, level: str) -> None:
    """Beside what the loop carries; heads are numbers, and there are fewer of them than ranks."""
    module = compile_program(parse_text(Source("k.pk", OVER_RANKS["added_heads"])), level=level).module
    x, y = drawn("bf16", ranks, 2, 70, 64), drawn("bf16", ranks, 2, 70, 64)[..., ::-1].copy()
    found = simulate(module, ranks=ranks, dims={"B": 2, "M": 70}, inputs={"X": x, "Y": y})
    exact_x, exact_y = x.astype(np.float64), y.astype(np.float64)
    products = exact_y @ exact_x.swapaxes(-1, -2)
    # Each of the 70 products is rounded to bf16, to half of 2^-8.
    rtol, atol = 2.0**-6, 2.0**-8 * np.abs(products).max() * 70**0.5
    np.testing.assert_allclose(found["Z"].astype(np.float64), products @ exact_x, rtol, atol)
    summed = (products.swapaxes(-1, -2) @ exact_y).sum(axis=0)
    np.testing.assert_allclose(found["R"], summed, rtol, atol)
    np.testing.assert_allclose(found["S"], 2 * 2 * exact_x.sum(axis=0), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.parametrize("level", ["tile", "roles"])
def test_a_sum_is_scaled_by_its_owner(ranks: int, level: str) -> None:
    """By scalars, computed ones among them, and by an element of each rank, above a row that a scalar says."""
    module = compile_program(parse_text(Source("k.pk", OVER_RANKS["rs_scalars_after"])), level=level).module
    x, w = drawn("f32", ranks, 70, 140), drawn("f32", ranks, 8)
    given = {"X": x, "w": w, "s": 0.75, "count": 41}
    found = simulate(module, ranks=ranks, dims={"M": 70, "N": 140}, inputs=given)["Y"]
    total, factors = x.astype(np.float64).sum(axis=0), w.astype(np.float64)
    owner = np.minimum(np.arange(70) // -(-70 // ranks), ranks - 1)
    above = total * factors[owner, owner][:, None] + factors[owner, 0][:, None]
    below = total * (0.75 / ranks + factors[owner, 7])[:, None]
    exact = np.where(np.arange(70)[:, None] < 41, above, below)
    np.testing.assert_allclose(found, exact, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("level", ["tile", "roles"])
def test_a_product_that_is_summed_is_scaled_by_its_owner(level: str) -> None:
    module = compile_program(parse_text(Source("k.pk", OVER_RANKS["rs_scaled_after"])), level=level).module
    a, b = drawn("bf16", 3, 70, 50), drawn("bf16", 3, 50, 140)
    sizes = {"M": 70, "K": 50, "N": 140}
    found = simulate(module, ranks=3, dims=sizes, inputs={"A": a, "B": b, "s": 1 / 3})["C"].astype(np.float64)
    parts = a.astype(np.float64) @ b.astype(np.float64)
    exact = parts.sum(axis=0) / 3
    # Contributions, their sum and the result are rounded to bf16, each by 2^-8 of itself.
    bound = (np.abs(parts).sum(axis=0) / 3 + 2 * np.abs(exact)) * 2.0**-8
    assert (np.abs(found - exact) <= bound * 1.01 + 1e-4).all()
