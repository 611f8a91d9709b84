"""A machine for each test, on which nothing was made or compiled before."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from pkc.codegen.artifact import Artifact
from pkc.driver import builder, launcher
from tests.calls.helpers import gathered, scaled, use
from tests.runtime.fake import Api


@pytest.fixture(scope="module", autouse=True)
def _cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """One empty folder for all tests here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PKC_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(autouse=True)
def api(monkeypatch: pytest.MonkeyPatch) -> Api:
    """A machine with four GPUs, on which nothing was compiled or made before."""
    made = Api(gpus=4)
    use(monkeypatch, made)
    for name in ("WORLD_SIZE", "RANK"):
        monkeypatch.delenv(name, raising=False)
    for kernel in (scaled, gathered):
        kernel.__dict__.pop("launcher", None)
        kernel._variants.clear()
    return made


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """The calls of the compiler."""
    asked: list[dict[str, Any]] = []

    def artifact_for(program: Any, **given: Any) -> Artifact:
        asked.append(given)
        return builder.artifact_for(program, **given)

    monkeypatch.setattr(launcher, "artifact_for", artifact_for)
    return asked
