"""Which schedule the autoschedule chooses for sizes."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from pkc.diagnostics import PkcError
from pkc.driver import autoschedule as module
from pkc.driver import builder, planned_candidates, search
from pkc.driver.autoschedule import autoschedule
from pkc.driver.chosen import Autoschedule, duration
from pkc.driver.compiler import Compiled, compile_program, load, load_program
from pkc.driver.planned import planned
from pkc.frontend import tree
from pkc.frontend.parse import parse_text
from pkc.location import Source
from pkc.targets.sm_90a import TARGET
from tests.clock import within

EXAMPLES = Path(__file__).parents[2] / "examples"


def chosen(name: str, ranks: int = 4, schedule: Any = None, **dims: int) -> Autoschedule:
    return autoschedule(load_program(EXAMPLES / f"{name}.pk"), dims=dims, ranks=ranks, schedule=schedule)


def test_a_few_rows_get_small_tiles_for_all_sms() -> None:
    found = chosen("gemm_rs", M=16, N=8192, K=2048)
    assert int(found.schedule["tile_M"]) <= 16
    assert found.taken is not None and found.instead is not None
    assert 0.75 * found.taken.sms <= found.taken.tasks
    assert found.taken.total < 0.7 * found.instead.total


def test_blocks_that_span_parts_are_estimated_as_they_are() -> None:
    """A tile has rows of two ranks or of all four: B is loaded fewer times."""
    for name, dims in (("gemm_rs", {"N": 8192, "K": 2048}), ("ag_gemm", {"N": 2048, "K": 8192})):
        along = chosen(name, schedule={"straddle": "false"}, M=16, **dims)
        across = chosen(name, schedule={"straddle": "true"}, M=16, **dims)
        assert along.taken is not None and across.taken is not None
        rows, columns = int(across.schedule["tile_M"]), int(across.schedule["tile_N"])
        assert rows in (8, 16)
        assert across.taken.tasks == 16 // rows * dims["N"] // columns
        assert across.taken.total < along.taken.total


def test_blocks_span_parts_where_parts_are_short_and_the_schedule_leaves_it_open() -> None:
    assert chosen("gemm_rs", M=16, N=8192, K=2048).schedule["straddle"] == "true"
    for rows in (16, 64):  # of an operand that is fetched they are estimated to be faster, and measured to be slower
        of_one = chosen("ag_gemm", M=rows, N=2048, K=8192)
        across = chosen("ag_gemm", schedule={"straddle": "true"}, M=rows, N=2048, K=8192)
        assert "straddle" not in of_one.schedule and int(of_one.schedule["tile_M"]) == rows // 4
        assert of_one.taken is not None and across.taken is not None and across.taken.total < of_one.taken.total
    for name, dims in (("gemm_rs", {"N": 8192, "K": 2048}), ("ag_gemm", {"N": 2048, "K": 8192})):
        assert "straddle" not in chosen(name, M=1, **dims).schedule
        assert "straddle" not in chosen(name, M=2048, **dims).schedule
        assert "straddle" not in chosen(name, ranks=1, M=16, **dims).schedule
        assert "straddle" not in chosen(name, schedule={"straddle": "false"}, M=16, **dims).schedule
        # Which cannot be: a copy is of one rank's rows, and an operand would be fetched by those who compute.
        assert "straddle" not in chosen(name, schedule={"overlap": "copy_engine"}, M=16, **dims).schedule


def test_many_rows_keep_the_schedule_of_the_program() -> None:
    found = chosen("gemm_rs", M=16384, N=16384, K=4096)
    assert found.schedule == {}
    assert "schedule: as the program says (8192 tasks for 132 SMs; estimated" in str(found)


def test_tasks_that_add_up_many_shares_are_counted() -> None:
    """However the indices are divided: as many tasks run for all of them together."""
    text = """
kernel k(X: bf16[{dims}, 8192], S: f32[8192].replicate()):
    for {indices} in tasks({counts}):
        S[:] += cast(X[{indices}, :], f32)
"""
    taken = []
    for dims, indices, sizes in (("T", "t", {"T": 8192}), ("B, T", "b, t", {"B": 1, "T": 8192})):
        program = parse_text(Source("k.pk", text.strip().format(dims=dims, indices=indices, counts=dims) + "\n"))
        found = autoschedule(program, dims=sizes, ranks=1)
        assert found.taken is not None and found.taken.tasks == 512
        taken.append(found.taken.total)
    assert taken[0] == taken[1]


def test_who_has_one_task_loads_what_is_there_ahead_of_what_is_fetched() -> None:
    for size, separate in ((1, True), (128, True), (1024, True), (8192, False)):
        found = chosen("ag_gemm", M=size, N=2048, K=8192)
        assert (found.schedule.get("separate_loader") == "true") is separate
    assert "separate_loader" not in chosen("gemm_rs", M=16, N=8192, K=2048).schedule
    assert (
        "separate_loader" not in chosen("ag_gemm", schedule={"separate_loader": "false"}, M=1, N=2048, K=8192).schedule
    )
    # One task for each SM, but the loader of tiles so large would leave too few registers (PK475).
    assert chosen("ag_gemm", M=4096, N=1024, K=4096).schedule == {}


def test_copy_engines_bring_what_takes_as_long_to_enqueue_and_less_than_the_product() -> None:
    """Measured on 2 and 4 GPUs: `ag_gemm_overlap` in bench/results and bench/results/schedules, and there
    `ag_gemm_fp8_blocks`: an iteration with scales has two stages beside copies by SMs, three beside copy engines."""
    for ranks, size, engines in ((2, 8192, False), (2, 16384, True), (4, 8192, False), (4, 16384, True)):
        found = chosen("ag_gemm", ranks=ranks, M=size, N=size // 4, K=size)
        assert found.schedule == ({"overlap": "copy_engine"} if engines else {})
    for size, engines in ((4096, False), (8192, True), (16384, True)):
        found = chosen(
            "fp8/ag_gemm_fp8_blocks", ranks=2, M=size, N=size // 2, K=size, G=size // 128, H=size // 2 // 128
        )
        assert found.schedule == ({"overlap": "copy_engine"} if engines else {})
    large = {"M": 16384, "N": 4096, "K": 16384}
    for fixed in ({"overlap": "inter_sm"}, {"comm_sms": "16"}, {"transfer": "push"}):
        assert "overlap" not in chosen("ag_gemm", schedule=fixed, **large).schedule
    assert chosen("gemm_rs", **large).schedule == {}
    assert chosen("gemm", ranks=1, **large).schedule == {}


def test_on_one_rank_rows_of_a_table_are_read_where_they_lie() -> None:
    """Measured on one H200: beside roles that fetch nothing the loader has one warp, not two."""
    dims = {"T": 4096, "H": 7168, "E": 128, "N": 2048, "P": 640}
    assert chosen("moe_dispatch_gemm", ranks=1, **dims).schedule == {"overlap": "intra_sm"}
    fixed = {"overlap": "inter_sm"}
    assert "overlap" not in chosen("moe_dispatch_gemm", ranks=1, schedule=fixed, **dims).schedule


@pytest.mark.parametrize("name", ["ag_gemm", "gemm_rs"])
def test_what_is_chosen_over_ranks_is_the_best_of_what_was_measured(name: str) -> None:
    """Or takes 2 per cent longer: beside copies by SMs that compute, by 8 and 16 others, and by copy engines."""
    path = EXAMPLES.parent / "bench" / "results" / f"{name}_overlap_x4.json"
    for result in json.loads(path.read_text(encoding="utf-8"))["results"]:
        ranks, dims = result["ranks"], {dim: result[dim.lower()] for dim in "MNK"}
        dims["N" if name == "ag_gemm" else "K"] //= ranks
        took = {key: each["median_ms"] for key, each in result["contestants"].items() if key.startswith("pkc")}
        del took["pkc_alone"]
        settings = ",".join(f"{key}={value}" for key, value in chosen(name, ranks, **dims).schedule.items())
        assert took[f"pkc {settings}".strip()] <= 1.02 * min(took.values())


def test_copy_engines_are_not_chosen_where_they_cannot_be(monkeypatch: pytest.MonkeyPatch) -> None:
    large = {"M": 20480, "N": 5120, "K": 20480}
    assert chosen("ag_gemm", **large).schedule == {"overlap": "copy_engine"}
    # One hardware queue: what they do would wait behind the kernel that waits for it.
    monkeypatch.setenv("CUDA_DEVICE_MAX_CONNECTIONS", "1")
    assert chosen("ag_gemm", **large).schedule == {}
    monkeypatch.delenv("CUDA_DEVICE_MAX_CONNECTIONS")
    phase = (EXAMPLES / "ag_gemm.pk").read_text(encoding="utf-8").split("    for m, n", 1)[1]
    head = "kernel two(A: bf16[M, K].shard(0), B: bf16[K, N], C: bf16[M, N], D: bf16[M, N]):\n"
    again = phase.replace("C[m, n]", "D[m, n]")
    program = parse_text(Source("two.pk", f"{head}    for m, n{phase}    for m, n{again}"))
    assert "overlap" not in autoschedule(program, dims=large, ranks=4).schedule


def test_one_warpgroup_has_rows_for_which_it_has_room() -> None:
    found = chosen("gemm", ranks=1, M=336, N=3840, K=2272)
    assert found.schedule["consumers"] == "1" and found.schedule["tile_M"] == "128"
    fixed = chosen("gemm", ranks=1, schedule={"consumers": "2"}, M=336, N=3840, K=2272)
    assert "consumers" not in fixed.schedule


@pytest.mark.parametrize(
    ("parameters", "line"),
    [
        ("R: f32[M, N]", "acc + R[m, n]"),
        ("G: bf16[M, N], R: bf16[M, N]", "acc * cast(G[m, n], f32) + cast(R[m, n], f32)"),
    ],
)
def test_one_warpgroup_has_registers_for_operands_of_the_epilogue(parameters: str, line: str) -> None:
    """With one, both spill: 172 and 1108 bytes of a thread, and the second took 1145 us in place of 849 on an H200."""
    text = f"""kernel k(A: bf16[M, K], B: bf16[K, N], {parameters}, Y: bf16[M, N]):
    for m, n in tasks(blocks(M, 128), blocks(N, 256)):
        acc = zeros(f32, m, n)
        for k in blocks(K, 64):
            acc += A[m, k] @ B[k, n]
        Y[m, n] = {line}
"""
    found = autoschedule(parse_text(Source("k.pk", text)), dims={"M": 8192, "N": 8192, "K": 4096}, ranks=1)
    assert found.schedule == {"tile_M": "128", "tile_N": "128", "tile_K": "64"}


@pytest.mark.parametrize(("size", "rows"), [(8192, {"tile_M": "192", "consumers": "3"}), (16384, {})])
def test_products_that_are_scaled_get_three_warpgroups_where_an_sm_has_fewer_rows_then(
    size: int, rows: dict[str, str]
) -> None:
    """Of 8192 rows and columns an SM has 21 tiles of 192 x 128, or 16 of 256 x 128: more rows; of 16384 as many."""
    dims = {"M": size, "N": size, "K": size, "G": size // 128, "H": size // 128}
    assert chosen("gemm_fp8_blocks", ranks=1, **dims).schedule == rows


def test_one_warpgroup_is_not_tried_for_several_mmas() -> None:
    text = """\
kernel two(A: bf16[M, K], B: bf16[K, N], V: bf16[K, N], C: bf16[M, N]):
    for m, n in tasks(blocks(M, 128), blocks(N, 128)):
        acc = zeros(f32, m, n)
        for k in blocks(K, 128):
            acc += A[m, k] @ B[k, n]
        for k in blocks(K, 128):
            acc += A[m, k] @ V[k, n]
        C[m, n] = cast(acc, bf16)
"""
    found = autoschedule(parse_text(Source("two.pk", text)), dims={"M": 336, "N": 3840, "K": 2272}, ranks=1)
    assert found.untried == ("`consumers=1` was not tried: tasks have 2 MMAs, and one was measured",)


def test_rows_across_lines_take_longer() -> None:
    """Of which each box touches two."""
    aligned, across = (chosen("gemm", ranks=1, M=4096, N=size, K=size) for size in (4096, 4104))
    assert aligned.instead is not None and across.instead is not None
    assert across.instead.total > 1.2 * aligned.instead.total


def test_square_products_get_tiles_that_are_measured_to_be_good() -> None:
    """On one H200, 1024: with tile_K = 64 `gemm` takes 3 per cent longer."""
    small = {"tile_M": "64", "tile_N": "128", "tile_K": "128"}
    for name in ("gemm", "gemm_fp8"):
        assert chosen(name, ranks=1, M=1024, N=1024, K=1024).schedule == small
        for size in (4096, 16384):
            assert chosen(name, ranks=1, M=size, N=size, K=size).schedule == {}


def test_elements_by_themselves_get_tiles_that_are_measured_to_be_good() -> None:
    text = "kernel k(X: bf16[M, N], Y: bf16[M, N]):\n    for m, n in tasks(blocks(M, 64), blocks(N, 128)):\n"
    program = parse_text(Source("k.pk", text + "        Y[m, n] = X[m, n] + 1.0\n"))
    sizes = [
        tuple(int(found.schedule[f"tile_{dim}"]) for dim in "MN")
        for found in (autoschedule(program, dims={"M": m, "N": n}, ranks=1) for m, n in ((80, 208), (4096, 4096)))
    ]
    assert set(sizes) <= set(TARGET.tiles.pointwise) and sizes[0] != sizes[1]


ADAMW = """\
kernel adamw(P: f32[N], G: f32[N], M: f32[N], V: f32[N], P2: f32[N], M2: f32[N], V2: f32[N], lr: f32):
    for n in tasks(blocks(N, 4096)):
        m = M[n] * 0.9 + G[n] * 0.1; v = V[n] * 0.999 + G[n] * G[n] * 0.001
        P2[n] = P[n] * (1.0 - lr * 0.01) - lr * m / (sqrt(v) + 0.00000001)
        M2[n] = m; V2[n] = v
"""
SCALED = """\
kernel scaled(X: f32[M, N], w: f32[N], Y: f32[M, N]):
    for m, n in tasks(blocks(M, 128), blocks(N, 128)):
        Y[m, n] = X[m, n] * w[n]
"""
FULL = """\
kernel k(A: f32[M, N], B: f32[M, N], C: f32[M, N], D: f32[M, N], X: f32[M, N], Y: f32[M, N], Z: f32[M, N]):
    for m, n in tasks(blocks(M, 128), blocks(N, 128)):
        X[m, n] = A[m, n] + B[m, n]; Y[m, n] = C[m, n] - D[m, n]; Z[m, n] = A[m, n] * D[m, n]
"""


@pytest.mark.parametrize(
    ("text", "dims", "why"),
    [
        (ADAMW, {"N": 3 << 24}, "as good as equal, and with 4 stages in place of 2"),
        (
            SCALED,
            {"M": 8192, "N": 8192},
            "tiles that are measured to be the best where each element is computed by itself",
        ),
        (FULL, {"M": 8192, "N": 8192}, "the program's tiles leave no room for stages"),
    ],
)
def test_a_slower_estimate_is_taken_for_a_reason(text: str, dims: dict[str, int], why: str) -> None:
    found = autoschedule(parse_text(Source("k.pk", text)), dims=dims, ranks=1)
    assert found.taken is not None and found.instead is not None and found.taken.total > found.instead.total
    assert re.search(rf"; estimated [\d.]+ us against [\d.]+ us: {why}; give or take", str(found)), str(found)


def test_estimates_know_of_splits() -> None:
    """Of a few tasks with a long sum each, of 8 times as many, and of as many that add up."""
    found = [chosen("gemm", 1, schedule, M=128, N=1024, K=32768) for schedule in ({}, {"split_K": "8"})]
    whole, split = (one.instead for one in found)
    assert whole is not None and split is not None
    assert (whole.tasks, split.tasks) == (4, 32)
    assert 2.5 < whole.total / split.total < 8


def test_tiles_become_smaller_until_the_sms_are_full() -> None:
    found = chosen("ag_gemm", M=1024, N=2048, K=8192)
    assert found.instead is not None and found.instead.tasks == 64
    assert found.taken is not None and found.taken.tasks == 128
    assert str(found).endswith(
        f"(128 tasks for 132 SMs instead of 64; estimated {found.taken.total / 1000:.3g} us"
        f" against {found.instead.total / 1000:.3g} us)"
    )


def test_equal_estimates_leave_the_program_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    dims = {"M": 16, "N": 64, "K": 64}
    same = search.estimate(search.count_work(load(EXAMPLES / "gemm.pk").kernel, dims, 1, TARGET), 1, TARGET)
    monkeypatch.setattr(search, "estimate", lambda *_, **__: same)
    assert chosen("gemm", ranks=1, M=17, N=64, K=64).schedule == {}


@pytest.mark.parametrize("where", ["text", "option"])
def test_the_users_tiles_are_left_alone(where: str) -> None:
    text = (EXAMPLES / "gemm.pk").read_text(encoding="utf-8")
    if where == "text":
        text = text.replace("    for m, n", "    schedule(tile_N=128)\n    for m, n")
    program = parse_text(Source("t.pk", text))
    schedule = {"tile_N": "128"} if where == "option" else {"stages": "3"}
    found = autoschedule(program, dims={"M": 16, "N": 8192, "K": 2048}, ranks=1, schedule=schedule)
    assert (found.schedule, found.reason) == ({}, "the schedule sets tiles")
    assert found.taken is not None and found.taken.tasks == 64  # 8192 / 128
    kept = "stages = 3" if where == "text" else "tile_N = 128"
    assert f"schedule: as asked for, {kept} (64 tasks for 132 SMs; estimated" in str(found)


@pytest.mark.parametrize(
    ("nanoseconds", "text"),
    [
        (12345.0, "12.3 us"),
        (999.4e3, "999 us"),
        (999.6e3, "1 ms"),
        (2.678e6, "2.68 ms"),
        (123.4e6, "123 ms"),
        (2.5e9, "2.5 s"),
        (1234e9, "1234 s"),
    ],
)
def test_times_have_three_digits(nanoseconds: float, text: str) -> None:
    assert duration(nanoseconds) == text


MLP = """\
kernel mlp_sp(X: bf16[M, K].shard(0), G: bf16[K, N], U: bf16[K, N], D: bf16[N, K],
               H: bf16[M, N].scratch(), Y: bf16[M, K].shard(0)):
    for m, n in tasks(blocks(M, 128), blocks(N, 128)):
        g = zeros(f32, m, n)
        u = zeros(f32, m, n)
        for k in blocks(K, 64):
            x = X[m, k]
            g += x @ G[k, n]
            u += x @ U[k, n]
        H[m, n] = g * sigmoid(g) * u
    for m, k in tasks(blocks(M, 128), blocks(K, 256)):
        y = zeros(f32, m, k)
        for n in blocks(N, 64):
            y += H[m, n] @ D[n, k]
        Y[m, k] += y
"""


def test_tiles_that_do_not_fit_are_estimated_as_what_takes_their_place() -> None:
    program, dims = parse_text(Source("t.pk", MLP)), {"M": 8192, "N": 7168, "K": 8192}
    found = planned(program, dims, ranks=4, schedule={}, target="sm_90a")
    assert found.compiled.schedule == found.schedule.schedule != {}
    asked = autoschedule(program, dims=dims, ranks=4, schedule=found.schedule.schedule)
    assert found.schedule.taken == asked.taken is not None
    assert "the program's tiles do not fit into an SM" in str(found.schedule)


UNKNOWN = """
kernel k(X: f32[M, N], count: i32[M], Y: f32[M, N]):
    for m, n in tasks(blocks(M, 64), blocks(N, 64)):
        x = X[m, n]
        for i in range(count[0]):
            x = exp2(x)
        Y[m, n] = x
"""


def test_what_cannot_be_estimated_stays_as_it_is() -> None:
    found = autoschedule(parse_text(Source("k.pk", UNKNOWN.lstrip())), dims={"M": 64, "N": 64}, ranks=1)
    assert found.schedule == {}
    assert "as the program says (not estimated: how much there is to do is known only when it runs)" in str(found)
    reason = "no schedule was chosen: how much there is to do is known only when it runs"
    assert list(map(str, found.remarks)) == [f"k.pk:1: pk.kernel: {reason} [autoschedule]"]


def attention(constants: dict[str, int], schedule: Any = None, **dims: int) -> dict[str, str]:
    program = load_program(EXAMPLES / "attention.pk")
    return dict(autoschedule(program, dims=dims, ranks=1, constants=constants, schedule=schedule).schedule)


def test_loops_whose_mmas_need_one_another_get_blocks_that_hide_what_does_not_overlap() -> None:
    """Measured on H200: bench/tiles/h200_attention.toml."""
    for b, h, s in ((4, 16, 8192), (2, 8, 16384), (16, 16, 2048)):
        assert attention({"D": 128}, B=b, H=h, S=s, T=s) == {"tile_T": "160"}
    # The threads compute for longer than the MMAs take: three warpgroups share the units of an SM better than two.
    assert attention({"D": 64}, B=4, H=32, S=4096, T=4096) == {"tile_S": "192", "tile_T": "128", "consumers": "3"}
    # Blocks of 128 have no stage in shared memory.
    found = attention({"D": 256}, B=2, H=16, S=8192, T=8192)
    assert found.keys() == {"tile_T"} and 80 <= int(found["tile_T"]) <= 96


def test_blocks_that_tasks_skip_do_not_keep_tiles_from_being_tried() -> None:
    """Measured on H200, 4 x 16 x 8192 x 128: 1.60 ms by blocks of 128, 1.59 by 160, which is no gain to rely on."""
    assert attention({"D": 128, "causal": True}, B=4, H=16, S=8192, T=8192) == {}
    # 0.65 ms, and 0.72 by 192 rows and 96 keys.
    assert attention({"D": 64, "causal": True}, B=4, H=32, S=4096, T=4096) == {}
    # Blocks of 128 have one stage in shared memory: 1.549 ms, and 1.541 by 80.
    assert attention({"D": 256, "causal": True}, B=2, H=16, S=8192, T=8192) == {"tile_T": "80"}


@pytest.mark.parametrize("causal", [False, True])
def test_blocks_of_which_an_array_has_the_number_keep_their_size(causal: bool) -> None:
    """How much of the last one is for nothing, no size tells; tiles that are larger would cost short sequences most."""
    program = load_program(EXAMPLES / "packed_attention.pk")
    sizes = {"S": 32768, "T": 32768, "H": 16, "G": 16, "N": 17}
    found = autoschedule(program, dims=sizes, ranks=1, constants={"causal": causal})
    assert found.schedule == {}
    assert "whose number they read" in found.untried[0]


def test_a_few_tasks_with_loops_get_more_of_fewer_rows() -> None:
    few = {"B": 1, "H": 8, "S": 1024, "T": 8192}
    assert attention({"D": 128}, **few)["tile_S"] == "64"
    # Which two warpgroups cannot share.
    assert "tile_S" not in attention({"D": 128}, {"consumers": "2"}, **few)


def test_a_chain_is_no_matter_of_a_kernels_name() -> None:
    text = """
kernel layers(X: bf16[M, D], A: bf16[D, N], B: bf16[N, D], Y: bf16[M, D], D: const = 128):
    for m in tasks(blocks(M, 128)):
        y = zeros(f32, m, D)
        for n in blocks(N, 32):
            y += cast(max(X[m] @ A[:, n], 0.0), bf16) @ B[n]
        Y[m] = y
"""
    program = parse_text(Source("k.pk", text))
    found = autoschedule(program, dims={"M": 132 * 128, "N": 16384}, ranks=1)
    assert found.taken is not None and found.instead is not None
    assert int(found.schedule["tile_N"]) > 96 and found.taken.total < 0.8 * found.instead.total
    compiled = load_text(text, found.schedule)
    assert "pk-pipeline-mma" not in {remark.step for remark in compiled.remarks}


def load_text(text: str, schedule: Mapping[str, str]) -> Compiled:
    return compile_program(parse_text(Source("k.pk", text)), schedule=dict(schedule), level="roles")


def test_a_choice_for_a_chain_is_quick() -> None:
    def choose() -> Autoschedule:
        for cached in (
            module._autoschedule,
            planned_candidates.candidates,
            planned_candidates.written_as,
            search._compiles,
        ):
            cached.cache_clear()
        return chosen("attention", ranks=1, B=4, H=16, S=8192, T=8192)

    assert within(0.3, choose).schedule


@pytest.mark.parametrize(
    ("name", "dims", "sms"),
    [
        # Milliseconds on 2 H200, with as many SMs that only fetch, or copies beside the tasks:
        ("ring_attention", {"B": 4, "H": 16, "S": 24576}, "4"),  # 4: 16.2, 8: 16.7, beside: 16.1
        ("ring_attention", {"B": 16, "H": 16, "S": 6144}, "4"),  # 4: 3.79, 8: 3.89, beside: 4.15
        ("ulysses_attention", {"B": 2, "H": 128, "S": 8192}, "4"),  # 4: 6.84, 8: 7.10
    ],
)
def test_as_many_sms_fetch_as_the_link_needs(name: str, dims: dict[str, int], sms: str) -> None:
    assert chosen(name, ranks=2, **dims).schedule == {"overlap": "inter_sm", "comm_sms": sms}
    assert chosen(name, ranks=2, schedule={"overlap": "none"}, **dims).schedule == {}
    assert chosen(name, ranks=1, **dims).schedule == {}


def reasons(found: Autoschedule) -> list[str]:
    return [remark.reason for remark in found.remarks]


def test_what_is_not_tried_has_a_remark(monkeypatch: pytest.MonkeyPatch) -> None:
    assert reasons(chosen("gemm", ranks=1, M=256, N=256, K=256)) == []
    assert reasons(chosen("gemm_rs", M=16, N=8192, K=2048)) == []
    assert reasons(chosen("all_reduce", M=4096, N=4096)) == []
    # A copy is of one rank's rows.
    (across,) = reasons(chosen("gemm_rs", schedule={"overlap": "copy_engine"}, M=16, N=8192, K=2048))
    assert across.startswith("`straddle=true` was not tried: ") and "a copy engine copies boxes of one rank" in across
    large = {"M": 16384, "N": 16384, "K": 16384}
    assert reasons(chosen("ag_gemm", **large)) == []
    monkeypatch.setenv("CUDA_DEVICE_MAX_CONNECTIONS", "1")
    engines = "copy engines were not tried: they would wait behind the kernel on fewer than 8 hardware queues"
    assert reasons(chosen("ag_gemm", **large)) == [engines]


@pytest.mark.parametrize(
    ("text", "dims", "why"),
    [
        (
            (EXAMPLES / "ring_attention.pk").read_text(encoding="utf-8"),
            {"B": 1, "H": 1, "S": 1024},
            "its MMAs need one another, and it reaches other ranks",
        ),
        (
            "kernel k(A: bf16[B, 64, 64], W: bf16[64, 64], C: f32[B, 64, 64]):\n"
            "    for b in tasks(B):\n        C[b] = A[b] @ W[:, :]\n",
            {"B": 256},
            "it has no blocks of a dimension of run-time length that could have another size",
        ),
        (
            (EXAMPLES / "ag_gemm_explicit.pk").read_text(encoding="utf-8"),
            {"M": 256, "N": 256, "K": 256},
            "it says itself who does what",
        ),
    ],
)
def test_why_no_other_tiles_were_tried(text: str, dims: dict[str, int], why: str) -> None:
    (reason,) = reasons(autoschedule(parse_text(Source("k.pk", text)), dims=dims, ranks=2))
    assert reason in (f"no other tiles were tried: {why}", f"no schedule was chosen: {why}")


def test_tiles_that_do_not_fit_the_schedule_are_not_taken() -> None:
    """With 16 stages there is no room for stages as large as those of the default."""
    dims = {"M": 128, "N": 8192, "K": 2048}
    free, staged = chosen("gemm", ranks=1, **dims), chosen("gemm", ranks=1, schedule={"stages": "16"}, **dims)
    assert staged.schedule and staged.schedule != free.schedule
    load(EXAMPLES / "gemm.pk", schedule={"stages": "16", **staged.schedule}, level="roles")
    with pytest.raises(PkcError, match="PK435"):
        load(EXAMPLES / "gemm.pk", schedule={"stages": "16", **free.schedule}, level="roles")


def test_tiles_are_tried_with_rows_as_long_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of 260 elements of 16 bits do not begin at multiples of 16 bytes: threads carry them."""
    tried: list[Mapping[str, int]] = []

    def compiled(*arguments: Any, divisors: Mapping[str, int], **options: Any) -> Any:
        tried.append(divisors)
        return compile_program(*arguments, divisors=divisors, **options)

    monkeypatch.setattr("pkc.driver.search.compile_program", compiled)
    assert chosen("gemm", ranks=1, M=16, N=2060, K=512).schedule
    assert tried and all(divisors == {"N": 4} for divisors in tried)


def test_sms_that_communicate_have_no_tasks() -> None:
    found = chosen("ag_gemm", schedule={"comm_sms": "32"}, M=1024, N=2048, K=8192)
    assert found.taken is not None and found.taken.sms == 100


def test_a_repeated_question_costs_nothing() -> None:
    program: tree.Program = load_program(EXAMPLES / "gemm_rs.pk")
    dims = {"M": 48, "N": 4096, "K": 1024}
    autoschedule(program, dims=dims, ranks=4)
    within(1.0, lambda: autoschedule(load_program(EXAMPLES / "gemm_rs.pk"), dims=dims, ranks=4))
    within(0.005, lambda: autoschedule(program, dims=dims, ranks=4))


def test_what_is_launched_has_the_chosen_tiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PKC_CACHE_DIR", str(tmp_path / "cache"))
    program, dims = load_program(EXAMPLES / "gemm.pk"), {"M": 16, "N": 2048, "K": 512}
    tiles = autoschedule(program, dims=dims, ranks=1).schedule
    assert tiles
    made = builder.artifact_for(program, dims=dims, ranks=1)
    assert made == builder.build_program(program, schedule=tiles)
    assert made != builder.build_program(program)
    found = builder.artifact_for(program, dims=dims, ranks=1, schedule={"tile_M": "128"})
    assert found == builder.build_program(program, schedule={"tile_M": "128"})


def test_the_reason_names_the_program_that_was_asked_for() -> None:
    text = (EXAMPLES / "gemm.pk").read_text(encoding="utf-8")
    for name, head in (("one.pk", ""), ("two.pk", "\n\n")):
        program = parse_text(Source(name, head + text))
        found = autoschedule(program, dims={"M": 24, "N": 2048, "K": 512}, ranks=1)
        assert str(found).startswith(f"{name}:{2 + len(head)}: schedule: ")


def test_packets_where_little_is_sent() -> None:
    """And sums in one shot, unless the schedule has it otherwise."""
    found = chosen("all_reduce", ranks=2, M=32, N=1024).schedule
    assert (found["packets"], found["all_reduce"]) == ("true", "one_shot")
    two = chosen("all_reduce", ranks=2, schedule={"all_reduce": "two_shot"}, M=32, N=1024).schedule
    assert two["packets"] == "true"
    assert "all_reduce" not in two
    assert "packets" not in chosen("all_gather", ranks=2, schedule={"packets": "false"}, M=32, N=1024).schedule
    assert "packets" not in chosen("all_gather", ranks=2, M=8192, N=8192).schedule
    # In two shots threads receive twice.
    assert "packets" in chosen("all_reduce", M=256, N=1024).schedule
    assert "packets" not in chosen("all_reduce", M=512, N=1024).schedule


@pytest.mark.parametrize(
    ("dims", "one_shot"),
    [
        ({"M": 656, "N": 368, "K": 7024}, True),
        ({"M": 128, "N": 8192, "K": 4096}, True),
        ({"M": 1216, "N": 4592, "K": 1360}, False),
        ({"M": 4096, "N": 4096, "K": 2048}, False),
    ],
)
def test_each_rank_adds_up_short_sums_of_products(dims: dict[str, int], one_shot: bool) -> None:
    """Measured on two H200, in two shots and in one: 31.7 and 27.6 us, 42.7 and 40.8, 63.4 and 76.8, 141 and 173."""
    assert (chosen("gemm_ar", ranks=2, **dims).schedule.get("all_reduce") == "one_shot") is one_shot
    assert "all_reduce" not in chosen("gemm_ar", ranks=2, schedule={"all_reduce": "two_shot"}, **dims).schedule


@pytest.mark.parametrize(
    ("text", "dims"),
    [
        (
            """
kernel k(X: bf16[M, 77], Y: bf16[M, 77].replicate()):
    for m in tasks(blocks(M, 4, of=rank)):
        Y[m, :] = X[m, :] * 2.0
""",
            {"M": 512},
        ),
        (
            """
kernel k(X: bf16[S, 8, 128].shard(0), Y: bf16[S, 8, 128].replicate()):
    for s in tasks(blocks(S, 2, of=rank)):
        Y[s] = X[s]
""",
            {"S": 16},
        ),
    ],
)
def test_packets_are_not_chosen_for_rows_that_threads_have_no_instructions_for(text: str, dims: dict[str, int]) -> None:
    """77 elements are no multiple of 8, and three axes are too many."""
    program = parse_text(Source("k.pk", text.lstrip()))
    found = autoschedule(program, dims=dims, ranks=4)
    assert "packets" not in found.schedule
    compile_program(program, level="machine", schedule=found.schedule)
    even = parse_text(Source("k.pk", text.lstrip().replace("77", "80").replace("8, 128", "1024")))
    assert "packets" in autoschedule(even, dims=dims, ranks=4).schedule


DOUBTFUL = """\
kernel z5(Y: f32[E, P, N], rows: i32[E, P], X: bf16[T, H].shard(0), S: bf16[H, N],
          R: f32[T, N].shard(0).scratch(), O: f32[T, N].shard(0)):
    for e in tasks(E):
        for p, n in tasks(blocks(P, 128), blocks(N, 256)):
            R[rows[e, p], n] += Y[e, p, n]
    for t, n in tasks(blocks(T, 128, of=rank), blocks(N, 256)):
        acc = zeros(f32, t, n)
        for k in blocks(H, 64):
            acc += X[t, k] @ S[k, n]
        O[t, n] = acc + R[t, n]
"""


@pytest.mark.parametrize(
    ("text", "ranks", "dims", "reason"),
    [
        (
            DOUBTFUL,
            2,
            {"T": 256, "H": 64, "E": 2, "P": 128, "N": 256},
            r"too small a gain for estimates that may be off by \d+%",
        ),
    ],
)
def test_says_why_a_faster_estimate_is_not_taken(text: str, ranks: int, dims: dict[str, int], reason: str) -> None:
    found = autoschedule(parse_text(Source("k.pk", text)), dims=dims, ranks=ranks)
    assert found.taken is not None and not found.schedule
    fastest = min((one for one, _ in found.others if one.stages > 1), key=lambda one: one.total)
    assert fastest.total < 0.93 * found.taken.total
    assert re.search(f", not taken: {reason}", str(found)), str(found)


def test_results_that_leave_two_stages_have_shorter_iterations() -> None:
    """Of 128 x 256 f32 numbers; with bf16 there is room for three of 64."""
    text = """
kernel k(X: bf16[M, K], W: bf16[K, N], Y: {kind}[M, N]):
    for m, n in tasks(blocks(M, 128), blocks(N, 256)):
        acc = zeros(f32, m, n)
        for k in blocks(K, 64):
            acc += X[m, k] @ W[k, n]
        Y[m, n] = acc
"""
    dims = {"M": 4096, "N": 4096, "K": 8192}
    wide, narrow = (
        autoschedule(parse_text(Source("k.pk", text.format(kind=kind))), dims=dims, ranks=1) for kind in ("f32", "bf16")
    )
    assert wide.schedule == {"tile_K": "32"} and not narrow.schedule
    assert wide.taken is not None and wide.instead is not None
    assert (wide.taken.stages, wide.instead.stages) == (4, 2)
    assert wide.taken.total < 0.7 * wide.instead.total


def test_what_does_not_compile_is_no_best_of_the_others() -> None:
    text = """
kernel lora(X: bf16[M, K], W: bf16[K, N], A: bf16[K, 16], B: bf16[16, N], Y: bf16[M, N], scale: f32):
    for m, n in tasks(blocks(M, 128), blocks(N, 128)):
        acc = zeros(f32, m, n)
        low = zeros(f32, m, 16)
        for k in blocks(K, 64):
            x = X[m, k]
            acc += x @ W[k, n]
            low += x @ A[k, :]
        Y[m, n] = acc + scale * (cast(low, bf16) @ B[:, n])
"""
    program = parse_text(Source("lora.pk", text.lstrip()))
    found = autoschedule(program, dims={"M": 4096, "N": 4096, "K": 4096}, ranks=1)
    refused = ("tile_K = 64, tile_N = 256, tile_M = 128", "tile_K = 128, tile_N = 256, tile_M = 128")
    assert "best of" in str(found) and ", not taken: too small a gain" in str(found)
    assert not any(one in str(found) for one in refused)
