"""The example that trains a transformer on several ranks has the losses of one rank; the program of the page runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.gpu import present, processes

LIMIT = 150
PAGE = processes.ROOT / "docs" / "pytorch.md"
MLP = "# torchrun --nproc-per-node 2 mlp.py\n"


@pytest.mark.gpu(limit=LIMIT + 50)
@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_training(device: str) -> None:
    ranks = present.gpus(2) if device == "cuda" else 2
    assert processes.run("examples.torch.train", ["--device", device], ranks, LIMIT, torchrun=True)


@pytest.mark.gpu(limit=LIMIT + 50)
def test_the_program_of_the_page(tmp_path: Path) -> None:
    """Its loss falls."""
    program = PAGE.read_text(encoding="utf-8").partition(MLP)[2].partition("```")[0]
    assert "pkc.nn.TensorParallelMLP" in program
    program = program.replace("    optimizer.step()\n", "    optimizer.step()\n    losses.append(loss.item())\n")
    file = tmp_path / "mlp.py"
    file.write_text(f"losses = []\n{program}\nassert losses[-1] < losses[0], losses\nprint(losses)\n")
    assert processes.run(str(file), [], present.gpus(2), LIMIT, torchrun=True)
