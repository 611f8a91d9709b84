"""Writes what follows from the declarations of operations: `python -m tools.operations_page`.

The names in pkc/language.py and the table of functions in docs/language.md; declarations are those of
pkc/dialect/declaration.py.
"""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from pkc.dialect.declaration import OPERATIONS, Semantics
from pkc.dialect.types import dtype_name, i1
from pkc.frontend.expressions import SIGNATURES
from tools import told

ROOT = Path(__file__).parents[1]
NAMES = ROOT / "pkc" / "language.py"
PAGE = ROOT / "docs" / "language.md"


def names(text: str) -> str:
    """pkc/language.py with a name for every function."""
    given = {word: gives for gives, word, _ in _functions() if not hasattr(builtins, word)}
    lines = "".join(
        f'{word}: Any = Word("{word}")\n"""`{SIGNATURES[word].usage}`: {_gives(word, gives)}."""\n'
        for word, gives in given.items()
    )
    text = _between(text, "# Functions: written by `python -m tools.operations_page`\n", lines, "\n# ")
    found = re.search(r"__all__ = \[\n(.*?)\]", text, re.S)
    assert found is not None
    exported = {*re.findall(r'"(\w+)"', found[1]), *given}
    words = sorted(exported, key=_natural)
    return text.replace(found[0], "__all__ = [\n" + "".join(f'    "{word}",\n' for word in words) + "]")


def _natural(word: str) -> list[str | int]:
    """A key for the order in which i8 comes before i32."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", word)]


def _gives(word: str, gives: str) -> str:
    """What a function gives, of the operands that its usage names."""
    lower = gives[0].lower() + gives[1:]
    return re.sub(r"\ba\b", "x", lower) if SIGNATURES[word].usage.endswith("(x)") else lower


def page(text: str) -> str:
    """docs/language.md with a row for every function."""
    rows = ["| function | elements | gives | accurate to |", "|---|---|---|---|"]
    rows += [_row(*found) for found in _functions()]
    begin = "<!-- functions: written by `python -m tools.operations_page` -->\n"
    return _between(text, begin, "\n".join(rows) + "\n", "<!-- end -->")


def _functions() -> Iterator[tuple[str, str, Semantics]]:
    """What each gives, its word, and its declaration."""
    for op, declared in OPERATIONS.items():
        if declared.word.isidentifier() and not keyword.iskeyword(declared.word):
            yield op.__doc__ or "", declared.word, declared


def _row(gives: str, word: str, declared: Semantics) -> str:
    elements = ", ".join(sorted(map(dtype_name, declared.types - {i1})))
    accuracy = f"{declared.ulps} ulp" if declared.ulps else ""
    accuracy += "; may be 0 below 2^-126" if declared.flushes else ""
    gives = gives.replace("|", "\\|")
    return f"| `{word}` | {elements} | {gives} | {accuracy} |"


def _between(text: str, begin: str, section: str, end: str) -> str:
    start = text.index(begin) + len(begin)
    return text[:start] + section + text[text.index(end, start) :]


PARTS: tuple[tuple[Path, Callable[[str], str]], ...] = ((NAMES, names), (PAGE, page))
"""The files, and what makes them as they should be."""


if __name__ == "__main__":
    told.words(__doc__)
    for path, make in PARTS:
        path.write_text(make(path.read_text(encoding="utf-8")), encoding="utf-8")
