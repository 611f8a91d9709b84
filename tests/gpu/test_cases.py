"""The table of cases on virtual ranks of one GPU, and on as many GPUs as there are."""

from __future__ import annotations

import pytest

from pkc.runtime.driver import load
from tests.gpu import check


@pytest.mark.gpu(limit=300)
@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 5, 8])
def test_on_virtual_ranks(ranks: int) -> None:
    assert check.check([ranks], virtual=True)


@pytest.mark.gpu(limit=600)
def test_on_gpus() -> None:
    assert check.check(range(1, load().devices() + 1), virtual=False)
