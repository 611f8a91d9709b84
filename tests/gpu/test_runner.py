"""The runner of GPU tests, on tests that need no GPU."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.gpu.conftest import _CHILD

TESTS = """\
import os, signal, time
import pytest

@pytest.mark.gpu
def test_good(): assert "PKC_GPU_TEST" in os.environ

@pytest.mark.gpu
def test_wrong(): assert 1 == 2

@pytest.mark.gpu
def test_crash(): os.kill(os.getpid(), signal.SIGSEGV)

@pytest.mark.gpu(limit=3)
def test_hang(): os.fork(); time.sleep(1000)

def test_without_gpu(): assert "PKC_GPU_TEST" not in os.environ
"""


def run(folder: Path, marks: str) -> list[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-rA", "-m", marks, "-p", "no:cacheprovider", "-p", "no:xdist"]
    environment = {name: value for name, value in os.environ.items() if name != _CHILD}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    # The output of the tests comes before.
    summary = done.stdout.rpartition("short test summary info")[2].splitlines()
    kept = (line for line in summary if line.startswith(("PASSED ", "FAILED ")))
    return sorted(line.replace("test_them.py::", "") for line in kept)


def test_failures_crashes_and_hangs(tmp_path: Path) -> None:
    shutil.copy(Path(__file__).with_name("conftest.py"), tmp_path)
    (tmp_path / "test_them.py").write_text(TESTS, encoding="utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = gpu: needs GPUs\n", encoding="utf-8")
    assert run(tmp_path, "gpu") == [
        "FAILED test_crash - Failed: exit status -11",
        "FAILED test_hang - Failed: not done after 3 s",
        "FAILED test_wrong - Failed: exit status 1",
        "PASSED test_good",
    ]
    assert run(tmp_path, "not gpu") == ["PASSED test_without_gpu"]
