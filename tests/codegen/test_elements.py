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


@pytest.mark.parametrize("text", [ROWS.format(kind="bf16", rows=4, columns=4095), ROW.format(columns=4095)])
def test_many_elements_are_on_their_way(text: str) -> None:
    """Of one at a time each takes as long as memory: rows of 4095 elements took 46 times as long as those of 4096."""
    kernel = roles_of(text)
    loader, _, storer = kernel.roles
    for role in (loader, storer):
        assert role.warps is not None and role.warps.value.data == TARGET.tuning.carriers
    lines = print_kernel(machine_level(kernel)).split("// loader", 1)[1].split("// storer", 1)[0].splitlines()
    moved = [line.split("(")[0].split()[-1] for line in lines if "_global_b16(" in line or "store_shared_b16(" in line]
    singles = TARGET.threads.singles
    assert moved == ["load_global_b16"] * singles + ["store_shared_b16"] * singles


def test_short_rows_have_one_warp() -> None:
    loader, *_ = roles_of(ROW.format(columns=77)).roles
    assert loader.warps is not None and loader.warps.value.data == 1
