"""`pkc tune` on a clock that stands in for GPUs: what is measured, kept, and taken by later launches."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

import pytest

from pkc.codegen.artifact import Artifact
from pkc.diagnostics import PkcError
from pkc.driver import tuned
from pkc.driver.autoschedule import autoschedule
from pkc.driver.builder import artifact_for
from pkc.driver.calibrate import calibrate
from pkc.driver.compiler import load_program
from pkc.driver.tune import Timed, table, tune
from pkc.frontend import tree
from pkc.targets.target import lookup

GEMM = load_program(Path(__file__).parents[2] / "examples" / "gemm.pk")
DIMS = {"M": 1024, "N": 2048, "K": 4096}


@pytest.fixture(autouse=True)
def _own_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Machine code is the schedule that it would be made with."""
    monkeypatch.setenv("PKC_TUNED", str(tmp_path / "tuned.json"))

    def made(*_: object, schedule: Mapping[str, str], **__: object) -> Mapping[str, str]:
        if schedule.get("tile_M") == "2":
            raise PkcError()
        return schedule

    for module in ("tune", "builder"):
        monkeypatch.setattr(f"pkc.driver.{module}.build_program", made)


class Clock:
    """The schedules that are started later are faster; each takes longer in its first round."""

    def __init__(self) -> None:
        self.started: list[Artifact] = []
        self.order: list[int] = []

    def __call__(self, artifact: Artifact) -> Callable[[], float]:
        number, rounds = len(self.started), [0]
        self.started.append(artifact)

        def timed() -> float:
            self.order.append(number)
            rounds[0] += 1
            return 1e9 if rounds[0] == 1 else 1e5 - 1e3 * number

        return timed


def measured() -> tuple[Clock, list[Timed]]:
    clock = Clock()
    return clock, tune(GEMM, clock, dims=DIMS, ranks=1, most=3, rounds=3)


def test_the_fastest_is_kept_and_taken() -> None:
    estimated = autoschedule(GEMM, dims=DIMS, ranks=1)
    clock, found = measured()
    assert clock.order == [0, 1, 2] * 3
    assert [one.measured for one in found] == [98e3, 99e3, 100e3]
    assert [dict(one.schedule) for one in found if one.chosen] == [dict(estimated.schedule)]
    best = found[0].schedule
    assert best != estimated.schedule
    chosen = autoschedule(GEMM, dims=DIMS, ranks=1)
    assert chosen.schedule == best
    assert "(measured: 98 us, and 100 us as estimates choose)" in str(chosen)
    assert cast(Any, artifact_for(GEMM, dims=DIMS, ranks=1)) == best
    assert "chosen by estimates" in table(found).splitlines()[-1]


def test_other_sizes_and_settings_are_chosen_as_before() -> None:
    before = autoschedule(GEMM, dims={**DIMS, "M": 2048}, ranks=1)
    measured()
    assert autoschedule(GEMM, dims={**DIMS, "M": 2048}, ranks=1) == before
    assert autoschedule(GEMM, dims=DIMS, ranks=1, schedule={"stages": "2"}).taken is not None
    assert autoschedule(GEMM, dims=DIMS, ranks=1, measured=False).taken is not None


def test_entries_stay_beside_new_ones_and_a_broken_file_has_none() -> None:
    first = tuned.Measured({"tile_M": "64"}, 1.0, 2.0, "first")
    second = tuned.Measured({}, 3.0, 4.0, "second")
    tuned.keep("a", first)
    path = tuned.keep("b", second)
    assert (tuned.look_up("a"), tuned.look_up("b"), tuned.look_up("c")) == (first, second, None)
    path.write_text("{", encoding="utf-8")
    assert tuned.look_up("a") is None


def test_rates_make_estimates_what_probes_take(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each probe takes twice as long as estimated, but for the one that is further off than rates may be."""
    monkeypatch.setattr("pkc.driver.calibrate.build_program", lambda *_, **__: None)

    def clock_for(program: tree.Program, dims: Mapping[str, int]) -> Callable[[Any], Callable[[], float]]:
        ranks = 2 if "sent" in program.kernels[0].name else 1
        found = autoschedule(program, dims=dims, ranks=ranks, measured=False)
        estimate = found.taken or found.instead
        assert estimate is not None
        longer = 100 if ranks > 1 else 2
        return lambda _: lambda: longer * estimate.total

    record = lookup("sm_90a").rates
    before = autoschedule(GEMM, dims=DIMS, ranks=1)
    found = calibrate(clock_for, 2)
    assert found == {
        "memory_bytes": pytest.approx(record.memory_bytes / 2),
        "clock": pytest.approx(record.clock / 2),
        "link_bytes": record.link_bytes / 4,
    }
    after = autoschedule(GEMM, dims=DIMS, ranks=1)
    assert before.taken is not None and after.taken is not None
    assert after.taken.total > 1.2 * before.taken.total
    assert autoschedule(GEMM, dims=DIMS, ranks=1, measured=False) == before
    tuned.keep("a", tuned.Measured({}, 1.0, 2.0, "beside rates"))
    assert tuned.rates_of("sm_90a") == found
