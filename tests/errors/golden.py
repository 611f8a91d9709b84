"""Runs a command as a user would and compares what it prints to stderr with a file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from pkc.cli.main import main

HERE = Path(__file__).parent


def check(
    code: str,
    argv: Sequence[str],
    expected: Path,
    capsys: pytest.CaptureFixture[str],
    golden: Callable[[Path, str], None],
) -> None:
    """Run `pkc argv`; it must report `code`, with the text in `expected` and nothing else."""
    status = main(argv)
    shown = capsys.readouterr().err
    assert f"[{code}]" in shown, shown
    # A program with nothing but warnings is a good one.
    assert status == (1 if "error[" in shown else 0)
    golden(expected, shown)
