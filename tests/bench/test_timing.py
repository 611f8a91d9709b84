"""How times are taken, and who gets some, on a stand-in for torch and a GPU."""

from __future__ import annotations

import itertools
import math
from types import SimpleNamespace
from typing import Any

import pytest

from pkc.bench.peers import contest, ranks, timing
from pkc.bench.peers.contest import Entrant, Refused, Step, compete
from pkc.bench.peers.ranks import Job
from pkc.bench.peers.reference import Wrong
from pkc.bench.peers.timing import HOLD_CYCLES, LONGEST_HOLD, measure
from tests.bench.device import Gpu, Tensor, tensor

ALONE = Job(0, 1, -1)
HOLD_MS = HOLD_CYCLES / 2e6


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Gpu:
    made = Gpu()
    for module in (timing, ranks):
        monkeypatch.setattr(module, "torch", lambda: made.torch)
    monkeypatch.setattr(timing, "time", SimpleNamespace(monotonic=lambda: 0.0, sleep=lambda _: made.wait()))
    return made


class Ones:
    """In place of a `Reference`: results must be 1."""

    def check(self, result: Tensor) -> float:
        if not (result == 1).all():
            raise Wrong("the result is wrong")
        return 0.5


def step(run: Any, restore: Any = lambda: None) -> Step:
    return Step(run, Ones(), restore)  # type: ignore[arg-type]


def test_the_time_is_that_of_the_stream(gpu: Gpu) -> None:
    """Without that of the host, which enqueues while the stream is held."""
    first, second = measure([gpu.call(0.25, host=1.5), gpu.call(3.0)], ALONE, repetitions=4, warmup=1)
    assert first.samples == pytest.approx([0.25] * 4)
    assert second.samples == pytest.approx([3.0] * 4)
    assert (first.unheld, second.unheld) == (0, 0)
    assert set(gpu.holds) == {HOLD_CYCLES}
    assert len(gpu.holds) == 10


def test_a_host_that_is_late_is_held_for_longer(gpu: Gpu) -> None:
    """The repetition that it was late in does not count; what it needs is kept for all later ones."""
    (timed,) = measure([gpu.call(0.25, host=3 * HOLD_MS)], ALONE, repetitions=3, warmup=1)
    assert timed.samples == pytest.approx([0.25] * 3)
    assert timed.unheld == 0
    assert gpu.holds == [HOLD_CYCLES, 2 * HOLD_CYCLES, *([4 * HOLD_CYCLES] * 4)]


def test_one_that_no_hold_is_long_enough_for_is_told(gpu: Gpu) -> None:
    needed = 1.5 * LONGEST_HOLD * HOLD_MS
    slow, quick = measure([gpu.call(0.25, host=needed), gpu.call(0.5)], ALONE, repetitions=3, warmup=2)
    assert (slow.unheld, quick.unheld) == (3, 0)
    assert all(sample > needed / 4 for sample in slow.samples)
    assert quick.samples == pytest.approx([0.5] * 3)
    found = compete([Entrant("slow", [step(gpu.call(0.25, host=needed))])], ALONE, repetitions=3, warmup=0)
    assert found["slow"]["unheld"] == 3


def test_late_on_another_rank_is_late_on_all(gpu: Gpu, monkeypatch: pytest.MonkeyPatch) -> None:
    """And of times the largest counts."""
    flags = itertools.chain([[1.0]], itertools.repeat([0.0]))
    seen: list[int] = []

    def largest(self: Job, values: Tensor) -> Tensor:
        seen.append(values.size)
        other = tensor([[0.125, 0.75]]) if values.ndim == 2 else tensor(next(flags))
        return max(values, other, key=lambda each: each.sum()) if values.ndim == 1 else tensor([[0.25, 0.75]])

    monkeypatch.setattr(Job, "largest", largest)
    (timed,) = measure([gpu.call(0.25)], Job(0, 1, -1), repetitions=2, warmup=0)
    assert timed.samples == [0.25, 0.75]
    assert gpu.holds == [HOLD_CYCLES, 2 * HOLD_CYCLES, 2 * HOLD_CYCLES]
    assert seen == [1, 1, 1, 2]


def test_operands_are_brought_back_outside_of_the_time(gpu: Gpu) -> None:
    calls: list[str] = []

    def restore() -> None:
        calls.append("restore")
        gpu.enqueue(7.0)

    def run() -> Tensor:
        calls.append("run")
        return gpu.call(0.25)()

    (timed,) = measure([run], ALONE, repetitions=2, warmup=1, restores=[restore])
    assert timed.samples == pytest.approx([0.25] * 2)
    assert calls == ["restore", "run"] * 3


def test_the_last_result_is_of_the_last_repetition(gpu: Gpu) -> None:
    """One that writes nothing any more leaves the poison."""
    out, count = tensor([0.0]), itertools.count(1)

    def tires() -> Tensor:
        gpu.enqueue(0.25)
        if next(count) < 4:
            out.fill_(1)
        return out

    (timed,) = measure([tires], ALONE, repetitions=3, warmup=1)
    assert math.isnan(timed.result[0])


def test_who_gets_a_time(gpu: Gpu) -> None:
    """Who is right before and after. A result that a launch leaves as it was, or that goes wrong under way, is none."""
    stale, count = tensor([1.0]), itertools.count()

    def goes_wrong() -> Tensor:
        return gpu.call(0.25, value=1.0 if next(count) < 5 else 2.0)()

    def refuses() -> Tensor:
        raise Refused("no such rows")

    def breaks() -> Tensor:
        raise ValueError("broken\nmore")

    entrants = [
        Entrant("right", [step(gpu.call(0.25)), step(gpu.call(0.5))]),
        Entrant("wrong", [step(gpu.call(0.25)), step(gpu.call(0.5, value=2.0))]),
        Entrant("stale", [step(lambda: stale)]),
        Entrant("goes wrong", [step(goes_wrong)]),
        Entrant("refuses", [step(refuses)]),
        Entrant("breaks", [step(breaks)]),
    ]
    found = compete(entrants, ALONE, repetitions=4, warmup=1)
    assert found["right"]["median_ms"] == pytest.approx(0.75)
    assert found["right"]["error_over_bound"] == 0.5
    assert "unheld" not in found["right"]
    del found["right"]
    assert found == {
        "wrong": {"error": "the result is wrong"},
        "stale": {"error": "the result is wrong"},
        "goes wrong": {"error": "after timing the result is wrong"},
        "refuses": {"error": "no such rows", "refused": True},
        "breaks": {"error": "broken"},
    }


def test_a_gpu_that_does_not_finish(gpu: Gpu, monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = itertools.count()
    monkeypatch.setattr(timing, "time", SimpleNamespace(monotonic=lambda: next(seconds), sleep=lambda _: None))
    gpu.enqueue(1.0)
    with pytest.raises(contest.Hung, match="has not finished within 120 s"):
        timing.finish()
