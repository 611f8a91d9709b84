"""What sm_90a has for the operations of the language, held to the language's accuracy with the worst of instructions.

The CUDA of each instruction is compiled to PTX, which is run on all kinds of numbers; every approximate instruction in
it is off by as much as PTX ISA allows.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from xdsl.ir import Operation

from pkc.codegen.nvrtc import compile_cuda
from pkc.dialect.declaration import OPERATIONS
from pkc.dialect.elementwise import CosOp, DivOp, Exp2Op, ExpOp, Log2Op, SinOp, SteepExpOp, StepErfOp, StepTanhOp
from pkc.dialect.types import f32
from pkc.targets.sm_90a.instructions import PLAIN
from tests.codegen import ptx
from tests.functions import inputs_of, judged

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


def wrong(kind: type[Operation], body: str) -> int:
    """For how many inputs a body gives what the language does not allow."""
    inputs = inputs_of(kind, f32, seed=9, count=1 << 17)
    text = compiled(body, len(inputs))
    sides = (np.full(inputs[0].shape, side) for side in (1.0, -1.0))
    return sum(judged(kind, inputs, ptx.run(text, inputs, side)).wrong.size for side in sides)


@pytest.mark.parametrize("name", ENTRIES)
def test_an_instruction_is_as_accurate_as_the_language_says(name: str) -> None:
    assert wrong(BY_NAME[name], ENTRIES[name].body) == 0


def quarters() -> np.ndarray:
    """The numbers next to quarter turns: many small ones, some large ones; and those from where on sines are NaN."""
    rng = np.random.default_rng(0)
    few = np.arange(1, 1 << 15) * (np.pi / 2)
    many = rng.integers(1, 1 << 26, 1 << 15) * (np.pi / 2)
    large = rng.integers(1, 1 << 50, 1 << 15) * (np.pi / 2)
    ends = [sign * 2.0**power for sign in (-1, 1) for power in (50.99999, 51, 52, 127)]
    return np.concatenate([few, -few, many, large, ends]).astype(np.float32)


@pytest.mark.parametrize("kind", [SinOp, CosOp])
def test_sines_and_cosines_next_to_quarter_turns(kind: type[Operation]) -> None:
    """What is left of such a number has few digits of it: the others are those of pi."""
    body, inputs = ENTRIES[kind.name].body, [quarters()]
    side = np.ones(inputs[0].shape)
    assert judged(kind, inputs, ptx.run(compiled(body, 1), inputs, side)).wrong.size == 0
    part = " z = fma(k, -0x1.1a62633145c07p-54, z);"
    assert part in body
    fewer = compiled(body.replace(part, ""), 1)
    assert judged(kind, inputs, ptx.run(fewer, inputs, side)).wrong.size > 100


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (ExpOp, 'float r; asm("ex2.approx.f32 %0, %1;" : "=f"(r) : "f"(a * 1.4426950408889634f)); return r;'),
        (SteepExpOp, 'float r; asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(a * 1.442694f)); return r;'),
        (Log2Op, 'float r; asm("lg2.approx.f32 %0, %1;" : "=f"(r) : "f"(a)); return r;'),
        (
            StepTanhOp,
            'float e, r; asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(e) : "f"(a * -2.88538f));'
            ' asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(1.0f + e)); return r;',
        ),
        (StepErfOp, ENTRIES["pk.step_erf"].body.replace("-3.25581561f", "-3.255811f")),
        (DivOp, 'float r; asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(b)); return a * r;'),
    ],
    ids=["exp", "steep", "log2", "step", "step of erf", "div"],
)
def test_what_is_not_accurate_is_found(kind: type[Operation], body: str) -> None:
    assert wrong(kind, body) > 1000


@pytest.mark.parametrize(
    ("body", "allowed"),
    [
        ('float r; asm("ex2.approx.f32 %0, %1;" : "=f"(r) : "f"(a)); return r;', True),
        ('float r; asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(a)); return r;', True),
        ('float r; asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(a)); return r < 0x1p-125f ? 0.0f : r;', False),
        ('float r; asm("ex2.approx.f32 %0, %1;" : "=f"(r) : "f"(a)); return r < 0x1p-126f ? 0x1p-125f : r;', False),
    ],
    ids=["kept", "flushed", "more is flushed", "raised"],
)
def test_exp2_may_be_zero_below_the_normal_numbers_alone(body: str, allowed: bool) -> None:
    a = np.linspace(-150, -124, 1 << 14, dtype=np.float32)
    sides = (np.full(a.shape, side) for side in (1.0, -1.0))
    found = [judged(Exp2Op, [a], ptx.run(compiled(body, 1), [a], side)).wrong.size for side in sides]
    assert all(count == 0 if allowed else count > 500 for count in found)


def test_what_the_bounds_leave_open() -> None:
    zeros = np.float32([0.0, -0.0])
    found = ptx.run(compiled(ENTRIES["pk.rsqrt"].body, 1), [zeros], np.ones(2))
    assert found.tolist() == [np.inf, -np.inf]


def test_a_body_that_is_rounded_to_nearest_is_exact() -> None:
    a, b = inputs_of(DivOp, f32, seed=9, count=1 << 17)
    with np.errstate(all="ignore"):
        want = a / b
    found = ptx.run(compiled("return __fdiv_rn(a, b);", 2), [a, b], np.ones(a.shape))
    np.testing.assert_array_equal(found, want)
