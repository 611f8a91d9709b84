"""The operators of `torch.ops.pkc`: without GPUs by torch's collectives, by kernels on real GPUs, and by processes that
share one."""

from __future__ import annotations

import pytest

from tests.gpu import operators

NAMES = [check.__name__ for check in operators.CHECKS]
PARTS = 3
"""Each compiles its kernels, for half a minute or so each."""


@pytest.mark.gpu(limit=operators.LIMIT + 30)
def test_operators_without_gpus() -> None:
    assert operators.main(["--device", "cpu", "--ranks", "2"]) == 0


@pytest.mark.gpu(limit=operators.LIMIT + 30)
@pytest.mark.parametrize("part", range(PARTS))
def test_operators(part: int) -> None:
    assert operators.main(["--only", *NAMES[part::PARTS]]) == 0


@pytest.mark.gpu(limit=operators.LIMIT + 30)
@pytest.mark.parametrize("part", range(PARTS))
def test_operators_of_processes_that_share_a_gpu(part: int) -> None:
    # gloo's gathering of tensors on GPUs, which `fused` calls itself, crashes, and times mean nothing.
    names = [name for name in NAMES if name not in ("fused", "cost")]
    assert operators.main(["--device", "shared", "--ranks", "2", "--only", *names[part::PARTS]]) == 0
