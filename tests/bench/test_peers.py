"""The functions of `peers` that need no torch: order, samples, statistics."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from pkc.bench import peers
from pkc.bench.peers import Problem


def test_the_file_runs_alone() -> None:
    tree = ast.parse(Path(peers.__file__).read_text(encoding="utf-8"))
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {name.partition(".")[0] for name in names} <= set(sys.stdlib_module_names)
    command = [sys.executable, "-I", peers.__file__, "--help"]
    assert "--collective" in subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_multiplication_of_each_rank() -> None:
    assert peers.gemm_alone(Problem("reduce_scatter", 32, 64, 128, 8)) == Problem("none", 32, 64, 16, 8)
    assert peers.gemm_alone(Problem("all_gather", 32, 64, 128, 8)) == Problem("none", 32, 8, 128, 8)


@pytest.mark.parametrize("rows", [1, 2, 7, 8, 9, 1000])
def test_sampled_rows(rows: int) -> None:
    sampled = peers._sample(rows)
    assert len(sampled) == min(rows, 8)
    assert sampled == sorted(set(sampled))
    assert (sampled[0], sampled[-1]) == (0, rows - 1)


def test_everyone_has_a_turn_and_is_first_at_times() -> None:
    orders = [list(peers._order(3, repetition)) for repetition in range(-2, 4)]
    assert all(sorted(order) == [0, 1, 2] for order in orders)
    assert [order[0] for order in orders] == [1, 2, 0, 1, 2, 0]


def test_percentiles() -> None:
    found = peers.summary([float(number) for number in range(21)])
    assert (found["p5_ms"], found["p25_ms"], found["median_ms"], found["p75_ms"], found["p95_ms"]) == (1, 5, 10, 15, 19)
    assert found["samples_ms"][20] == 20.0


def test_line() -> None:
    times = {"median_ms": 0.5, "p5_ms": 0.4, "p95_ms": 0.62}
    assert peers.line(times, 1e11) == "0.5000 ms (0.4000 to 0.6200) 200 TFLOP/s"
    assert peers.line({"error": "no"}, 1e11) == "ERROR no"


def test_torchs_operators_need_an_environment_without_multicast(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in peers.NO_MULTICAST.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("TORCH_SYMM_MEM_DISABLE_MULTICAST", "0")
    with pytest.raises(peers.Refused, match="multicast: TORCH_SYMM_MEM_DISABLE_MULTICAST not set"):
        peers._symmetric_group(Problem("reduce_scatter", 16, 8, 8, 8))
    with pytest.raises(peers.Refused, match="splits rows evenly: 17 over 8"):
        peers._symmetric_group(Problem("reduce_scatter", 17, 8, 8, 8))
