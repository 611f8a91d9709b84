"""`pkc bench` on GPUs: right results are measured, wrong ones are refused."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pkc.bench import peers
from pkc.bench.peers import Collective, Contestant, Entrant, Job, Problem

ROOT = Path(__file__).parents[2]


def measured(path: Path, kernel: str, launcher: list[str]) -> list[dict[str, Any]]:
    command = ["-m", "pkc", "bench", f"examples/{kernel}.pk", "--sizes", "512,100x512x512", "--json", str(path)]
    subprocess.run([sys.executable, *launcher, *command, "--repetitions", "20"], cwd=ROOT, check=True)
    return json.loads(path.read_text(encoding="utf-8"))["results"]


@pytest.mark.gpu
def test_one_gpu(tmp_path: Path) -> None:
    for result in measured(tmp_path / "x.json", "gemm", []):
        times = result["contestants"]
        assert set(times) == {"cublas", "pkc"}
        assert all(0 < found["median_ms"] < 10 for found in times.values())
        assert result["limit_ms"] == times["cublas"]["median_ms"]


@pytest.mark.gpu(limit=300)
@pytest.mark.parametrize("kernel", ["gemm_rs", "ag_gemm"])
def test_all_gpus(tmp_path: Path, kernel: str) -> None:
    count = peers.torch().cuda.device_count()
    several = {"cublas_nccl", "torch_fused", "cublas_alone", "pkc", "pkc_alone"}
    launcher = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={count}"]
    square, _ = measured(tmp_path / "x.json", kernel, launcher)
    assert set(square["contestants"]) == (several if count > 1 else {"cublas", "pkc"})
    assert all("median_ms" in found for found in square["contestants"].values())


@pytest.mark.gpu
@pytest.mark.parametrize("collective", ["none", "reduce_scatter", "all_gather"])
def test_a_matmul_without_one_column_is_wrong(collective: Collective) -> None:
    job = Job(0, 1, 0)
    problem = Problem(collective, 300, 256, 512, 1)
    inputs = peers.draw(problem, job)
    reference = peers.Reference(problem, inputs, job)

    def without_a_column() -> Any:
        return inputs.a[:, 1:] @ inputs.b[1:]

    entrants = [
        Entrant(Contestant("right", lambda: inputs.a @ inputs.b), reference),
        Entrant(Contestant("wrong", without_a_column), reference),
        Entrant(Contestant("short", lambda: (inputs.a @ inputs.b)[1:]), reference),
    ]
    found = peers.compete(entrants, job, repetitions=20)
    assert found["right"]["error_over_bound"] < 1
    assert len(found["right"]["samples_ms"]) == 20
    assert "the result is wrong" in found["wrong"]["error"]
    assert "the result is wrong" in found["short"]["error"]
