"""Launches of operators, without torch: arrays that stay as they are have pointers in the plan too."""

from __future__ import annotations

import sys
from dataclasses import replace
from types import ModuleType, SimpleNamespace

import pytest

from tests.runtime.fake import FIRST_POINTER
from tests.runtime.test_launch import reduce_on
from tests.torch.modules import module_of


def _module(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    stream = SimpleNamespace(_cuda_getCurrentRawStream=lambda device: 70 + device)
    for name, stands_in in {
        "torch": SimpleNamespace(_C=stream),
        "pkc.torch": SimpleNamespace(),
        "pkc.torch.groups": SimpleNamespace(Place=object),
    }.items():
        monkeypatch.setitem(sys.modules, name, stands_in)
    return module_of("launches")


def test_other_tensors_beside_an_array_that_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, arguments, api = reduce_on(monkeypatch, ranks=1)
    (tensor,) = arguments.pop("A")
    launch = _module(monkeypatch).Launch(kernel, "A", arguments)
    prepared: list[object] = []
    prepare = kernel.prepare
    monkeypatch.setattr(kernel, "prepare", lambda *given: prepared.append(given) or prepare(*given))
    for shift in (0, 0, 64, 128):
        launch(replace(tensor, address=FIRST_POINTER + shift))
        at = api.launches[-1].struct[128]
        assert api.encoded[at - 1]["address"] == FIRST_POINTER + shift
    assert len(api.launches) == 4
    assert len(prepared) == 1
    assert {each.stream for each in api.launches} == {70}


def test_what_is_prepared_is_launched_before_another_thread_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, arguments, api = reduce_on(monkeypatch, ranks=1)
    (tensor,) = arguments.pop("A")
    launch = _module(monkeypatch).Launch(kernel, "A", arguments)
    start = kernel.launch

    def after_another(*given: object) -> None:
        monkeypatch.setattr(kernel, "launch", start)
        launch(replace(tensor, address=FIRST_POINTER + 64))
        start(*given)

    monkeypatch.setattr(kernel, "launch", after_another)
    launch(tensor)
    shifts = [api.encoded[each.struct[128] - 1]["address"] - FIRST_POINTER for each in api.launches]
    assert shifts == [64, 0]
