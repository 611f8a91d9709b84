"""Launches of operators, without torch: arrays that stay as they are have pointers in the plan too."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from dataclasses import replace
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from pkc.runtime.arrays import Array
from pkc.runtime.kernel_parameters import layout
from pkc.runtime.launch import LoadedKernel
from pkc.runtime.mesh import Mesh
from tests.runtime.fake import FIRST_POINTER, Device, Tensor, driver
from tests.runtime.test_launch import LENT, STRIDE, reduce_on
from tests.torch.modules import module_of


def _module(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    stream = SimpleNamespace(_cuda_getCurrentRawStream=lambda device: 70 + device)
    for name, stands_in in {
        "torch": SimpleNamespace(_C=stream),
        "pkc.torch": SimpleNamespace(),
        "pkc.torch.groups": SimpleNamespace(Place=object, Turn=lambda mesh: nullcontext()),
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


def test_tensors_that_lie_too_low_go_through_the_heap(monkeypatch: pytest.MonkeyPatch) -> None:
    """As those of allocators that map memory where they like; others take the place of the array."""
    made, api = driver(monkeypatch, gpus=1)
    api.struct_bytes = layout(LENT.fields)[1]
    kernel = LoadedKernel(LENT, Mesh.single_process(driver=made))
    array = kernel.mesh.empty((40, 64), "f32", "shard", 0)
    a = Tensor((40, 72), device=Device(0))
    copied: list[tuple[str, str]] = []

    class Named(Tensor):
        def copy_(self, other: Any) -> None:
            copied.append((where(self), where(other)))

    def where(tensor: Any) -> str:
        return "heap" if tensor.data_ptr() == array.address else "tensor"

    def shard(address: int) -> Named:
        return Named((40, 64), "torch.float32", Device(0), address=address)

    monkeypatch.setattr(Array, "tensor", lambda _: shard(array.address))
    module = _module(monkeypatch)
    monkeypatch.setattr(module, "lowest", lambda _: STRIDE)  # as of two ranks
    rest = {"scale": 0.5, "count": 1}
    for results, expected in (("C", ("tensor", "heap")), ("", ("heap", "tensor"))):
        launch = module.Launch(kernel, "AC", rest, (), {"C": array}, results)
        for address in (2 * STRIDE, 1 << 33, 3 * STRIDE, 1 << 34):
            copied.clear()
            launch(a, shard(address))
            low = address < STRIDE
            assert copied == [expected] * low
            assert api.encoded[api.launches[-1].struct[0] - 1]["address"] == (array.address if low else address)


def test_few_sizes_keep_memory_that_others_write_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first ones. Further ones have kernels that await all ranks; so do all ranks for the same."""
    module, place = _module(monkeypatch), SimpleNamespace(kept=0)

    def loaded(place: Any, program: str, dims: dict[str, int], schedule: Any = None) -> SimpleNamespace:
        kept = program == "scatter" and not schedule
        return SimpleNamespace(artifact=SimpleNamespace(arrays=[SimpleNamespace(kept=kept)]), schedule=schedule)

    monkeypatch.setattr(module, "loaded", loaded)
    for size in range(module.MOST_KEPT + 3):
        assert module.loaded_for_sizes(place, "gather", {"M": size}).schedule is None
        schedule = module.loaded_for_sizes(place, "scatter", {"M": size}).schedule
        assert schedule == (None if size < module.MOST_KEPT else {"write_ahead": "false", "packets": "false"})
    assert place.kept == module.MOST_KEPT
