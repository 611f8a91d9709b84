"""The grammar for editors: up to date, and what it makes of a kernel."""

from __future__ import annotations

import re

import pytest

from tools import textmate

LINE = "kernel k(A: bf16[M, K].shard(0)): acc += exp(A[m, 0x4]) and inf  # for x"


def test_grammar_is_up_to_date() -> None:
    """After a change: `python -m tools.textmate`."""
    assert textmate.GRAMMAR.read_text(encoding="utf-8") == textmate.text()


def scopes(line: str) -> dict[str, str]:
    """Each match with its scope, as an editor finds them: at each place the first pattern that matches there."""
    found: dict[str, str] = {}
    place = 0
    while place < len(line):
        matches = [(re.compile(one["match"]).match(line, place), one) for one in textmate.grammar()["patterns"]]
        match, pattern = next(((m, one) for m, one in matches if m), (None, None))
        if match is None or pattern is None:
            place += 1
            continue
        for number, capture in pattern.get("captures", {"0": pattern}).items():
            found[match[int(number)]] = capture["name"]
        place = match.end()
    return found


@pytest.mark.parametrize(
    ("text", "scope"),
    [
        ("kernel", "storage.type.pk"),
        ("k", "entity.name.function.pk"),
        ("bf16", "support.type.pk"),
        ("shard", "support.function.method.pk"),
        ("+=", "keyword.operator.pk"),
        ("exp", "support.function.pk"),
        ("0x4", "constant.numeric.pk"),
        ("and", "keyword.operator.word.pk"),
        ("inf", "constant.language.pk"),
        ("# for x", "comment.line.number-sign.pk"),
    ],
)
def test_colours(text: str, scope: str) -> None:
    assert scopes(LINE)[text] == scope
