"""`pkc check` of a kernel that is right, and that the target refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from pkc.cli.main import main

KERNEL = """\
kernel all_to_one(X: f32[M], Y: f32[M].symmetric()):
    for m in tasks(blocks(M, 64)):
        Y.at(0)[m] += X[m]
"""


def test_check_says_that_there_is_no_code(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "k.pk"
    path.write_text(KERNEL, encoding="utf-8")
    assert main(["check", str(path), "--ranks", "2", "--seeds", "1", "--exhaustive", "0", "--set", "M=70"]) == 0
    refused = "no code for sm_90a, which refuses what is right: PK510: cannot be compiled for sm_90a yet: `store_add`"
    assert refused in capsys.readouterr().out
