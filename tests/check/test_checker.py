"""`pkc check`: what a broken protocol is found by, and that the protocols that pkc derives are not accused."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from xdsl.ir import Operation

from pkc.check.report import check_kernel
from pkc.check.run import TRIALS, Baseline, Trial, Trials, baseline_of, check_roles
from pkc.cli.main import main
from pkc.diagnostics import PkcError
from pkc.dialect import tile
from pkc.dialect.access import AtomicAddOp
from pkc.dialect.by_table import ScatterAddOp
from pkc.dialect.program import KernelOp
from pkc.driver.compiler import Compiled, compile_program, load
from pkc.frontend.parse import parse_text
from pkc.location import Source
from pkc.sim.launches import launches_of
from pkc.targets import DEFAULT
from tools.mutant_instances import OVERLAPS
from tools.mutants import caught, mutants, subjects

EXAMPLES = Path(__file__).parents[2] / "examples"
DIMS = {"M": 130, "N": 70, "K": 20}


@cache
def meaning(ranks: int = 2) -> Baseline:
    return baseline_of(load(EXAMPLES / "gemm_rs.pk"), ranks=ranks, dims=DIMS)


def roles() -> Compiled:
    return load(EXAMPLES / "gemm_rs.pk", level="roles")


def test_a_derived_protocol_passes() -> None:
    assert check_roles(roles(), meaning(), TRIALS[:6]) == []


SCATTERED = {"T": 40, "E": 2, "P": 150, "N": 30}


@pytest.mark.parametrize(("example", "dims"), [("moe_combine", SCATTERED), ("gemm_rs", DIMS), ("gemm_ar", DIMS)])
def test_sums_in_no_order_are_launched_again(example: str, dims: dict[str, int]) -> None:
    path = EXAMPLES / f"{example}.pk"
    roles = load(path, level="roles", schedule={"deterministic": "False"})
    assert any(isinstance(op, AtomicAddOp | ScatterAddOp) for op in roles.module.walk())
    assert check_roles(roles, baseline_of(load(path), ranks=3, dims=dims, launches=3), TRIALS[:6]) == []


STEPS = """
kernel steps(X: f32[M].symmetric(), Y: f32[M], B: f32[M].symmetric().scratch(), there: signal[2]):
    with role(communicator):
        for m in tasks(blocks(M, 8)):
            store(B.at((rank + 1) % ranks)[m], X[m])
        signal(there.at((rank + 1) % ranks)[0], 1)
        signal(there.at((rank + 1) % ranks)[0], 2)
    with role(consumer):
        wait(there[0], 1)
        for m in tasks(blocks(M, 8)):
            Y[m] = B[m]
        wait(there[0], 3)
"""


@pytest.mark.parametrize(
    "text", [STEPS, *((EXAMPLES / f"{n}_explicit.pk").read_text() for n in ("ag_gemm", "all_reduce"))]
)
def test_a_protocol_that_is_written_out_is_launched_again(text: str) -> None:
    """Also one whose waits ask for some of a launch's signals only."""
    program = parse_text(Source("k.pk", text.lstrip()))
    tile, roles = compile_program(program, level="tile"), compile_program(program, level="roles")
    used = {dim for arg in tile.kernel.body.block.args for dim in getattr(arg.type, "dimensions", ())}
    meaning = baseline_of(tile, ranks=3, dims={dim: DIMS[dim] for dim in used & set(DIMS)}, launches=3)
    assert check_roles(roles, meaning, TRIALS[:12]) == []


AGAIN = {
    "in one iteration": """
kernel again(A: f32[M, N], Y: f32[M, N], Z: f32[M]):
    for m in tasks(blocks(M, 16)):
        t = zeros(f32, m)
        for n in blocks(N, 16):
            t += rowsum(A[m, n])
            Z[m] = t
            Y[m, n] = A[m, n] * 2.0
            Y[m, n] = A[m, n] + 1.0
        Z[m] = t + 1.0
""",
    "in two loops": """
kernel again(A: f32[M, N], Y: f32[M, N]):
    for m in tasks(blocks(M, 16)):
        for n in blocks(N, 16):
            Y[m, n] = A[m, n] * 2.0
        for k in blocks(N, 16):
            Y[m, k] = A[m, k] + 1.0
""",
    "in the same loop again": """
kernel again(A: f32[M, N], Y: f32[M, N]):
    for m in tasks(blocks(M, 16)):
        for i in range(2):
            for n in blocks(N, 16):
                Y[m, n] = A[m, n] * 2.0
""",
    "before a loop": """
kernel again(A: f32[M, N], Y: f32[M, N]):
    for m in tasks(blocks(M, 16)):
        for n in blocks(N, 32):
            Y[m, n] = A[m, n] * 2.0
            for k in blocks(N, 16):
                Y[m, k] = A[m, k] + 1.0
""",
    "added to": """
kernel again(A: f32[M, N], Y: f32[M, N]):
    for m, n in tasks(blocks(M, 16), blocks(N, 16)):
        Y[m, n] = A[m, n] * 2.0
        store_add(Y[m, n], A[m, n])
""",
}


@pytest.mark.parametrize("form", AGAIN)
def test_what_is_stored_to_one_place_comes_in_order(form: str) -> None:
    """A later store by TMA may overtake an earlier one that is on its way."""
    program, dims = parse_text(Source("again.pk", AGAIN[form].lstrip())), {"M": 16, "N": 32}
    meaning = baseline_of(compile_program(program), ranks=1, dims=dims)
    assert check_roles(compile_program(program, level="roles"), meaning, TRIALS[:2]) == []


CLEARED = """
kernel cleared(rows: i32[T], Y: i32[M], S: i32[M].scratch()):
    for m in tasks(blocks(M, 16)):
        S[m] = zeros(i32, m)
    for t in tasks(T):
        S[rows[t]] = 1
    for m in tasks(blocks(M, 16)):
        Y[m] = S[m]
"""


def test_what_a_program_stores_over_what_it_cleared_is_no_finding() -> None:
    program, dims = parse_text(Source("cleared.pk", CLEARED.lstrip())), {"M": 32, "T": 5}
    meaning = baseline_of(compile_program(program), ranks=1, dims=dims)
    assert check_roles(compile_program(program, level="roles"), meaning, TRIALS[:2]) == []


def test_another_result_is_found() -> None:
    compiled = roles()
    fulls = (op for op in compiled.module.walk() if isinstance(op, tile.FullOp))
    start = next(op for op in fulls if op.result.name_hint == "acc")
    changed = tile.FullOp(1.0, tile.tile_type(start.result))
    block = start.parent
    assert block is not None
    block.insert_op_before(changed, start)
    start.result.replace_all_uses_with(changed.result)
    (finding,) = Trials(compiled.kernel, meaning()).check(Trial(1, 0))
    assert str(finding).splitlines() == [
        "error[PK720]: `C` differs from the result of the tile level at [0, 0] in launch 1",
        f" --> {EXAMPLES / 'gemm_rs.pk'}:2:8",
        "  |",
        "2 | kernel gemm_rs(A: bf16[M, K], B: bf16[K, N], C: bf16[M, N].shard(0)):",
        "  |        ^^^^^^^ with 2 ranks, 1 CTAs for each role, seed 0",
        "  = help: this is a mistake in a pass, or in IR that was changed by hand",
    ]


def test_launches_need_roles() -> None:
    compiled = load(EXAMPLES / "gemm_rs.pk")
    with pytest.raises(PkcError) as error:
        launches_of(compiled.module, ranks=2, dims=DIMS, launches=meaning().inputs)
    assert str(error.value).splitlines() == [
        "error[PK712]: launches of `gemm_rs` cannot be simulated",
        f" --> {EXAMPLES / 'gemm_rs.pk'}:2:8",
        "  |",
        "2 | kernel gemm_rs(A: bf16[M, K], B: bf16[K, N], C: bf16[M, N].shard(0)):",
        "  |        ^^^^^^^ it is not split into roles, or adds up contributions in no order",
        "  = help: compile it to the roles level; a sum over ranks is then staged",
    ]


def test_what_runs_at_the_sizes_is_checked(capsys: pytest.CaptureFixture[str]) -> None:
    """Rows of 131 elements begin at no multiple of 16 bytes: they are copied first."""
    for columns, copied in ((136, False), (131, True)):
        sizes = f"M=140,N={columns},K=72"
        assert main(["check", str(EXAMPLES / "gemm.pk"), "--ranks", "1", "--set", sizes, "--seeds", "2"]) == 0
        found = capsys.readouterr().out
        assert ("accesses to `A`, `B`, `C`, `B.aligned`" in found) == copied
        # 72 rows of 131 elements have room for 144 each.
        assert ("private scratch 20736" in found) == copied


def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["check", str(EXAMPLES / "ag_gemm.pk"), "--ranks", "3", "--set", "M=200,N=40,K=72", "--seeds", "4"]
    assert main(arguments) == 0
    *lines, static, every, ok, proved, follows, explored, sampled = capsys.readouterr().out.splitlines()
    assert lines == [
        "ag_gemm: communicator (1 warp, 40 registers), communicator (1 warp, 40 registers),"
        " loader (1 warp, 40 registers), consumer (8 warps, 232 registers), storer (1 warp, 40 registers)",
        "SMs: 132 compute, 0 only communicate; 4 named barriers",
        "shared memory: 229456 of 231424 bytes; stages: 1 of A, 3 of A.fetched, B, 1 of cast",
        # A has 67 rows of 72 bf16 on a rank. Counters: (200 // 128 + 3 + 1) * (72 // 512 + 3 + 1) for blocks of M and
        # of K, one of entered and of left.
        "symmetric memory: 9736 bytes a rank: arrays 9648, scratch 0, signals 88; private scratch 28800",
        "signals: 3, waits: 3",
    ]
    assert re.fullmatch(r"static: 3990 warp roles with \d+ events, in \d+\.\d\d s", static)
    assert re.fullmatch(
        r"every order on 2 ranks, M = 257, K = 65, N = 257: 1 and 1 runs with 1 and 2 CTAs for each role,"
        r" of \d+ and \d+ steps, stand for all",
        every,
    )
    sizes = "M = 200, K = 72, N = 40"
    assert ok == f"ok: 4 orders, 2 launches each, on 3 ranks, {sizes} give the bits that the program means"
    assert proved == (
        "proved for all sizes and numbers of ranks: stages, budgets and orders of tasks; counts of waits for `entered`"
        " in line 6, `left` in line 6"
    )
    # Blocks of a row are awaited some at a time, the last ones fewer, so that their count is no polynomial.
    assert follows == (
        f"checked in every order on 3 ranks, {sizes}: tasks and cycles of waits; counters `A.ready`, `entered`, `left`;"
        " counts of waits for `A.ready` in line 5"
    )
    about = (
        "accesses to `A`, `B`, `C`, `A.fetched`; counters `A.ready`, `entered`, `left`; results in `C`, of drawn inputs"
    )
    assert (
        explored == f"checked in every order on 2 ranks, M = 257, K = 65, N = 257, 1 and 2 CTAs for each role: {about}"
    )
    assert sampled == f"sampled in 4 orders on 3 ranks, {sizes}: {about}"


@pytest.mark.parametrize(
    "overlaps", [OVERLAPS[:1], pytest.param(OVERLAPS[1:], marks=pytest.mark.long)], ids=["default", "others"]
)
def test_mutants_are_caught(overlaps: tuple[str, ...]) -> None:
    seen: list[str] = []
    for subject in subjects(["gemm_rs"], overlaps):
        kernel: Operation = subject.compiled.kernel
        assert isinstance(kernel, KernelOp)
        assert caught(kernel, subject, TRIALS[:4]) == ""
        for operator, where, broken in mutants(kernel):
            seen.append(operator.name)
            assert caught(broken, subject), f"{subject.name}: {operator.name}, {where}"
    assert len(set(seen)) >= 11


LONG_ROWS = """
kernel divergence(P: bf16[M, V], Q: bf16[M, V], out: f32[M], V: const = 32000):
    for m in tasks(M):
        p = cast(P[m, :], f32)
        e = exp(p - rowmax(p))
        out[m] = rowsum(e * (p - cast(Q[m, :], f32))) / rowsum(e)
"""


def test_sums_of_rows_that_do_not_fit_round_as_those_of_their_pieces() -> None:
    """A CTA has no room for two rows, which then go through in pieces: a choice, and no mistake in a pass."""
    program = parse_text(Source("k.pk", LONG_ROWS.lstrip()))
    settings: dict[str, Any] = {"orders": 2, "explored": 0, "schedule": {}, "target": DEFAULT}
    assert compile_program(program, level="roles").schedule
    assert check_kernel(program, {"M": 3}, ranks=1, **settings).ok


def test_the_command_has_the_pieces_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "k.pk"
    path.write_text(LONG_ROWS.lstrip())
    options = ["--ranks", "1", "--set", "M=3", "--seeds", "2", "--exhaustive", "0"]
    assert main(["check", str(path), *options]) == 0, capsys.readouterr().err
