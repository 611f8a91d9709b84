"""Phases of which some share a channel, and one has its own."""

from __future__ import annotations

import pytest

from pkc.dialect.roles import ChannelOp
from pkc.driver.compiler import compile_program
from pkc.frontend.parse import parse_text
from pkc.location import Source
from pkc.passes.build import phase_of

NEWTON = """\
kernel newton(X: bf16[M, N], A: bf16[M, M].scratch(), B: bf16[M, M].scratch(), Y: bf16[M, N]):
    for i, j in tasks(blocks(M, 128), blocks(M, 128)):
        acc = zeros(f32, i, j)
        for n in blocks(N, {inner}):
            acc += X[i, n] @ X[j, n].T
        A[i, j] = acc
    for i, j in tasks(blocks(M, 128), blocks(M, 128)):
        acc = zeros(f32, i, j)
        for k in blocks(M, {inner}):
            acc += A[i, k] @ A[k, j]
        B[i, j] = A[i, j] * -4.775 + acc * 2.0315
    for i, n in tasks(blocks(M, 128), blocks(N, 128)):
        acc = zeros(f32, i, n)
        for k in blocks(M, {inner}):
            acc += B[i, k] @ X[k, n]
        Y[i, n] = X[i, n] * 3.4445 + acc
"""


@pytest.mark.parametrize(("inner", "phases", "rings"), [(64, {0, 1, 2}, 3), (32, set[int](), 2)])
def test_one_phase_passes_other_tiles_than_the_next_two(inner: int, phases: set[int], rings: int) -> None:
    """Where their loops would have two stages, each phase has all of the memory; else the last two share a ring."""
    kernel = compile_program(parse_text(Source("newton.pk", NEWTON.format(inner=inner))), level="roles").kernel
    channels = [op for op in kernel.body.block.ops if isinstance(op, ChannelOp)]
    assert {phase for op in channels if (phase := phase_of(op)) is not None} == phases
    depths = [op.depth for op in channels if len(op.kind.tiles) > 1]
    assert len(depths) == rings and min(depths) > 2
