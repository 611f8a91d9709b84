"""Regret of chosen schedules, on a clock that stands in for GPUs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tools import regret
from tools.regret import Regret, Shape, drawn, summary, sweep


def test_shapes_follow_from_their_seed() -> None:
    for ranks in (1, 2):
        shapes = drawn(7, 40, ranks)
        assert shapes == drawn(7, 40, ranks)
        assert shapes != drawn(8, 40, ranks)
        assert {shape.family for shape in shapes} == set(regret.FAMILIES[ranks])
        assert all(size % 8 == 0 for shape in shapes for dim, size in shape.dims.items() if dim not in "BH")


def test_regret_is_what_the_chosen_schedule_takes_longer_than_the_best(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[float] = []

    def clock_for(_: Any, shape: Shape) -> Callable[[Any], Callable[[], float]]:
        def clock(_: Any) -> Callable[[], float]:
            started.append(120e3 if not started else 100e3 + len(started))
            took = started[-1]
            return lambda: took

        return clock

    monkeypatch.setattr("pkc.driver.tune.build_program", lambda *_, **__: None)
    shape = Shape("gemm", {"M": 1024, "N": 2048, "K": 4096})
    (found,) = sweep([shape], clock_for, ranks=1, most=3)
    assert (found.chosen_us, found.best_us) == (120.0, 100.001)
    assert found.best != found.chosen
    assert round(found.share, 4) == 0.2


def test_the_worst_comes_first() -> None:
    shape = Shape("gemm", {"M": 8})
    lines = summary([Regret(shape, {}, {}, 102.0, 100.0), Regret(shape, {}, {}, 110.0, 100.0)]).splitlines()
    assert lines[0] == "2 shapes: mean regret 6.00%, worst 10.00%"
    assert lines[1].lstrip().startswith("10.00%")
