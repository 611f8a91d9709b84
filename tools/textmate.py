"""Writes the grammar that editors colour `.pk` files by: `python -m tools.textmate`.

TextMate grammars are read by VS Code, Sublime Text, JetBrains, Zed's importers and GitHub. The words are those of the
language, so that a new operation is coloured without anybody thinking of it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pkc.editor.analyse import KEYWORDS, MODIFIERS, WORDS
from tools import told

GRAMMAR = Path(__file__).parents[1] / "editors" / "vscode" / "syntaxes" / "pk.tmLanguage.json"

TYPES = ("bf16", "f16", "f32", "i32", "i8", "e4m3", "e5m2", "signal", "const")
CONSTANTS = (
    "True",
    "False",
    "inf",
    "rank",
    "ranks",
    *(word for word in ("none", "intra_sm", "inter_sm", "copy_engine")),
)
DEFINING = ("kernel", "def")
OPERATORS = ("and", "or", "not", "in")


def grammar() -> dict[str, Any]:
    """The grammar, as the file has it."""
    control = [word for word in KEYWORDS if word not in (*DEFINING, *OPERATORS)]
    functions = [word for word in WORDS if word not in (*TYPES, *CONSTANTS)]
    patterns = [
        {"name": "comment.line.number-sign.pk", "match": "#.*$"},
        {
            "match": r"\b(kernel|def)\s+([A-Za-z_]\w*)",
            "captures": {"1": {"name": "storage.type.pk"}, "2": {"name": "entity.name.function.pk"}},
        },
        {"name": "keyword.control.pk", "match": _words(control)},
        {"name": "keyword.operator.word.pk", "match": _words(OPERATORS)},
        {"name": "support.type.pk", "match": _words(TYPES)},
        {"name": "constant.language.pk", "match": _words(CONSTANTS)},
        {"name": "support.function.method.pk", "match": rf"(?<=\.){_words(MODIFIERS)}"},
        {"name": "support.function.pk", "match": _words(functions)},
        {
            "name": "constant.numeric.pk",
            "match": r"\b(0[xXbBoO]\w+|(\d[\d_]*\.?[\d_]*|\.\d[\d_]*)([eE][+-]?\d[\d_]*)?)",
        },
        {"name": "keyword.operator.pk", "match": r"//=|[-+*/%]=|//|[=!<>]=|[-+*/%@<>=]"},
    ]
    schema = "https://raw.githubusercontent.com/martinring/tmlanguage/master/tmlanguage.json"
    return {"$schema": schema, "name": "pk", "scopeName": "source.pk", "fileTypes": ["pk"], "patterns": patterns}


def _words(words: Iterable[str]) -> str:
    return rf"\b({'|'.join(sorted(words))})\b"


def text() -> str:
    """The file."""
    return json.dumps(grammar(), indent=2) + "\n"


if __name__ == "__main__":
    told.words(__doc__)
    GRAMMAR.write_text(text(), encoding="utf-8")
