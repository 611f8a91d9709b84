"""`--help` of tools says what they do, and does nothing."""

from __future__ import annotations

import runpy
import sys

import pytest


def test_mutants(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["mutants", "--help"])
    monkeypatch.delitem(sys.modules, "tools.mutants", raising=False)
    with pytest.raises(SystemExit) as end:
        runpy.run_module("tools.mutants", run_name="__main__")
    assert end.value.code == 0
    assert capsys.readouterr().out.startswith("usage: ")
