"""Regret of chosen schedules, on a clock that stands in for GPUs."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from pkc.dialect.program import KernelOp
from pkc.frontend.elaborate import build_module
from pkc.sim.inputs import resolve_dims
from tools import regret
from tools.regret import Regret, Shape, dims_of, drawn, measured, program_of, summary


def test_shapes_follow_from_their_seed() -> None:
    for ranks in (1, 2):
        shapes = drawn(7, 40, ranks)
        assert shapes == drawn(7, 40, ranks)
        assert shapes != drawn(8, 40, ranks)
        families = {
            "rows" if one in regret.ROWS else "elementwise" if one in regret.ELEMENTWISE else one
            for one in (shape.family for shape in shapes)
        }
        assert families == set(regret.FAMILIES[ranks])
        assert all(size % 8 == 0 for shape in shapes for dim, size in shape.dims.items() if dim not in "BEH")


def test_programs_have_the_dimensions_of_their_shapes() -> None:
    for shape in drawn(7, 14, 1):
        (kernel,) = build_module(program_of(shape)).ops
        assert isinstance(kernel, KernelOp)
        wanted = dims_of(shape)
        assert resolve_dims(kernel, wanted, {}, 1) == wanted


class Schedules:
    """Machine code is the schedule; the chosen one takes 120 us, later ones 100 us and a little, in later rounds one
    more."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.started: list[Any] = []

        def made(*_: object, schedule: Mapping[str, str], **__: object) -> Mapping[str, str]:
            return schedule

        monkeypatch.setattr("pkc.driver.tune.build_program", made)

    def __call__(self, artifact: Any) -> Callable[[], float]:
        self.started.append(artifact)
        took, rounds = 120e3 if len(self.started) == 1 else 100e3 + len(self.started), [0]

        def timed() -> float:
            rounds[0] += 1
            return took + 1e3 * (rounds[0] > regret.FIRST)

        return timed


def test_regret_is_what_the_chosen_schedule_takes_longer_than_the_best(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, shape = Schedules(monkeypatch), Shape("gemm", {"M": 1024, "N": 2048, "K": 4096})
    found = measured(shape, regret.prepared(shape, ranks=1, most=3), clock)
    assert (found.chosen_us, found.best_us) == (121.0, 101.002)
    assert found.best != found.chosen
    assert round(found.share, 4) == round(121 / 101.002 - 1, 4)
    assert [time for *_, time in found.times] == sorted(time for *_, time in found.times)
    varied = [
        settings
        for settings in clock.started
        if all({**settings, **variant} in clock.started for variant in regret.VARIANTS[1])
    ]
    assert found.chosen in varied
    assert any(settings.items() & found.chosen.items() != settings.items() for settings in varied)


def test_schedules_with_the_same_machine_code_are_measured_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def made(*_: object, **__: object) -> str:
        return "the same"

    monkeypatch.setattr("pkc.driver.tune.build_program", made)
    shape = Shape("gemm", {"M": 1024, "N": 2048, "K": 4096})
    (only,) = regret.prepared(shape, ranks=1, most=1)
    assert only.chosen


def test_what_is_chosen_now_is_judged_by_what_was_measured(tmp_path: Path) -> None:
    shape = {"family": "gemm", "dims": {"M": 1024, "N": 2048, "K": 4096}}
    chosen = regret.autoschedule(program_of(Shape(**shape)), dims=shape["dims"], ranks=1, measured=False)
    worst = max((one for one in chosen.others if one[0].stages), key=lambda one: one[0].total)[1]
    times = [[{}, 1.0, 100e3], [worst, 1.0, 50e3], [chosen.schedule, 1.0, 110e3]]
    path = tmp_path / "one.json"
    found = []
    for some in (times, times[:2]):
        path.write_text(json.dumps({"ranks": 1, "shapes": [{"shape": shape, "times": some}]}), encoding="utf-8")
        found += regret.kept(path)
    assert [one.chosen for one in found] == [chosen.schedule] * 2
    assert [(one.instead, round(one.share, 4)) for one in found] == [(None, 1.2), ({}, 1.0)]
    lines = regret.kept_table({"both": found}).splitlines()
    assert lines[1].split() == lines[2].replace("all", "gemm").split() == ["gemm", "110.00%", "/", "120.00%"]
    assert "was not measured, but {}: 100.00%" in lines[3]


@pytest.mark.long
def test_streams_lose_little_at_the_shapes_of_six_files() -> None:
    """Of GEMM, also in fp8, and SwiGLU; rates of streams are fitted to five of these."""
    files = (Path(__file__).parents[2] / "bench" / "results" / "schedules").glob("regret*_x1.json")
    measured = (one for path in files for one in json.loads(path.read_text(encoding="utf-8"))["shapes"])
    several = [one for one in measured if one["shape"]["family"] in ("gemm", "gemm_fp8", "swiglu")]
    found = [regret.rechosen(Shape(**one["shape"]), one["times"], 1).share for one in several]
    assert len(found) == 108
    assert statistics.mean(found) < 0.015 and max(found) < 0.10


def test_what_was_cut_off_goes_on(tmp_path: Path) -> None:
    shapes, path = drawn(7, 14, 1), tmp_path / "some.json"
    run = regret.Run(
        7, 1, 10, [Regret(shape, {"tile_M": "64"}, {}, 102.0, 100.0, [({}, None, 100e3)]) for shape in shapes[:3]]
    )
    run.write(path)
    again = regret.Run.read(path)
    assert (again.seed, again.ranks, again.most) == (7, 1, 10)
    assert [(one.shape, one.chosen, round(one.share, 4)) for one in again.found] == [
        (shape, {"tile_M": "64"}, 0.02) for shape in shapes[:3]
    ]
    assert again.missing(14, None) == shapes[3:]
    assert again.missing(14, ["rows"]) == [shape for shape in shapes[3:] if shape.family in regret.ROWS]
    assert list(tmp_path.iterdir()) == [path]


def test_the_worst_comes_first() -> None:
    shape = Shape("gemm", {"M": 8})
    lines = summary([Regret(shape, {}, {}, 102.0, 100.0), Regret(shape, {}, {}, 110.0, 100.0)]).splitlines()
    assert lines[0] == "2 shapes: mean regret 6.00%, worst 10.00%"
    assert lines[1] == "gemm: mean 6.00%, worst 10.00%"
    assert lines[2].lstrip().startswith("10.00%")
