"""Mixtures of experts with tables at their limits: negative rows, experts without rows, all rows at one, rows twice."""

from __future__ import annotations

import numpy as np
import pytest

from pkc.driver.compiler import load
from pkc.sim.draw import draw_inputs
from pkc.sim.program import Program
from pkc.sim.reference import compare, reference
from pkc.sim.run import simulate
from tests.examples.test_examples import EXAMPLES
from tests.routed import CAPACITY, ROUTINGS, choices, dims, given, tokens_of
from tests.sweeps import sweep

ROUTED = ("moe_dispatch_gemm", "moe_mlp", "moe_gather_combine", "moe_combine")
RANKS = 2


@pytest.mark.parametrize(
    ("example", "routing"),
    sweep(
        [(example, routing) for example in ROUTED for routing in ROUTINGS],
        lambda example, routing: example != "moe_mlp" or routing != "some none",
    ),
)
def test_tables_at_their_limits(example: str, routing: str) -> None:
    """Both levels are right; nothing is read that nobody wrote."""
    constants = {"P": CAPACITY} if example == "moe_mlp" else {}
    path, sizes = EXAMPLES / f"{example}.pk", dims(example, RANKS)
    tile = load(path, constants=constants)
    inputs = draw_inputs(tile.module, ranks=RANKS, dims=sizes, seed=1) | given(example, routing, RANKS)
    expected = reference(tile.module, ranks=RANKS, dims=sizes, inputs=inputs)
    roles = load(path, constants=constants, level="roles")
    for module in (tile.module, roles.module):
        outputs = simulate(module, ranks=RANKS, dims=sizes, inputs=inputs)
        found = compare({array: outputs[array] for array in Program(tile.kernel).outputs}, expected)
        assert found and all(each.ok for each in found)


def test_the_tables_are_at_their_limits() -> None:
    tokens = tokens_of(RANKS)
    assert (choices("nobody", tokens, RANKS) == -1).all()
    one = given("moe_dispatch_gemm", "one expert", RANKS)
    assert sorted(one["count"].ravel()) == [0] * 5 + [tokens]
    twice = given("moe_dispatch_gemm", "the same twice", RANKS)
    for rows, count in zip(twice["rows"].reshape(-1, CAPACITY), twice["count"].ravel(), strict=True):
        assert len(np.unique(rows[:count])) == count // 2
