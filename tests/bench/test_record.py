"""What a record has beside the figures."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pkc.bench import record


def test_a_file_is_whole_or_not_there(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    record.write(path, {"results": [1]})
    record.write(path, {"results": [1, 2]})
    assert json.loads(path.read_text(encoding="utf-8")) == {"results": [1, 2]}
    assert list(tmp_path.iterdir()) == [path]


def test_commit_of_a_copy_without_history(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(record, "__file__", str(tmp_path / "pkc" / "bench" / "record.py"))
    monkeypatch.delenv("PKC_COMMIT", raising=False)
    assert record.commit() == "unknown"
    monkeypatch.setenv("PKC_COMMIT", "abc")
    assert record.commit() == "abc"


def test_a_commit_that_is_told_goes_before_the_history(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine may have the history of something else, or none of the changes committed."""
    monkeypatch.setattr(record, "__file__", str(tmp_path / "pkc" / "bench" / "record.py"))
    (tmp_path / ".git").mkdir()
    monkeypatch.setenv("PKC_COMMIT", "abc")
    assert record.commit() == "abc"


def test_spread_of_clocks() -> None:
    assert record.spread(["1980", " 1410", "[N/A]", "", "1755"]) == {"min": 1410, "median": 1755, "max": 1980}
    assert record.spread(["[N/A]"]) == {}
