"""Schedules that were measured: `pkc tune` keeps them in a file, and the choice of a schedule reads it.

`$PKC_TUNED`, or `pkc/tuned.json` in the user's configuration folder (`$XDG_CONFIG_HOME`, else `~/.config`). An entry is
for one program, kernel, target, number of ranks, dimensions, constants and schedule that is set beside. All processes
of a mesh must read the same file. A file that cannot be read has no entries.
"""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

from pkc import cache

_ENTRIES, _RATES = "schedules", "rates"


@dataclass(frozen=True)
class Measured:
    """The fastest schedule of those that were measured, by key, and what it and the one that was estimated took."""

    schedule: Mapping[str, str]
    nanoseconds: float
    estimated: float
    """Nanoseconds of the schedule that is chosen without measuring."""
    about: str
    """What it was measured of, for people."""


def place() -> Path:
    """Where the file is; it need not exist."""
    chosen = os.environ.get("PKC_TUNED")
    if chosen:
        return Path(chosen)
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path("~/.config").expanduser()) / "pkc" / "tuned.json"


def key(
    program: object,
    kernel: str,
    target: str,
    ranks: int,
    dims: Mapping[str, int],
    constants: Mapping[str, Any],
    schedule: Mapping[str, str],
) -> str:
    """The name of an entry. Programs that differ only in source locations have one."""
    given = (program, kernel, target, ranks, *(sorted(each.items()) for each in (dims, constants, schedule)))
    return cache.key("tuned 1", repr(given))


def any_measured() -> bool:
    """Whether there are entries at all."""
    return bool(_document().get(_ENTRIES))


def look_up(name: str) -> Measured | None:
    """The entry of this name, if there is one."""
    try:
        return Measured(**_document()[_ENTRIES][name])
    except (KeyError, TypeError):
        return None


def rates_of(target: str) -> Mapping[str, float]:
    """Rates of a target that were measured on this machine (`pkc calibrate`), by name."""
    found: Mapping[str, Any] = _document().get(_RATES, {}).get(target, {})
    return {name: float(rate) for name, rate in found.items()}


def keep(name: str, found: Measured) -> Path:
    """Write an entry, in place of one of the same name. Raises `OSError` if the file cannot be written."""
    return _write(_ENTRIES, name, asdict(found))


def keep_rates(target: str, rates: Mapping[str, float]) -> Path:
    """Write the rates of a target, in place of those before. Raises `OSError` if the file cannot be written."""
    return _write(_RATES, target, dict(rates))


def _write(part: str, name: str, content: Mapping[str, Any]) -> Path:
    path, document = place(), dict(_document())
    path.parent.mkdir(parents=True, exist_ok=True)
    document[part] = {**document.get(part, {}), name: content}
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    fresh.write_text(json.dumps(document, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    fresh.replace(path)
    return path


def _document() -> Mapping[str, Any]:
    path = place()
    try:
        about = path.stat()
    except OSError:
        return {}
    return _read(path, about.st_mtime_ns, about.st_size)


@functools.lru_cache(maxsize=8)
def _read(path: Path, changed: int, size: int) -> Mapping[str, Any]:
    try:
        found: Any = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return cast(Mapping[str, Any], found) if isinstance(found, dict) else {}
