"""Estimates of tasks without MMAs, whose tiles flow through threads."""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping
from pathlib import Path

import pytest

from pkc.cost import flow, stream
from pkc.cost.estimate import Estimate, estimate
from pkc.cost.lists import mean_count, spread_of_count
from pkc.cost.work import count_work
from pkc.dialect.program import FLAT
from pkc.driver.planned_candidates import planned_with
from pkc.frontend.parse import parse_text
from pkc.location import Source
from pkc.targets import DEFAULT
from pkc.targets.target import lookup
from tools.regret import Shape, dims_of, kept, program_of

TARGET = lookup(DEFAULT)
EXAMPLES = Path(__file__).parents[2] / "examples"
FILES = Path(__file__).parents[2] / "bench" / "results" / "schedules"

HEAD = "kernel k(X: bf16[M, N], Y: bf16[M, N]):\n    for m, n in tasks(blocks(M, {rows}), blocks(N, 128)):\n"
SOFTMAX = (
    "kernel k(X: bf16[M, D], w: bf16[D], Y: bf16[M, D], D: const = {length}):\n    for m in tasks(blocks(M, {rows})):\n"
    "        x = cast(X[m, :], f32)\n        e = exp(x - rowmax(x))\n        Y[m, :] = e / rowsum(e) * w[:]\n"
)


def estimated(text: str, dims: Mapping[str, int], **schedule: str) -> Estimate:
    program = parse_text(Source("k.pk", text))
    kernel = planned_with(program, "k", (), schedule)
    target = TARGET.flat if FLAT in kernel.attributes else TARGET
    return estimate(count_work(kernel, dims, 1, target), 1, target)


def test_what_fits_into_the_cache_is_still_there() -> None:
    cache = TARGET.arch.cache
    assert flow.warm_memory_time(cache / 4, cache / 4, TARGET) == pytest.approx(cache / 2 / TARGET.rates.cache_bytes)
    assert flow.warm_memory_time(cache, cache, TARGET) == pytest.approx(2 * cache / TARGET.rates.memory_bytes)


def test_a_warpgroup_more_takes_a_launch_longer_and_computes_faster() -> None:
    text = HEAD.format(rows=64) + "        Y[m, n] = X[m, n] + 1.0\n"
    few, many = (
        [estimated(text, {"M": size, "N": 128}, consumers=str(count)) for count in (1, 2)] for size in (64, 1 << 20)
    )
    assert few[0].flows and few[0].total < few[1].total
    heavy = HEAD.format(rows=64) + "        Y[m, n] = sin(cos(sin(cast(X[m, n], f32))))\n"
    one, two = (estimated(heavy, {"M": 1 << 20, "N": 128}, consumers=str(count)) for count in (1, 2))
    assert two.total < 0.7 * one.total and many[1].warpgroups == 2


def test_stages_are_those_that_are_planned() -> None:
    """Of 227 KB: four of what is loaded and stored, fewer of long rows, none of what does not fit."""
    small, large, none = (estimated(SOFTMAX.format(rows=rows, length=8192), {"M": 8192}) for rows in (1, 4, 16))
    assert (small.stages, large.stages, none.stages) == (4, 1, 0)


def test_rows_that_threads_have_no_time_for_take_longer() -> None:
    """40 rows of 8 lanes are two times 32 for 256 threads."""
    fitting, over = (estimated(SOFTMAX.format(rows=rows, length=512), {"M": 1 << 16}) for rows in (32, 40))
    assert over.task > 1.5 * fitting.task


def test_a_list_that_is_one_block_has_hardly_any_spread() -> None:
    lengths = [[-(-length // 64) for length in range(most + 1)] for most in (64, 1000)]
    for most, counts in zip((64, 1000), lengths, strict=True):
        mean = statistics.mean(counts)
        assert mean_count(most, 64) == pytest.approx(mean)
        assert spread_of_count(most, 64) == pytest.approx(statistics.pstdev(counts) / mean)
    assert spread_of_count(64, 64) < 0.13 < 0.5 < spread_of_count(1000, 64)


def test_the_last_iteration_fills_with_zeros_what_lies_outside() -> None:
    """K = 544 is 8 iterations of 64 and a half one, of which 32 rows of B lie outside, in two panels each."""
    text = (EXAMPLES / "gemm.pk").read_text(encoding="utf-8")
    kernel = planned_with(parse_text(Source("gemm.pk", text)), "gemm", (), {"tile_N": "128"})
    whole, rest = (count_work(kernel, {"M": 128, "N": 128, "K": size}, 1, TARGET) for size in (576, 544))
    streamed = [work.phases[0].iterations[1] for work in (whole, rest)]
    assert [load.tail for one in streamed for load in one.loads] == [0, 0, 0, 0.5]
    assert [stream.last(one, TARGET) for one in streamed] == [0, pytest.approx(64 * TARGET.rates.outside_line / 2)]


def test_choices_lose_little_of_what_was_measured() -> None:
    """At shapes of which rates of streams know nothing: of the sixth file."""
    found = kept(FILES / "regret_sixth_x1.json")
    shares = [one.share for one in found]
    assert statistics.mean(shares) < 0.015 and max(shares) < 0.07


def test_estimates_are_near_what_was_measured() -> None:
    """Elementwise kernels and rows, launched behind one another: near the best of a shape within a third."""
    document = json.loads((FILES / "regret_sixth_x1.json").read_text(encoding="utf-8"))
    off: list[float] = []
    for one in document["shapes"]:
        shape = Shape(**one["shape"])
        if shape.family not in ("gelu", "add", "softmax", "rmsnorm"):
            continue
        program, dims = program_of(shape), dims_of(shape)
        best = one["times"][0][2]
        for schedule, _, took in one["times"]:
            kernel = planned_with(program, program.kernels[0].name, (), schedule)
            target = TARGET.flat if FLAT in kernel.attributes else TARGET
            found = estimate(count_work(kernel, dims, 1, target), 1, target)
            if found.stages and took < 1.25 * best:
                off.append((found.total - found.launch) / took)
    assert len(off) > 30 and min(off) > 0.67 and max(off) < 1.5
    assert statistics.mean(abs(share - 1) for share in off) < 0.15
