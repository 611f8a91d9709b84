"""Litmus tests on a GPU: nothing is seen that PTX or pkc forbids."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.gpu import litmus
from tests.gpu.litmus import Seen


@pytest.mark.gpu(limit=240)
def test_nothing_forbidden_is_seen() -> None:
    assert litmus.main(["--instances", "200000"]) == 0


@pytest.mark.parametrize(
    ("ptx", "pkc", "hole", "seen", "status"),
    [
        ("forbidden", "forbidden", False, (0, 0, 0), 0),
        ("forbidden", "forbidden", False, (0, 1, 0), 1),
        ("forbidden", "refused PK734", False, (1, 0, 0), 1),
        ("allowed", "forbidden", False, (1, 0, 0), 1),
        ("allowed", "forbidden", True, (1, 0, 0), 0),
        ("allowed", "refused PK730", False, (7, 9, 0), 0),
        ("allowed", "refused PK730", False, (0, 0, 1), 1),
    ],
)
def test_what_counts_as_wrong(
    ptx: str, pkc: str, hole: bool, seen: tuple[int, int, int], status: int, tmp_path: Path
) -> None:
    path = tmp_path / "seen.json"
    assert litmus.summed("a GPU", [Seen("T", ptx, pkc, hole, True, 100, *seen, 0.5)], path) == status
    (test,) = json.loads(path.read_text())["tests"]
    assert (test["seen"], test["seen_after_reading"], test["hung"]) == seen
