"""Compare published verdicts with pkc's: `python -m tests.litmus.published FOLDER... [--all] [--markdown]`.

A folder has a copy of Dat3M (`litmus/PTX` and the CSV files of verdicts) or of NVlabs/mixedproxy (`tests`); without
one, `PKC_LITMUS` names them, as `PATH` does. Prints what pkc has no notion of and the tests on which verdicts differ,
by reason; with `--all` also which statement of `tests/litmus` is the same test. The exit status is 1 if a difference
has no reason, and 2 if there is no test.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

from tests.litmus.__main__ import FILES
from tests.litmus.published import dat3m, mixedproxy
from tests.litmus.published.compare import Compared, compared
from tests.litmus.statements import parse_file

FOLDERS = "PKC_LITMUS"


def main(arguments: Sequence[str]) -> int:
    """Print the comparison."""
    parser = argparse.ArgumentParser(prog="python -m tests.litmus.published", description=__doc__)
    parser.add_argument("--all", action="store_true", help="print each test")
    parser.add_argument("--markdown", action="store_true", help="print the table of docs/litmus.md")
    parser.add_argument("folders", nargs="*", type=Path)
    given = parser.parse_args(arguments)
    folders = given.folders or [Path(name) for name in os.environ.get(FOLDERS, "").split(os.pathsep) if name]
    tests = list(chain.from_iterable((*dat3m.tests(folder), *mixedproxy.tests(folder)) for folder in folders))
    if not tests:
        print("there are no tests: name a folder with a copy of Dat3M or NVlabs/mixedproxy", file=sys.stderr)
        return 2
    own = chain.from_iterable(map(parse_file, FILES))
    found = list(compared(tests, own))
    if given.markdown:
        print(*_table(found), sep="\n")
        return 0
    if given.all:
        for one in found:
            print(f"{one.test.source:10} {one.test.name:60} PTX {one.ptx:9}  {one.pkc or 'not modelled':13} {one.own}")
    print(*_reasons(found), sep="\n")
    print(_summed(found))
    return int(any(one.unexplained for one in found))


def _reasons(found: Sequence[Compared]) -> Iterator[str]:
    by: dict[str, list[str]] = defaultdict(list)
    for one in found:
        if not one.agrees:
            by[f"not modelled: {one.reason}" if not one.modelled else one.reason or "without a reason"].append(
                one.test.name
            )
    for reason, names in sorted(by.items()):
        yield f"{len(names):4}  {reason}"
        if not reason.startswith("not modelled"):
            yield f"        {'; '.join(names)}"


def _summed(found: Sequence[Compared]) -> str:
    modelled = [one for one in found if one.modelled]
    stated = sum(bool(one.own) for one in modelled)
    return (
        f"{len(found)} published tests: {len(modelled)} compared, {sum(one.agrees for one in modelled)} agree;"
        f" {stated} of those compared are in tests/litmus too; {len(found) - len(modelled)} not modelled"
    )


def _table(found: Sequence[Compared]) -> Iterator[str]:
    yield "| published as | PTX | pkc | the same test here, or why pkc has none, or why verdicts differ |"
    yield "|---|---|---|---|"
    for one in found:
        if one.modelled:
            own = f"`{one.own}`" if one.own else ""
            yield f"| {one.test.name} | {one.ptx} | {one.pkc} | {'; '.join(filter(None, [own, one.reason]))} |"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
