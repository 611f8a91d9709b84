"""Checked calls, and machines on which nothing can run."""

from __future__ import annotations

from typing import Any

import pytest
from cuda.bindings import driver as bindings

from pkc.diagnostics import PkcError
from pkc.runtime import driver as module
from pkc.runtime.driver import Driver
from tests.runtime.fake import Api


def shown(call: Any, *arguments: Any) -> str:
    with pytest.raises(PkcError) as raised:
        call(*arguments)
    return f"{raised.value}\n"


def test_results_come_without_their_status() -> None:
    driver = Driver(Api())
    assert driver.cuFuncLoad(1) is None
    assert driver.cuDeviceGetCount() == 8
    assert driver.cuMemGetInfo() == (3 << 30, 140 << 30)


def test_a_call_that_fails() -> None:
    expected = """\
error[PK822]: `cuFuncLoad` failed: CUDA_ERROR_INVALID_HANDLE
  = note: what the driver says
"""
    assert shown(Driver(Api(failing={"cuFuncLoad": 400})).cuFuncLoad, 1) == expected


@pytest.mark.parametrize("visible", [None, "", "7"])
def test_no_gpu(monkeypatch: pytest.MonkeyPatch, visible: str | None) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    expected = f"""\
error[PK821]: there is no GPU that CUDA can use
  = note: CUDA_VISIBLE_DEVICES is {"not set" if visible is None else f"`{visible}`"}
  = help: `pkc run` without `--target`, and `pkc.simulate` in Python, simulate the ranks without a GPU
"""
    assert shown(Driver(Api(gpus=0)).devices) == expected
    assert shown(Driver(Api(failing={"cuDeviceGetCount": 100})).devices) == expected


class _Bindings:
    """`cuda.bindings.driver` on a machine where `cuInit` gives this."""

    def __init__(self, answer: Any) -> None:
        self._answer = answer

    def __getattr__(self, name: str) -> Any:
        return getattr(Api(), name)

    def cuInit(self, flags: int) -> tuple[Any]:
        if isinstance(self._answer, Exception):
            raise self._answer
        return (bindings.CUresult(self._answer),)


def load(monkeypatch: pytest.MonkeyPatch, answer: Any) -> Driver:
    monkeypatch.setattr(module, "_bindings", lambda: _Bindings(answer))
    return module.load.__wrapped__()


def test_no_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = """\
error[PK820]: no NVIDIA driver can be loaded
  = note: libcuda.so.1 is nowhere
  = help: `pkc run` without `--target`, and `pkc.simulate` in Python, simulate the ranks without a GPU
"""
    assert (
        shown(load, monkeypatch, RuntimeError("libcuda.so.1 is nowhere\nand this is where it was sought")) == expected
    )


def test_a_driver_without_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "PK821" in shown(load, monkeypatch, 100)


def test_a_driver_that_does_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "`cuInit` failed: CUDA_ERROR_SYSTEM_DRIVER_MISMATCH" in shown(load, monkeypatch, 803)


def test_a_driver_that_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    assert load(monkeypatch, 0).devices() == 8
