"""The probable bound: roundings to nearest stay within it, it is of use, and roundings with a bias may exceed it."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from pkc.dialect import reduction_bounds
from pkc.dialect.numeric import UNIT
from pkc.dialect.probable_bounds import LAMBDA, sum_of_row
from pkc.dialect.ranges import Bounded
from pkc.driver import results
from pkc.driver.compiler import compile_program
from pkc.frontend.parse import parse_text
from pkc.location import Source
from pkc.sim.draw import draw_inputs
from pkc.sim.reference import Comparison, Expected, compare, reference
from pkc.sim.run import simulate

Values = np.ndarray[Any, Any]

GEMM = """\
kernel gemm(A: bf16[M, K], B: bf16[K, N], C: f32[M, N]):
    for m, n in tasks(blocks(M, 16), blocks(N, 16)):
        acc = zeros(f32, m, n)
        for k in blocks(K, 64):
            acc += A[m, k] @ B[k, n]
        C[m, n] = acc
"""
ROWS = 24

SOFTMAX = """\
kernel softmax(X: f32[M, N], Y: f32[M, N], N: const):
    for m in tasks(blocks(M, 8)):
        x = X[m, :]
        e = exp(x - rowmax(x))
        Y[m, :] = e / rowsum(e)
"""


def rounded(values: Values) -> Values:
    return values.astype(np.float32).astype(np.float64)


def cut(values: Values) -> Values:
    """Rounded to f32 towards zero, as tensor cores do."""
    near = rounded(values)
    return np.where(np.abs(near) > np.abs(values), np.nextafter(near.astype(np.float32), np.float32(0)), near)


def inputs_of(k: int, *, positive: bool, seed: int = 0) -> dict[str, Values]:
    random = np.random.default_rng(seed)
    draw = random.random if positive else random.standard_normal
    return {name: draw((1, *shape)).astype(ml_dtypes.bfloat16) for name, shape in (("A", (ROWS, k)), ("B", (k, ROWS)))}


def expected_of(inputs: dict[str, Values]) -> Expected:
    module = compile_program(parse_text(Source("gemm.pk", GEMM))).module
    return reference(module, ranks=1, dims={}, inputs=inputs, probable=True)["C"]


def one_by_one(inputs: dict[str, Values], rounding: Any) -> Values:
    """The products added in order to an f32, each addition rounded; the products are exact."""
    a, b = (inputs[name][0].astype(np.float64) for name in ("A", "B"))
    acc = np.zeros((ROWS, ROWS))
    for k in range(a.shape[1]):
        acc = rounding(acc + np.outer(a[:, k], b[k]))
    return acc[None]


def compared(expected: Expected, found: Values) -> Comparison:
    (item,) = compare({"C": found}, {"C": expected})
    return item


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("k", [64, 1024, 4096])
def test_roundings_to_nearest_stay_within(k: int, positive: bool) -> None:
    inputs = inputs_of(k, positive=positive)
    expected = expected_of(inputs)
    item = compared(expected, one_by_one(inputs, rounded))
    assert item.max_error > 0
    assert item.ok
    assert item.worst_ratio <= item.probable_ratio <= 1


@pytest.mark.parametrize("k", [64, 1024, 4096])
def test_it_grows_as_the_root(k: int) -> None:
    """Against the formula for one sum of all products, in which no partial sum exceeds the norms of row and column."""
    inputs = inputs_of(k, positive=False)
    expected = expected_of(inputs)
    a, b = (inputs[name][0].astype(np.float64) for name in ("A", "B"))
    norms = np.outer(np.linalg.norm(a, axis=1), np.linalg.norm(b, axis=0))
    assert expected.probable is not None
    # Of 64 products at a time the norms are smaller, and the sum before them is at most the norms of all.
    assert (expected.probable[0] <= 2 * LAMBDA * math.sqrt(k) * 2 * UNIT * norms).all()
    ratio = expected.probable / expected.bound
    assert ratio.min() > 0.9 * min(1, LAMBDA / math.sqrt(k))
    assert ratio.max() < 1.6 * LAMBDA / math.sqrt(k)


def test_cutting_off_has_a_mean_of_zero_only_where_signs_are_random() -> None:
    signed, positive = (inputs_of(4096, positive=positive) for positive in (False, True))
    assert compared(expected_of(signed), one_by_one(signed, cut)).probable_ratio <= 1
    biased = compared(expected_of(positive), one_by_one(positive, cut))
    assert biased.ok
    assert biased.probable_ratio > 1
    (warning,) = results.improbable([biased])
    assert warning == (
        "warning: `C` is further off than is probable; an element is with a probability of 2.5e-14 if roundings have"
        " mean zero"
    )


@pytest.mark.parametrize("count", [16, 64, 256, 16384])
def test_row_sums(count: int) -> None:
    rows = np.random.default_rng(1).random((200, count)).astype(np.float32)
    found = np.cumsum(rows, axis=-1, dtype=np.float32)[:, -1]
    tile = Bounded(rows.astype(np.float64), None, True)
    exact = tile.value.sum(axis=-1)
    likely, worst = sum_of_row(exact, tile), reduction_bounds.sum_of_row(exact, tile)
    assert likely.error is not None
    assert worst.error is not None
    assert (np.abs(found - exact) <= likely.error).all()
    np.testing.assert_allclose(likely.error / worst.error, min(1, LAMBDA / math.sqrt(count)), rtol=1e-12)


def test_the_errors_of_a_row_add_up() -> None:
    """They may have a cause in common, such as the maximum of a softmax."""
    tile = Bounded(np.ones((1, 1024)), np.full((1, 1024), 1e-3), True)
    likely = sum_of_row(np.array([1024.0]), tile)
    assert likely.error is not None
    assert likely.error[0] >= 1.024


def test_a_run_stays_within() -> None:
    module = compile_program(parse_text(Source("softmax.pk", SOFTMAX)), constants={"N": 1000}).module
    dims = {"M": 40}
    inputs = draw_inputs(module, ranks=1, dims=dims, seed=3)
    expected = reference(module, ranks=1, dims=dims, inputs=inputs, probable=True)
    (item,) = compare(simulate(module, ranks=1, dims=dims, inputs=inputs), expected)
    assert item.ok
    assert item.worst_ratio < item.probable_ratio <= 1
    assert results.improbable([item]) == []


def test_an_infinity_keeps_its_bound() -> None:
    inputs = inputs_of(64, positive=True)
    inputs["A"][0, 0, 0] = np.inf
    inputs["A"][0, 1, :] = 3e38
    expected = expected_of(inputs)
    infinite = np.isinf(expected.value)
    assert infinite[0, 0].all()
    assert infinite[0, 1].all()
    assert expected.probable is not None
    assert np.array_equal(expected.probable[infinite], expected.bound[infinite])
    assert (expected.probable <= expected.bound).all()


def test_a_sum_that_may_overflow_on_the_way_has_no_bound() -> None:
    inputs = inputs_of(64, positive=True)
    inputs["A"][0, 0, :4] = [3e38, 3e38, -3e38, -3e38]
    inputs["B"][0, :4, :] = 1
    expected = expected_of(inputs)
    assert np.isinf(expected.bound[0, 0]).all()
    assert expected.probable is not None
    assert np.isinf(expected.probable[0, 0]).all()
