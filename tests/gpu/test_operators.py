"""The operators of `torch.ops.pkc`: without GPUs by torch's collectives, and by kernels on real GPUs."""

from __future__ import annotations

import pytest

from tests.gpu import operators


@pytest.mark.gpu(limit=operators.LIMIT + 30)
@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_operators(device: str) -> None:
    assert operators.main(["--device", device, *(["--ranks", "2"] if device == "cpu" else [])]) == 0
