"""Programs that a generator draws: simulated, against numpy in float64, and compiled."""

from __future__ import annotations

import numpy as np
import pytest

from pkc.codegen.build import build_kernel
from pkc.driver.compiler import compile_program
from pkc.driver.divisors import divisors_of
from pkc.frontend.parse import parse_text
from pkc.location import Source
from pkc.sim.draw import draw_inputs
from pkc.sim.reference import compare, reference
from pkc.sim.run import simulate
from tests.drawn import FIRST, SEEDS, draw
from tests.sweeps import sweep

OFTEN = {FIRST + 1, FIRST + 4, FIRST + 7}


@pytest.mark.parametrize("seed", sweep(SEEDS, OFTEN.__contains__))
def test_drawn(seed: int) -> None:
    drawn = draw(seed)
    ranks = 3 if drawn.over else 1
    program = parse_text(Source(f"{drawn.name}.pk", drawn.text))
    compiled = compile_program(program)
    for uneven in (False, True):
        dims = drawn.dims(ranks, uneven=uneven)
        inputs = draw_inputs(compiled.module, ranks=ranks, dims=dims, seed=seed)
        expected = reference(compiled.module, ranks=ranks, dims=dims, inputs=inputs)
        for array, want in drawn.expected(inputs, ranks).items():
            np.testing.assert_allclose(expected[array].value, want, rtol=1e-9, atol=1e-9)
        found = compare(simulate(compiled.module, ranks=ranks, dims=dims, inputs=inputs, seed=seed), expected)
        assert all(c.ok for c in found), (drawn.text, found)
        divisors = divisors_of(compiled.module.ops, dims, ranks)
        assert build_kernel(compile_program(program, level="roles", divisors=divisors).kernel).artifact.cubin


def test_a_seed_gives_one_program_and_seeds_give_many() -> None:
    seeds = range(60)
    texts = [draw(seed).text for seed in seeds]
    assert texts == [draw(seed).text for seed in seeds]
    assert len(set(texts)) == len(texts)
    for part in (".shard(0)", ".replicate()", "rowsum", "@ B2", "schedule(row", "tasks(M)", "erf"):
        assert any(part in text for text in texts), part
