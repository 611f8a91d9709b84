"""Checks that the GPUs that a script needs are there."""

from __future__ import annotations

import os
import sys

from pkc.diagnostics import PkcError
from pkc.runtime.driver import load

MISSING = 2
"""The exit status of a script without enough GPUs; 1 means that a check failed."""


def gpus(wanted: int | None = None) -> int:
    """How many GPUs to use: `wanted`, or all. If there are fewer, print that and exit with `MISSING`."""
    try:
        found = load().devices()
    except PkcError as error:
        print(error, file=sys.stderr, flush=True)
        raise SystemExit(MISSING) from None
    if found < (wanted or 1):
        print(f"{wanted} GPUs are needed; there are {found}", file=sys.stderr, flush=True)
        raise SystemExit(MISSING)
    return wanted or found


def names(count: int) -> list[str]:
    """What CUDA_VISIBLE_DEVICES calls the GPUs that this process sees, which are at least so many."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    return visible.split(",") if visible else [str(number) for number in range(count)]
