"""Reductions of columns, beside MMAs and without, at the machine level: thread by thread on numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pkc.codegen.build import machine_level
from pkc.dialect.machine import InstructionOp
from pkc.dialect.program import KernelOp
from pkc.driver.compiler import compile_program
from pkc.frontend.parse import parse_text
from pkc.location import Source
from tests.codegen.threads import Memory, warps
from tests.codegen.warpgroups import Warpgroups
from tests.tiles import EPILOGUES

Values = np.ndarray[Any, Any]


def lowered(text: str, **schedule: str) -> tuple[KernelOp, KernelOp]:
    """At the roles level and at the machine level."""
    roles = compile_program(parse_text(Source("columns.pk", text)), schedule=schedule, level="roles").kernel
    return roles, machine_level(roles)


def run(text: str, sizes: dict[str, int], tasks: int = 1, **schedule: str) -> dict[str, Values]:
    """The arrays of a kernel with a CTA for each task, which has a stage for each block that it loads."""
    roles, kernel = lowered(text, **schedule)
    memory = Memory(kernel, 1, sizes)
    random = np.random.default_rng(len(text))
    found = {name: arrays[0] for name, arrays in memory.arrays.items()}
    for name in {"X", "Y", "dY", "begin"} & set(found):
        found[name][...] = random.integers(-4, 5, found[name].shape)
    ctas = [Warpgroups(memory, 0, number, tasks) for number in range(tasks)]
    for numbers, threads in warps(roles, tasks):
        for number in numbers:
            ctas[number].run(kernel.body.block, threads)
    for cta in ctas:
        cta.barriers.check()
    return found


def loads(kernel: KernelOp) -> list[str]:
    """The instructions that read stages, in their order."""
    names = [op.instruction_name.data for op in kernel.walk() if isinstance(op, InstructionOp)]
    return [name for name in names if name.startswith("load_shared")]


@pytest.mark.parametrize("columns", [256, 192, 64])
def test_the_gradient_of_a_bias(columns: int) -> None:
    """With more threads than columns need, and fewer; the last blocks are ragged."""
    text = EPILOGUES["gradient_of_bias"].replace("256", str(columns))
    found = run(text, {"M": 120, "N": columns - 8, "K": 120}, stages="2")
    np.testing.assert_array_equal(found["dW"], found["X"].T @ found["dY"])
    np.testing.assert_array_equal(found["db"], found["dY"].sum(axis=0))


@pytest.mark.parametrize(("name", "rows", "columns"), [("columns_beside", 128, 192), ("columns_beside_f32", 64, 64)])
def test_several_reductions_of_both_operands(name: str, rows: int, columns: int) -> None:
    found = run(EPILOGUES[name], {"M": 62, "K": rows - 8, "N": columns - 8}, stages="2")
    x, y = found["X"].astype(float), found["Y"].astype(float)
    np.testing.assert_array_equal(found["C"], x.T @ y)
    np.testing.assert_array_equal(found["s"], y.sum(axis=0) / 2)
    np.testing.assert_array_equal(found["q"], (x * x).sum(axis=0) + found["begin"])
    np.testing.assert_array_equal(found["top"], np.abs(x).max(axis=0))


COMPUTED = """\
kernel k(X: {x}[M, K], dY: {y}[M, N], dW: f32[K, N], db: f32[{d}]):
    for k, n in tasks(blocks(K, 64), blocks(N, 64)):
        acc = zeros(f32, k, n)
        b = zeros(f32, {of})
        for m in blocks(M, 32):
            x = cast(X[m, k].T, bf16)
            y = cast(dY[m, n], bf16)
            acc += x @ y
            b += rowsum({summed})
        dW[k, n] = acc
        if start({other}) == 0:
            db[{of}] = b
"""


@pytest.mark.parametrize(
    ("x", "y", "summed"), [("bf16", "i8", "y.T"), ("bf16", "i8", "cast(dY[m, n].T, f32)"), ("i8", "bf16", "x")]
)
def test_what_is_folded_is_computed_for_an_mma_too(x: str, y: str, summed: str) -> None:
    """Threads have what they compute for an MMA in another way."""
    of, other = "kn" if summed == "x" else "nk"
    text = COMPUTED.format(x=x, y=y, summed=summed, of=of, other=other, d=of.upper())
    found = run(text, {"M": 60, "N": 56, "K": 64}, stages="2")
    np.testing.assert_array_equal(found["dW"], found["X"].T @ found["dY"])
    np.testing.assert_array_equal(found["db"], found["X" if of == "k" else "dY"].sum(axis=0))


def test_tasks_that_store_no_sums_read_no_columns() -> None:
    found = run(EPILOGUES["gradient_of_bias"], {"M": 120, "N": 248, "K": 250}, tasks=2, stages="2")
    np.testing.assert_array_equal(found["dW"], found["X"].T @ found["dY"])
    np.testing.assert_array_equal(found["db"], found["dY"].sum(axis=0))


def test_threads_read_16_bytes_at_a_time() -> None:
    _, kernel = lowered(EPILOGUES["gradient_of_bias"])
    assert loads(kernel) == ["load_shared_v4"]


ALONE = """\
kernel k(X: bf16[M, N], s: f32[N], top: f32[N]):
    for n in tasks(blocks(N, {columns})):
        acc = zeros(f32, n)
        greatest = full(f32, -inf, n)
        for m in blocks(M, {rows}):
            x = cast(X[m, n].T, f32)
            acc += rowsum(x)
            greatest = max(greatest, rowmax(abs(x)))
        s[n] = acc; top[n] = greatest
"""


@pytest.mark.parametrize(("rows", "columns"), [(64, 64), (128, 32), (32, 256)])
def test_columns_without_mmas(rows: int, columns: int) -> None:
    text = ALONE.format(rows=rows, columns=columns)
    found = run(text, {"M": 2 * rows - 8, "N": columns - 8}, stages="2", task_stages="1")
    np.testing.assert_array_equal(found["s"], found["X"].astype(float).sum(axis=0))
    np.testing.assert_array_equal(found["top"], np.abs(found["X"]).max(axis=0))
    assert loads(lowered(text)[1]).count("load_shared_v4") > 0
