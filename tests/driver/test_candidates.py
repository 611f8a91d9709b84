"""Which tiles are tried for loops whose MMAs need one another."""

from __future__ import annotations

from pathlib import Path

import pytest

from pkc.cli.main import main
from pkc.dialect.coordinates import BlockCountOp
from pkc.dialect.program import KernelOp
from pkc.driver.candidates import other_tiles, why_none
from pkc.driver.compiler import load
from pkc.driver.planned_candidates import written_as
from pkc.frontend.elaborate import build_module
from pkc.frontend.parse import parse_text
from pkc.location import Source
from pkc.passes.roles.plan_overlap import PlanOverlap
from pkc.passes.run import run_pipeline
from pkc.targets.sm_90a import TARGET
from tests.axes import PROGRAMS as AXES
from tests.sweeps import sweep
from tests.targets.tiny import TINY

EXAMPLES = Path(__file__).parents[2] / "examples"


def kernel(text: str, constants: dict[str, int] | None = None, **schedule: str) -> KernelOp:
    module = build_module(parse_text(Source("t.pk", text)), constants=constants, options=schedule)
    run_pipeline(module, (PlanOverlap(),))
    (found,) = (op for op in module.ops if isinstance(op, KernelOp))
    return found


def example(name: str, constants: dict[str, int] | None = None, **schedule: str) -> KernelOp:
    return kernel((EXAMPLES / f"{name}.pk").read_text(encoding="utf-8"), constants, **schedule)


@pytest.mark.parametrize("head", sweep((64, 128, 256), lambda head: head == 128))
def test_what_is_tried_fits(head: int) -> None:
    """Into shared memory and registers, with two stages if any have; so it is pipelined."""
    found = other_tiles(example("attention", {"D": head}), TARGET)
    assert found
    for settings in found:
        compiled = load(EXAMPLES / "attention.pk", constants={"D": head}, schedule=settings, level="roles")
        left = [remark for remark in compiled.remarks if remark.step == "pk-pipeline-mma"]
        assert not left or head == 256


def test_rows_have_a_warpgroup_for_each_64() -> None:
    def rows(**schedule: str) -> set[tuple[str, str]]:
        found = other_tiles(example("attention", **schedule), TARGET)
        return {(each.get("tile_S", "128"), each.get("consumers", "")) for each in found}

    assert rows() == {("64", ""), ("128", ""), ("192", "3")}
    assert rows(consumers="3") == {("192", "")}
    assert rows(consumers="2") == {("128", "")}


def test_dimensions_whose_beginnings_of_blocks_matter_keep_their_blocks() -> None:
    found = other_tiles(example("gemm_fp8_blocks"), TARGET)
    assert {settings.get("tile_M") for settings in found} >= {"64", "128"}
    assert {(settings.get("tile_N", "128"), settings.get("tile_K", "128")) for settings in found} == {("128", "128")}


def test_products_that_are_scaled_in_their_iteration_may_have_three_warpgroups() -> None:
    """On one rank: over ranks nothing was measured."""
    three = {"tile_M": "192", "consumers": "3"}
    assert three in other_tiles(example("gemm_fp8_blocks"), TARGET)
    assert load(EXAMPLES / "gemm_fp8_blocks.pk", schedule=three, level="roles").kernel.roles
    for other in (
        example("gemm_fp8_blocks", consumers="2"),
        example("gemm_fp8"),
        example("fp8/gemm_rs_fp8_blocks"),
    ):
        assert all(settings.get("consumers") != "3" for settings in other_tiles(other, TARGET))


def test_a_target_may_try_nothing() -> None:
    assert other_tiles(example("attention", {"D": 64}), TINY) == []


PRODUCTS = """
kernel k(X: bf16[M, 64], A: bf16[64, N], B: bf16[N, 64], Y: bf16[M, 64]):
    for m in tasks(blocks({rows}, 64)):
        y = zeros(f32, m, 64)
        for n in blocks({looped}, 64):
            y += cast(exp2(X[m] @ A[:, n]), bf16) @ B[n]
        Y[m] = y
"""

BY_ITSELF = "exp2(X[m] @ A[:, n] - rowmax(X[m] @ A[:, n]))"
"""Its values depend on how many columns a block has."""

NO_CHAIN = (
    "its MMAs need one another, and do not share one dimension of rows and one of a loop, of run-time length,"
    " of which no block is reduced by itself"
)


@pytest.mark.parametrize(
    ("found", "why"),
    [
        (example("ring_attention"), "its MMAs need one another, and it reaches other ranks"),
        (
            kernel(PRODUCTS.format(rows="M", looped="N").replace("N,", "256,").replace(", N]", ", 256]")),
            NO_CHAIN,
        ),
        (kernel(PRODUCTS.format(rows="M", looped="N").replace("exp2(X[m] @ A[:, n])", BY_ITSELF)), NO_CHAIN),
    ],
)
def test_why_nothing_is_tried(found: KernelOp, why: str) -> None:
    assert other_tiles(found, TARGET) == []
    assert why_none(found) == why


def test_the_phase_that_adds_up_shares_has_no_tiles_to_choose(tmp_path: Path) -> None:
    """Its blocks of M are none of the program, which has tasks of one row."""
    (tmp_path / "k.pk").write_text(
        "kernel total(X: f32[M, 64], S: f32[1].replicate()):\n    for m in tasks(M):\n        S[0] += rowsum(X[m, :])\n"
    )
    assert (
        main(["compile", str(tmp_path / "k.pk"), "--set", "M=33", "--emit", "cuda", "-o", str(tmp_path / "k.cu")]) == 0
    )


@pytest.mark.parametrize("name", AXES)
def test_a_program_has_blocks_of_what_is_tried(name: str) -> None:
    """Also where passes load blocks of dimensions of which the program has none."""
    program = parse_text(Source("k.pk", AXES[name].text))
    (base,) = (op for op in build_module(program).ops if isinstance(op, KernelOp))
    counted = {op.block.of for op in base.walk() if isinstance(op, BlockCountOp)}
    keys = {key for settings in other_tiles(written_as(program, "k", (), ()), TARGET) for key in settings}
    assert keys <= {"consumers", *(f"tile_{dim}" for dim in counted)}
