"""MMAs at the machine level give products: tiles that TMA loads are found again by their descriptors."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from pkc.codegen.build import machine_level
from pkc.dialect.machine import InstructionOp
from pkc.dialect.tile import MmaOp, pieces_of
from pkc.driver.compiler import compile_program
from pkc.frontend.parse import parse_text
from pkc.location import Source
from pkc.remarks import collecting
from tests.codegen.threads import Memory, warps
from tests.codegen.warpgroups import Descriptor, Warpgroups
from tests.matmuls import matmul

Values = np.ndarray[Any, Any]

CASES = [
    ("nn", "bf16", 128, 128, 64),
    ("nt", "bf16", 128, 64, 64),
    ("tn", "f16", 128, 32, 64),
    ("tt", "f16", 64, 128, 64),
    ("registers", "bf16", 128, 64, 64),
    ("registers", "f16", 64, 32, 32),
    # Rows of 64 and of 32 bytes, for each operand and major.
    ("nn", "f16", 64, 32, 32),
    ("nt", "bf16", 64, 16, 32),
    ("nn", "bf16", 128, 16, 16),
    ("nt", "f16", 128, 24, 16),
    # Results in panels of which the last one ends behind them.
    ("nt", "bf16", 64, 296, 16),
    # Fewer rows than a warpgroup has, and several panels along both dimensions.
    ("nn", "f16", 16, 128, 128),
    ("nt", "bf16", 8, 64, 128),
    # Two blocks of rows for each warpgroup.
    ("nn", "bf16", 256, 64, 64),
    ("tn", "bf16", 256, 64, 64),
    ("registers", "bf16", 256, 32, 64),
    ("nt", "e4m3", 128, 64, 64),
    ("nt", "e4m3", 64, 32, 128),
    ("nt", "e5m2", 16, 64, 32),
    ("nt", "f32", 128, 64, 64),
    ("nt", "f32", 64, 16, 16),
    # What does not lie along the dimension that is summed over is written the other way round.
    ("nn", "f32", 64, 64, 32),
    ("tt", "f32", 64, 32, 32),
    ("tn", "f32", 64, 32, 32),
    ("registers", "f32", 64, 32, 32),
    ("nn", "e4m3", 64, 64, 64),
    ("tn", "e5m2", 64, 64, 64),
]
"""Form (`tests/matmuls.py`), element type, tile of M, N and K."""


def run(
    text: str, sizes: dict[str, int], schedule: dict[str, str], **more: Values | int
) -> tuple[Values, Values, Values]:
    """A, B and C of a kernel of one task, which has a stage for each block that it loads; `more` has other arrays."""
    program = parse_text(Source("matmul.pk", text))
    roles = compile_program(program, schedule=schedule, level="roles").kernel
    lowered = machine_level(roles)
    memory = Memory(lowered, 1, sizes)
    random = np.random.default_rng(len(text))
    a, b, c = (memory.arrays[name][0] for name in "ABC")
    for operand in (a, b):
        operand[...] = random.integers(-4, 5, operand.shape)
    for name, content in more.items():
        memory.arrays[name][0][...] = content
    cta = Warpgroups(memory, 0, 0, 1)
    for _, threads in warps(roles, 1):
        cta.run(lowered.body.block, threads)
    cta.barriers.check()
    return a, b, c


@pytest.mark.parametrize(("form", "kind", "rows", "columns", "depth"), CASES)
def test_a_product(form: str, kind: str, rows: int, columns: int, depth: int) -> None:
    """The last block of each dimension is ragged."""
    text = matmul(form, kind, kind, rows=rows, columns=columns)
    sizes = {"M": rows - 1, "N": columns - 8, "K": 3 * depth - 8}
    a, b, c = run(text, sizes, {"tile_K": str(depth), "stages": "3"})
    left = np.maximum(a, 0) if form == "registers" else a.T if form.startswith("t") else a
    right = b.T if form.endswith("t") else b
    np.testing.assert_array_equal(c, left @ right)


def test_a_product_that_nothing_is_added_to() -> None:
    """The first step along K writes what the others add to."""
    text = """\
kernel product(A: bf16[M, D], B: bf16[N, D], C: f32[M, N], D: const = 64):
    for m, n in tasks(blocks(M, 128), blocks(N, 64)):
        C[m, n] = A[m] @ B[n].T
"""
    a, b, c = run(text, {"M": 100, "N": 56}, {})
    np.testing.assert_array_equal(c, a @ b.T)


@pytest.mark.parametrize(("rows", "end"), [(64, 1), (128, 100)])
def test_rows_past_the_end_of_a_block_that_ends_inside_of_an_array(rows: int, end: int) -> None:
    """TMA loads what the array has there, and no number times it may come into the sum."""
    text = f"""\
kernel product(end: i32[1], A: bf16[K, M], B: bf16[K, N], C: f32[M, N]):
    for m, n in tasks(blocks(M, {rows}), blocks(N, 64)):
        acc = zeros(f32, m, n)
        for k in blocks(K, 64, stop=end[0]):
            acc += A[k, m].T @ B[k, n]
        C[m, n] = acc
"""
    a, b, c = run(text, {"M": rows, "N": 64, "K": 136}, {"stages": "3"}, end=end)
    assert np.any(a[end : -(-end // 64) * 64]), "nothing is past the end"
    np.testing.assert_array_equal(c, a[:end].T @ b[:end])


def test_sums_along_the_rows_of_a_product() -> None:
    """Four lanes have a row; one row for all has its numbers in each of them."""
    text = """\
kernel product(A: bf16[M, 64], B: bf16[64, 32], g: f32[32], C: f32[M, 32]):
    for m in tasks(blocks(M, 128)):
        C[m, :] = cumsum(A[m, :] @ B[:, :] * 2.0) + cumsum(g[:])
"""
    g = np.arange(32) ** 2 - 100.0
    a, b, c = run(text, {"M": 125}, {}, g=g)
    np.testing.assert_array_equal(c, (2 * a @ b).cumsum(axis=1) + g.cumsum())


def test_zeros_are_seen_by_all_mmas() -> None:
    """Ordinary instructions write them, and MMAs of all warps read them by the async proxy."""
    text = """\
kernel product(end: i32[1], A: bf16[M, K], B: bf16[K, N], C: f32[M, N]):
    for m, n in tasks(blocks(M, 128), blocks(N, 64)):
        acc = zeros(f32, m, n)
        for k in blocks(K, 64, stop=end[0]):
            acc += A[m, k] @ B[k, n]
        C[m, n] = acc
"""
    lowered = machine_level(compile_program(parse_text(Source("product.pk", text)), level="roles").kernel)
    names = [op.instruction_name.data for op in lowered.walk() if isinstance(op, InstructionOp)]
    multiplied = next(number for number, name in enumerate(names) if name.startswith("wgmma_n"))
    cleared = names.index("store_shared_v4")
    assert cleared < multiplied
    assert names[cleared + 1] == "fence_async_shared"
    assert re.fullmatch(r"sync_\d_of_256", names[cleared + 2])


def test_a_descriptor() -> None:
    """Begins at 0x1c20, panels 8 KB apart, 8 rows of 64 bytes apart."""
    number = 2 << 62 | (512 // 16) << 32 | (8192 // 16) << 16 | 0x1C20 // 16
    assert Descriptor.of(number) == Descriptor(0x1C20, 8192, 512, 64)
    with pytest.raises(AssertionError, match="have to be 0"):
        Descriptor.of(number | 1 << 49)


def test_pieces_of_columns() -> None:
    """Half of a product has registers at a time."""
    text = """\
kernel product(A: e4m3[M, K], B: e4m3[N, K], s: f32[M], C: f32[M, N]):
    for m, n in tasks(blocks(M, 64), blocks(N, 256)):
        acc = zeros(f32, m, n)
        for k in blocks(K, 32):
            acc += A[m, k] @ B[n, k].T * s[m]
        C[m, n] = acc
"""
    kernel = compile_program(parse_text(Source("product.pk", text)), level="roles").kernel
    assert [pieces_of(op) for op in kernel.walk() if isinstance(op, MmaOp)] == [2]
    scales = np.arange(63) % 7 - 3
    a, b, c = run(text, {"M": 63, "N": 248, "K": 64}, {"stages": "2"}, s=scales)
    np.testing.assert_array_equal(c, scales[:, None] * (a @ b.T))


@pytest.mark.parametrize(("columns", "said"), [(128, 0), (256, 1)])
def test_a_tile_that_leaves_no_registers_is_divided_element_by_element(columns: int, said: int) -> None:
    text = f"""\
kernel divided(A: bf16[M, K], B: bf16[K, N], d: f32[M], C: f32[M, N]):
    for m, n in tasks(blocks(M, 128), blocks(N, {columns})):
        acc = zeros(f32, m, n)
        for k in blocks(K, 64):
            acc += A[m, k] @ B[k, n]
        C[m, n] = acc / d[m]
"""
    kernel = compile_program(parse_text(Source("divided.pk", text)), level="roles").kernel
    with collecting() as remarks:
        lowered = machine_level(kernel)
    used = {op.instruction_name.data for op in lowered.walk() if isinstance(op, InstructionOp)}
    assert ["no registers are left for reciprocals" in remark.reason for remark in remarks] == [True] * said
    assert used & {"reciprocal", "divide"} == {"divide" if said else "reciprocal"}
