"""Examples on real GPUs, as many as there are, and on virtual ranks of one."""

from __future__ import annotations

import pytest

from tests.gpu import copy_engines, examples, stress

NAMES = (
    "gemm",
    "gemm_rs",
    "gemm_ar",
    "ag_gemm",
    "attention",
    "attention causal",
    "ring_attention",
    "ring_attention causal",
    "ulysses_attention",
    "all_gather",
    "reduce_scatter",
    "all_reduce",
)


@pytest.mark.gpu(limit=120)
@pytest.mark.parametrize("ranks", [1, 2, 3, 5, 8])
@pytest.mark.parametrize("name", NAMES)
def test_on_virtual_ranks(name: str, ranks: int) -> None:
    assert examples.main(["--virtual", "--ranks", str(ranks), "--only", name]) == 0


@pytest.mark.gpu(limit=120)
@pytest.mark.parametrize("name", NAMES)
def test_on_all_gpus(name: str) -> None:
    assert examples.main(["--only", name]) == 0


@pytest.mark.gpu(limit=120)
@pytest.mark.parametrize("name", stress.SIZES)
def test_many_launches(name: str) -> None:
    assert stress.main(["--only", name]) == 0


@pytest.mark.gpu(limit=120)
@pytest.mark.parametrize("name", copy_engines.EXAMPLES)
def test_copy_engines_on_all_gpus(name: str) -> None:
    assert examples.main(["--only", name, "--overlap", "copy_engine"]) == 0


@pytest.mark.gpu(limit=120)
@pytest.mark.parametrize("name", copy_engines.EXAMPLES)
def test_copy_engines_on_two_ranks_of_one_gpu(name: str) -> None:
    assert examples.main(["--virtual", "--ranks", "2", "--only", name, "--overlap", "copy_engine"]) == 0


@pytest.mark.gpu(limit=120)
@pytest.mark.parametrize("name", copy_engines.STRESS)
def test_many_launches_with_copy_engines(name: str) -> None:
    assert stress.main(["--only", name, "--overlap", "copy_engine"]) == 0
