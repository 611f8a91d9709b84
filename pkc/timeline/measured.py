"""Reads a time line that `pkc trace -o` has measured, as a list of events (`chrome.py`)."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pkc.diagnostics import PkcError, to_write
from pkc.location import NOWHERE
from pkc.timeline.errors import WrongTimeline
from pkc.timeline.lanes import THREAD


def read(path: Path) -> list[dict[str, Any]]:
    """The events of a file that `pkc trace` or `pkc timeline` wrote. Raises `PkcError`."""
    try:
        events = json.loads(path.read_text(encoding="utf-8"))["traceEvents"]
        _check(events)
    except OSError as error:
        raise _refused(path, error.strerror or "it cannot be read") from None
    except (ValueError, KeyError, TypeError, AttributeError, StopIteration, OverflowError, RecursionError):
        raise _refused(path, "it is not in the Trace Event Format as pkc writes it") from None
    if not any(event["ph"] == "X" for event in events):
        raise _refused(path, "it has no events")
    return events


def _refused(path: Path, what: str) -> PkcError:
    return PkcError(WrongTimeline(NOWHERE, str(path), what, str(to_write(path, ".json"))))


def _check(events: Sequence[dict[str, Any]]) -> None:
    """That events have what lanes are made of. Raises `ValueError`, or as Python does where something is missing."""
    named = {
        (_integer(event["pid"]), _integer(event["tid"]))
        for event in events
        if event["name"] == "thread_name" and THREAD.fullmatch(event["args"]["name"])
    }
    for event in events:
        if event["ph"] == "X":
            _check_that((event["pid"], event["tid"]) in named and isinstance(event["cat"], str))
            _check_that(_number(event["dur"]) >= 0)
            _number(event["args"]["task"])
            for value in (event["ts"], *event["args"].values()):
                _number(value)
        elif event["ph"] == "C":
            _integer(event["pid"])
            for value in (event["ts"], next(iter(event["args"].values()))):
                _number(value)


def _check_that(holds: bool) -> None:
    if not holds:
        raise ValueError


def _integer(value: object) -> int:
    _check_that(isinstance(value, int))
    assert isinstance(value, int)
    return value


def _number(value: object) -> float:
    _check_that(isinstance(value, int | float) and math.isfinite(value))
    assert isinstance(value, int | float)
    return value
