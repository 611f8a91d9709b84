"""Reductions of rows on the registers of a role: of many rows, of one, of floats and integers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pkc.codegen.build import machine_level
from pkc.dialect.declaration import words
from pkc.dialect.program import KernelOp
from pkc.dialect.reductions import RowReduction
from pkc.driver.compiler import compile_program
from pkc.frontend.parse import parse_text
from pkc.location import Source
from pkc.sim.run import simulate
from tests.codegen.threads import SHARES, Memory, warps
from tests.codegen.together import Together


def run(
    text: str, sizes: dict[str, int], values: np.ndarray[Any, Any], **more: np.ndarray[Any, Any]
) -> np.ndarray[Any, Any]:
    """Y of a kernel of X, and of more arrays, on one rank, of one task."""
    roles: KernelOp = compile_program(parse_text(Source("rows.pk", text)), schedule=SHARES, level="roles").kernel
    lowered = machine_level(roles)
    memory = Memory(lowered, 1, sizes)
    for name, content in {"X": values, **more}.items():
        memory.arrays[name][0][...] = content
    memory.ctas = [Together(memory, 0, 0, 1)]
    for _, threads in warps(roles, 1):
        memory.ctas[0].run(lowered.body.block, threads)
    memory.ctas[0].barriers.check()
    return memory.arrays["Y"][0]


OF_ROWS = """\
kernel rows(X: {kind}[M, 24], Y: {kind}[M]):
    for m in tasks(blocks(M, 64)):
        Y[m] = {word}(X[m, :])
"""
OF_ONE = """\
kernel one(X: {kind}[N], Y: {kind}[N]):
    for n in tasks(blocks(N, 40)):
        Y[n] = X[n] - {word}(X[n])
"""
OF_A_FEW = """\
kernel few(X: {kind}[M, 24], Y: {kind}[M]):
    for m in tasks({tasks}):
        Y[m] = rowsum(X[m, :])
"""
NUMPY = {"rowmax": np.max, "rowmin": np.min, "rowsum": np.sum}


def drawn(word: str, kind: str, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Numbers whose sums are exact, far from zero on one side, so that a fill at the edge would show."""
    numbers = np.random.default_rng(1).integers(1, 1000, shape).astype(np.int64 if kind == "i32" else np.float64)
    return numbers if word == "rowmin" else -numbers


def test_every_reduction_is_compared() -> None:
    assert NUMPY.keys() == words(RowReduction).keys()


@pytest.mark.parametrize(("word", "kind"), [*((word, "f32") for word in NUMPY), ("rowsum", "i32")])
def test_of_many_rows(word: str, kind: str) -> None:
    values = drawn(word, kind, (59, 24))
    found = run(OF_ROWS.format(word=word, kind=kind), {"M": 59}, values)
    np.testing.assert_array_equal(found, NUMPY[word](values, axis=1))


@pytest.mark.parametrize(("word", "kind"), [*((word, "i32") for word in NUMPY), ("rowmax", "f32")])
def test_of_a_single_row(word: str, kind: str) -> None:
    values = drawn(word, kind, (29,))
    found = run(OF_ONE.format(word=word, kind=kind), {"N": 29}, values)
    np.testing.assert_array_equal(found, values - NUMPY[word](values))


@pytest.mark.parametrize(
    ("tasks", "rows", "kind"), [("M", 1, "i32"), ("blocks(M, 2)", 2, "f32"), ("blocks(M, 2)", 1, "f32")]
)
def test_a_few_are_stored_one_by_one(tasks: str, rows: int, kind: str) -> None:
    """Too few for a copy of 16 bytes."""
    values = drawn("rowsum", kind, (rows, 24))
    found = run(OF_A_FEW.format(tasks=tasks, kind=kind), {"M": rows}, values)
    np.testing.assert_array_equal(found, values.sum(axis=1))


@pytest.mark.parametrize("level", ["tile", "roles"])
@pytest.mark.parametrize("kind", ["f32", "i32"])
@pytest.mark.parametrize("word", NUMPY)
def test_simulated(word: str, kind: str, level: str) -> None:
    for text, shape in ((OF_ROWS, (75, 24)), (OF_ONE, (53,))):
        program = parse_text(Source("rows.pk", text.format(word=word, kind=kind)))
        values = drawn(word, kind, shape).astype(np.int32 if kind == "i32" else np.float32)
        module = compile_program(program, level=level).module
        found = simulate(module, ranks=1, dims={"M" if len(shape) == 2 else "N": shape[0]}, inputs={"X": values[None]})[
            "Y"
        ][0]
        if len(shape) == 2:
            np.testing.assert_array_equal(found, NUMPY[word](values, axis=1))
            continue
        halves = (values[:40], values[40:])
        np.testing.assert_array_equal(found, np.concatenate([half - NUMPY[word](half) for half in halves]))


UP_TO = """\
kernel rows(first: i32[1], end: i32[1], X: {kind}[M, K], Y: f32[M]):
    for m in tasks(blocks(M, 64)):
        acc = zeros(f32, m)
        for k in blocks(K, 16, start=first[0], stop=end[0]):
            acc = acc + rowsum(cast(X[m, k], f32))
        Y[m] = acc
"""


@pytest.mark.parametrize("kind", ["f32", "bf16"])
@pytest.mark.parametrize(("first", "end"), [(0, 0), (0, 16), (0, 19), (0, 24), (8, 40), (3, 37), (16, 41), (5, 6)])
def test_blocks_that_end_inside_of_an_array(first: int, end: int, kind: str) -> None:
    """Whole ones by TMA, the last one by threads: what lies past the end is never read."""
    x = np.full((60, 40), np.nan)
    used = slice(first, min(end, 40))
    x[:, used] = (np.arange(60)[:, None] * 100 + np.arange(40))[:, used]
    bounds = {"first": np.array([first]), "end": np.array([end])}
    found = run(UP_TO.format(kind=kind), {"M": 60, "K": 40}, x, **bounds)
    np.testing.assert_array_equal(found, x[:, used].sum(axis=1))


def test_many_elements_are_divided_by_a_reciprocal() -> None:
    """Also by what is so large or so small that its reciprocal is no normal number: powers of two, so to the bit."""
    text = (
        "kernel k(X: f32[M, 64], D: f32[M, 64], Y: f32[M, 64]):\n    for m in tasks(blocks(M, 8)):\n"
        "        Y[m, :] = X[m, :] / rowmax(D[m, :])\n"
    )
    divisors = np.array([2.0**127, 2.0**-149, 2.0**-126, 1.0, 2.0**126, -(2.0**-140), -4.0, 2.0**-127])
    x = np.arange(8 * 64).reshape(8, 64) * np.minimum(np.abs(divisors), 1.0)[:, None]
    found = run(text, {"M": 8}, x, D=np.repeat(divisors[:, None], 64, axis=1))
    np.testing.assert_array_equal(found, x / divisors[:, None])


@pytest.mark.parametrize("word", ["rowmax", "rowmin"])
def test_of_pairs_of_short_floats(word: str) -> None:
    """Of rows that end where some threads have elements behind them."""
    values = drawn(word, "f32", (3, 1064)) % 251 * (1 if word == "rowmin" else -1) + (1 if word == "rowmin" else -1)
    text = (
        "kernel k(X: bf16[M, 1064], Y: f32[M]):\n    for m in tasks(blocks(M, 4)):\n"
        f"        Y[m] = {word}(cast(X[m, :], f32))\n"
    )
    found = run(text, {"M": 3}, values)
    np.testing.assert_array_equal(found, NUMPY[word](values, axis=1))


PADDED = {
    "softmax": ("e = exp(x - rowmax(x))", "e / rowsum(e)"),
    "norm": ("e = x * x", "x * rsqrt(rowsum(e) / 296.0 + 1.0) * w[:]"),
}


@pytest.mark.parametrize("name", PADDED)
def test_rows_whose_last_panel_is_padded(name: str) -> None:
    """Numbers far below zero: the zeros behind a row would be the greatest, and so would those of the row left out."""
    text = (
        "kernel rows(X: bf16[M, 296], w: bf16[296], Y: bf16[M, 296]):\n    schedule(consumers=1)\n"
        f"    for m in tasks(blocks(M, 3)):\n        x = cast(X[m, :], f32)\n        {PADDED[name][0]}\n"
        f"        Y[m, :] = {PADDED[name][1]}\n"
    )
    x, w = -200 - drawn("rowmin", "f32", (2, 296)) / 8, drawn("rowmin", "f32", (296,))
    e = np.exp(x - x.max(1, keepdims=True))
    expected = e / e.sum(1, keepdims=True) if name == "softmax" else x / np.sqrt((x * x).mean(1, keepdims=True) + 1) * w
    np.testing.assert_allclose(run(text, {"M": 2}, x, w=w), expected, rtol=1e-6)


PIECES = """\
kernel pieces(X: i32[M, V], Y: i32[M], V: const = 2048):
    schedule(row=512)
    for m in tasks(M):
        Y[m] = {word}(X[m, :])
"""


@pytest.mark.parametrize("word", NUMPY)
def test_of_a_row_in_pieces(word: str) -> None:
    """Threads keep some elements until the last piece is there, neighbours of a row as they are."""
    values = drawn(word, "i32", (1, 2048))
    np.testing.assert_array_equal(run(PIECES.format(word=word), {"M": 1}, values), NUMPY[word](values, axis=1))
