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

@pytest.mark.gpu(limit=1)
def test_hang(): os.fork(); time.sleep(1000)

def test_without_gpu(): assert "PKC_GPU_TEST" not in os.environ
"""


def begin(folder: Path, marks: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-rA", "-m", marks, "-p", "no:cacheprovider"]
    environment = {name: value for name, value in os.environ.items() if name != _CHILD}
    environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    return subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True)


def told(process: subprocess.Popen[str]) -> list[str]:
    # The output of the tests comes before.
    summary = process.communicate(timeout=300)[0].rpartition("short test summary info")[2].splitlines()
    kept = (line for line in summary if line.startswith(("PASSED ", "FAILED ")))
    return sorted(line.replace("test_them.py::", "") for line in kept)


def test_failures_crashes_and_hangs(tmp_path: Path) -> None:
    shutil.copy(Path(__file__).with_name("conftest.py"), tmp_path)
    (tmp_path / "test_them.py").write_text(TESTS, encoding="utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = gpu: needs GPUs\n", encoding="utf-8")
    on_gpus, others = begin(tmp_path, "gpu"), begin(tmp_path, "not gpu")
    assert told(on_gpus) == [
        "FAILED test_crash - Failed: exit status -11",
        "FAILED test_hang - Failed: not done after 1 s",
        "FAILED test_wrong - Failed: exit status 1",
        "PASSED test_good",
    ]
    assert told(others) == ["PASSED test_without_gpu"]
