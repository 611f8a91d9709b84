"""Operands of MMAs at shifted blocks: they have machine code, and the roles before it give the tile level's bits."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from pkc.codegen.build import machine_level
from pkc.dialect.access import LoadOp
from pkc.dialect.transfers import TRANSFER
from pkc.driver.building import lengths
from pkc.driver.compiler import compile_program
from pkc.frontend.parse import parse_text
from pkc.location import Source
from pkc.sim.draw import draw_inputs
from pkc.sim.run import simulate
from tests.codegen.test_tiles import check

MATMUL = """kernel f(X: {dtype}[{left}], W: {dtype}[{right}], b: f32[K], Y: f32[M, N]):
    for m, n in tasks(blocks(M, 64), blocks(N, 32)):
        acc = zeros(f32, m, n)
        for k in blocks({length}, 32):
            acc += {product}
        Y[m, n] = acc
"""
TAPS = """kernel f(X: f32[M, L], Y: f32[M, N]):
    for m, n in tasks(blocks(M, 16), blocks(N, 64)):
        t = zeros(f32, m, n)
        for i in range(3):
            t = t + X[m, n + i]
        Y[m, n] = t
"""
QKV = """kernel f(X: bf16[M, 192], Y: f32[M, 64]):
    for m, h in tasks(blocks(M, 64), 2):
        for d in blocks(32, 32):
            acc = zeros(f32, m, d)
            for k in blocks(M, 64):
                p = X[m, d + 32 * h] @ X[k, d + (32 * h + 64)].T
                acc += cast(p, bf16) @ X[k, d + (32 * h + 128)]
            Y[m, d + 32 * h] = acc
"""


@pytest.mark.parametrize("inner", [64, 40])
@pytest.mark.parametrize(
    ("dtype", "left", "right", "product"),
    [
        ("bf16", "M, L", "K, N", "X[m, k + 16] @ W[k, n]"),
        ("f16", "M, L", "K, N", "X[m, k + K] @ W[k, n]"),
        ("bf16", "L, M", "N, L", "X[k + 16, m].T @ W[n, k + 16].T"),
        ("bf16", "M, L", "L, N", "X[m, k + 5] @ W[k + 5, n]"),
        ("e4m3", "M, L", "L, N", "X[m, k + 16] @ W[k + K, n]"),
        ("e4m3", "L, M", "K, N", "X[k + 16, m].T @ W[k, n]"),
        ("f32", "M, K", "L, N", "X[m, k] @ W[k + 16, n]"),
    ],
)
def test_operands_along_what_is_summed_over(dtype: str, left: str, right: str, product: str, inner: int) -> None:
    text = MATMUL.format(dtype=dtype, left=left, right=right, product=product, length="K")
    _check(text, {"M": 64, "N": 32, "K": inner, "L": 96})


@pytest.mark.parametrize("width", [128, 104])
def test_operands_of_constant_length(width: int) -> None:
    text = MATMUL.format(dtype="bf16", left=f"M, {width}", right="64, N", product="X[m, k + 64] @ W[k, n]", length="64")
    _check(text, {"M": 64, "N": 32, "K": 8})


@pytest.mark.parametrize(("columns", "length"), [(64, 80), (60, 62)])
def test_elements_that_begin_anywhere(columns: int, length: int) -> None:
    """Threads copy elements of 4 bytes into their stage, and go on."""
    check(TAPS, {"M": 18, "N": columns, "L": length})


def test_packed_heads() -> None:
    _check(QKV, {"M": 72})


def _check(text: str, sizes: Mapping[str, int]) -> None:
    program, used = parse_text(Source("f.pk", text)), dict(sizes)
    divisors = lengths(program, "f", None, None).divisors(used, 1)
    tile = compile_program(program)
    roles = compile_program(program, level="roles", divisors=divisors)
    inputs = draw_inputs(tile.module, ranks=1, dims=used, seed=1)
    expected = simulate(tile.module, ranks=1, dims=used, inputs=inputs)
    found = simulate(roles.module, ranks=1, dims=used, inputs=inputs, seed=2, ctas=3)
    assert found["Y"].tobytes() == expected["Y"].tobytes()
    loads = [op.attributes[TRANSFER] for op in roles.kernel.walk() if isinstance(op, LoadOp)]
    assert all("tma" in str(transfer) for transfer in loads) == ("k + 5" not in text)
    assert machine_level(roles.kernel).body.block.ops
