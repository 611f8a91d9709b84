"""`pkc format`: one way to space `.pk` files. Words, comments and line breaks stay as they are.

Indentation is four spaces a level; lines that continue in brackets are aligned behind the bracket, or four spaces
further in if it ends its line. Binary operators have a space on each side, commas one behind. Comments behind a line
stay in their column, at least two spaces away. Between definitions there is one blank line, elsewhere at most one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from pkc.frontend import parse
from pkc.location import Source

_TOKEN = re.compile(
    r"(?P<comment>#[^\r\n]*)"
    r"|(?P<number>0[xXbBoO]\w+|(?:\d[\d_]*\.?[\d_]*|\.\d[\d_]*)(?:[eE][+-]?\d[\d_]*)?\w*)"
    r"|(?P<word>\w+)"
    r"|(?P<operator>//=|[-+*/%]=|//|[=!<>]=|[-+*/%@<>=.,:;()\[\]])"
)
_OPENS, _CLOSES = "([", ")]"
_UPDATES = {"+=", "-=", "*=", "/=", "//=", "%="}
_BINARY = {"+", "-", "*", "/", "//", "%", "@", "&", "|", "^", "<<", ">>", "<", ">", "<=", ">=", "==", "!=", *_UPDATES}
_WORDS = {"and", "or", "not", "in", "return", "for", "with", "if", "elif", "from", "import", "kernel", "def"}
"""Words with a space on each side, so that what follows a bracket or an operator is no call."""

_INDENT = 4


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    column: int


@dataclass
class _Bracket:
    """An open bracket: the column behind it, None if it ends its line; whether there was a `:` since the last comma."""

    text: str
    column: int | None
    indent: int
    annotated: bool = False


@dataclass
class _State:
    brackets: list[_Bracket] = field(default_factory=list[_Bracket])
    levels: list[int] = field(default_factory=lambda: [0])
    """Columns of the levels of indentation, as they are written."""
    header: bool = False
    """Whether the last line of code begins a block."""


def formatted(text: str, name: str = "<text>") -> str:
    """The text, spaced. Raises `PkcError` if it is no program: what cannot be read is left alone."""
    before = parse.parse_tree(Source(name, text))
    found = "\n".join(_lines(text)) + "\n"
    assert parse.parse_tree(Source(name, found)) == before, "formatting has changed the program"
    return found


def _lines(text: str) -> Iterator[str]:
    state = _State()
    blank, first, top = False, True, False
    for line in text.expandtabs(_INDENT).splitlines():
        tokens = _tokens(line)
        if not tokens:
            blank = True
            continue
        inside = bool(state.brackets)
        indent = _indent(line, tokens, state)
        begins = not inside and indent == 0 and tokens[0].kind != "comment" and tokens[0].text in ("kernel", "def")
        about = not inside and indent == 0 and tokens[0].kind == "comment"
        if not first and not inside and (blank or (begins and not top)):
            yield ""
        yield _spaced(tokens, indent, state)
        blank, first, top = False, False, about


def _tokens(line: str) -> list[_Token]:
    return [_Token(match.lastgroup or "", match[0].rstrip(), match.start()) for match in _TOKEN.finditer(line)]


def _indent(line: str, tokens: Sequence[_Token], state: _State) -> int:
    """The column at which a line begins."""
    if state.brackets:
        last = state.brackets[-1]
        if tokens[0].text in _CLOSES and last.column is None:
            return last.indent
        return last.indent + _INDENT if last.column is None else last.column
    column, levels = len(line) - len(line.lstrip()), state.levels
    if tokens[0].kind == "comment":
        # Of no level of its own, but it may stand first in a block.
        deeper = state.header and column > levels[-1]
        return _INDENT * (max(sum(level <= column for level in levels) - 1, 0) + deeper)
    while column < levels[-1]:
        levels.pop()
    if column > levels[-1]:
        levels.append(column)
    return _INDENT * (len(levels) - 1)


def _spaced(tokens: Sequence[_Token], indent: int, state: _State) -> str:
    line = " " * indent
    before: _Token | None = None
    unary = False
    for place, token in enumerate(tokens):
        if before is not None:
            line += _gap(before, token, state, unary=unary)
        if before is not None and token.kind == "comment":
            line = line.ljust(token.column)
        unary = token.text == "-" and (before is None or before.text in _BINARY | _WORDS | {"(", "[", ",", "=", ":"})
        line += token.text
        _follow(token, line, indent, state, ends=_ends(tokens[place + 1 :]))
        if token.kind != "comment":
            state.header = token.text == ":" and not state.brackets
        before = token
    return line


def _ends(rest: Sequence[_Token]) -> bool:
    return all(token.kind == "comment" for token in rest)


def _follow(token: _Token, line: str, indent: int, state: _State, *, ends: bool) -> None:
    """What a token opens, closes and says of those that follow."""
    brackets = state.brackets
    if token.kind != "operator":
        return
    if token.text in _OPENS:
        brackets.append(_Bracket(token.text, None if ends else len(line), indent))
    elif token.text in _CLOSES and brackets:
        brackets.pop()
    elif brackets and token.text == ",":
        brackets[-1].annotated = False
    elif brackets and token.text == ":" and brackets[-1].text == "(":
        brackets[-1].annotated = True


def _gap(before: _Token, token: _Token, state: _State, *, unary: bool) -> str:
    """What stands between two tokens of a line."""
    if token.kind == "comment":
        return "  "
    if before.text in ("(", "[", ".") or unary or token.text in (")", "]", ",", ".", ":", ";"):
        return " " if before.text == "," and token.text == ":" else ""
    if "=" in (before.text, token.text):
        keyword = bool(state.brackets) and not state.brackets[-1].annotated
        return "" if keyword else " "
    if token.text in _OPENS:
        called = before.kind == "word" and before.text not in _WORDS
        return "" if called or before.text in _CLOSES else " "
    return " "
