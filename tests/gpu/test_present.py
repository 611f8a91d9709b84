"""Scripts for GPUs without enough of these: they say so at once, and start nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from pkc.diagnostics import PkcError
from pkc.location import NOWHERE
from pkc.runtime.errors import NoGpu
from pkc.runtime.mesh import Mesh
from tests.gpu import calls, check, copy_engines, functions, guard, hang, litmus, present, smoke_runtime, soak
from tools import calls as times_of_calls
from tools import cookbook, epilogues, exchanges, gradients, lengths, regret, rows, versions, without

SCRIPTS = [calls, check, copy_engines, hang, smoke_runtime]
TOOLS: dict[ModuleType, list[str]] = {
    functions: [],
    guard: [],
    litmus: [],
    soak: ["--virtual"],
    times_of_calls: [],
    cookbook: ["--json", "x"],
    epilogues: [],
    exchanges: [],
    gradients: [],
    lengths: [],
    regret: ["--json", "x"],
    rows: [],
    versions: ["."],
    without: [],
}
"""What measures on GPUs, and with which arguments it would begin."""


@pytest.fixture(autouse=True)
def _nothing_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("virtual", "single_process"):
        monkeypatch.setattr(Mesh, name, lambda *_, **__: pytest.fail("a mesh is opened"))
    monkeypatch.setattr(check, "run_ranks", lambda *_, **__: pytest.fail("cases are run"))
    for script in (calls, smoke_runtime):
        monkeypatch.setattr(script, "run_kind", lambda *_, **__: pytest.fail("a process is started"))
    monkeypatch.setattr(copy_engines, "_run", lambda *_, **__: pytest.fail("a process is started"))


def no_gpu() -> None:
    raise PkcError(NoGpu(NOWHERE, "not set"))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.__name__)
@pytest.mark.parametrize("arguments", [[], ["--ranks", "2"]], ids=" ".join)
def test_no_gpu(
    script: object, arguments: list[str], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    if script is smoke_runtime:
        arguments = []
    monkeypatch.setattr(present, "load", no_gpu)
    with pytest.raises(SystemExit) as ended:
        script.main(arguments)
    assert ended.value.code == 2
    assert capfd.readouterr().err.startswith("error[PK821]: there is no GPU that CUDA can use\n")


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.__name__)
def test_a_tool_without_a_gpu(
    tool: ModuleType, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """It says so in place of a traceback, before it compiles anything."""
    monkeypatch.setattr(present, "load", no_gpu)
    monkeypatch.setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32")  # which `soak` sets
    for name in ("run", "Popen"):
        monkeypatch.setattr(subprocess, name, lambda *_, **__: pytest.fail("a process is started"))
    with pytest.raises(SystemExit) as ended:
        tool.main(TOOLS[tool])
    assert ended.value.code == 2
    assert capfd.readouterr().err.startswith("error[PK821]: there is no GPU that CUDA can use\n")


def test_too_few_gpus(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(present, "load", lambda: SimpleNamespace(devices=lambda: 2))
    with pytest.raises(SystemExit) as ended:
        check.main(["--ranks", "1,2,4"])
    assert ended.value.code == 2
    assert capfd.readouterr().err == "4 GPUs are needed; there are 2\n"


def test_the_command() -> None:
    root, hidden = Path(__file__).parents[2], os.environ | {"CUDA_VISIBLE_DEVICES": ""}
    command = [sys.executable, "-m", "tests.gpu.check", "--virtual"]
    done = subprocess.run(command, cwd=root, env=hidden, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error[PK82")
