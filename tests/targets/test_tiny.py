"""Another target goes through every pass: what it gets, what it computes, and what is refused for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pkc
from pkc import targets
from pkc.cli.main import main
from pkc.codegen.build import build_kernel
from pkc.codegen.cuda import print_kernel
from pkc.diagnostics import PkcError
from pkc.dialect.machine import InstructionOp
from pkc.dialect.program import KernelOp
from pkc.dialect.roles import ChannelOp
from pkc.driver import builder
from pkc.driver.autoschedule import autoschedule
from pkc.driver.compiler import Compiled, compile_program, load, load_program
from pkc.frontend.parse import parse_text
from pkc.location import Source
from pkc.passes.roles.plan_fetch import FetchPlan
from pkc.passes.run import print_ir
from pkc.sim.draw import draw_inputs
from pkc.sim.run import simulate
from pkc.targets import sm_90a
from pkc.targets.target import target_of
from tests.codegen.threads import Memory, warps
from tests.targets.tiny import TINY
from tests.targets.warps import Warps

EXAMPLES = Path(__file__).parents[2] / "examples"
HERE = Path(__file__).parent
TILES = {"tile_M": "32", "tile_N": "48", "tile_K": "32"}
SMALL = {
    "gemm": TILES,
    "all_reduce": {"tile_M": "32", "tile_N": "48"},
    "ag_gemm": TILES,
    "gemm_rs": TILES,
    "attention": {"tile_S": "16", "tile_T": "32"},
}
"""Schedules with which examples fit."""


def at(level: str, name: str, **schedule: str) -> Compiled:
    return load(EXAMPLES / f"{name}.pk", schedule=SMALL.get(name, {}) | schedule, level=level, target="tiny")


@pytest.mark.parametrize("name", SMALL)
def test_all_passes_down_to_machine_code(name: str) -> None:
    kernel = at("machine", name).kernel
    assert target_of(kernel) is TINY
    used = {op.instruction_name.data for op in kernel.walk() if isinstance(op, InstructionOp)}
    assert all(TINY.instruction(entry) is not None for entry in used)
    assert ("mma_n8_bf16" in used) == (name != "all_reduce")
    built = build_kernel(kernel)
    assert (built.artifact.target, built.warnings) == ("sm_90", ())
    assert built.artifact.shared_bytes <= TINY.arch.shared_memory
    assert built.artifact.threads <= TINY.arch.threads


def test_the_same_program_for_both_targets() -> None:
    """The tile level has no target; below it each target has other instructions."""
    tile = print_ir(at("tile", "gemm").module)
    assert tile == print_ir(load(EXAMPLES / "gemm.pk", schedule=TILES).module)
    assert "target" not in tile
    assert 'target = "tiny"' in print_ir(at("roles", "gemm").module)
    kernels = load(EXAMPLES / "gemm.pk", level="machine").kernel, at("machine", "gemm").kernel
    texts = list(map(print_kernel, kernels))
    for word in ("wgmma", "cp.async.bulk.tensor", "setmaxnreg", "stmatrix", "fence.proxy.async"):
        assert [word in text for text in texts] == [True, False]


def test_textual_ir_says_its_target() -> None:
    """So the rest of the pipeline needs no option."""
    from pkc.cli.opt import parse_ir
    from pkc.passes import MACHINE_PIPELINE
    from pkc.passes.run import run_pipeline

    again = parse_ir(print_ir(at("roles", "gemm").module), "gemm.mlir")
    run_pipeline(again, MACHINE_PIPELINE)
    assert print_ir(again) == print_ir(at("machine", "gemm").module)


# What it computes


@pytest.mark.parametrize("name", ["gemm", "all_reduce", "ag_gemm", "gemm_rs"])
def test_roles_give_the_bits_of_the_tile_level(name: str) -> None:
    dims = {"M": 70, "N": 100, "K": 90}
    tile, roles = at("tile", name), at("roles", name)
    used = {dim for arg in tile.kernel.body.block.args for dim in getattr(arg.type, "dimensions", ())}
    dims = {dim: size for dim, size in dims.items() if dim in used}
    inputs = draw_inputs(tile.module, ranks=3, dims=dims, seed=5)
    expected = simulate(tile.module, ranks=3, dims=dims, inputs=inputs)
    found = simulate(roles.module, ranks=3, dims=dims, inputs=inputs, seed=7, ctas=2)
    assert {array: values.tobytes() for array, values in found.items()} == {
        array: values.tobytes() for array, values in expected.items()
    }


def run(kernel: KernelOp, roles: KernelOp, ranks: int, count: int, sizes: dict[str, int], **inputs: Any) -> Memory:
    """All CTAs of all ranks, `count` each, on inputs with a leading axis of ranks."""
    memory = Memory(kernel, ranks, sizes)
    for name, values in inputs.items():
        for array, value in zip(memory.arrays[name], values, strict=True):
            array[...] = value
    ctas = [[Warps(memory, rank, number, count) for number in range(count)] for rank in range(ranks)]
    for numbers, threads in warps(roles, count):
        for of_rank in ctas:
            for number in numbers:
                of_rank[number].run(kernel.body.block, threads)
    for cta in chain(*ctas):
        cta.barriers.check()
    return memory


GEMM = """\
kernel gemm(A: bf16[M, K], B: bf16[{b}], C: bf16[M, N]):
    for m, n in tasks(blocks(M, {rows}), blocks(N, 16)):
        acc = zeros(f32, m, n)
        for k in blocks(K, 32):
            acc += A[m, k] @ {right}
        C[m, n] = acc
"""


BY_ROWS, BY_COLUMNS = ("K, N", "B[k, n]"), ("N, K", "B[n, k].T")


@pytest.mark.parametrize(
    ("sizes", "rows", "order"),
    [((16, 16, 64), 16, BY_ROWS), ((34, 16, 38), 32, BY_ROWS), ((13, 20, 40), 16, BY_COLUMNS)],
    ids=["one tile", "two warps", "columns"],
)
def test_machine_code_multiplies(sizes: tuple[int, int, int], rows: int, order: tuple[str, str]) -> None:
    """Threads find their operands and store their results; of integers, so that any order of additions is exact."""
    (m, n, k), (b, right) = sizes, order
    rng = np.random.default_rng(m)
    left, other = rng.integers(-8, 8, (1, m, k)), rng.integers(-8, 8, (1, k, n))
    program = parse_text(Source("gemm.pk", GEMM.format(b=b, right=right, rows=rows)))
    kernel, roles = (compile_program(program, level=level, target="tiny").kernel for level in ("machine", "roles"))
    given = {"A": left, "B": other if b == "K, N" else other.transpose(0, 2, 1)}
    memory = run(kernel, roles, 1, -(-m // rows) * -(-n // 16), {"M": m, "N": n, "K": k}, **given)
    np.testing.assert_array_equal(memory.arrays["C"][0], left[0] @ other[0])


@pytest.mark.parametrize(("ranks", "m", "n"), [(2, 16, 16), (3, 17, 11)], ids=["whole", "ragged"])
def test_machine_code_adds_up_over_ranks(ranks: int, m: int, n: int) -> None:
    x = np.random.default_rng(m).integers(-8, 8, (ranks, m, n))
    kernel, roles = (at(level, "all_reduce", tile_M="16", tile_N="16").kernel for level in ("machine", "roles"))
    memory = run(kernel, roles, ranks, 6, {"M": m, "N": n}, X=x)
    for of_rank in memory.arrays["Y"]:
        np.testing.assert_array_equal(of_rank, x.sum(axis=0))


def test_machine_code_sends_tiles_to_every_rank() -> None:
    """From their stage, by threads: shards of six rows, and a last one of five."""
    x = np.random.default_rng(3).integers(-8, 8, (17, 11))
    kernel, roles = (at(level, "all_gather", tile_M="16", tile_N="16").kernel for level in ("machine", "roles"))
    shards = [np.pad(shard, ((0, 6 - len(shard)), (0, 0))) for shard in np.split(x, [6, 12])]
    memory = run(kernel, roles, 3, 1, {"M": 17, "N": 11}, X=shards)
    for of_rank in memory.arrays["Y"]:
        np.testing.assert_array_equal(of_rank, x)


@pytest.mark.parametrize(("first", "end"), [(0, 40), (8, 40), (4, 36), (8, 37)])
def test_machine_code_copies_blocks_that_begin_and_end_anywhere(first: int, end: int) -> None:
    """16 bytes at once only where they lie at multiples of that."""
    text = f"""\
kernel copy(X: bf16[M, N], Y: bf16[M, N]):
    for m, n in tasks(blocks(M, 16), blocks(N, 16, start={first}, stop={end})):
        Y[m, n] = X[m, n]
"""
    program = parse_text(Source("copy.pk", text))
    kernel, roles = (compile_program(program, level=level, target="tiny").kernel for level in ("machine", "roles"))
    x = np.arange(19 * 40.0).reshape(1, 19, 40)
    memory = run(kernel, roles, 1, 6, {"M": 19, "N": 40}, X=x)
    np.testing.assert_array_equal(memory.arrays["Y"][0][:, first:end], x[0][:, first:end])
    assert np.isnan(memory.arrays["Y"][0][:, end:]).all() and np.isnan(memory.arrays["Y"][0][:, :first]).all()


# What is chosen, and what is refused


def test_what_was_measured_is_of_the_target() -> None:
    """Of the same kernel: tiles awaited at once, copies in flight beside tasks, stages."""
    size, asked = 32 * 32 * 2, {"tile_M": "32", "tile_N": "32", "tile_K": "32"}
    for target in (TINY, sm_90a.TARGET):
        tuning = target.tuning
        found = load(EXAMPLES / "ag_gemm.pk", schedule=asked, level="roles", target=target.name)
        (fetched,) = (why for why in found.explanations if isinstance(why, FetchPlan))
        assert fetched.group == max(tuning.awaited_tiles, tuning.awaited_bytes // size)
        stages = [op.depth for op in found.kernel.body.block.ops if isinstance(op, ChannelOp)]
        assert stages[0] == tuning.copied_bytes // size
        assert max(stages[1:]) == tuning.most_stages
    assert TINY.tuning.copied_bytes // size != sm_90a.TUNING.copied_bytes // size


def test_as_many_mmas_are_in_flight_as_a_wait_can_leave() -> None:
    most = sm_90a.TARGET.mma.in_flight
    assert sm_90a.instruction(f"wgmma_wait_{most}") is not None
    assert sm_90a.instruction(f"wgmma_wait_{most + 1}") is None


def test_tiles_are_chosen_that_fit() -> None:
    """The default tiles of the program do not fit this target; autoschedule finds some that do."""
    program = load_program(EXAMPLES / "gemm.pk")
    found = autoschedule(program, dims={"M": 512, "N": 512, "K": 512}, ranks=1, target="tiny")
    chosen = {key: int(value) for key, value in found.schedule.items()}
    assert chosen["tile_M"] in TINY.tiles.rows and chosen["tile_N"] in TINY.tiles.columns
    assert chosen["tile_M"] * chosen["tile_N"] <= TINY.tiles.most
    assert "4 SMs" in str(found)
    compile_program(program, schedule=dict(found.schedule), level="machine", target="tiny")


@pytest.mark.parametrize(
    ("name", "code"),
    [("gemm", "PK435"), ("all_reduce", "PK435"), ("gemm_fp8", "PK510")],
    ids=["a stage of a matmul", "a stage of a copy", "8-bit floats"],
)
def test_what_does_not_fit_is_refused(name: str, code: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Tiles that a schedule sets stay; with the user's line, and what there is instead."""
    tiles = {"gemm_fp8": "tile_M=32,tile_N=32,tile_K=32", "gemm": "tile_M=128", "all_reduce": "tile_M=128"}[name]
    argv = ["compile", str(EXAMPLES / f"{name}.pk"), "--emit", "machine", "--target", "tiny", "--schedule", tiles]
    assert main(argv) == 1
    assert capsys.readouterr().err.startswith(f"error[{code}]")


def test_explanations_are_of_the_target(capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["compile", str(EXAMPLES / "gemm.pk"), "--schedule", "tile_M=32,tile_N=32,tile_K=32", "--target", "tiny"]
    assert main([*argv, "--explain"]) == 0
    shown = capsys.readouterr().err
    assert "loader: 2 warps of the SMs that compute, 168 registers (its threads carry tiles: tiny has no TMA)" in shown
    assert "load of `A`: by register (tiny has no TMA)" in shown
    assert "starts its copies" not in shown


def test_an_instruction_that_the_table_lacks(golden: Callable[[Path, str], None]) -> None:
    lacking = replace(TINY, name="lacking", instruction=lambda name: None if "pack" in name else TINY.instruction(name))
    targets.register(lacking)
    program = parse_text(Source("gemm.pk", GEMM.format(b="K, N", right="B[k, n]", rows=16)).remember())
    with pytest.raises(PkcError) as caught:
        compile_program(program, level="machine", target="lacking")
    golden(HERE / "PK517.err", f"{caught.value}\n")


def test_a_board_with_fewer_sms() -> None:
    """As docs/targets.md has it: the same machine code, other limits."""
    board = replace(sm_90a.TARGET, name="sm_90a_114", arch=replace(sm_90a.ARCH, sms=114))
    targets.register(board)
    gemm, sums = EXAMPLES / "gemm.pk", EXAMPLES / "gemm_rs.pk"
    texts = [print_kernel(load(gemm, level="machine", target=name).kernel) for name in (targets.DEFAULT, board.name)]
    assert texts[0] == texts[1]
    schedule = {"comm_sms": "120"}
    load(sums, schedule=schedule, level="roles")
    with pytest.raises(PkcError, match=r"PK467.*114 SMs"):
        load(sums, schedule=schedule, level="roles", target=board.name)


def test_names() -> None:
    assert targets.names()[0] == targets.DEFAULT
    assert "tiny" in targets.names()
    assert [targets.code_of(name) for name in ("tiny", targets.DEFAULT)] == ["sm_90", sm_90a.TARGET.code]
    targets.register(TINY)
    with pytest.raises(ValueError, match="another target called tiny"):
        targets.register(replace(TINY, code="sm_80"))
    with pytest.raises(ValueError, match=f"another target called {targets.DEFAULT}"):
        targets.register(replace(TINY, name=targets.DEFAULT))
    with pytest.raises(PkcError, match="did you mean `tiny`"):
        pkc.compile(EXAMPLES / "gemm.pk", target="tini")


def test_machine_code_of_a_target_from_elsewhere_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is kept is known by the sources of pkc, and a registered target is none of them."""
    kept: list[bytes] = []
    monkeypatch.setenv("PKC_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(builder.stored, "pack", lambda artifact: artifact.target.encode())
    monkeypatch.setattr(builder.cache, "put", lambda _, content: kept.append(content))
    program = parse_text(Source("gemm.pk", GEMM.format(b="K, N", right="B[k, n]", rows=16)))
    built = [builder.build_program(program, target=name).target for name in ("tiny", targets.DEFAULT)]
    assert built == ["sm_90", targets.find(targets.DEFAULT).code]
    assert [content for content in kept if content.startswith(b"sm_")] == [built[1].encode()]


def test_checks_are_of_the_target(capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["check", str(EXAMPLES / "gemm.pk"), "--ranks", "1", "--seeds", "1", "--exhaustive", "0", "--target", "tiny"]
    assert main([*argv, "--schedule", "tile_M=16,tile_N=16,tile_K=16", "--set", "M=40,N=24,K=24"]) == 0
    shown = capsys.readouterr().out
    assert "SMs: 4 compute, 0 only communicate" in shown
    assert f"of {TINY.stage_memory} bytes" in shown
