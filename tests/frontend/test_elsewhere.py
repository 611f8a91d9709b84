"""Words of other languages: what the help says to write instead compiles."""

from __future__ import annotations

import re

import numpy as np
import pytest

from pkc.driver.compiler import compile_program
from pkc.frontend import elsewhere
from pkc.frontend.parse import parse_text
from pkc.location import Source
from pkc.sim.run import simulate

EXPRESSION = re.compile(r"`([^`]*)`")
RANDOM = {"rand", "randn", "randint", "random", "uniform", "dropout"}
IN_WORDS = {"softmax", "cdiv", "arange", "load", "pow", "program_id", *RANDOM}
"""Functions for which there is no expression of x, a and b."""
COLUMNS = {"colsum", "colmax", "colmin"}


@pytest.mark.parametrize("name", sorted(set(elsewhere.FUNCTIONS) - IN_WORDS - COLUMNS))
def test_functions(name: str) -> None:
    """`i` is a position, `N` a number of elements."""
    found = EXPRESSION.search(elsewhere.FUNCTIONS[name])
    assert found is not None
    values = ("A[m, :]", "A[m, :].T") if "@" in found[1] else ("x", "1.0")
    text = f"""\
kernel k(A: bf16[M, 64], C: f32[M]):
    for m in tasks(blocks(M, 64)):
        N = 64
        x = cast(A[m, :], f32)
        a = {values[0]}
        b = {values[1]}
        i = 3
        t = {found[1]}
        C[m] = {"cast(t, f32)" if found[1].startswith("row") else "rowsum(t)"}
"""
    compile_program(parse_text(Source("k.pk", text)))


def test_the_greatest_of_each_row() -> None:
    most, place, rest = EXPRESSION.findall(elsewhere.FUNCTIONS["topk"])
    text = f"""\
kernel k(A: f32[M, N], C: f32[M, 3], N: const = 64):
    for m in tasks(blocks(M, 64)):
        x = A[m, :]
        t = zeros(f32, m, 3)
        for k in range(3):
            t = where(positions(3) == k, {most}, t)
            {place}
            x = {rest}
        C[m, :] = t
"""
    module = compile_program(parse_text(Source("k.pk", text))).module
    given = np.random.default_rng(1).permutation(130 * 64).reshape(1, 130, 64).astype(np.float32)
    found = simulate(module, ranks=1, dims={"M": 130}, inputs={"A": given})["C"]
    np.testing.assert_array_equal(found, np.sort(given, axis=-1)[..., :-4:-1])


@pytest.mark.parametrize("name", sorted(COLUMNS))
def test_functions_of_columns(name: str) -> None:
    found = EXPRESSION.search(elsewhere.FUNCTIONS[name])
    assert found is not None
    text = f"""\
kernel k(A: f32[M, N], C: f32[N]):
    for n in tasks(blocks(N, 64)):
        for m in blocks(M, 64):
            x = A[m, n]
            C[n] = {found[1]}
"""
    compile_program(parse_text(Source("k.pk", text)))


@pytest.mark.parametrize("name", elsewhere.TYPES)
def test_types(name: str) -> None:
    kind = elsewhere.TYPES[name]
    text = f"kernel k(A: {kind}[M], B: {kind}[M]):\n    for m in tasks(blocks(M, 64)):\n        B[m] = A[m]\n"
    compile_program(parse_text(Source("k.pk", text)))
