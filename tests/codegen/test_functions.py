"""What sm_90a has for the operations of the language, held to the language's accuracy with the worst of instructions.

The CUDA of each instruction is compiled to PTX, which is run on all kinds of numbers; every approximate instruction in
it is off by as much as PTX ISA allows.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from xdsl.ir import Operation
from xdsl.utils.test_value import create_ssa_value

from pkc.codegen.nvrtc import compile_cuda
from pkc.dialect import meaning
from pkc.dialect.elementwise import DivOp, ExpOp, Log2Op
from pkc.dialect.instructions import PLAIN
from pkc.dialect.ranges import Bounded, ends
from pkc.dialect.semantics import OPERATIONS
from pkc.dialect.types import TileType, f32
from tests.codegen import ptx
from tests.functions import SPECIAL, drawn

Array = npt.NDArray[Any]
ENTRIES = {entry.computes: entry for entry in PLAIN if entry.computes}
BY_NAME = {op.name: op for op in OPERATIONS}


@cache
def compiled(body: str, operands: int) -> str:
    names = "ab"[:operands]
    text = (
        f"__device__ __forceinline__ float f({', '.join(f'float {name}' for name in names)}) {{ {body} }}\n"
        f'extern "C" __global__ void k({", ".join(f"const float* {name}" for name in names)}, float* y)'
        f" {{ y[0] = f({', '.join(f'{name}[0]' for name in names)}); }}\n"
    )
    return compile_cuda(text, "sm_90a", "k").ptx


def wrong(kind: type[Operation], body: str, inputs: list[Array]) -> list[tuple[float, ...]]:
    """The inputs for which a body gives what the language does not allow, with what it gives."""
    op = kind(*[create_ssa_value(TileType(inputs[0].shape, f32)) for _ in inputs])  # pyright: ignore[reportCallIssue]
    with np.errstate(all="ignore"):
        wide = [x.astype(np.float64) for x in inputs]
        exact = meaning.value(op, np.float64)(*wide)
        expected = meaning.bounded(op)(*[Bounded(x, None) for x in wide])
    low, high = ends(expected)
    bad: list[tuple[float, ...]] = []
    for side in (1.0, -1.0):
        found = ptx.run(compiled(body, len(inputs)), inputs, np.full(inputs[0].shape, side))
        signed = (found != 0) | (exact != 0) | (np.signbit(found) == np.signbit(exact))
        right = (found >= low) & (found <= high) & signed | (np.isnan(found) & np.isnan(exact))
        bad += [(*(float(x[i]) for x in inputs), float(found[i])) for i in np.flatnonzero(~right)]
    return bad


def inputs_of(count: int) -> list[Array]:
    rng = np.random.default_rng(9)
    if count == 1:
        return [drawn(rng, 1 << 17)]
    pairs = np.meshgrid(SPECIAL, SPECIAL)
    return [np.concatenate([side.reshape(-1), drawn(rng, 1 << 16)[: 1 << 16]]) for side in pairs]


@pytest.mark.parametrize("name", ENTRIES)
def test_an_instruction_is_as_accurate_as_the_language_says(name: str) -> None:
    entry = ENTRIES[name]
    assert wrong(BY_NAME[name], entry.body, inputs_of(len(entry.operands))) == []


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (ExpOp, 'float r; asm("ex2.approx.f32 %0, %1;" : "=f"(r) : "f"(a * 1.4426950408889634f)); return r;'),
        (Log2Op, 'float r; asm("lg2.approx.f32 %0, %1;" : "=f"(r) : "f"(a)); return r;'),
        (DivOp, 'float r; asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(b)); return a * r;'),
    ],
    ids=["exp", "log2", "div"],
)
def test_what_is_not_accurate_is_found(kind: type[Operation], body: str) -> None:
    assert len(wrong(kind, body, inputs_of(2 if kind is DivOp else 1))) > 1000


def test_what_the_bounds_leave_open() -> None:
    zeros = np.float32([0.0, -0.0])
    found = ptx.run(compiled(ENTRIES["pk.rsqrt"].body, 1), [zeros], np.ones(2))
    assert found.tolist() == [np.inf, -np.inf]


def test_a_body_that_is_rounded_to_nearest_is_exact() -> None:
    a, b = inputs_of(2)
    with np.errstate(all="ignore"):
        want = a / b
    found = ptx.run(compiled(ENTRIES["pk.div"].body, 2), [a, b], np.ones(a.shape))
    np.testing.assert_array_equal(found, want)
