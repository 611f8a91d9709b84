"""Machine code for given sizes: the schedule that was chosen for them before comes from the cache."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from pkc import cache, location
from pkc.driver import builder, building
from pkc.driver.compiler import load_program
from pkc.frontend.parse import parse_text
from pkc.location import Source

EXAMPLES = Path(__file__).parents[2] / "examples"
GEMM = load_program(EXAMPLES / "gemm.pk")
SIZES = {"M": 1024, "N": 1024, "K": 1024}
"""Of tiles of 32 x 64 x 128, which 512 of each gets, the same source has one of several machine codes (NVRTC 13.0)."""


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Mapping[str, Any]]:
    """An empty cache; what the autoschedule is asked meanwhile."""
    monkeypatch.setenv("PKC_CACHE_DIR", str(tmp_path))
    calls: list[Mapping[str, Any]] = []
    choose = building.autoschedule

    def watch(*arguments: Any, **named: Any) -> Any:
        calls.append(named)
        return choose(*arguments, **named)

    monkeypatch.setattr(building, "autoschedule", watch)
    return calls


def test_a_schedule_is_chosen_once(asked: list[Mapping[str, Any]]) -> None:
    first = builder.artifact_for(GEMM, dims=SIZES, ranks=1)
    assert builder.artifact_for(GEMM, dims=dict(reversed(SIZES.items())), ranks=1) == first
    assert len(asked) == 1
    # The machine code depends on nothing but the program and the schedule that the autoschedule chose.
    best = building.autoschedule(GEMM, dims=SIZES, ranks=1).schedule
    assert best
    assert builder.build_program(GEMM, schedule=best) == first


@pytest.mark.parametrize(
    "change",
    [
        {"dims": {**SIZES, "M": 8192}},
        {"ranks": 2},
        {"schedule": {"stages": "2"}},
        {"instruments": ["trace"]},
    ],
    ids=lambda change: next(iter(change)),
)
def test_other_arguments(asked: list[Mapping[str, Any]], change: dict[str, Any]) -> None:
    given: dict[str, Any] = {"dims": SIZES, "ranks": 1}
    first = builder.artifact_for(GEMM, **given)
    other = builder.artifact_for(GEMM, **(given | change))
    assert len(asked) == 1 + ("instruments" not in change)
    assert (other == first) == ("ranks" in change)  # no rank reads what another has
    assert builder.artifact_for(GEMM, **given) == first
    assert builder.artifact_for(GEMM, **(given | change)) == other


def test_another_program(asked: list[Mapping[str, Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    text = (EXAMPLES / "gemm.pk").read_text()
    builder.artifact_for(parse_text(Source("gemm.pk", text)), dims=SIZES, ranks=1, instruments=["debug"])
    # Lines below a comment move, and with them what a bounded wait reports, but not the schedule.
    moved = builder.artifact_for(
        parse_text(Source("gemm.pk", f"# Product\n{text}")), dims=SIZES, ranks=1, instruments=["debug"]
    )
    assert len(asked) == 1
    fresh = builder.build_program(
        parse_text(Source("gemm.pk", f"# Product\n{text}")),
        schedule=building.autoschedule(GEMM, dims=SIZES, ranks=1).schedule,
        instruments=["debug"],
    )
    assert moved == fresh
    asked.clear()
    builder.artifact_for(parse_text(Source("gemm.pk", text.replace("bf16", "f16"))), dims=SIZES, ranks=1)
    monkeypatch.setattr(cache, "compiler", lambda: "another")
    builder.artifact_for(GEMM, dims=SIZES, ranks=1)
    assert len(asked) == 2


def test_a_damaged_entry(asked: list[Mapping[str, Any]], tmp_path: Path) -> None:
    first = builder.artifact_for(GEMM, dims=SIZES, ranks=1)
    for path in tmp_path.iterdir():
        path.write_bytes(path.read_bytes()[:-1])
    assert builder.artifact_for(GEMM, dims=SIZES, ranks=1) == first
    assert len(asked) == 2


def test_texts_that_a_process_knows(asked: list[Mapping[str, Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    """Ranks find in the cache what another one has compiled: it must be equal to what they would have compiled."""
    program = parse_text(Source("nowhere.pk", (EXAMPLES / "gemm.pk").read_text()))
    first = builder.artifact_for(program, dims=SIZES, ranks=1, instruments=["debug"])
    monkeypatch.setenv("PKC_CACHE_DIR", f"{cache.folder()}.other")
    location._KNOWN["nowhere.pk"] = Source("nowhere.pk", "kernel")  # pyright: ignore[reportPrivateUsage]
    assert builder.artifact_for(program, dims=SIZES, ranks=1, instruments=["debug"]) == first
    assert first.waits is not None
    assert {(wait.file, wait.line > 1) for wait in first.waits.points} == {("nowhere.pk", True)}
    assert len(asked) == 2
