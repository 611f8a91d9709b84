"""Kernels called from Python on real GPUs, from one process and from one for each."""

from __future__ import annotations

import pytest

from tests.gpu import calls


@pytest.mark.gpu(limit=calls.LIMIT + 30)
@pytest.mark.parametrize("kind", ["single", "torchrun"])
def test_calls(kind: str) -> None:
    assert calls.main(["--kind", kind]) == 0
