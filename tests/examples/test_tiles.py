"""Examples with other tiles than they say: right at the tile level, and the same bits at the roles level."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from pkc.dialect.types import BlockType
from pkc.driver.compiler import Compiled
from pkc.sim.draw import draw_inputs
from pkc.sim.reference import compare, reference
from pkc.sim.run import simulate
from tests.examples.test_examples import ALIKE, CASES, compiled
from tests.sweeps import sweep

TILES = (
    {"M": 64, "N": 32, "K": 32, "S": 32, "T": 64, "P": 32, "H": 32},
    {"M": 32, "N": 48, "K": 128, "S": 64, "T": 32, "P": 256, "H": 128},
)
"""Sizes that no example says, by dimension."""

MEANT = {"gemm_fp8_blocks": {"N", "K"}, "moe_combine": {"T"}}
"""Dimensions whose blocks have the size that the program says because its arrays do, one scale for each, or that a pass
chooses, as the program has none."""

RANKS = 3


def with_tiles(name: str, number: int, level: str) -> Compiled:
    walked = (value.type for op in compiled(name).kernel.walk() for value in op.results)
    dims = {kind.of for kind in walked if isinstance(kind, BlockType) and kind.extent > 1}
    dims -= MEANT.get(name, set())
    schedule = {f"tile_{dim}": str(size) for dim, size in TILES[number].items() if dim in dims}
    assert schedule
    return compiled(name, level, *schedule.items())


@pytest.mark.parametrize(
    ("number", "size"),
    sweep(product(range(len(TILES)), ("divisible", "ragged")), lambda *case: case in ((0, "ragged"), (1, "divisible"))),
)
@pytest.mark.parametrize("name", sweep(CASES, lambda name: not name.startswith(ALIKE)))
def test_tiles(name: str, number: int, size: str) -> None:
    case, module = CASES[name], with_tiles(name, number, "tile").module
    given = case.ragged(RANKS) if size == "ragged" else case.divisible(RANKS)
    used = {dim for op in compiled(name).kernel.body.block.args for dim in getattr(op.type, "dimensions", ())}
    dims = {dim: size for dim, size in given.items() if dim in used}
    inputs = draw_inputs(module, ranks=RANKS, dims=dims, seed=number)
    expected = reference(module, ranks=RANKS, dims=dims, inputs=inputs)
    outputs = simulate(module, ranks=RANKS, dims=dims, inputs=inputs, seed=number)
    for array, want in case.formula({**inputs, **dims}, RANKS).items():
        written = ~np.isnan(want)
        np.testing.assert_array_equal(expected[array].written, written)
        np.testing.assert_allclose(expected[array].value[written], want[written], rtol=1e-9, atol=1e-9)
    assert all(item.ok for item in compare(outputs, expected))

    roles = with_tiles(name, number, "roles").module
    again = simulate(roles, ranks=RANKS, dims=dims, inputs=inputs, seed=number, ctas=2)
    assert {array: values.tobytes() for array, values in again.items()} == {
        array: values.tobytes() for array, values in outputs.items()
    }
