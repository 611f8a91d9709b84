"""MMAs that stay in flight across iterations: loops of several, their bits, their stages, their machine code."""

from __future__ import annotations

import numpy as np
import pytest

from pkc.check.run import Trial, baseline_of, check_roles
from pkc.check.static import check_statically
from pkc.codegen.build import build_kernel
from pkc.dialect.machine import InstructionOp
from pkc.dialect.program import KernelOp
from pkc.dialect.roles import ReleaseDeferredOp, ReleaseOp
from pkc.dialect.tile import IN_FLIGHT, MmaOp, in_flight
from pkc.driver.compiler import Compiled, compile_program
from pkc.frontend.parse import parse_text
from pkc.location import Source
from pkc.sim.draw import draw_inputs
from pkc.sim.run import simulate
from tests.matmuls import LOOPS

DIMS = {"M": 150, "N": 140, "K": 200, "L": 5}

EXPECTED = {
    "gate_up": (2, 2, 1),
    "chain": (2, 2, 1),
    "twice": (1, 1, 2),
    "outer": (1, 1, 1),
    "carried": (1, 1, 1),
    "branch": (1, 1, 1),
}
"""Of each loop the MMAs of an iteration, and the channels whose stages are kept for them; and how many loops there
are, which share these channels."""


def compiled(name: str, level: str) -> Compiled:
    program = parse_text(Source("k.pk", LOOPS[name]))
    return compile_program(program, level=level)


def dims_of(kernel: KernelOp) -> dict[str, int]:
    used = {dim for argument in kernel.body.block.args for dim in getattr(argument.type, "dimensions", ())}
    return {dim: size for dim, size in DIMS.items() if dim in used}


@pytest.mark.parametrize("name", LOOPS)
def test_all_stay_in_flight(name: str) -> None:
    mmas, channels, loops = EXPECTED[name]
    kernel = compiled(name, "roles").kernel
    assert [in_flight(op) for op in kernel.walk() if isinstance(op, MmaOp)] == [mmas] * mmas * loops
    kept = [op for op in kernel.walk() if isinstance(op, ReleaseOp) and op.kept == 1]
    assert (len(kept), len({op.channel for op in kept})) == (channels * loops, channels)
    assert sum(isinstance(op, ReleaseDeferredOp) for op in kernel.walk()) == channels * loops


@pytest.mark.parametrize("name", LOOPS)
def test_bits_are_those_of_the_tile_level(name: str) -> None:
    tile, roles = compiled(name, "tile"), compiled(name, "roles")
    dims = dims_of(tile.kernel)
    for ranks in (1, 2, 3):
        inputs = draw_inputs(tile.module, ranks=ranks, dims=dims, seed=ranks)
        expected = simulate(tile.module, ranks=ranks, dims=dims, inputs=inputs)
        assert all(np.isfinite(values.astype(np.float32)).all() for values in expected.values())
        for ctas, seed in ((1, 0), (2, 1), (3, 2)):
            found = simulate(roles.module, ranks=ranks, dims=dims, inputs=inputs, seed=seed, ctas=ctas)
            assert {key: value.tobytes() for key, value in found.items()} == {
                key: value.tobytes() for key, value in expected.items()
            }


@pytest.mark.parametrize("name", LOOPS)
def test_no_stage_is_released_under_an_mma(name: str) -> None:
    """With every stage released at once, or one MMA more in flight, the memory model accuses the kernel."""
    tile, trials = compiled(name, "tile"), (Trial(1, 0), Trial(2, 1))
    meaning = baseline_of(tile, ranks=2, dims=dims_of(tile.kernel))
    roles = compiled(name, "roles")
    assert check_roles(roles, meaning, trials) == []
    assert list(check_statically(roles.kernel, ranks=2, dims=meaning.dims).findings) == []
    for op in roles.kernel.walk():
        if isinstance(op, MmaOp):
            op.attributes[IN_FLIGHT] = type(op.attributes[IN_FLIGHT])(in_flight(op) + 1, 64)
    assert {finding.code for finding in check_roles(roles, meaning, trials)} == {"PK738"}


@pytest.mark.parametrize("name", LOOPS)
def test_machine_code(name: str) -> None:
    mmas, _, loops = EXPECTED[name]
    kernel = compiled(name, "machine").kernel
    calls = [op.instruction_name.data for op in kernel.walk() if isinstance(op, InstructionOp)]
    assert calls.count("wgmma_commit") == calls.count(f"wgmma_wait_{mmas}") == mmas * loops
    assert calls.count("wgmma_wait_0") == loops
    made = build_kernel(kernel)
    assert not made.warnings


NESTED = """\
kernel nested(A: bf16[M, K], B: bf16[K, N], C: bf16[M, N]):
    for m, n in tasks(blocks(M, 64), blocks(N, 64)):
        one = zeros(f32, m, n)
        two = zeros(f32, m, n)
        for j in blocks(K, 64):
            one += A[m, j] @ B[j, n]
            for k in blocks(K, 64):
                two += A[m, k] @ B[k, n]
        C[m, n] = one + two
"""


def test_an_mma_beside_a_loop_of_mmas_is_waited_for() -> None:
    source = Source("nested.pk", NESTED).remember()
    made = compile_program(parse_text(source), level="roles")
    told = {remark.span.line: remark.reason for remark in made.remarks if remark.step == "pk-plan-mma"}
    assert told == {6: "each MMA is waited for: a loop inside this one has MMAs too"}
    assert [in_flight(op) for op in made.kernel.walk() if isinstance(op, MmaOp)] == [0, 1]
