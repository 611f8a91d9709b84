"""Calls from Python for another target than the default one: compiled, loaded and launched, on the fake driver."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import pkc
from pkc import targets
from pkc.language import *
from pkc.runtime.mesh import Mesh
from tests.calls.helpers import here, scaled, tensor, told, use
from tests.runtime.fake import Api
from tests.targets.tiny import TINY

EXAMPLES = Path(__file__).parents[2] / "examples"
M, N = dims("M N")


@pkc.kernel(target="tiny", stages=2)
def doubled(X: bf16[M, N], Y: bf16[M, N]):
    for m, n in tasks(blocks(M, 32), blocks(N, 32)):
        Y[m, n] = X[m, n] + X[m, n]


def test_a_decorator_says_the_target(api: Api, compiled: list[dict[str, Any]]) -> None:
    doubled(tensor(64, 64), tensor(64, 64, at=1))
    assert [given["target"] for given in compiled] == ["tiny"]
    (launch,) = api.launches
    assert launch.threads <= TINY.arch.threads and launch.shared <= TINY.arch.shared_memory
    assert doubled.schedule == {"stages": 2}
    assert 'target = "tiny"' in str(pkc.compile(doubled, level="roles").module)
    assert f'target = "{targets.DEFAULT}"' in str(pkc.compile(doubled, level="roles", target=targets.DEFAULT).module)
    assert pkc.artifact(doubled, ranks=1, dims={"M": 64, "N": 64}).target == TINY.code
    assert pkc.artifact(doubled, ranks=1, dims={"M": 64, "N": 64}, target=targets.DEFAULT).target != TINY.code


def test_one_kernel_for_two_targets(api: Api, compiled: list[dict[str, Any]]) -> None:
    other = scaled.with_target("tiny")
    assert other is scaled.with_target("tiny")
    assert other.with_schedule(stages=2).target == scaled.with_schedule(stages=2).with_target("tiny").target == "tiny"
    x, y = tensor(128, 256), tensor(128, 256, at=100)
    other(x, y, 0.5)
    assert not api.encoded, "a target without TMA has no tensor maps"
    scaled(x, y, 0.5)
    assert api.encoded
    other(x, y, 0.5)
    scaled(x, y, 0.5)
    assert [given["target"] for given in compiled] == ["tiny", targets.DEFAULT]
    assert len(api.launches) == 4 and api.names().count("cuLibraryLoadData") == 2


def test_a_file_on_several_ranks(api: Api, compiled: list[dict[str, Any]]) -> None:
    """The tiles are chosen for the target: those of the program do not fit."""
    gemm = pkc.load(EXAMPLES / "ag_gemm.pk", target="tiny")
    mesh = Mesh.single_process([0, 1])
    a = gemm.empty("A", mesh, M=256, K=128)
    b, c = ([tensor(*shape, device=rank, at=at) for rank in range(2)] for shape, at in (((128, 64), 1), ((256, 64), 9)))
    gemm(a, b, c)
    assert [given["target"] for given in compiled] == ["tiny"]
    assert [launch.context for launch in api.launches] == [1000, 1001]
    assert all(launch.shared <= TINY.arch.shared_memory for launch in api.launches)


def test_gpus_of_another_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, Api(gpus=1, capability=(8, 0)))
    x, y, other = tensor(64, 64), tensor(64, 64, at=1), scaled.with_target("tiny")
    title = f"`scaled` is compiled for {TINY.code}; GPU 0 has compute capability 8.0"
    assert told(lambda: other(x, y, 1)).startswith(f"error[PK825]: {title}\n{here('other(x, y, 1)')}")


def test_no_such_target() -> None:
    x, y = tensor(64, 64), tensor(64, 64, at=1)
    other = scaled.with_target("tini")
    found = told(lambda: other(x, y, 0.5))
    assert found.startswith("error[PK520]: ") and here("other(x, y, 0.5)") in found and "did you mean `tiny`" in found
