"""`pkc explain` of a kernel whose steps only memory knows."""

from __future__ import annotations

from pathlib import Path

import pytest

from pkc.cli.main import main

FLAGGED = """\
kernel step(G: f32[N], W: f32[N], flag: i32[1].replicate().scratch(), O: f32[N]):
    for n in tasks(blocks(N, 2048)):
        g = G[n]
        flag[0] += rowsum(cast(abs(g) > 1e30 or g != g, i32))
    for n in tasks(blocks(N, 2048)):
        if flag[0] == 0:
            O[n] = W[n] - G[n]
        else:
            O[n] = W[n]
"""


def test_roles_are_explained_without_a_time_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "step.pk"
    path.write_text(FLAGGED, encoding="utf-8")
    assert main(["explain", str(path), "--set", "N=65536"]) == 0
    printed = capsys.readouterr().out
    assert "assuming both branches of an `if`" in printed
    assert "loader --> " in printed
    assert printed.endswith("what it does is known only when it runs; `pkc trace` measures one on GPUs\n")


def test_a_page_wants_a_time_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "step.pk"
    path.write_text(FLAGGED, encoding="utf-8")
    assert main(["explain", str(path), "--set", "N=65536", "--html", str(tmp_path / "page.html")]) == 1
    assert "PK917" in capsys.readouterr().err
