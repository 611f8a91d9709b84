"""What Python prints of a `PkcError` that nobody catches: the program's lines, then the diagnostics."""

from __future__ import annotations

import os
import sys
from types import TracebackType

from pkc.diagnostics import PkcError

_others = sys.excepthook


def install() -> None:
    """Let Python print so. `PKC_DEBUG=1` in the environment shows pkc's lines too."""
    sys.excepthook = _print


def _print(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if not isinstance(error, PkcError) or os.environ.get("PKC_DEBUG") == "1":
        _others(kind, error, trace)
        return
    sys.stderr.write("\n".join([*error.with_traceback(trace).traceback(), ""]))
