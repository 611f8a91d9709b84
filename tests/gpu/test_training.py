"""The example that trains a transformer on several ranks: its losses are those of one rank."""

from __future__ import annotations

import pytest

from tests.gpu import present, processes

LIMIT = 150


@pytest.mark.gpu(limit=LIMIT + 50)
@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_training(device: str) -> None:
    ranks = present.gpus(2) if device == "cuda" else 2
    assert processes.run("examples.torch.train", ["--device", device], ranks, LIMIT, torchrun=True)
