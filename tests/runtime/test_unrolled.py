"""What copy engines do is kept on disk for the first sizes of a process: the same steps come back, without IR."""

from __future__ import annotations

from pathlib import Path

import pytest

from pkc.runtime.engines import Engines
from pkc.runtime.unrolled import Unrolled
from tests.runtime.plays import artifact

DIMS = {"M": 700, "N": 512, "K": 328, "ranks": 3}
OTHERS = {**DIMS, "M": 130}


@pytest.mark.parametrize("name", ["ag_gemm", "reduce_scatter"])
def test_the_same_steps_come_back(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PKC_CACHE_DIR", str(tmp_path))
    text = artifact(name).engines
    exact = Engines(text)

    def checked() -> Unrolled:
        made = Unrolled(text)
        assert made.count == exact.count
        for dims in (DIMS, OTHERS):
            assert [made.sections(rank, dims, {}) for rank in range(3)] == [
                exact.sections(rank, dims, {}) for rank in range(3)
            ]
        return made

    checked()
    again = Unrolled(text)
    assert [again.sections(rank, DIMS, {}) for rank in range(3)] == [
        exact.sections(rank, DIMS, {}) for rank in range(3)
    ]
    assert "_engines" not in vars(again), "they are unrolled anew"
    checked()
    assert len(list(tmp_path.iterdir())) == 4, "the first sizes on each rank, and how many roles there are"


def test_other_sizes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PKC_CACHE_DIR", str(tmp_path))
    text = artifact("ag_gemm").engines
    for dims in (DIMS, OTHERS, {**DIMS, "ranks": 2}):
        assert Unrolled(text).sections(1, dims, {}) == Engines(text).sections(1, dims, {})
