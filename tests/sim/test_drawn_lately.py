"""Programs of a second generator: simulated against numpy, their roles against the tile level, and compiled."""

from __future__ import annotations

import numpy as np
import pytest

from pkc.check.run import TRIALS, baseline_of, check_roles
from pkc.codegen.build import build_kernel
from pkc.driver.compiler import compile_program
from pkc.frontend.parse import parse_text
from pkc.location import Source
from pkc.sim.draw import draw_inputs
from pkc.sim.reference import compare, reference
from pkc.sim.run import simulate
from tests.drawn_lately import SEEDS, draw
from tests.sweeps import sweep

OFTEN = {1, 3}


@pytest.mark.parametrize("seed", sweep(SEEDS, OFTEN.__contains__))
def test_drawn(seed: int) -> None:
    drawn, ranks = draw(seed), 3
    program = parse_text(Source(f"{drawn.name}.pk", drawn.text))
    tile, roles = compile_program(program), compile_program(program, level="roles")
    inputs = draw_inputs(tile.module, ranks=ranks, dims=drawn.dims, seed=seed)
    expected = reference(tile.module, ranks=ranks, dims=drawn.dims, inputs=inputs)
    given = {name: np.asarray(value).astype(np.float64) for name, value in inputs.items()}
    for array, want in drawn.expected(given).items():
        np.testing.assert_allclose(expected[array].value, want, rtol=1e-9, atol=1e-9)
    found = compare(simulate(tile.module, ranks=ranks, dims=drawn.dims, inputs=inputs, seed=seed), expected)
    assert all(c.ok for c in found), (drawn.text, found)
    assert check_roles(roles, baseline_of(tile, ranks=ranks, dims=drawn.dims), TRIALS[:2]) == []
    assert build_kernel(roles.kernel).artifact.cubin


def test_each_kind_is_drawn_in_several_ways() -> None:
    texts = [draw(seed).text for seed in SEEDS]
    assert texts == [draw(seed).text for seed in SEEDS]
    assert len(set(texts)) > len(SEEDS) * 2 // 3
