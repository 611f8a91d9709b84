"""Predicted time lines: against what was measured, and against what can be counted by hand."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest

from pkc.cost.estimate import estimate
from pkc.cost.work import count_work
from pkc.diagnostics import PkcError
from pkc.driver.compiler import compile_program, load_program
from pkc.driver.planned_candidates import planned_with
from pkc.frontend.parse import parse_text
from pkc.location import Source
from pkc.targets.sm_90a import TARGET
from pkc.timeline import table
from pkc.timeline.forecast import forecast
from pkc.timeline.predict import Prediction, predict
from tests.sweeps import sweep

ROOT = Path(__file__).parents[2]
MEASURED = ROOT / "bench" / "tiles"


def predicted(example: str, ranks: int, dims: dict[str, int], **schedule: str) -> Prediction:
    program = load_program(ROOT / "examples" / f"{example}.pk")
    kernel = compile_program(program, schedule=schedule, level="roles").kernel
    return predict(kernel, ranks=ranks, dims=dims)


def measured(kernel: str, file: str, size: list[int]) -> Iterable[tuple[dict[str, str], float]]:
    entries = tomllib.loads((MEASURED / file).read_text(encoding="utf-8"))["measured"]
    found = next(entry for entry in entries if entry["kernel"] == kernel and entry["size"] == size)
    for tiles, ms in found["ms"].items():
        yield {f"tile_{dim}": tile for dim, tile in zip("MNK", tiles.split("x"), strict=True)}, ms


MATMULS = (
    ("gemm_rs", "h200_x4_slices.toml", [2048, 2048, 1024], {"M": 2048, "N": 2048, "K": 256}),
    ("ag_gemm", "h200_x4.toml", [2048, 1024, 2048], {"M": 2048, "N": 256, "K": 2048}),
)


@pytest.mark.parametrize(("kernel", "file", "size", "dims"), sweep(MATMULS, lambda kernel, *_: kernel == "gemm_rs"))
def test_near_what_was_measured(kernel: str, file: str, size: list[int], dims: dict[str, int]) -> None:
    """Within 20 per cent, on 4 GPUs."""
    schedule, ms = list(measured(kernel, file, size))[1]
    found = predicted(kernel, 4, dims, **schedule)
    assert (found.nanoseconds + TARGET.rates.launch) / 1e6 == pytest.approx(ms, rel=0.2)


@pytest.fixture(scope="module")
def gemm() -> Prediction:
    return predicted("gemm", 1, {"M": 2048, "N": 2048, "K": 2048})


def test_tensor_cores_are_as_busy_as_the_work_asks_for(gemm: Prediction) -> None:
    """Every MMA once, at the rate of the target; and this kernel waits for hardly anything else."""
    rates = TARGET.rates
    wanted = 2 * 2048 * 2048 * 2048 / rates.mma_flops / rates.clock / TARGET.arch.sms
    tensor = next(used for used in gemm.used if used.name == "tensor cores")
    assert tensor.values.sum() / TARGET.arch.sms == pytest.approx(wanted, rel=0.3)
    assert tensor.values.sum() / TARGET.arch.sms >= wanted * (1 - 1e-9)
    assert tensor.values.sum() / TARGET.arch.sms > 0.6 * gemm.nanoseconds


def test_every_task_once(gemm: Prediction) -> None:
    tasks = gemm.events.of_kind("task")
    for role in range(3):
        assert (tasks & (gemm.events.role == role)).sum() == (2048 // 128) * (2048 // 256)


def test_each_role_adds_up(gemm: Prediction) -> None:
    found = list(table.lines(gemm.events))
    heads = [place for place, line in enumerate(found) if not line.depth]
    assert [found[place].name for place in heads] == ["loader", "consumer", "storer"]
    for place, following in zip(heads, [*heads[1:], len(found)], strict=True):
        shares = [line.share for line in found[place + 1 : following]]
        assert min(shares) > -1e-6
        assert sum(shares) == pytest.approx(1)


def test_what_goes_over_the_link() -> None:
    """Three quarters of each rank's product go to others, as bf16."""
    found = predicted("gemm_rs", 4, {"M": 1024, "N": 1024, "K": 256})
    link = next(used for used in found.used if used.name == "link out")
    assert link.values.sum(axis=1) == pytest.approx(np.full(4, 1024 * 1024 * 2 * 3 / 4))


FLOW = """\
kernel k(X: f32[M, N], Y: f32[M, N]):
    for m, n in tasks(blocks(M, 64), blocks(N, 64)):
        Y[m, n] = {}
"""


@pytest.mark.parametrize(("value", "arrays"), [("full(f32, 1.0, m, n)", 1), ("X[m, n] * 2.0", 2)])
def test_memory_takes_what_is_stored_as_an_estimate_says(value: str, arrays: int) -> None:
    program, dims = parse_text(Source("k.pk", FLOW.format(value))), {"M": 4096, "N": 4096}
    found = predict(compile_program(program, level="roles").kernel, ranks=1, dims=dims)
    memory = next(used for used in found.used if used.name == "memory")
    assert memory.values.sum() == pytest.approx(arrays * 4096 * 4096 * 4)
    target = TARGET.flat
    estimated = estimate(count_work(planned_with(program, "k", (), {}), dims, 1, target), 1, target)
    assert estimated.memory <= found.nanoseconds <= 1.1 * (estimated.total - TARGET.rates.launch)


@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_stores_to_all_ranks_take_what_the_link_takes(ranks: int) -> None:
    """Each rank sends its rows to every other one; links and memory have nothing to wait for in between."""
    found = predicted("all_gather", ranks, {"M": 1024 * ranks, "N": 4096})
    link = (ranks - 1) * 1024 * 4096 * 2 / TARGET.rates.link_bytes
    assert link < found.nanoseconds < 1.3 * link


@pytest.mark.parametrize("columns", [1024, 1025])
def test_what_threads_store_on_other_ranks_takes_what_the_link_takes(columns: int) -> None:
    """Columns of an uneven number move by threads: their role signals when what it stored is there."""
    found = predicted("all_to_all", 4, {"M": 4096, "N": 4 * columns})
    link = 1024 * columns * 3 * 2 / TARGET.rates.link_bytes
    assert link < found.nanoseconds < 1.5 * link


def test_who_waits_for_operands_that_others_have() -> None:
    found = predicted("ag_gemm", 2, {"M": 1024, "N": 256, "K": 1024})
    names = [line.name for line in table.lines(found.events)]
    assert "waits for `A.ready`" in names
    assert "communicator, loads" in names


@pytest.mark.parametrize(
    ("example", "ranks", "dims"),
    [
        ("moe_dispatch_gemm", 2, {"T": 512, "H": 256, "N": 256, "E": 2, "P": 256}),
        ("ring_attention", 2, {"B": 1, "H": 2, "S": 512}),
        ("gemm_ar", 2, {"M": 512, "N": 512, "K": 256}),
        ("ag_gemm_explicit", 2, {"M": 512, "N": 512, "K": 256}),
        ("window_attention", 1, {"B": 1, "H": 2, "S": 256, "T": 256}),
        ("mlp", 1, {"M": 512, "N": 512, "K": 256, "P": 256}),
    ],
)
def test_other_kernels_end(example: str, ranks: int, dims: dict[str, int]) -> None:
    """Each role of each CTA begins and ends once."""
    found = predicted(example, ranks, dims)
    begins, ends = (found.events.row[found.events.of_kind(kind)] for kind in ("begin", "end"))
    assert found.ends
    assert sorted(begins) == sorted(ends)
    assert len(set(begins)) == len(begins)


NUMBERED = """\
kernel k(Y: f32[2, M, N], rows: i32[2, M], X: f32[M, N], O: f32[M, N].shard(0), R: f32[M, N].shard(0).scratch()):
    for e in tasks(2):
        for m, n in tasks(blocks(M, 64), blocks(N, 64)):
            R[rows[e, m], n] += Y[e, m, n]
    for m, n in tasks(blocks(M, 64, of=rank), blocks(N, 64)):
        O[m, n] = R[m, n] * X[m, n]
"""


def test_roles_of_a_cta_have_the_same_tasks_though_not_all_have_those_before() -> None:
    """Consumers alone add up the rows between the two statements."""
    kernel = compile_program(parse_text(Source("k.pk", NUMBERED)), level="roles").kernel
    assert predict(kernel, ranks=2, dims={"M": 256, "N": 128}).ends


def test_copy_engines() -> None:
    """The copies of one rank take at least what the link takes."""
    found = predicted("ag_gemm", 2, {"M": 4096, "N": 256, "K": 1024}, overlap="copy_engine")
    assert found.nanoseconds > 2048 * 1024 * 2 / TARGET.rates.link_bytes
    assert "copy_engine" in found.events.trace.roles


def test_longer_lines_are_cut() -> None:
    program = load_program(ROOT / "examples" / "gemm.pk")
    kernel = compile_program(program, level="roles").kernel
    dims = {"M": 1024, "N": 1024, "K": 1024}
    cut, whole = (predict(kernel, ranks=1, dims=dims, most=most) for most in (5000, 10**6))
    assert whole.ends and not cut.ends
    assert 0 < cut.nanoseconds < whole.nanoseconds


@pytest.mark.parametrize(("example", "ranks"), [("gemm", 1), ("ag_gemm", 2)])
@pytest.mark.parametrize("most", [20_000, 40_000])
def test_what_is_cut_counts_until_the_cut(example: str, ranks: int, most: int) -> None:
    """Tasks and waits without an end last until then: each role adds up, nothing is negative, none outlasts it."""
    program = load_program(ROOT / "examples" / f"{example}.pk")
    kernel = compile_program(program, level="roles").kernel
    cut = predict(kernel, ranks=ranks, dims={"M": 4096, "N": 2048, "K": 4096}, most=most)
    assert not cut.ends
    found = list(table.lines(cut.events))
    for line in found:
        assert line.each.min() > -1e-6
        assert np.nanmax(line.last, initial=0.0) <= cut.nanoseconds / 1e3 + 1e-6
    heads = [place for place, line in enumerate(found) if not line.depth]
    for place, following in zip(heads, [*heads[1:], len(found)], strict=True):
        assert found[place].each == pytest.approx(cut.nanoseconds / 1e3)
        assert sum(line.share for line in found[place + 1 : following]) == pytest.approx(1)
    loads = next(line for line in found if line.name == "loads")
    assert np.nanmax(loads.last) == pytest.approx(cut.nanoseconds / 1e3)
    assert table.text(cut.events, ends=False).startswith("rank 0: cut at ")


def test_the_title_of_a_first_part_says_of_how_much(monkeypatch: pytest.MonkeyPatch) -> None:
    program, dims = load_program(ROOT / "examples" / "gemm.pk"), {"M": 4096, "N": 4096, "K": 4096}
    most = 20_000
    monkeypatch.setattr("pkc.timeline.forecast.predict", lambda *args, **more: predict(*args, **more, most=most))
    found = forecast(program, dims, ranks=1, schedule={}, target="sm_90a")
    taken = found.schedule.taken
    assert taken is not None
    whole = (taken.total - taken.launch) / 1e3
    assert found.title == (
        f"gemm on 1 GPU, M=4096, K=4096, N=4096: the first {found.prediction.nanoseconds / 1e3:.1f} us"
        f" of about {whole:.0f} us (estimated)"
    )
    assert found.note.startswith("the time line is cut after")


GATHERS = {
    "two tables along one axis": "O[t, h] = Y[first[t], second[t], h]",
    "pages of a cache": "O[t, h] = Y[first[t] // 4, first[t] % 4, h]",
    "positions divided": "O[t, h] = Y[positions(t) // 4, positions(t) % 4, h]",
}


@pytest.mark.parametrize("name", GATHERS)
def test_elements_that_several_tables_name(name: str) -> None:
    """Half as many rows take less time."""
    text = "kernel k(Y: bf16[E, 4, H], first: i32[T], second: i32[T], O: bf16[T, H]):\n"
    text += f"    for t, h in tasks(blocks(T, 16), blocks(H, 64)):\n        {GATHERS[name]}\n"
    kernel = compile_program(parse_text(Source("k.pk", text)), level="roles").kernel
    few, many = (predict(kernel, ranks=1, dims={"E": 2000, "H": 64, "T": rows}) for rows in (4000, 8000))
    assert 0 < few.nanoseconds < many.nanoseconds


def test_arrays_without_integers_take_no_memory() -> None:
    """`Y` has 48 GB."""
    text = "kernel k(Y: f32[E, H], first: i32[T], O: f32[T, H]):\n"
    text += "    for t, h in tasks(blocks(T, 16), blocks(H, 64)):\n        O[t, h] = Y[first[t] + 1, h]\n"
    kernel = compile_program(parse_text(Source("k.pk", text)), level="roles").kernel
    assert predict(kernel, ranks=1, dims={"E": 6_000_000, "H": 2048, "T": 256}).ends
    counted = "kernel k(X: f32[N, H], count: i32[N], Y: f32[N, H]):\n    for n, h in tasks(N, blocks(H, 64)):\n"
    counted += "        for i in range(count[n]):\n            Y[n, h] = X[n, h]\n"
    kernel = compile_program(parse_text(Source("k.pk", counted)), level="roles").kernel
    with pytest.raises(PkcError, match="PK612"):
        predict(kernel, ranks=1, dims={"N": 2**31 - 1, "H": 64})


def test_what_is_far_from_the_estimate_is_told() -> None:
    def note(ranks: int, name: str, **dims: int) -> str:
        program = load_program(ROOT / "examples" / f"{name}.pk")
        return forecast(program, dims, ranks=ranks, schedule={}, target="sm_90a").note

    assert note(1, "gemm", M=2048, N=2048, K=2048) == ""
    far = note(2, "all_reduce", M=1024, N=1024)
    assert "times the estimate of" in far and "fitted to measured times" in far
