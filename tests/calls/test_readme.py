"""The programs of the README, on the fake driver."""

from __future__ import annotations

import itertools
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from pkc import Kernel
from tests.calls.test_streams import FakeTorch
from tests.runtime.fake import FIRST_POINTER, Api, Device, Tensor

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)
FUNCTION, SINGLE, TORCHRUN = BLOCK.findall((ROOT / "README.md").read_text(encoding="utf-8"))


class Torch(FakeTorch):
    """The functions of torch that the README uses."""

    bfloat16, float32 = "torch.bfloat16", "torch.float32"

    def __init__(self) -> None:
        super().__init__()
        self._addresses = itertools.count(FIRST_POINTER, 1 << 28)
        self.cuda.set_device = lambda device: setattr(self, "device", device)

    def randn(self, *shape: int, device: str, dtype: str) -> Tensor:
        kind, _, number = device.partition(":")
        return Tensor(shape, dtype, Device(int(number or self.device), kind), next(self._addresses))

    def as_tensor(self, view: Any, device: str) -> Any:
        return Tensor(view.shape, "torch.int16", Device(int(device.removeprefix("cuda:"))), view.address)


def run(text: str, path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Run a program from the folder of the README; returns what it defines."""
    torch = Torch()
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setattr(
        Tensor, "view", lambda self, dtype: f"{dtype} {self.shape} on {self.device.index}", raising=False
    )
    monkeypatch.chdir(ROOT)
    path.write_text(text, encoding="utf-8")
    module = ModuleType("example")
    exec(compile(text, str(path), "exec"), vars(module))
    return vars(module)


def test_a_function_and_one_process(
    api: Api, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    function = run(FUNCTION, tmp_path / "function.py", monkeypatch)["gemm_rs"]
    found = run(SINGLE, tmp_path / "single.py", monkeypatch)
    assert capsys.readouterr().out == "torch.bfloat16 (2048, 8192) on 0\n"
    assert [launch.context for launch in api.launches] == [1000, 1001, 1002, 1003]
    assert isinstance(function, Kernel)
    function(found["a"], found["b"], found["c"])
    assert len(api.launches) == 8


def test_under_torchrun(
    api: Api, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    environment = {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "LOCAL_WORLD_SIZE": "1", "MASTER_PORT": "29511"}
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    run(TORCHRUN, tmp_path / "torchrun.py", monkeypatch)
    assert capsys.readouterr().out == "torch.bfloat16 (8192, 8192) on 0\n"
    assert [launch.stream for launch in api.launches] == [7000, 7000]
