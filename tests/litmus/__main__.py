"""Compare pkc's verdicts with those of PTX: `python -m tests.litmus [--all] [FILE...]`.

Prints the tests on which they differ, with the reason, and what is not modelled; with `--all` the others too. The last
line is `agreed / compared`. The exit status is 1 if a difference has no reason.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.litmus.statements import Litmus, parse_file
from tests.litmus.verdicts import Verdict, verdict_of

FILES = tuple(sorted(Path(__file__).parent.glob("*.litmus")))


def main(arguments: Sequence[str]) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.litmus", description=__doc__)
    parser.add_argument("--all", action="store_true", help="print the tests on which the verdicts agree, too")
    parser.add_argument("files", nargs="*", type=Path, default=FILES)
    chosen = parser.parse_args(arguments)
    tests = [test for path in chosen.files for test in parse_file(path)]
    verdicts = [(test, verdict_of(test)) for test in tests if not test.unmodelled]
    agreed = [test for test, verdict in verdicts if verdict.forbidden is test.forbidden]
    for test, verdict in verdicts:
        if chosen.all or verdict.forbidden is not test.forbidden:
            print(*_lines(test, verdict), sep="\n")
    for test in tests:
        if test.unmodelled:
            print(f"{test.name:<28} PTX {ptx(test):<9}  not modelled: {test.unmodelled}")
    unmodelled = len(tests) - len(verdicts)
    print(f"{len(agreed)} / {len(verdicts)} agreed / compared; {unmodelled} not modelled")
    unexplained = [test.name for test, verdict in verdicts if complaint(test, verdict)]
    if unexplained:
        print(f"without a reason, or not as the test says: {', '.join(unexplained)}", file=sys.stderr)
    return 1 if unexplained else 0


def ptx(test: Litmus) -> str:
    """The verdict of PTX."""
    return "forbidden" if test.forbidden else "allowed"


def complaint(test: Litmus, verdict: Verdict) -> str | None:
    """What is wrong with a verdict: a difference without a reason, a reason without a difference, another code."""
    if verdict.code != test.code:
        return f"pkc says {verdict.code}, the test says {test.code}"
    reason = test.explained.split(":")[0]
    if verdict.forbidden is test.forbidden:
        return f"it is explained as {reason}, but the verdicts agree" if reason else None
    expected = "imprecise" if test.forbidden else "hole"
    return None if reason == expected else f"PTX: {ptx(test)}, pkc: {verdict}, which is explained by no `{expected}:`"


def _lines(test: Litmus, verdict: Verdict) -> Iterator[str]:
    yield f"{test.name:<28} PTX {ptx(test):<9}  pkc {verdict!s:<13}  {', '.join(test.sections)}"
    if test.explained:
        yield f"    {test.explained}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
