"""Into how many splits long loops of few tasks are divided by themselves."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from pkc.driver.autoschedule import autoschedule
from pkc.driver.chosen import Autoschedule
from pkc.frontend.parse import parse_text
from pkc.location import Source
from tests.divided import DECODE, online

GEMM = (Path(__file__).parents[2] / "examples" / "gemm.pk").read_text(encoding="utf-8")
DECAY = online("total = total * 0.5 + rowsum(x)")


def chosen(text: str, dims: Mapping[str, int], **schedule: str) -> Autoschedule:
    return autoschedule(parse_text(Source("k.pk", text)), dims=dims, ranks=1, schedule=schedule)


def test_long_loops_of_few_tasks_are_divided() -> None:
    """As often as SMs are left idle; not if the schedule says that they may not."""
    dims = {"B": 1, "H": 8, "N": 65536}
    found, whole = chosen(DECODE, dims), chosen(DECODE, dims, splits="false")
    assert found.schedule.keys() == {"split_N"} and whole.schedule == {}
    assert found.taken is not None and found.instead is not None and whole.taken is not None
    assert found.taken.sms / 2 < 8 * int(found.schedule["split_N"]) <= 2 * found.taken.sms
    assert found.instead.total == whole.taken.total > 4 * found.taken.total


def test_tiles_are_those_that_are_best_with_splits() -> None:
    dims = {"M": 128, "N": 1024, "K": 32768}
    found, whole = chosen(GEMM, dims), chosen(GEMM, dims, splits="false")
    assert found.taken is not None and whole.taken is not None
    assert found.taken.total < 0.5 * whole.taken.total
    assert int(found.schedule["split_K"]) * found.taken.tasks > 4
    assert all(int(found.schedule[key]) > int(whole.schedule[key]) for key in ("tile_M", "tile_N"))
    assert chosen(GEMM, dims, split_K="2").schedule.keys() <= {"tile_M", "tile_N", "tile_K", "consumers"}


@pytest.mark.parametrize(
    ("text", "dims"),
    [
        (DECODE, {"B": 16, "H": 8, "N": 32768}),
        (DECODE, {"B": 1, "H": 8, "N": 512}),
        (GEMM, {"M": 1024, "N": 1024, "K": 4096}),
        (DECAY, {"M": 32, "N": 65536}),
    ],
    ids=["many tasks", "short loops", "merging takes longer", "not to be merged"],
)
def test_other_loops_are_not(text: str, dims: dict[str, int]) -> None:
    found = chosen(text, dims)
    assert not any(key.startswith("split_") for key in found.schedule), found
