"""The GPUs that a script needs, or the end of it."""

from __future__ import annotations

import sys

from pkc.diagnostics import PkcError
from pkc.runtime.driver import load

MISSING = 2
"""The exit status of a script that has not enough GPUs; 1 says that something is wrong."""


def gpus(wanted: int | None = None) -> int:
    """How many GPUs to use: as many as are wanted, or all. If they are not there, say so and end with `MISSING`."""
    try:
        found = load().devices()
    except PkcError as error:
        print(error, file=sys.stderr, flush=True)
        raise SystemExit(MISSING) from None
    if found < (wanted or 1):
        print(f"{wanted} GPUs are needed; there are {found}", file=sys.stderr, flush=True)
        raise SystemExit(MISSING)
    return wanted or found
