"""`pkc bench` on GPUs: right results are measured, wrong ones are refused."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from pkc.bench.peers.contest import Entrant, Step, compete
from pkc.bench.peers.gemm import Collective, Matmul
from pkc.bench.peers.ranks import Job, torch
from pkc.bench.suite import suite

ROOT = Path(__file__).parents[2]


def measured(path: Path, kernel: str, launcher: list[str], sizes: str = "512,100x512x512") -> list[dict[str, Any]]:
    command = ["-m", "pkc", "bench", f"examples/{kernel}.pk", "--sizes", sizes, "--json", str(path)]
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
    count = torch().cuda.device_count()
    several = {"cublas_nccl", "torch_fused", "cublas_alone", "pkc", "pkc_alone"}
    launcher = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={count}"]
    square, _ = measured(tmp_path / "x.json", kernel, launcher)
    assert set(square["contestants"]) == (several if count > 1 else {"cublas", "pkc"})
    assert all("median_ms" in found for found in square["contestants"].values())


@pytest.mark.gpu
@pytest.mark.parametrize("collective", ["none", "reduce_scatter", "all_gather"])
def test_a_matmul_without_one_column_is_wrong(collective: Collective) -> None:
    job = Job(0, 1, 0)
    case = Matmul(collective, 300, 256, 512, 1).draw(job)
    a, b = case.inputs

    def without_a_column() -> Any:
        return a[:, 1:] @ b[1:]

    entrants = [
        Entrant("right", [Step(lambda: a @ b, case.reference)]),
        Entrant("wrong", [Step(without_a_column, case.reference)]),
        Entrant("short", [Step(lambda: (a @ b)[1:], case.reference)]),
    ]
    found = compete(entrants, job, repetitions=20)
    assert found["right"]["error_over_bound"] < 1
    assert len(found["right"]["samples_ms"]) == 20
    assert "the result is wrong" in found["wrong"]["error"]
    assert "the result is wrong" in found["short"]["error"]


@pytest.mark.gpu
def test_a_host_that_is_late_is_held_for_longer() -> None:
    """Its time is that of the GPU all the same, and one that stays behind every hold says so."""
    job = Job(0, 1, 0)
    case = Matmul("none", 512, 512, 512, 1).draw(job)
    a, b = case.inputs

    def late(seconds: float) -> Any:
        def run() -> Any:
            time.sleep(seconds)
            return a @ b

        return run

    entrants = [
        Entrant(name, [Step(late(seconds), case.reference)])
        for name, seconds in (("in time", 0.0), ("late", 0.005), ("too late", 0.06))
    ]
    found = compete(entrants, job, repetitions=20)
    print({name: (times["median_ms"], times.get("unheld", 0)) for name, times in found.items()})
    assert found["late"]["median_ms"] < 2 * found["in time"]["median_ms"] < 1
    assert "unheld" not in found["in time"] and "unheld" not in found["late"]
    assert found["too late"]["unheld"] == 20


ATTENTION = "1x4x512,2x2x384x64,1x4x512+causal"


@pytest.mark.gpu(limit=300)
def test_attention_on_one_gpu(tmp_path: Path) -> None:
    results = measured(tmp_path / "x.json", "attention", [], f"{ATTENTION},1x2x256x256")
    assert len(results) == 4
    for result in results:
        times = result["contestants"]
        assert set(times) == {"cudnn", "flash", "pkc"}
        assert all(0 < found["median_ms"] < 10 for found in times.values()), result
        assert result["limit_ms"] == times["cudnn"]["median_ms"]


@pytest.mark.gpu(limit=300)
@pytest.mark.parametrize("kernel", ["ring_attention", "ulysses_attention"])
def test_attention_on_all_gpus(tmp_path: Path, kernel: str) -> None:
    count = torch().cuda.device_count()
    launcher = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={count}"]
    sizes = f"1x{count}x{128 * count},2x{2 * count}x{192 * count}x64"
    causal = f",1x{count}x{128 * count}+causal" if kernel == "ring_attention" else ""
    alone = {"cudnn_alone", "flash_alone", "pkc", "pkc_alone"}
    for result in measured(tmp_path / "x.json", kernel, launcher, sizes + causal):
        gathered = "all_gather_flash" if result["causal"] else "all_gather_cudnn"
        expected = {gathered, "all_to_all_cudnn", *alone} if count > 1 else {"cudnn", "flash", "pkc"}
        assert set(result["contestants"]) == expected
        assert all("median_ms" in found for found in result["contestants"].values()), result


@pytest.mark.gpu
@pytest.mark.parametrize("size", ["2x3x300x64", "2x3x300x64+causal"])
def test_attention_without_one_key_is_wrong(size: str) -> None:
    (problem,) = suite()["attention"].problems(size, 1)
    job = Job(0, 1, 0)
    case = problem.draw(job)
    q, k, v = case.inputs
    causal = size.endswith("+causal")
    attend = torch().nn.functional.scaled_dot_product_attention

    def without_a_key() -> Any:
        # The first key, which every row sees.
        seen = torch().ones(300, 300, dtype=torch().bool, device="cuda")
        seen = seen.tril() if causal else seen
        seen[1:, 0] = False
        return attend(q, k, v, attn_mask=seen)

    entrants = [
        Entrant("right", [Step(lambda: attend(q, k, v, is_causal=causal), case.reference)]),
        Entrant("wrong", [Step(without_a_key, case.reference)]),
    ]
    found = compete(entrants, job, repetitions=20)
    assert found["right"]["error_over_bound"] < 1
    assert "the result is wrong" in found["wrong"]["error"]
