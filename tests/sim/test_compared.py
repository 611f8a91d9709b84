"""Integers that a program compares are drawn on both sides of the comparison, on any number of ranks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from pkc.driver.compiler import compile_program
from pkc.frontend.parse import parse_text
from pkc.location import Source
from pkc.sim.draw import draw_inputs, seeds_for

_TEXT = """
kernel k(X: f32[M], f: i32[E], g: i32[E, 2], n: i32, Y: f32[M], s: signal[1]):
    with role(communicator):
        {statements}
        for m in tasks(blocks(M, 8)):
            Y[m] = X[m]
"""
_IF = "if {}:\n            signal(s[0], 1)"

_DIMS = {"M": 20, "E": 2}

Holds = Callable[[Any, Any, int, int], bool]
"""By the arrays on a rank, the scalar and the rank."""

_CONDITIONS: Mapping[str, Holds] = {
    "f[0] > 2": lambda f, g, n, rank: f[0] > 2,
    "f[1] >= 700": lambda f, g, n, rank: f[1] >= 700,
    "5 > f[0]": lambda f, g, n, rank: f[0] < 5,
    "f[0] == 33": lambda f, g, n, rank: f[0] == 33,
    "f[0] != 1000": lambda f, g, n, rank: f[0] != 1000,
    "f[0] < 0": lambda f, g, n, rank: f[0] < 0,
    "f[0] * 3 - 7 > 500": lambda f, g, n, rank: f[0] * 3 - 7 > 500,
    "f[1] // 8 <= 30": lambda f, g, n, rank: f[1] // 8 <= 30,
    "f[1] % 64 == 63": lambda f, g, n, rank: f[1] % 64 == 63,
    "1000 - f[1] < 4": lambda f, g, n, rank: 1000 - f[1] < 4,
    "min(f[0], 200) > 150": lambda f, g, n, rank: f[0] > 150,
    "f[0] + rank > 400": lambda f, g, n, rank: f[0] + rank > 400,
    "g[1, 1] > M * 10": lambda f, g, n, rank: g[1][1] > 200,
    "n == 250": lambda f, g, n, rank: n == 250,
    "n >= M * 9": lambda f, g, n, rank: n >= 180,
    "n > rank + 200": lambda f, g, n, rank: n > rank + 200,
    "n // 2 > 90": lambda f, g, n, rank: n // 2 > 90,
    "f[0] - g[0, 0] > 300": lambda f, g, n, rank: f[0] - g[0][0] > 300,
}


@pytest.mark.parametrize("ranks", [1, 2, 4, 6])
@pytest.mark.parametrize("condition", _CONDITIONS)
def test_both_sides_of_a_branch_are_taken(condition: str, ranks: int) -> None:
    compiled = compile_program(parse_text(Source("k.pk", _TEXT.format(statements=_IF.format(condition)))))
    drawn = _all_drawn(compiled, ranks)
    found = {_holds(condition, one, rank) for one in drawn for rank in range(ranks)}
    assert found == {True, False}


@pytest.mark.parametrize("condition", ["n == rank", "f[0] == rank", "f[1] != r"])
def test_what_a_rank_may_be_equal_to_is_a_rank(condition: str) -> None:
    loop = f"for r in range(ranks):\n            if {condition}:\n                signal(s[0], 1)"
    compiled = compile_program(parse_text(Source("k.pk", _TEXT.format(statements=loop))))
    found = {number for one in _all_drawn(compiled, 3) for number in np.ravel(one[condition[0]])}
    assert found == {0, 1, 2}


def _holds(condition: str, drawn: Mapping[str, Any], rank: int) -> bool:
    f, g = (drawn[name][rank].tolist() if name in drawn else None for name in "fg")
    return bool(_CONDITIONS[condition](f, g, drawn.get("n", 0), rank))


def _all_drawn(compiled: Any, ranks: int) -> list[dict[str, Any]]:
    seeds = range(seeds_for(compiled.kernel, ranks=ranks, dims=_DIMS))
    return [draw_inputs(compiled.module, ranks=ranks, dims=_DIMS, seed=seed, both_sides=True) for seed in seeds]


_GUARDED = """
kernel k(W: f32[3, M], f: i32[E], Y: f32[M]):
    for m in tasks(blocks(M, 8)):
        if {guard}:
            Y[m] = W[{index}, m]
        else:
            Y[m] = W[0, m] * 2.0
"""


@pytest.mark.parametrize(
    ("guard", "index", "outside"),
    [
        ("f[0] >= 0 and f[0] < 3", "f[0]", {-1, 3, 4}),
        ("f[0] >= 0", "min(f[0], 2)", {-1}),
        ("f[0] >= 0 and f[0] < 3", "f[1]", set()),
        ("f[0] < 3", "max(f[0], 0)", {-1, 3, 4}),
        ("f[0] > 1", "f[0]", set()),
    ],
)
def test_what_a_branch_keeps_from_an_index_is_drawn(guard: str, index: str, outside: set[int]) -> None:
    """And the branch without it is taken; an index that no branch looks at stays inside of its dimension."""
    compiled = compile_program(parse_text(Source("k.pk", _GUARDED.format(guard=guard, index=index))))
    found = {int(number) for one in _all_drawn(compiled, 2) for number in np.ravel(one["f"])}
    assert {number for number in found if not 0 <= number < 3} == outside
