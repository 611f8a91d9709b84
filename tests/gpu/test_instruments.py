"""Time lines and reports of hangs on GPUs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from pkc.cli.main import cli
from pkc.runtime.driver import load
from tests.gpu import hang, interrupt


@pytest.mark.gpu(limit=60)
@pytest.mark.parametrize("ranks", [2, 4])
def test_a_hang_is_reported_on_virtual_ranks(ranks: int) -> None:
    assert hang.main(["--virtual", "--ranks", str(ranks)]) == 0


@pytest.mark.gpu(limit=60)
def test_a_hang_is_reported_on_all_gpus() -> None:
    assert hang.main([]) == 0


@pytest.mark.gpu(limit=90)
def test_ctrl_c_ends_what_waits_for_ever() -> None:
    assert interrupt.main([]) == 0


@pytest.mark.gpu(limit=120)
@pytest.mark.parametrize("name", ["gemm_rs", "ag_gemm"])
def test_time_line(name: str, tmp_path: Path) -> None:
    output = tmp_path / "trace.json"
    sizes = "M=2048,N=1024,K=1024"
    command = ["trace", str(hang.EXAMPLES / f"{name}.pk"), "--ranks", str(load().devices()), "--set", sizes]
    result = CliRunner().invoke(cli, [*command, "-o", str(output)], catch_exceptions=False)
    print(result.output)
    assert result.exit_code == 0
    assert "consumer: MMAs" in result.output
    events = json.loads(output.read_text(encoding="utf-8"))["traceEvents"]
    # No event is outside of the kernel, and no task takes longer than the kernel.
    times = [(event["ts"], event["dur"]) for event in events if event["ph"] == "X"]
    assert times
    assert min(start for start, _ in times) >= 0
    assert all(length >= 0 for _, length in times)
    assert max(start + length for start, length in times) < 1e4
