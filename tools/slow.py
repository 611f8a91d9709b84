"""Which cases `make test` leaves to `make test-all`: `python -m tools.slow LOG [--seconds S]` writes `tests/slow.txt`.

LOG is what `pytest --durations=0 --durations-min=0.15` printed. No test function takes more than some seconds: the most
with which those of LOG take S seconds of a processor together. Of its cases that are in LOG as many stay as fit into
these, and at least one, unless that takes longer than `ALONE`; the file has their share. `tests/conftest.py` marks the
others `slow`.
"""

from __future__ import annotations

import argparse
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

KEPT = Path(__file__).parents[1] / "tests" / "slow.txt"
ALONE = 2.5
"""Seconds of a single case, of which `make test` runs none."""

_LINE = re.compile(r"^([\d.]+)s (?:call|setup|teardown) +(\S+::.+)$", re.MULTILINE)


def times(log: str) -> dict[str, list[float]]:
    """Seconds of the cases of each function; cases that took too little to be listed are not there."""
    cases: defaultdict[str, defaultdict[str, float]] = defaultdict(lambda: defaultdict(float))
    for seconds, test in _LINE.findall(log):
        cases[test.partition("[")[0]][test] += float(seconds)
    return {function: list(each.values()) for function, each in cases.items()}


def kept(cases: Sequence[float], most: float) -> int:
    """How many cases of a function stay, if it may take so many seconds."""
    each = sum(cases) / len(cases)
    if each > ALONE:
        return 0
    return max(1, min(len(cases), int(most / each)))


def most_of(found: Iterable[Sequence[float]], seconds: float) -> float:
    """The most seconds for each function with which all take no more than `seconds` together."""
    several = list(found)
    low, high = 0.0, max(map(sum, several), default=0.0)
    while high - low > 0.01:
        middle = (low + high) / 2
        total = sum(kept(cases, middle) * sum(cases) / len(cases) for cases in several)
        low, high = (middle, high) if total <= seconds else (low, middle)
    return low


def chosen(found: Mapping[str, Sequence[float]], seconds: float) -> dict[str, int]:
    """Of the functions that take too long, how many cases stay."""
    most = most_of(found.values(), seconds)
    counts = {function: kept(cases, most) for function, cases in found.items()}
    return {function: count for function, count in sorted(counts.items()) if count < len(found[function])}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("log", type=Path)
    parser.add_argument("--seconds", type=float, default=380)
    options = parser.parse_args(arguments)
    found = times(options.log.read_text(encoding="utf-8"))
    counts = chosen(found, options.seconds)
    lines = [f"{count}/{len(found[function])} {function}" for function, count in counts.items()]
    KEPT.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    print(f"{sum(map(sum, found.values())):.0f} s of {len(found)} functions; {len(lines)} of them leave cases out")


if __name__ == "__main__":
    main()
