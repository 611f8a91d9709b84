"""Tiles that threads move element by element, since rows begin anywhere: many elements are on their way at a time."""

from __future__ import annotations

import numpy as np
import pytest

from pkc.codegen.build import machine_level
from pkc.codegen.cuda import print_kernel
from pkc.dialect.program import KernelOp
from pkc.driver.compiler import compile_program
from pkc.frontend.parse import parse_text
from pkc.location import Source
from pkc.targets.sm_90a import TARGET
from tests.codegen.test_layouts import numbered, run

ROWS = """
kernel k(X: {kind}[M, {columns}], Y: {kind}[M, {columns}]):
    for m in tasks(blocks(M, {rows})):
        x = cast(X[m, :], f32)
        Y[m, :] = cast(x * 2.0, {kind})
"""
ROW = """
kernel k(X: bf16[M, {columns}], Y: bf16[M, {columns}]):
    for m in tasks(M):
        x = cast(X[m, :], f32)
        Y[m, :] = cast(x - rowmax(x), bf16)
"""


def roles_of(text: str) -> KernelOp:
    return compile_program(parse_text(Source("k.pk", text.lstrip())), level="roles").kernel


@pytest.mark.parametrize(
    ("kind", "rows", "columns"), [("bf16", 4, 78), ("bf16", 8, 2), ("f32", 4, 33), ("bf16", 2, 510)]
)
@pytest.mark.parametrize("m", [9, 3])
def test_each_element_is_moved_once(kind: str, rows: int, columns: int, m: int) -> None:
    """Numbers of elements that are no multiple of what threads have at once; the last block has fewer rows."""
    x = numbered(1, m, columns) / 256 % 7
    text = ROWS.format(kind=kind, rows=rows, columns=columns)
    memory = run(text, 1, 2, {"M": m}, X=x)
    np.testing.assert_array_equal(memory.arrays["Y"][0], 2 * x[0])


APART = """
kernel k(X: bf16[M, 4096, 8], Y: bf16[M, 4096]):
    for m in tasks(blocks(M, 4)):
        Y[m, :] = cast(cast(X[m, :, 3], f32) * 2.0, bf16)
"""


def moved_by(kernel: KernelOp, role: str, *names: str) -> list[str]:
    """What the threads of a role do in one iteration, of instructions whose names end so."""
    lines = print_kernel(machine_level(kernel)).split(f"// {role}", 1)[1].split("\n        // ", 1)[0].splitlines()
    calls = [line.split("(")[0].split()[-1] for line in lines if "(" in line.strip()]
    return [call for call in calls if call.endswith(names)]


def test_many_elements_are_on_their_way() -> None:
    """Of one at a time each takes as long as memory."""
    kernel, singles = roles_of(APART), TARGET.threads.singles
    loader = kernel.roles[0]
    assert loader.warps is not None and loader.warps.value.data == TARGET.arch.warpgroup - 1
    moved = moved_by(kernel, "loader", "_global_b16", "_shared_b16")
    assert moved == ["load_global_b16"] * singles + ["store_shared_b16"] * singles


@pytest.mark.parametrize("text", [ROWS.format(kind="bf16", rows=4, columns=4095), ROW.format(columns=4095)])
def test_many_chunks_are_on_their_way(text: str) -> None:
    """Rows that begin anywhere: one thread starts copies, and all warps that are left store."""
    kernel, chunks = roles_of(text), TARGET.threads.loads
    loader, _, storer = kernel.roles
    assert loader.warps is not None and storer.warps is not None
    assert (loader.warps.value.data, storer.warps.value.data) == (1, TARGET.arch.warpgroup - 1)
    assert moved_by(kernel, "loader", "_around") == ["tma_load_row_around"]
    moved = moved_by(kernel, "storer", "_v4_around", "_v4_where")
    assert moved == ["load_shared_v4_around"] * 2 * chunks + ["store_global_v4_where"] * chunks


def test_short_rows_have_one_warp() -> None:
    loader, *_ = roles_of(ROW.format(columns=77)).roles
    assert loader.warps is not None and loader.warps.value.data == 1
