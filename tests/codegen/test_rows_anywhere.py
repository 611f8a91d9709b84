"""Rows that begin at no multiple of 16 bytes come to a stage with what lies around them, and leave it by whole chunks:
thread by thread on numpy, where what belongs to nothing is poison."""

from __future__ import annotations

import pytest

from pkc.codegen.build import machine_level
from pkc.dialect.access import LoadOp
from pkc.dialect.transfers import begins_anywhere
from tests.codegen.test_tiles import check, compiled
from tools.rows import text_of

RAGGED = """
kernel f(X: {kind}[M, N], Y: {kind}[M, N]):
    for m, n in tasks(blocks(M, 16), blocks(N, 64)):
        Y[m, n] = cast(cast(X[m, n], f32) * 2.0, {kind})
"""
BATCHED = """
kernel f(X: bf16[B, M, N], Y: bf16[B, M, N]):
    for b, m, n in tasks(B, blocks(M, 16), blocks(N, 64)):
        Y[b, m, n] = X[b, m, n]
"""
SCALED = """
kernel f(X: bf16[M, 150], w: bf16[150], Y: f32[M, 150]):
    for m in tasks(blocks(M, 4)):
        Y[m, :] = cast(X[m, :], f32) * cast(w[:], f32)
"""
CASES = {
    "copy": (text_of("copy", 131, 8), {"M": 18}),
    "softmax": (text_of("softmax", 131, 8), {"M": 18}),
    "a row a task": (text_of("softmax", 777, 1), {"M": 2}),
    "two rows a task": (text_of("logsumexp", 301, 2), {"M": 3}),
    "a vector": (SCALED, {"M": 6}),
    "f32": (text_of("silu", 77, 8).replace("bf16", "f32"), {"M": 18}),
    "short rows": (text_of("softmax", 77, 8), {"M": 18}),
    "e4m3": (RAGGED.format(kind="e4m3"), {"M": 17, "N": 131}),
    "ragged f32": (RAGGED.format(kind="f32"), {"M": 17, "N": 131}),
    "batched": (BATCHED, {"B": 2, "M": 17, "N": 131}),
}
SHIFTED = {
    "taps": """
kernel f(X: f32[M, N], Y: f32[M, N]):
    for m, n in tasks(blocks(M, 16), blocks(N, 64)):
        Y[m, n] = X[m, n] + X[m + 1, n] + X[m + 2, n]
""",
    "columns": """
kernel f(X: f32[M, N], Y: f32[M, N]):
    for m, n in tasks(blocks(M, 16), blocks(N, 64)):
        Y[m, n] = X[m, n] + X[m, n + 1]
""",
    "rows of one": """
kernel f(X: f32[M, 131], Y: f32[M, 131]):
    for m in tasks(blocks(M, 8)):
        Y[m, :] = X[m, :] + X[m + 1, :]
""",
}
"""What is added lies past the end of the array where the result does not: zeros stand there."""

AROUND = {"copy", "softmax", "a row a task", "two rows a task", "a vector", "f32", "ragged f32"}
"""Those whose rows are copies, each with what lies around it; threads carry the others."""


@pytest.mark.parametrize("name", CASES)
def test_rows_are_right(name: str) -> None:
    check(*CASES[name])


@pytest.mark.parametrize("name", CASES)
def test_long_rows_are_one_copy_each(name: str) -> None:
    roles = compiled(*CASES[name], "roles").kernel
    loads = [begins_anywhere(op) for op in roles.walk() if isinstance(op, LoadOp)]
    assert loads == [name in AROUND] * len(loads)
    assert ("tma_load_row_around" in str(machine_level(roles))) == (name in AROUND)


@pytest.mark.parametrize("name", SHIFTED)
def test_what_is_past_the_end_of_the_array_is_zero_where_it_is_read(name: str) -> None:
    check(SHIFTED[name], {"M": 19, "N": 131})


def test_rows_past_the_end_that_are_read_are_zero() -> None:
    """The sum over the rows of a block has all of them, of which the last block has fewer: zeros stand there."""
    text = """
kernel f(X: f32[M, 150], Y: f32[T, 150]):
    for t in tasks(T):
        x = X[t, :]
        for m in blocks(M, 4):
            x = x + rowsum(X[m, :].T)
        Y[t, :] = x
"""
    check(text, {"M": 6, "T": 2})
