"""Consumers add up the last rows of every sum of a kernel: its bits, and its machine code."""

from __future__ import annotations

import pytest

from pkc.codegen.build import build_kernel
from pkc.compiler import Compiled, compile_program
from pkc.dialect.attributes import Role
from pkc.dialect.counters import WaitOp
from pkc.dialect.program import KernelOp, RoleOp
from pkc.frontend.parse import parse_text
from pkc.location import Source
from pkc.sim.draw import draw_inputs
from pkc.sim.run import simulate

SUMS: dict[str, tuple[str, int, bool]] = {
    "two sums of one task": (
        """
kernel k(A: bf16[M, K], B: bf16[K, N], D: bf16[K, N], C: bf16[M, N].shard(0), E: bf16[M, N].replicate()):
    for m, n in tasks(blocks(M, 64), blocks(N, 64)):
        first = zeros(f32, m, n)
        second = zeros(f32, m, n)
        for k in blocks(K, 64):
            first += A[m, k] @ B[k, n]
            second += A[m, k] @ D[k, n]
        C[m, n] += first
        E[m, n] += second
""",
        2,
        True,
    ),
    "tasks of one index": (
        """
kernel k(A: bf16[M, K], B: bf16[K, D], C: bf16[M, D].shard(0), D: const = 64):
    for m in tasks(blocks(M, 64)):
        acc = zeros(f32, m, D)
        for k in blocks(K, 64):
            acc += A[m, k] @ B[k]
        C[m] += acc
""",
        1,
        True,
    ),
    "a sum that the next phase reads, and one of the last phase": (
        """
kernel k(A: bf16[M, K], B: bf16[K, N], C: bf16[M, N].shard(0), E: bf16[M, N].shard(0)):
    for m, n in tasks(blocks(M, 64), blocks(N, 64)):
        acc = zeros(f32, m, n)
        for k in blocks(K, 64):
            acc += A[m, k] @ B[k, n]
        C[m, n] += acc
    for m, n in tasks(blocks(M, 64), blocks(N, 64)):
        E[m, n] += cast(C[m, n], f32) * 2.0
""",
        1,
        False,
    ),
}
"""By what is particular: a kernel, the sums that its consumers share, and whether it has a lowering."""


def compiled(name: str, level: str) -> Compiled:
    return compile_program(parse_text(Source("k.pk", f"{SUMS[name][0].strip()}\n")), level=level)


def awaited(kernel: KernelOp) -> set[str]:
    """The counters that consumers wait for."""
    parts = [op for op in kernel.body.block.ops if isinstance(op, RoleOp) and op.role.data is Role.Consumer]
    waits = [op for part in parts for op in part.walk() if isinstance(op, WaitOp)]
    return {kernel.argument_name(op.signal) for op in waits}


@pytest.mark.parametrize("name", SUMS)
def test_consumers_share_each_sum(name: str) -> None:
    found = compiled(name, "roles")
    shared = {counter for counter in awaited(found.kernel) if counter.endswith(".arrived")}
    assert len(shared) == SUMS[name][1]
    told = [remark.reason for remark in found.remarks if remark.step == "pk-share-sums"]
    assert told == ["communicators alone add up this sum: a later phase may wait for it"] * ("phase" in name)


@pytest.mark.parametrize("name", SUMS)
def test_bits_are_those_of_the_tile_level(name: str) -> None:
    tile, roles = compiled(name, "tile"), compiled(name, "roles")
    used = {dim for argument in tile.kernel.body.block.args for dim in getattr(argument.type, "dimensions", ())}
    dims = {dim: size for dim, size in {"M": 290, "N": 140, "K": 70}.items() if dim in used}
    for ranks in (1, 2, 3):
        inputs = draw_inputs(tile.module, ranks=ranks, dims=dims, seed=ranks)
        expected = simulate(tile.module, ranks=ranks, dims=dims, inputs=inputs)
        for ctas, seed in ((1, 0), (2, 1), (5, 2)):
            found = simulate(roles.module, ranks=ranks, dims=dims, inputs=inputs, seed=seed, ctas=ctas)
            assert {key: value.tobytes() for key, value in found.items()} == {
                key: value.tobytes() for key, value in expected.items()
            }


@pytest.mark.parametrize("name", [name for name, (_, _, lowered) in SUMS.items() if lowered])
def test_machine_code(name: str) -> None:
    assert {warning.code for warning in build_kernel(compiled(name, "machine").kernel).warnings} <= {"PK803"}
