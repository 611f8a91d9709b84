"""Kernels called from Python on real GPUs, from one process and from one for each."""

from __future__ import annotations

import pytest

from tests.gpu import calls, processes


@pytest.mark.gpu(limit=calls.LIMIT + 30)
@pytest.mark.parametrize("kind", ["single", "torchrun"])
def test_calls(kind: str) -> None:
    assert calls.main(["--kind", kind]) == 0


@pytest.mark.gpu(limit=calls.LIMIT + 30)
@pytest.mark.parametrize("mesh", [[], ["--virtual"]], ids=["gpus", "virtual"])
def test_misuse(mesh: list[str]) -> None:
    ranks = 1 if mesh else 2
    assert processes.run("tests.gpu.misuse", ["--ranks", "2", *mesh], ranks, calls.LIMIT, torchrun=False)
