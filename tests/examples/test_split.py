"""Products whose sums are divided among tasks: right at the tile level, and the same bits at the roles level."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from pkc.driver.compiler import Compiled
from pkc.sim.draw import draw_inputs
from pkc.sim.reference import compare, reference
from pkc.sim.run import simulate
from tests.examples.test_examples import CASES, compiled
from tests.sweeps import sweep

PRODUCTS = ("gemm", "ag_gemm", "gemm_rs", "gemm_ar")
OVERLAPS = ("none", "intra_sm", "inter_sm", "push")

SIZES = {
    "divisible": {"M": 96, "N": 64, "K": 512},
    "ragged": {"M": 71, "N": 77, "K": 300},
    "short": {"M": 3, "N": 40, "K": 80},
}
"""16 blocks of K in parts alike; 10 blocks in parts that differ; 3 blocks, so that one of four parts has none."""


def split(name: str, parts: int, overlap: str, level: str) -> Compiled:
    tiles = {"tile_M": "32", "tile_N": "32", "tile_K": "32", "split_K": str(parts)}
    chosen = {} if overlap == "default" else {"transfer": "push"} if overlap == "push" else {"overlap": overlap}
    return compiled(name, level, *tiles.items(), *chosen.items())


OFTEN = ((1, "divisible"), (2, "divisible"), (3, "ragged"), (4, "short"))


@pytest.mark.parametrize(("ranks", "size"), sweep(product((1, 2, 3, 4), SIZES), lambda *case: case in OFTEN))
@pytest.mark.parametrize("parts", [2, 4])
@pytest.mark.parametrize("name", PRODUCTS)
def test_split(name: str, parts: int, ranks: int, size: str) -> None:
    module, dims = split(name, parts, "default", "tile").module, SIZES[size]
    inputs = draw_inputs(module, ranks=ranks, dims=dims, seed=ranks)
    expected = reference(module, ranks=ranks, dims=dims, inputs=inputs)
    outputs = simulate(module, ranks=ranks, dims=dims, inputs=inputs, seed=ranks)
    for array, want in CASES[name].formula({**inputs, **dims}, ranks).items():
        np.testing.assert_allclose(expected[array].value, want, rtol=1e-9, atol=1e-9)
    assert all(item.ok for item in compare(outputs, expected))

    roles = split(name, parts, "default", "roles").module
    again = simulate(roles, ranks=ranks, dims=dims, inputs=inputs, seed=ranks, ctas=2)
    assert {array: values.tobytes() for array, values in again.items()} == {
        array: values.tobytes() for array, values in outputs.items()
    }


@pytest.mark.parametrize("overlap", OVERLAPS)
@pytest.mark.parametrize("name", PRODUCTS)
def test_split_with_overlap(name: str, overlap: str) -> None:
    """Parts begin in the middle of what is fetched or sent, and counters are awaited for it."""
    dims = SIZES["ragged"]
    module = split(name, 3, "default", "tile").module
    inputs = draw_inputs(module, ranks=3, dims=dims, seed=0)
    outputs = simulate(module, ranks=3, dims=dims, inputs=inputs, seed=0)
    for seed in range(3):
        roles = split(name, 3, overlap, "roles").module
        again = simulate(roles, ranks=3, dims=dims, inputs=inputs, seed=seed, ctas=seed + 1)
        assert {array: values.tobytes() for array, values in again.items()} == {
            array: values.tobytes() for array, values in outputs.items()
        }
