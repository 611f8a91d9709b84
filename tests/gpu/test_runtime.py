"""The runtime on real GPUs, on every kind of mesh."""

from __future__ import annotations

import pytest

from tests.gpu import native_program, smoke_runtime


@pytest.mark.gpu(limit=smoke_runtime.LIMIT + 30)
@pytest.mark.parametrize("kind", ["virtual:1", "virtual:2", "virtual:3", "virtual:8", "single", "processes"])
def test_runtime(kind: str) -> None:
    assert smoke_runtime.main(["--kind", kind]) == 0


@pytest.mark.gpu(limit=native_program.LIMIT + 30)
def test_cpp() -> None:
    assert native_program.main() == 0
