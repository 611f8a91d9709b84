"""The Python programs of the pages run as they stand."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)
PAGES = ["docs/simulator.md"]


@pytest.mark.parametrize("page", PAGES)
def test_programs(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    programs = BLOCK.findall((ROOT / page).read_text(encoding="utf-8"))
    assert programs
    for program in programs:
        exec(compile(program, page, "exec"), {})
