"""The table of what has the same bits: each of its rows is a check that runs on GPUs, and the other way round."""

from __future__ import annotations

import re
from pathlib import Path

from tests.gpu.bits import ROWS

PAGE = Path(__file__).parents[2] / "docs" / "pytorch.md"


def test_each_row_is_a_check() -> None:
    section = PAGE.read_text(encoding="utf-8").split("## The same bits")[1].split("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| ") and "the bits of" not in line]
    assert [re.findall(r"`(\w+)` \|$", row) for row in rows] == [[row.__name__] for row in ROWS]
