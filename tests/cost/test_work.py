"""What is counted of a kernel for given sizes."""

from __future__ import annotations

from pathlib import Path

import pytest

from pkc.cost.records import Edge, Load, Mma, UnknownWorkError, Work
from pkc.cost.stream import lines_of
from pkc.cost.work import count_work
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
    return work_of((EXAMPLES / f"{name}.pk").read_text(encoding="utf-8"), ranks, dims, constants, **tiles)


def work_of(text: str, ranks: int, dims: dict[str, int], constants: dict[str, int] | None = None, **tiles: str) -> Work:
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
    assert inner.mmas == [Mma(128, 256, 64, 2, 128)]
    # 256 columns of B are four panels of 64 rows; nothing lies outside.
    assert inner.loads == [
        Load("A", 16384, 16384, 128, 0, 0.0, 128, 128, (Edge(0, 4),), elements=128 * 64, panels=1),
        Load("B", 32768, 32768, 256, 0, 0.0, 256, 256, (Edge(0, 4),), elements=64 * 256, panels=4),
    ]
    assert [(store.tile_bytes, store.sent, store.summed) for store in outer.stores] == [(65536, 0, False)]
    assert found.read == {"A": 512 * 640 * 2, "B": 640 * 1024 * 2}
    assert found.fetched == []


def test_what_lies_outside_of_an_array_is_no_byte() -> None:
    (load, _) = work("gemm", 1, {"M": 16, "N": 256, "K": 64}).phases[0].iterations[1].loads
    assert load == Load(
        "A",
        16384,
        16 * 64 * 2,
        16,
        112,
        lines=128,
        box_rows=128,
        edges=(Edge(112 / 128, 1),),
        elements=128 * 64,
        panels=1,
    )
    (load, _) = work("gemm", 1, {"M": 16, "N": 256, "K": 64}, tile_M="16").phases[0].iterations[1].loads
    assert load == Load(
        "A", 16 * 64 * 2, 16 * 64 * 2, 16, 0, lines=16, box_rows=16, edges=(Edge(0, 1),), elements=16 * 64, panels=1
    )


@pytest.mark.parametrize("size", [2**31 - 1, 2**63 - 1])
def test_sizes_beyond_all_memory_are_counted_at_once(size: int) -> None:
    (phase,) = work("gemm", 1, dict.fromkeys("MNK", size)).phases
    assert phase.tasks == -(-size // 128) * -(-size // 256)
    assert phase.iterations[1].times == -(-size // 64)


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
    assert found.phases[0].iterations[1].loads[0] == Load(
        "A", 16384, 4 * 64 * 2, 4, 124, lines=128, box_rows=128, elements=128 * 64, panels=1
    )


def test_operands_of_other_ranks_are_fetched_once() -> None:
    found = work("ag_gemm", 4, {"M": 1024, "N": 512, "K": 256})
    (fetched,) = found.fetched
    assert fetched.bytes == 1024 * 256 * 2 * 3 / 4
    assert fetched.tiles == 8 * 4 * 3 / 4
    assert found.read["A"] == 1024 * 256 * 2


def test_scales_of_blocks_are_fetched_with_their_rows_and_their_products_are_awaited() -> None:
    """A copy engine brings all scales of a block of rows at once, as it brings the rows."""
    found = work("fp8/ag_gemm_fp8_blocks", 4, {"M": 4096, "N": 512, "K": 1024, "G": 8, "H": 4}, overlap="copy_engine")
    assert [fetched.copies for fetched in found.fetched] == [4096 // 256 * 3 / 4] * 2
    (scaled,) = (iteration for iteration in found.phases[0].iterations if iteration.mmas)
    assert [mma.awaited for mma in scaled.mmas] == [True]
    plain = work("fp8/ag_gemm_fp8", 4, {"M": 4096, "N": 512, "K": 1024}).phases[0].iterations
    assert [mma.awaited for iteration in plain for mma in iteration.mmas] == [False]


def test_instructions_of_elements() -> None:
    """Of attention: a maximum is two, s * k - t one, exp2 special, a sum and a cast one each; o * c beside them."""
    (phase,) = work("attention", 1, {"B": 1, "H": 2, "S": 256, "T": 512}).phases
    outer, inner = phase.iterations
    assert (outer.dependent, inner.dependent, inner.times) == (False, True, 4)
    scores, rows = 128 * 128, 128
    # Of rows: top and the maximum times k, their maximum, c of a difference, the total times c plus a sum.
    assert inner.lanes == 5 * scores + 128 * 128 + (1 + 2 + 1 + 1) * rows
    assert inner.special == scores + rows
    assert inner.mmas == [Mma(128, 128, 128, 2, 128, awaited=True), Mma(128, 128, 128, 2, 128, computed=True)]
    assert (outer.lanes, outer.special) == (7 * 128 * 128, 128 * 128)
    # Q is loaded once in a task.
    assert [load.array for load in outer.loads] == ["Q"]
    assert [load.array for load in inner.loads] == ["K", "V"]
    assert phase.tasks == 2 * 2


COUNTED = """
kernel k(X: f32[M, N], count: i32[E], Y: f32[M, N]):
    for m, n in tasks(blocks(M, 64), blocks(N, 64)):
        x = X[m, n]
        for i in range({count}):
            x = exp2(x)
        Y[m, n] = x
"""
BRANCH = """
kernel k(X: f32[M, N], count: i32[E], Y: f32[M, N]):
    for m, n in tasks(blocks(M, 64), blocks(N, 64)):
        x = X[m, n]
        if {condition}:
            x = exp2(x)
        else:
            x = -x
        Y[m, n] = x
"""
LISTS = """
kernel k(X: f32[M, N], count: i32[E], Y: f32[M, N]):
    for e in tasks(E):
        for m, n in tasks(blocks(M, 64, stop=count[e]), blocks(N, 64)):
            Y[m, n] = X[m, n]
"""
DIMS = {"M": 128, "N": 128, "E": 2}


def counted(text: str) -> Work:
    (kernel,) = (op for op in build_module(parse_text(Source("t.pk", text))).ops if isinstance(op, KernelOp))
    return count_work(kernel, DIMS, 1, TARGET)


def test_what_is_not_known_is_said() -> None:
    with pytest.raises(UnknownWorkError, match="it says itself who does what"):
        work("all_reduce_explicit", 2, {"M": 64, "N": 64})
    with pytest.raises(UnknownWorkError, match="only when it runs"):
        counted(COUNTED.format(count="count[0]"))
    assert counted(COUNTED.format(count="3")).assumed == {}


def test_what_only_the_running_kernel_decides_is_assumed() -> None:
    """Both branches, and as many blocks as lists of any length have on average; over ranks all."""
    found = counted(BRANCH.format(condition="count[0] > 0"))
    assert list(found.assumed) == ["both branches of an `if`"]
    (iteration,) = found.phases[0].iterations
    assert (iteration.lanes, iteration.special) == (64 * 64, 64 * 64)
    lists = counted(LISTS)
    assert list(lists.assumed) == ["lists of blocks that are half as long as they may be"]
    mean = sum(-(-count // 64) for count in range(DIMS["M"] + 1)) / (DIMS["M"] + 1)
    assert lists.phases[0].tasks == round(DIMS["E"] * mean * 2) == 6
    assert lists.phases[0].uncertain == DIMS["E"]


CONVERTED = """
kernel k(X: bf16[M, 256], V: i8[M, 256], U: bf16[N, 256], W: i8[N, 256], Y: bf16[M, N]):
    for m, n in tasks(blocks(M, 64), blocks(N, 64)):
        acc = zeros(f32, m, n)
        for k in blocks(256, 128):
            acc += {product}
        Y[m, n] = acc
"""


@pytest.mark.parametrize(
    ("product", "left", "moved"),
    [
        ("cast(V[m, k], bf16) @ U[n, k].T", True, 1),
        ("X[m, k] @ cast(W[n, k], bf16).T", False, 2),
        ("X[m, k] @ U[n, k].T", False, 0),
    ],
)
def test_what_computes_operands_comes_before_mmas(product: str, left: bool, moved: int) -> None:
    """A right operand is written to a stage, too; a cast is an instruction, and no other lane has one."""
    found = counted(CONVERTED.format(product=product))
    (_, iteration) = found.phases[0].iterations
    elements = 64 * 128
    assert [mma.computed for mma in iteration.mmas] == [left]
    assert iteration.converted == (moved > 0) * elements + moved * TARGET.rates.converted * elements
    assert iteration.lanes == 0


def test_a_list_outside_of_tasks_is_of_the_tasks_behind_it() -> None:
    first = counted("""
kernel k(count: i32[1], X: f32[M, N], Y: f32[M, N], Z: f32[M, N]):
    for m, n in tasks(blocks(M, 64, stop=count[0]), blocks(N, 64)):
        Y[m, n] = X[m, n]
    for m, n in tasks(blocks(M, 64), blocks(N, 64)):
        Z[m, n] = X[m, n]
""")
    last = counted("""
kernel k(count: i32[1], X: f32[M, N], Y: f32[M, N], Z: f32[M, N]):
    for m, n in tasks(blocks(M, 64), blocks(N, 64)):
        Y[m, n] = X[m, n]
    for m, n in tasks(blocks(M, 64, stop=count[0]), blocks(N, 64)):
        Z[m, n] = X[m, n]
""")
    assert [phase.uncertain for phase in first.phases] == [1.0, 0.0]
    assert [phase.uncertain for phase in last.phases] == [0.0, 1.0]


def test_rows_that_a_table_names_and_sums_into_them() -> None:
    """Of moe_combine: each rank has the rows of all its experts, and most of them are of other ranks."""
    found = work("moe_combine", 2, {"E": 2, "P": 128, "N": 128, "T": 64})
    (phase,) = (phase for phase in found.phases if phase.reaches_memory)
    stores = [store for iteration in phase.iterations for store in iteration.stores]
    assert phase.tasks and stores and all(store.sent > 0 for store in stores)
    dispatch = work("moe_dispatch_gemm", 2, {"E": 2, "P": 128, "N": 256, "T": 64, "H": 64})
    loads = [load for phase in dispatch.phases for iteration in phase.iterations for load in iteration.loads]
    assert {load.array for load in loads} >= {"X", "W"}
    assert dispatch.read["X"] == 2 * 128 * 64 * 2


def test_what_rates_may_be_off_is_counted_beside_them() -> None:
    """A division is counted to a quarter, a sum exactly."""
    for expression, unsure in (("x / y", 8 / 4), ("x + y", 0)):
        text = BRANCH.replace(
            "        if {condition}:\n            x = exp2(x)\n        else:\n            x = -x\n", ""
        )
        found = counted(text.replace("Y[m, n] = x", f"y = X[m, n]\n        Y[m, n] = {expression}"))
        assert found.phases[0].iterations[0].unsure == unsure * 64 * 64


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


def test_lines_of_rows_that_begin_anywhere() -> None:
    """A row as long as a line touches one line, two if it does not begin with one."""
    assert lines_of(128, 256, 128) == 1
    assert lines_of(128, 64, 128) == 1.5
    assert lines_of(128, 16, 128) == (1 + 7 * 2) / 8
    assert lines_of(64, 16, 128) == (5 * 1 + 3 * 2) / 8
    assert lines_of(64, 16, 64) == (1 + 3 * 2) / 4


def test_what_is_loaded_twice_is_loaded_once() -> None:
    """Both MMAs of swiglu read the same tile of X."""
    loop = work("swiglu", 1, {"M": 256, "N": 256, "K": 256}).phases[0].iterations[1]
    assert [load.array for load in loop.loads] == ["X", "W", "V"]
