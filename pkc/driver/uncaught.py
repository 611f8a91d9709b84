"""What Python prints of a `PkcError` that nobody catches: the program's lines, then the diagnostics."""

from __future__ import annotations

import os
import sys
import traceback
from pathlib import Path
from types import TracebackType

from pkc.diagnostics import PkcError

PACKAGE = f"{Path(__file__).parents[1]}{os.sep}"
"""How the names of pkc's files begin."""

_others = sys.excepthook


def install() -> None:
    """Let Python print so. `PKC_DEBUG=1` in the environment shows pkc's lines too."""
    sys.excepthook = _print


def _print(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if not isinstance(error, PkcError) or os.environ.get("PKC_DEBUG") == "1":
        _others(kind, error, trace)
        return
    frames = [frame for frame in traceback.extract_tb(trace) if not frame.filename.startswith(PACKAGE)]
    lines = traceback.format_list(frames)
    sys.stderr.write("".join(["Traceback (most recent call last):\n", *lines, f"{error}\n"]))
