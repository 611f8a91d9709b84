"""Programs that go by indices, bounds and conditions from memory: against formulas, on both levels, as machine code."""

from __future__ import annotations

from functools import cache
from itertools import product

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from pkc.driver.builder import artifact_for
from pkc.driver.compiler import compile_program
from pkc.frontend.parse import parse_text
from pkc.frontend.tree import Program
from pkc.location import Source
from pkc.sim.draw import draw_inputs
from pkc.sim.reference import compare, reference
from pkc.sim.run import simulate
from tests.counted import BY_HAND, COUNTED, IN_BRANCHES
from tests.irregular import OVER_RANKS, RAGGED, TABLES
from tests.scattered import SCATTERED
from tests.shifted import SHIFTED
from tests.sweeps import sweep

PROGRAMS = RAGGED | TABLES | SCATTERED | SHIFTED | OVER_RANKS | COUNTED | BY_HAND | IN_BRANCHES
ORDERS = ((1, 0), (2, 1), (3, 2))
"""Numbers of CTAs, and seeds of the order in which they run."""


@cache
def program(name: str) -> Program:
    return parse_text(Source("irregular.pk", PROGRAMS[name].text.lstrip()))


@cache
def compiled(name: str, level: str) -> ModuleOp:
    return compile_program(program(name), level=level).module


@pytest.mark.parametrize("ranks", sweep((1, 2, 3), lambda ranks: ranks == 2))
@pytest.mark.parametrize("name", PROGRAMS)
def test_values_and_bits(name: str, ranks: int) -> None:
    """What the program means is the formula; what it gives is within its bound, and the same bits as its roles give."""
    case, tile = PROGRAMS[name], compiled(name, "tile")
    dims = case.sizes(ranks)[0]
    inputs = draw_inputs(tile, ranks=ranks, dims=dims, seed=ranks)
    expected = reference(tile, ranks=ranks, dims=dims, inputs=inputs)
    for array, want in case.formula({**inputs, **dims}, ranks).items():
        written = ~np.isnan(want)
        np.testing.assert_array_equal(expected[array].written, written)
        np.testing.assert_allclose(expected[array].value[written], want[written], rtol=1e-9, atol=1e-9)
    outputs = simulate(tile, ranks=ranks, dims=dims, inputs=inputs, seed=ranks)
    found = compare(outputs, expected)
    assert found and all(one.ok for one in found), found
    for ctas, seed in ORDERS:
        of_roles = simulate(compiled(name, "roles"), ranks=ranks, dims=dims, inputs=inputs, seed=seed, ctas=ctas)
        assert {array: of_roles[array].tobytes() for array in outputs} == {
            array: value.tobytes() for array, value in outputs.items()
        }


OFTEN = {name: 1 if PROGRAMS[name].alone else 2 for name in list(PROGRAMS)[::2]}
BUILT = sweep(product(PROGRAMS, (1, 2, 4)), lambda name, ranks: ranks == OFTEN.get(name))


@pytest.mark.parametrize(("name", "ranks"), BUILT)
def test_machine_code(name: str, ranks: int) -> None:
    small, large = PROGRAMS[name].sizes(ranks)[:2]
    assert artifact_for(program(name), dims=large, ranks=ranks).cubin
    if ranks == 1:
        assert artifact_for(program(name), dims=small, ranks=ranks).cubin


def test_a_box_brings_more_than_a_list_has() -> None:
    """Of the last page the rows behind the end of the list come with the others: nothing reads them, nor sums them."""
    name = "attention of pages, by blocks"
    dims = PROGRAMS[name].sizes(1)[0]
    inputs = draw_inputs(compiled(name, "tile"), ranks=1, dims=dims, seed=1)
    inputs["length"][0], inputs["page"][0] = [3, 17, 40], [[0, 6, 6, 6], [1, 2, 6, 6], [3, 4, 5, 6]]
    outputs = simulate(compiled(name, "roles"), ranks=1, dims=dims, inputs=inputs, seed=1)
    for b, length in enumerate(inputs["length"][0]):
        last = inputs["page"][0, b, length // 16]
        for kept in "KV":
            inputs[kept][0, last, length % 16 :] = np.nan
    left = simulate(compiled(name, "roles"), ranks=1, dims=dims, inputs=inputs, seed=1)
    assert np.isfinite(left["O"]).all()
    assert left["O"].tobytes() == outputs["O"].tobytes()
