"""The grammar for editors: up to date, and what it makes of a kernel."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pkc.editor import analyse
from tools import textmate

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").rglob("*.pk"))
WORDS = {*analyse.KEYWORDS, *analyse.WORDS}
NUMBER = re.compile(r"(?<!\w)\d[\d.]*(?:e[-+]?\d+)?")

LINE = "kernel k(A: bf16[M, K].shard(0)): acc += exp(A[m, 0x4]) and inf  # for x"


def test_grammar_is_up_to_date() -> None:
    """After a change: `python -m tools.textmate`."""
    assert textmate.GRAMMAR.read_text(encoding="utf-8") == textmate.text()


def scoped(line: str) -> list[tuple[str, str]]:
    """Each match with its scope, as an editor finds them: at each place the first pattern that matches there. What
    vscode-textmate makes of the examples is the same."""
    patterns = [(re.compile(one["match"]), one.get("captures", {"0": one})) for one in textmate.grammar()["patterns"]]
    found: list[tuple[str, str]] = []
    place = 0
    while place < len(line):
        matches = ((pattern.match(line, place), captures) for pattern, captures in patterns)
        match, captures = next(((m, captures) for m, captures in matches if m), (None, None))
        if match is None or captures is None:
            place += 1
            continue
        found += [(match[int(number)], capture["name"]) for number, capture in captures.items()]
        place = match.end()
    return found


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples(path: Path) -> None:
    """Comments are comments to the end of the line; words of the language, and no other names, have colours."""
    for line in path.read_text(encoding="utf-8").splitlines():
        found = scoped(line)
        code, hash_, comment = line.partition("#")
        assert [text for text, scope in found if scope.startswith("comment")] == [hash_ + comment] * bool(hash_)
        coloured = [text for text, scope in found if text.isidentifier() and not scope.startswith("entity")]
        names = re.findall(r"(?<!kernel )(?<!def )(\.?)\b([A-Za-z_]\w*)", code)
        assert coloured == [word for dot, word in names if word in (analyse.MODIFIERS if dot else WORDS)], line
        assert [text for text, scope in found if scope.startswith("constant.numeric")] == NUMBER.findall(code), line


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
    assert dict(scoped(LINE))[text] == scope
