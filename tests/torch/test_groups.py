"""Meshes of process groups that are destroyed and made anew, on the fake driver and without torch."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from pkc.runtime.launch import LoadedKernel
from pkc.runtime.mesh import Mesh
from tests.runtime.fake import driver
from tests.runtime.test_launch import SMALL
from tests.torch.modules import module_of


class Groups:
    """The groups of torch.distributed, by name; the default one is "0"."""

    def __init__(self) -> None:
        self.by_name: dict[str, Any] = {}

    def make(self, name: str) -> Any:
        self.by_name[name] = SimpleNamespace(group_name=name)
        return self.by_name[name]

    def resolve(self, name: str) -> Any:
        if name not in self.by_name:
            raise RuntimeError(f"Could not resolve the process group registered under the name {name}")
        return self.by_name[name]


@pytest.fixture
def groups() -> Groups:
    return Groups()


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch, groups: Groups) -> ModuleType:
    c10d = SimpleNamespace(_resolve_process_group=groups.resolve, _get_default_group=lambda: groups.resolve("0"))
    dist = SimpleNamespace(is_initialized=lambda: "0" in groups.by_name)
    for name, stands_in in {
        "torch": SimpleNamespace(),
        "torch.distributed": dist,
        "torch.distributed.distributed_c10d": c10d,
    }.items():
        monkeypatch.setitem(sys.modules, name, stands_in)
    found = module_of("groups")

    def made(_: Any) -> Mesh:
        mesh = Mesh.virtual(2, driver=driver(monkeypatch)[0])
        LoadedKernel(SMALL, mesh)
        mesh.empty((4,), "f32")
        return mesh

    monkeypatch.setattr(found, "_mesh", made)
    return found


def _is_free(mesh: Mesh) -> bool:
    """Whether nothing of a mesh is left on the GPU."""
    api = mesh.driver.api
    return mesh.closed and not api.mapped and not api.libraries and not api.registered


def test_a_group_of_the_same_name(groups: Groups, module: ModuleType) -> None:
    """What was made for the one before is closed: operators begin anew."""
    groups.make("0")
    first, calls = module.mesh_of(), module.calls_of("0")
    assert module.mesh_of() is first
    groups.make("0")
    assert module.calls_of("0") is not calls
    assert _is_free(first)
    second = module.mesh_of()
    assert second is not first
    assert not second.closed


def test_a_group_that_does_not_come_again(groups: Groups, module: ModuleType) -> None:
    """Its mesh is closed when something is made for another group."""
    groups.make("0")
    whole, first = module.mesh_of(), module.mesh_of(groups.make("1"))
    del groups.by_name["1"]
    second = module.mesh_of(groups.make("2"))
    assert _is_free(first)
    assert not whole.closed
    assert not second.closed


@pytest.mark.parametrize("named", [False, True])
def test_closed_once_the_group_is_destroyed(groups: Groups, module: ModuleType, named: bool) -> None:
    group = groups.make("0")
    meshes = [module.mesh_of(), module.mesh_of(groups.make("1"))]
    groups.by_name.clear()
    module.close(group if named else None)
    assert all(map(_is_free, meshes))
    module.close(group if named else None)


def test_others_stay_open(groups: Groups, module: ModuleType) -> None:
    groups.make("0")
    whole, some = module.mesh_of(), module.mesh_of(groups.make("1"))
    module.close(groups.by_name["1"])
    assert _is_free(some)
    assert not whole.closed
    assert module.mesh_of() is whole
