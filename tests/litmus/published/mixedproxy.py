"""Tests in the format of NVlabs/mixedproxy: threads in brackets, what may and may not be, and a table of variants.

.global x; .surfref s virtually aliases x;    locations, and other names of them
d0.b0.t0 { $0, 2; $1 st.release.cta [flag], 1; }      a thread of a GPU and a CTA
d0.b0.t1 { ld.acquire.cta r0, [flag] == 1; ld r1, [x]; }      a load that is said to give 1
assert (r1 == 2) as name;                     always so; `permit`: it may be so
$$
st [x] | fence.proxy.surface;                 what stands for $0, $1, ..., one test a line
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.litmus.published.ptx import (
    Asked,
    Clauses,
    Instruction,
    NotRead,
    PtxTest,
    PtxThread,
    both,
    clauses,
    instruction,
    negation,
)

_THREAD = re.compile(r"d(\d+)\.b(\d+)\.t(\d+)\s*\{([^}]*)\}")
_ALIAS = re.compile(r"\.(\w+)\s+(\w+)\s+(virtually|physically)\s+aliases\s+(\w+)\s*;")
_SAID = re.compile(r"(.*\])\s*==\s*(\d+)$")
_ASKED = re.compile(r"(assert|permit)\s*\((.*)\)\s*as\s+\w+\s*;", re.DOTALL)
_PROXIES = {"global": "generic", "surfref": "surface", "texref": "texture"}
_ORDERED = re.compile(r"^(st|ld|suld|sust|tld)(?=\s|$)")


def tests(folder: Path) -> Iterator[PtxTest]:
    """The tests of a folder, each variant of a table by its number. Raises `NotRead`."""
    for path in sorted(folder.rglob("*.test")):
        yield from parse(path.read_text(encoding="utf-8"), path.stem)


def parse(text: str, name: str) -> Iterator[PtxTest]:
    """The tests of one file. Raises `NotRead`."""
    template, _, table = re.sub(r"//[^\n]*", "", text).partition("$$")
    rows = [[cell.strip() for cell in line.split("|")] for line in table.splitlines() if line.strip()]
    for number, row in enumerate(rows or [[]], start=1):
        try:
            yield _parse(_filled(template, row), f"{name} {number}" if rows else name)
        except (NotRead, ValueError, IndexError) as error:
            raise NotRead(f"{name}, variant {number}: {error}") from error


def _filled(template: str, row: Sequence[str]) -> str:
    return re.sub(r"\$(\d+)", lambda found: row[int(found[1])], template)


def _parse(text: str, name: str) -> PtxTest:
    aliases = {found[2]: (_PROXIES[found[1]], found[4]) for found in _ALIAS.finditer(text)}
    threads: list[PtxThread] = []
    said: Clauses = ((),)
    owners: dict[str, str] = {}
    for found in _THREAD.finditer(text):
        thread, body = f"P{len(threads)}", list[Instruction]()
        for line in (line.strip() for line in found[4].split(";") if line.strip()):
            constant = _SAID.match(line)
            body.append(_instruction(constant[1] if constant else line))
            for register in (operand for operand in body[-1].operands if re.match(r"r\d", operand)):
                owners.setdefault(register, thread)
            if constant:
                said = both(said, ((Asked(f"{thread}:{body[-1].operands[0]}", True, constant[2]),),))
        threads.append(PtxThread(thread, (int(found[1]), int(found[2])), tuple(body)))
    asked = _ASKED.search(text)
    if asked is None:
        raise NotRead("it asks for nothing")
    condition = clauses(re.sub(r"\br\d+\b", lambda found: f"{owners[found[0]]}:{found[0]}", asked[2]))
    forbidden = asked[1] == "assert"
    outcome = both(said, negation(condition) if forbidden else condition)
    return PtxTest(name, "mixedproxy", tuple(threads), outcome, forbidden, aliases)


def _instruction(line: str) -> Instruction:
    """An instruction; `st` is weak, and volatile accesses are relaxed ones of all GPUs (PTX ISA: ld.volatile)."""
    line = _ORDERED.sub(r"\1.weak", line).replace(".volatile", ".relaxed.sys")
    found = instruction(line)
    if found.op in ("atom", "red") and found.words[1] == "add":
        return Instruction((found.op, *found.words[2:], "add"), found.operands)
    return found
