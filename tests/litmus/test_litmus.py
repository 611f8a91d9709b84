"""Litmus tests: pkc's verdict on each is that of the PTX ISA, or the test says why not."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from tests.litmus.__main__ import FILES, complaint, main
from tests.litmus.statements import Litmus, parse, parse_file
from tests.litmus.verdicts import verdict_of

TESTS = [test for path in FILES for test in parse_file(path)]

MP = """\
test MP
about The signal releases the store.
ptx {verdict}
{lines}P0 rank 0:
  st x 1 @1
  signal f @1 release.sys
P1 rank 1:
  wait f 1
{fence}  ld r x
exists P1.r = 0
"""


def _mp(verdict: str, lines: str = "", fence: str = "") -> Litmus:
    (test,) = parse(MP.format(verdict=verdict, lines=lines, fence=fence))
    return test


@pytest.mark.parametrize("test", [test for test in TESTS if not test.unmodelled], ids=lambda test: test.name)
def test_verdict(test: Litmus) -> None:
    assert complaint(test, verdict_of(test)) is None


def test_every_test_is_named_once_and_has_its_sections() -> None:
    assert [name for name, count in Counter(test.name for test in TESTS).items() if count > 1] == []
    assert [test.name for test in TESTS if not test.about or not test.sections] == []
    section = re.compile(r"(8|9)(\.\d+){1,5}$")
    assert [test.name for test in TESTS if not all(map(section.match, test.sections))] == []


def test_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    *_, last = capsys.readouterr().out.splitlines()
    compared = [test for test in TESTS if not test.unmodelled]
    agreed = [test for test in compared if not test.explained]
    assert last == f"{len(agreed)} / {len(compared)} agreed / compared; {len(TESTS) - len(compared)} not modelled"


FENCE = "  fence acquire.sys\n"


@pytest.mark.parametrize(
    ("verdict", "lines", "fence", "wrong"),
    [
        ("forbidden 8.8", "", FENCE, None),
        ("forbidden 8.8", "", "", "pkc says PK731, the test says None"),
        ("forbidden 8.8", "code PK731\n", "", "explained by no `imprecise:`"),
        ("forbidden 8.8", "code PK731\nexplained hole: it is not\n", "", "explained by no `imprecise:`"),
        ("allowed 8.8", "", FENCE, "explained by no `hole:`"),
        ("forbidden 8.8", "explained imprecise: it is not\n", FENCE, "but the verdicts agree"),
    ],
)
def test_what_is_complained_of(verdict: str, lines: str, fence: str, wrong: str | None) -> None:
    test = _mp(verdict, lines, fence)
    found = complaint(test, verdict_of(test))
    assert found is None if wrong is None else wrong in (found or "")


@pytest.mark.parametrize(
    ("line", "wrong"),
    [
        ("about nothing", "T: `none` is no verdict"),
        ("ptx maybe 8.8", "T: `maybe` is no verdict"),
        ("ptx allowed 8.8", "T: there is no condition"),
        ("ptx allowed 8.8\nexists P1.r is 0", "`P1.r is 0` is no atom of a condition"),
        ("stop", "name:2: stop: no such line"),
    ],
)
def test_a_line_that_is_no_statement(line: str, wrong: str) -> None:
    with pytest.raises(ValueError, match=wrong):
        list(parse(f"test T\n{line}\n", "name"))


def test_a_statement_that_is_none() -> None:
    (test,) = parse("test T\nptx allowed 8.8\nP0 rank 0:\n  jump x\nexists x@0 = 1\n")
    with pytest.raises(ValueError, match="there is no statement `jump x`"):
        verdict_of(test)
