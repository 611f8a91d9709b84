"""MMAs whose right operand is computed, at the machine level: it stays in registers, and results are written the other
way round."""

from __future__ import annotations

import numpy as np
import pytest

from pkc.dialect.tile import TransposeOp
from pkc.driver.compiler import compile_program
from pkc.frontend.parse import parse_text
from pkc.location import Source
from pkc.passes.roles.swap_operands import SwapOperands
from pkc.sim.draw import draw_inputs
from pkc.sim.run import simulate
from tests.codegen.test_mma import run

I8 = """\
kernel k(A: bf16[M, K], B: i8[N, K], s: f32[N], R: bf16[M, N], C: {kind}[M, N]):
    for m, n in tasks(blocks(M, {rows}), blocks(N, {columns})):
        acc = zeros(f32, m, n)
        for k in blocks(K, 64):
            acc += A[m, k] @ cast(B[n, k], bf16).T
        C[m, n] = max(acc * s[n], 0.0) + R[m, n]
"""
SCALED = """\
kernel k(A: bf16[M, K], B: i8[N, K], s: f32[N], R: bf16[M, N], C: {kind}[M, N]):
    for m, n in tasks(blocks(M, {rows}), blocks(N, {columns})):
        acc = zeros(f32, m, n)
        for k in blocks(K, 64):
            acc += A[m, k] @ cast(B[n, k], bf16).T * s[n]
        C[m, n] = max(acc, 0.0) + R[m, n]
"""
F16 = """\
kernel k(A: f16[M, K], B: i8[K, N], s: f32[N], R: bf16[M, N], C: {kind}[M, N]):
    for m, n in tasks(blocks(M, {rows}), blocks(N, {columns})):
        acc = zeros(f32, m, n)
        for k in blocks(K, 64):
            acc += A[m, k] @ cast(B[k, n], f16)
        C[m, n] = max(acc * s[n], 0.0) + R[m, n]
"""
ABSOLUTE = """\
kernel k(A: bf16[M, K], B: bf16[K, N], s: f32[N], R: bf16[M, N], C: {kind}[M, N]):
    for m, n in tasks(blocks(M, {rows}), blocks(N, {columns})):
        acc = zeros(f32, m, n)
        for k in blocks(K, 64):
            acc += A[m, k] @ cast(cast(B[k, n], f32) * s[n] + 1.0, bf16)
        C[m, n] = max(acc, 0.0) + R[m, n]
"""


@pytest.mark.parametrize(
    ("text", "kind", "rows", "columns"),
    [
        (I8, "bf16", 64, 64),
        (I8, "f32", 32, 64),
        (I8, "f16", 16, 128),
        (I8, "bf16", 8, 128),
        (I8, "bf16", 128, 128),
        (I8, "bf16", 64, 256),
        (SCALED, "bf16", 64, 128),
        (SCALED, "bf16", 32, 256),
        (F16, "bf16", 64, 64),
        (F16, "f32", 64, 128),
        (ABSOLUTE, "bf16", 64, 128),
        (ABSOLUTE, "f16", 32, 64),
    ],
)
def test_operands_are_exchanged(text: str, kind: str, rows: int, columns: int) -> None:
    """The last block of each dimension is ragged; results are whole numbers that each type has."""
    sizes = {"M": rows - 1, "N": columns - 8, "K": 136}
    scales, more = np.arange(sizes["N"]) % 3 - 1, np.arange(sizes["M"] * sizes["N"]) % 5
    program = text.format(kind=kind, rows=rows, columns=columns)
    level = compile_program(parse_text(Source("k.pk", program)), level="roles")
    assert any(isinstance(op, TransposeOp) for op in level.kernel.walk())
    assert all(remark.step != SwapOperands.name for remark in level.remarks)
    residual = more.reshape(sizes["M"], sizes["N"])
    a, b, c = run(program, sizes, {"stages": "3"}, s=scales, R=residual)
    right = b.T if text in (I8, SCALED) else b
    expected = a @ (right * scales + 1) if text is ABSOLUTE else a @ right * scales
    np.testing.assert_array_equal(c, np.maximum(expected, 0) + residual)


TURNED_BACK = """\
kernel k(A: bf16[64, K], B: i8[64, K], C: f32[64, 64]):
    for t in tasks(1):
        acc = zeros(f32, 64, 64)
        for k in blocks(K, 64):
            acc += A[:, k] @ cast(B[:, k], bf16).T
        {end}
"""


@pytest.mark.parametrize("end", ["C[:, :] = acc * 2.0 + acc.T", "C[:, :] = max(acc, 0.0).T - acc"])
def test_results_that_meet_their_transpose_stay(end: str) -> None:
    program, sizes = parse_text(Source("k.pk", TURNED_BACK.format(end=end))), {"K": 136}
    tile, roles = (compile_program(program, level=level).module for level in ("tile", "roles"))
    inputs = draw_inputs(tile, ranks=1, dims=sizes, seed=0)
    expected, found = (simulate(one, ranks=1, dims=sizes, inputs=inputs)["C"] for one in (tile, roles))
    np.testing.assert_array_equal(found, expected)


FOUR_BITS = """\
kernel k(A: bf16[M, K], B: i32[K // 8, N], Z: bf16[K // 32, N], C: f32[M, N], K: const = 128):
    for m, n in tasks(blocks(M, {rows}), blocks(N, {columns})):
        acc = zeros(f32, m, n)
        for k in blocks(K, 32):
            code = (B[k // 8, n] >> (positions(k) % 8 * 4)) & 15
            acc += A[m, k] @ cast(cast(code, f32) - Z[start(k) // 32, n], bf16)
        C[m, n] = acc
"""


@pytest.mark.parametrize(("rows", "columns"), [(64, 64), (16, 128)])
def test_numbers_of_four_bits(rows: int, columns: int) -> None:
    """Eight of them lie in a word: threads read it once for two neighbours, from the stage the other way round."""
    text, n = FOUR_BITS.format(rows=rows, columns=columns), columns - 8
    codes = np.random.default_rng(1).integers(0, 16, (128, n))
    words = sum(codes[i::8].astype(np.int64) << 4 * i for i in range(8)).astype(np.uint32).view(np.int32)
    zeros = np.arange(4 * n).reshape(4, n) % 8
    a, _, c = run(text, {"M": rows - 1, "N": n}, {"stages": "4"}, B=words, Z=zeros)
    np.testing.assert_array_equal(c, a @ (codes - zeros.repeat(32, 0)))


GATED = """\
kernel k(A: bf16[M, K], B: i8[N, K], U: i8[N, K], s: f32[N], C: f32[M, N]):
    for m, n in tasks(blocks(M, 32), blocks(N, {columns})):
        g = zeros(f32, m, n)
        u = zeros(f32, m, n)
        for k in blocks(K, 64):
            a = A[m, k]
            g += a @ cast(B[n, k], bf16).T
            u += a @ cast(U[n, k], bf16).T
        g = g * s[n]
        C[m, n] = max(g, 0.0) * u
"""


@pytest.mark.parametrize("columns", [64, 128])
def test_results_of_two_matmuls_meet(columns: int) -> None:
    """Both exchange their operands, or none."""
    text, n = GATED.format(columns=columns), columns - 8
    level = compile_program(parse_text(Source("k.pk", text)), level="roles")
    assert all(remark.step != SwapOperands.name for remark in level.remarks)
    up, scales = np.random.default_rng(2).integers(-128, 128, (n, 136)), np.arange(n) % 3 - 1
    a, b, c = run(text, {"M": 31, "N": n, "K": 136}, {"stages": "3"}, U=up, s=scales)
    np.testing.assert_array_equal(c, np.maximum(a @ b.T * scales, 0) * (a @ up.T))
