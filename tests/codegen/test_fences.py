"""Fences of the roles level are in the machine code, where they order what they are for."""

from __future__ import annotations

import pytest

from pkc.codegen.build import machine_level
from pkc.dialect.fences import DrainOp, Fence, FenceOp
from pkc.dialect.machine import InstructionOp
from pkc.dialect.program import KernelOp
from pkc.dialect.roles import CommitOp, ConsumeOp, ReleaseOp
from pkc.driver.compiler import compile_program, load
from pkc.frontend.parse import parse_text
from pkc.location import Source
from tests.examples.test_examples import EXAMPLES

ENDS_INSIDE = """
kernel f(X: f32[M, N], Y: f32[M, L]):
    for m, n in tasks(blocks(M, 16), blocks(N, 64)):
        Y[m, n + 16] = X[m, n]
"""
"""The storer's threads read the stage of the last block, and a drain stands between that and its release."""

TWO_RESULTS = """
kernel f(X: f32[M, N], Y: f32[M, N], Z: f32[M, N]):
    for m, n in tasks(blocks(M, 64), blocks(N, 64)):
        x = X[m, n]
        Y[m, n] = exp(x)
        Z[m, n] = x * 2.0
"""

PHASES = """
kernel f(X: bf16[M, L], T: bf16[M, K], W: bf16[K, N], Y: f32[M, N]):
    for m, k in tasks(blocks(M, 64), blocks(K, 128)):
        T[m, k] = cast(exp(cast(X[m, k - 1], f32)), bf16)
    for m, n in tasks(blocks(M, 64), blocks(N, 128)):
        acc = zeros(f32, m, n)
        for k in blocks(K, 64):
            acc += T[m, k] @ W[k, n]
        Y[m, n] = acc
"""
"""Threads carry X in the first phase; in the second one TMA fills the same memory."""


def roles_of(text: str) -> KernelOp:
    return compile_program(parse_text(Source("f.pk", text)), level="roles").kernel


def fences(kernel: KernelOp) -> list[FenceOp]:
    return [op for op in kernel.walk() if isinstance(op, FenceOp) and op.kind.data is Fence.AsyncShared]


@pytest.mark.parametrize("text", [ENDS_INSIDE, TWO_RESULTS, PHASES])
def test_no_fence_is_lost(text: str) -> None:
    check(roles_of(text))


def test_no_fence_behind_what_has_arrived_is_lost() -> None:
    """Rows that a table names come by copies of threads; TMA stores them from where they lie."""
    roles = load(EXAMPLES / "moe_dispatch_gemm.pk", level="roles").kernel
    assert any(isinstance(fence.prev_op, ConsumeOp) for fence in fences(roles))
    check(roles)


def check(roles: KernelOp) -> None:
    found = fences(roles)
    assert found
    lowered = [op for op in machine_level(roles).walk() if isinstance(op, InstructionOp)]
    assert sum(op.instruction_name.data == "fence_async_shared" for op in lowered) >= len(found)


def test_reads_are_fenced_before_a_release_behind_a_drain() -> None:
    (fence,) = fences(roles_of(ENDS_INSIDE))
    assert isinstance(fence.next_op, DrainOp) and isinstance(fence.next_op.next_op, ReleaseOp)


def test_the_fence_of_a_commit_is_that_of_what_was_read_for_it() -> None:
    assert all(isinstance(fence.next_op, CommitOp) for fence in fences(roles_of(TWO_RESULTS)))


def test_reads_are_fenced_where_another_phase_fills_the_memory() -> None:
    releases = [fence.next_op for fence in fences(roles_of(PHASES)) if isinstance(fence.next_op, ReleaseOp)]
    assert len(releases) == 1
