"""The functions of `peers` that need no torch: order, samples, statistics."""

from __future__ import annotations

import subprocess
import sys

import pytest

from pkc.bench.peers import contest, gemm, ranks, timing
from pkc.bench.peers.gemm import Matmul
from pkc.bench.peers.problem import alone_ms
from pkc.bench.peers.reference import sample


def test_the_peers_run_without_a_kernel() -> None:
    command = [sys.executable, "-m", "pkc.bench.others", "--help"]
    assert "--kernel {gemm," in subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_multiplication_of_each_rank() -> None:
    assert Matmul("reduce_scatter", 32, 64, 128, 8).alone() == (Matmul("none", 32, 64, 16, 8),)
    assert Matmul("all_gather", 32, 64, 128, 8).alone() == (Matmul("none", 32, 8, 128, 8),)
    assert not Matmul("none", 32, 64, 128, 8).alone()


def test_the_limit_is_that_of_the_work_alone() -> None:
    times = {"median_ms": 2.0}
    assert alone_ms({"flash": {"median_ms": 1.0}, "cudnn_alone": times}) == 2.0
    assert alone_ms({"cudnn_alone": {"error": "no"}, "flash_alone": {"median_ms": 1.0}}) is None


@pytest.mark.parametrize("rows", [1, 2, 7, 8, 9, 1000])
def test_sampled_rows(rows: int) -> None:
    sampled = sample(rows)
    assert len(sampled) == min(rows, 8)
    assert sampled == sorted(set(sampled))
    assert (sampled[0], sampled[-1]) == (0, rows - 1)


def test_everyone_has_a_turn_and_is_first_at_times() -> None:
    orders = [list(timing._order(3, repetition)) for repetition in range(-2, 4)]
    assert all(sorted(order) == [0, 1, 2] for order in orders)
    assert [order[0] for order in orders] == [1, 2, 0, 1, 2, 0]


def test_percentiles() -> None:
    found = timing.summary([float(number) for number in range(21)])
    assert (found["p5_ms"], found["p25_ms"], found["median_ms"], found["p75_ms"], found["p95_ms"]) == (1, 5, 10, 15, 19)
    assert found["samples_ms"][20] == 20.0


def test_line() -> None:
    times = {"median_ms": 0.5, "p5_ms": 0.4, "p95_ms": 0.62}
    assert contest.line(times, 1e11) == "0.5000 ms (0.4000 to 0.6200) 200 TFLOP/s"
    assert contest.line({"error": "no"}, 1e11) == "ERROR no"


def test_torchs_operators_need_an_environment_without_multicast(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in ranks.NO_MULTICAST.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("TORCH_SYMM_MEM_DISABLE_MULTICAST", "0")
    with pytest.raises(gemm.Refused, match="multicast: TORCH_SYMM_MEM_DISABLE_MULTICAST not set"):
        gemm.symmetric_group()
