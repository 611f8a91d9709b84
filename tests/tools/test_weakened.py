"""Mistakes that `tools.weakened` makes: each is still one that can be made."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.mistake import Mistake
from tools.weakened import MISTAKES

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.what)
def test_what_it_changes_is_there(mistake: Mistake) -> None:
    assert mistake.old in (ROOT / "pkc" / mistake.file).read_text(encoding="utf-8")
    assert (ROOT / "tests" / mistake.test).exists()
