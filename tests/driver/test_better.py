"""Which of several estimated schedules is taken."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from pkc.cost.estimate import Estimate
from pkc.driver.better import better, careful
from pkc.targets.sm_90a import TARGET

ONE = Estimate(total=100.0, tasks=10, rounds=1, task=50.0, memory=0.0, link=0.0, sms=132, stages=4)
STREAM = replace(ONE, streamed=True, stage=32768)


def taken(now: Estimate, *others: Estimate, refused: int = -1, launch: float = 0.0) -> int:
    """The number of the one that is taken, if all but the `refused` one compile: 0 is `now`."""
    found = [(one, {"number": str(number)}) for number, one in enumerate((now, *others))]

    def compiles(_: Estimate, settings: Mapping[str, str]) -> bool:
        return settings["number"] != str(refused)

    tuning = replace(TARGET.tuning, equal=1.05)
    return int(better(found[0], found[1:], compiles, tuning, 0.9, launch=launch)[1]["number"])


def test_others_must_be_worth_it() -> None:
    assert taken(ONE, replace(ONE, total=91.0)) == 0
    assert taken(ONE, replace(ONE, total=89.0)) == 1
    assert taken(ONE, replace(ONE, total=91.0), launch=50.0) == 1


def test_others_must_load_while_they_compute() -> None:
    """For which one stage is enough if MMAs need one another."""
    assert taken(ONE, replace(ONE, total=50.0, stages=1)) == 0
    assert taken(ONE, replace(ONE, total=50.0, stages=1, chained=True)) == 1
    assert taken(ONE, replace(ONE, total=50.0, stages=0, chained=True)) == 0


def test_what_does_not_compile_leaves_the_next_one() -> None:
    assert taken(ONE, replace(ONE, total=50.0), replace(ONE, total=70.0), refused=1) == 2
    assert taken(ONE, replace(ONE, total=50.0), refused=1) == 0


def test_as_fast_ones_keep_sms_free_and_have_large_tiles() -> None:
    """Within the factor `equal`; beyond it the time alone counts."""
    assert taken(ONE, replace(ONE, total=80.0), replace(ONE, total=83.0, task=40.0)) == 2
    assert taken(ONE, replace(ONE, total=80.0), replace(ONE, total=85.0, task=40.0)) == 1
    assert taken(ONE, replace(ONE, total=80.0), replace(ONE, total=83.0, tasks=5)) == 2


def test_streams_need_no_gain() -> None:
    """The fastest; where something else is the limit the one whose SMs are busy for least, then that of the smallest
    stage."""
    assert taken(STREAM, replace(STREAM, total=99.0)) == 1
    assert taken(STREAM, replace(STREAM, total=100.05, task=40.0)) == 1
    assert taken(STREAM, replace(STREAM, total=101.0, task=40.0)) == 0
    assert taken(STREAM, replace(STREAM, task=48.0)) == 0
    assert taken(STREAM, replace(STREAM, stage=16384)) == 1
    assert taken(STREAM, replace(STREAM, total=97.0), refused=1) == 0
    assert taken(replace(STREAM, total=10.0, stages=0), STREAM) == 1, "without a stage it does not count"
    assert taken(replace(STREAM, stages=0)) == 0


def test_streams_with_few_stages() -> None:
    """A shorter step of the same tiles has more of them, and is taken if it is as good as equally fast."""
    few, shorter = replace(STREAM, stages=3, stage=65536), replace(STREAM, total=104.0, stages=6)
    assert taken(few, shorter) == 1
    assert taken(few, shorter, replace(shorter, stage=16384)) == 2
    assert taken(few, replace(shorter, total=106.0)) == 0
    assert taken(few, replace(shorter, tasks=20)) == 0
    assert taken(few, shorter, refused=1) == 0
    assert taken(replace(few, stages=4), shorter) == 0


def test_a_doubtful_estimate_has_to_gain_more() -> None:
    usual = TARGET.rates.error_of_mmas
    assert careful(0.9, 0.0, TARGET) == careful(0.9, usual, TARGET) == pytest.approx(0.9)
    assert careful(0.9, 1 + 2 * usual, TARGET) == pytest.approx(0.45)
