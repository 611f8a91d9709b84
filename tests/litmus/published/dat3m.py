"""Tests in the format of Dat3M's `litmus/PTX`: a table of threads, and verdicts in CSV files.

    PTX NAME                                      a name
    "about"                                       text, on any lines
    { x=0; P0:r0=0; t @ texture aliases x; }      what memory and registers hold, other names of a location
     P0@cta 0,gpu 0  | P1@cta 1,gpu 0      ;      where each thread runs
     st.weak x, 1    | ld.acquire.gpu r0, x;      a row of instructions
    ~exists (P1:r0 == 1 /\\ x == 2)               or `exists`, `forall`

`PTXv*-expected.csv` has `PATH,1` where that is so, and `PATH,0` where it is not.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from tests.litmus.published.ptx import (
    Asked,
    Clauses,
    Instruction,
    NotRead,
    PtxTest,
    PtxThread,
    clauses,
    instruction,
    negation,
)
from tests.litmus.published.ptx import lines_between as _between
from tests.litmus.statements import HANG

_TEXT = re.compile(r'"[^"]*"')
_WHERE = re.compile(r"(P\d+)\s*@\s*cta\s*(\d+)\s*,\s*gpu\s*(\d+)$")
_ALIAS = re.compile(r"(\w+)\s*@\s*(\w+)\s+aliases\s+(\w+)$")
_BEGIN = re.compile(r"([\w:]+)\s*=\s*&?(\w+)$")
_ASKED = re.compile(r"(~\s*exists|exists|forall)\b(.*)$", re.DOTALL)
_SHORT = re.compile(r"\bP?(\d+):\s*(?=r\d)")


def tests(folder: Path) -> Iterator[PtxTest]:
    """The tests that a CSV file of verdicts names, the newest version of PTX first, each once. Raises `NotRead`.

    Those of liveness ask whether a thread may wait for ever; their names end with `, liveness`.
    """
    known: set[tuple[bool, str]] = set()
    for table in sorted(folder.rglob("PTXv*-expected.csv"), reverse=True):
        liveness = "Liveness" in table.name
        for row in csv.reader(table.read_text(encoding="utf-8").splitlines()):
            if len(row) != 2 or (liveness, row[0]) in known:
                continue
            known.add((liveness, row[0]))
            test = parse((folder / row[0]).read_text(encoding="utf-8"), row[0], holds=row[1].strip() == "1")
            yield _waiting(test, row[1].strip() == "1") if liveness else test


def parse(text: str, path: str, *, holds: bool | None = None) -> PtxTest:
    """One test, and whether what it says at its end is so. Raises `NotRead`."""
    try:
        return _parse(_TEXT.sub("", text), path, holds)
    except (NotRead, ValueError, IndexError) as error:
        raise NotRead(f"{path}: {error}") from error


def _waiting(test: PtxTest, ends: bool) -> PtxTest:
    """The test that asks whether a thread may wait for ever, which is forbidden if all always end."""
    return replace(test, name=f"{test.name}, liveness", outcome=((Asked(HANG, True, "1"),),), forbidden=ends)


def _parse(text: str, path: str, holds: bool | None) -> PtxTest:
    if not text.startswith("PTX"):
        raise NotRead("a test begins with `PTX`")
    aliases: dict[str, tuple[str, str]] = {}
    initial: dict[str, int] = {}
    for line in _between(text, "{", "}"):
        if alias := _ALIAS.match(line):
            aliases[alias[1]] = alias[2], alias[3]
        elif (begin := _BEGIN.match(line)) and begin[2] != "0":
            initial[begin[1]] = int(begin[2])
    rest = text[text.index("}") + 1 :]
    asked = _ASKED.search(rest)
    if asked is None:
        raise NotRead("it asks for nothing")
    outcome, forbidden = _outcome(asked[1].replace(" ", ""), _SHORT.sub(r"P\1:", asked[2]), holds)
    threads = tuple(_threads(rest[: asked.start()]))
    name = path.removesuffix(".litmus").rpartition("PTX/")[2]
    return PtxTest(name, "Dat3M", threads, outcome, forbidden, aliases, initial)


def _outcome(how: str, condition: str, holds: bool | None) -> tuple[Clauses, bool | None]:
    """The outcome that is asked about, and whether it is forbidden."""
    found = clauses(condition)
    if how == "forall":
        return negation(found), holds
    forbids = how != "exists"
    return found, None if holds is None else holds is forbids


def _threads(text: str) -> Iterator[PtxThread]:
    rows = [[cell.strip() for cell in row.split("|")] for row in text.split(";") if row.strip()]
    for column, head in enumerate(rows[0]):
        where = _WHERE.match(head)
        if where is None:
            raise NotRead(f"`{head}` is no thread")
        cells = [row[column] for row in rows[1:] if column < len(row) and row[column]]
        yield PtxThread(where[1], (int(where[3]), int(where[2])), tuple(_instructions(cells)))


def _instructions(cells: list[str]) -> Iterator[Instruction]:
    for cell in cells:
        yield instruction(cell)
