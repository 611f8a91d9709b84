"""What is counted of a kernel for given sizes."""

from __future__ import annotations

from pathlib import Path

import pytest

from pkc.cost.work import Load, Mma, UnknownWorkError, Work, count_work
from pkc.dialect.program import KernelOp
from pkc.frontend.elaborate import build_module
from pkc.frontend.parse import parse_text
from pkc.location import Source
from pkc.passes.roles.plan_overlap import PlanOverlap
from pkc.passes.run import run_pipeline
from pkc.passes.tile.skip_blocks import SkipBlocks
from pkc.targets.sm_90a import TARGET

EXAMPLES = Path(__file__).parents[2] / "examples"


def work(name: str, ranks: int, dims: dict[str, int], constants: dict[str, int] | None = None, **tiles: str) -> Work:
    text = (EXAMPLES / f"{name}.pk").read_text(encoding="utf-8")
    module = build_module(parse_text(Source("t.pk", text)), options=tiles, constants=constants)
    run_pipeline(module, (PlanOverlap(), SkipBlocks()))
    (kernel,) = (op for op in module.ops if isinstance(op, KernelOp))
    return count_work(kernel, dims, ranks, TARGET)


def test_mmas_and_bytes_of_a_gemm() -> None:
    found = work("gemm", 1, {"M": 512, "N": 1024, "K": 640})
    (phase,) = found.phases
    assert phase.tasks == 4 * 4
    outer, inner = phase.iterations
    assert (outer.times, inner.times, outer.loop, inner.loop) == (1, 10, False, True)
    assert inner.mmas == [Mma(128, 256, 64, 2)]
    # 256 columns of B are four panels of 64 rows; nothing lies outside.
    assert inner.loads == [Load("A", 16384, 16384, 128, 0), Load("B", 32768, 32768, 256, 0)]
    assert [(store.tile_bytes, store.sent, store.summed) for store in outer.stores] == [(65536, 0, False)]
    assert found.read == {"A": 512 * 640 * 2, "B": 640 * 1024 * 2}
    assert found.fetched == []


def test_what_lies_outside_of_an_array_is_no_byte() -> None:
    (load, _) = work("gemm", 1, {"M": 16, "N": 256, "K": 64}).phases[0].iterations[1].loads
    assert load == Load("A", 16384, 16 * 64 * 2, 16, 112)
    (load, _) = work("gemm", 1, {"M": 16, "N": 256, "K": 64}, tile_M="16").phases[0].iterations[1].loads
    assert load == Load("A", 16 * 64 * 2, 16 * 64 * 2, 16, 0)


def test_a_sum_goes_to_the_owners_of_its_rows() -> None:
    found = work("gemm_rs", 4, {"M": 512, "N": 512, "K": 64})
    (phase,) = found.phases
    assert phase.tasks == 4 * 2
    (store,) = phase.iterations[0].stores
    assert (store.tile_bytes, store.sent, store.summed) == (65536, 65536 * 3 / 4, True)
    (store,) = work("gemm_ar", 4, {"M": 512, "N": 512, "K": 64}).phases[0].iterations[0].stores
    assert store.sent == 65536 * 2 * 3 / 4


def test_rows_of_several_owners_are_several_blocks() -> None:
    found = work("gemm_rs", 4, {"M": 16, "N": 512, "K": 64})
    assert found.phases[0].tasks == 4 * 2
    # The box of the last block, which has the rows 12 to 15, has the least of A.
    assert found.phases[0].iterations[1].loads[0] == Load("A", 16384, 4 * 64 * 2, 4, 124)


def test_operands_of_other_ranks_are_fetched_once() -> None:
    found = work("ag_gemm", 4, {"M": 1024, "N": 512, "K": 256})
    (fetched,) = found.fetched
    assert fetched.bytes == 1024 * 256 * 2 * 3 / 4
    assert fetched.tiles == 8 * 4 * 3 / 4
    assert found.read["A"] == 1024 * 256 * 2


def test_instructions_of_elements() -> None:
    """Of attention: a maximum is two, s * k - t one, exp2 special, a sum and a cast one each; o * c beside them."""
    (phase,) = work("attention", 1, {"B": 1, "H": 2, "S": 256, "T": 512}).phases
    outer, inner = phase.iterations
    assert (outer.dependent, inner.dependent, inner.times) == (False, True, 4)
    scores, rows = 128 * 128, 128
    # Of rows: top and the maximum times k, their maximum, c of a difference, the total times c plus a sum.
    assert inner.lanes == 5 * scores + 128 * 128 + (1 + 2 + 1 + 1) * rows
    assert inner.special == scores + rows
    assert inner.mmas == [Mma(128, 128, 128, 2), Mma(128, 128, 128, 2, computed=True)]
    assert (outer.lanes, outer.special) == (7 * 128 * 128, 128 * 128)
    # Q is loaded once in a task.
    assert [load.array for load in outer.loads] == ["Q"]
    assert [load.array for load in inner.loads] == ["K", "V"]
    assert phase.tasks == 2 * 2


@pytest.mark.parametrize(
    ("name", "dims", "why"),
    [
        ("moe_combine", {"E": 2, "P": 64, "N": 64, "T": 64}, "only when it runs"),
        ("all_reduce_explicit", {"M": 64, "N": 64}, "it says itself who does what"),
    ],
)
def test_what_is_not_known_is_said(name: str, dims: dict[str, int], why: str) -> None:
    with pytest.raises(UnknownWorkError, match=why):
        work(name, 2, dims)


def test_an_operation_without_a_rate_is_named() -> None:
    text = """
kernel k(X: f32[M, N], Y: f32[M, N]):
    for m, n in tasks(blocks(M, 64), blocks(N, 64)):
        x = X[m, n]
        for i in range(2):
            if i > 0:
                x = exp2(x)
        Y[m, n] = x
"""
    (kernel,) = (op for op in build_module(parse_text(Source("t.pk", text))).ops if isinstance(op, KernelOp))
    with pytest.raises(UnknownWorkError, match=r"no rate is known for `scf\.if`"):
        count_work(kernel, {"M": 64, "N": 64}, 1, TARGET)


@pytest.mark.parametrize("constants", [{"causal": True}, {"causal": True, "zigzag": True}])
@pytest.mark.parametrize("ranks", [2, 4])
def test_blocks_that_tasks_skip_are_no_work(ranks: int, constants: dict[str, int]) -> None:
    """The middle one of a rank's tasks sees half of the keys, and up to a block of each half of a shard."""
    dims = {"B": 1, "H": 2, "S": 8192}
    visits = [
        sum(
            iteration.times
            for iteration in work("ring_attention", ranks, dims, more).phases[0].iterations
            if iteration.mmas
        )
        for more in ({}, constants)
    ]
    assert visits[0] == 8192 / 128
    assert visits[0] / 2 <= visits[1] <= visits[0] / 2 + 2 * ranks
