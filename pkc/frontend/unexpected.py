"""The text of lexer and parser errors: what was found, and what was expected instead."""

from __future__ import annotations

import re
from typing import Any, cast

from lark import Token
from lark import UnexpectedToken as LarkUnexpectedToken

from pkc.diagnostics import Diagnostic, Label
from pkc.frontend import elsewhere, errors
from pkc.frontend.construct import shorten
from pkc.frontend.layout import Layout
from pkc.location import Source, Span

_CHARACTER_HINTS = {
    "'": "there are no strings; schedule values are plain words",
    '"': "there are no strings; schedule values are plain words, and comments begin with `#`",
    "\\": "a line continues inside `(` `)` and `[` `]`",
    "{": "brackets are `(` `)` and `[` `]`",
    "}": "brackets are `(` `)` and `[` `]`",
    "!": "write `not`, or `!=` to compare",
    "?": "choose with `where(condition, a, b)`",
    "~": elsewhere.INVERT,
}

_EXPRESSION = frozenset(("NAME", "NUMBER", "LPAR", "MINUS", "TRUE", "FALSE", "INF"))
_BITS = ("AMPERSAND", "VBAR", "CIRCUMFLEX", "SHIFT")
_OPERATORS = frozenset(
    [
        "AND",
        "OR",
        "COMPARE",
        "PLUS",
        "MINUS",
        "STAR",
        "SLASH",
        "FLOOR",
        "PERCENT",
        "AT",
        "DOT",
        "LSQB",
        "AUGMENT",
        *_BITS,
    ],
)
_ENDS = {"$END": "the end of the file", "DEDENT": "the end of the block", "NEWLINE": "a new line"}
_FIXED = {
    "COLON": "`:`",
    "EQUAL": "`=`",
    "COMMA": "`,`",
    "RPAR": "`)`",
    "RSQB": "`]`",
    "LPAR": "`(`",
    "LSQB": "`[`",
    "DOT": "`.`",
    "IN": "`in`",
    "NEWLINE": "a new line",
    "FROM": "`from`",
    "DEF": "`def`",
    "KERNEL": "`kernel`",
    "NAME": "a name",
    "MINUS": "`-`",
}


def unexpected_character(source: Source, at: int) -> Diagnostic:
    """The error for a character that begins no word."""
    character = source.text[at]
    shown = f"`{character}`" if character.isprintable() and not character.isspace() else f"U+{ord(character):04X}"
    hint = _CHARACTER_HINTS.get(character, "")
    if not hint and character.isalpha():
        hint = "names are made of the letters A to Z, digits and `_`"
    return errors.UnexpectedCharacter(Span(source, at, at + 1), shown, hint)


def unexpected_token(error: LarkUnexpectedToken, layout: Layout) -> Diagnostic:
    """The error for a word that the grammar does not allow at its place."""
    token = cast(Token, error.token)
    if token.type == "INDENT":
        return errors.UnexpectedIndent(_next_word(layout.source, token))
    expected = _expected(error)
    if expected == {"INDENT"} and layout.last is not None:
        return errors.MissingBlock(layout.span(layout.last))
    if _left_its_bracket(token, layout):
        return layout.unclosed(token)
    found = _ENDS.get(token.type) or f"`{shorten(token)}`"
    if token.type == "NEWLINE":
        found = "end of line"
    hint = _hint(token, expected, layout)
    also = _opened(token, expected, layout)
    return errors.UnexpectedToken(_visible_span(token, layout), found, _list(_describe(expected)), hint, also=also)


def _hint(token: Token, expected: set[str], layout: Layout) -> str:
    """What was probably meant, if that can be told."""
    before = layout.source.text[: token.start_pos or 0]
    if token.type == "STAR" and before.endswith("*"):
        return elsewhere.POWER
    if token.type == "EQUAL" and "COLON" in expected:
        return "`==` compares"
    if token.type == "COLON" and layout.open and layout.open[-1] == "[":
        return _of_slice(layout.source.text, token.start_pos or 0)
    if token.type == "COLON" and layout.open and "gather(" in _line(layout.source, token):
        return "whole rows need no `:`: `gather(X, rows)`, or `X[rows, :]`"
    if token.type == "COLON" and layout.open and _line(layout.source, token).startswith("def"):
        return "parameters of functions have no types; a kernel begins with `kernel`"
    if {"KERNEL", "DEF"} <= expected and token in ("import", "class", "@"):
        return "a file that ends in `.pk` has kernels and functions alone; kernels in Python are in a `.py` file"
    if expected == {"COLON"} and layout.open:
        return "a parameter has a type: `A: bf16[M, N]`, `n: i32` or `D: const`"
    if expected == {"LSQB"} and layout.last is not None and layout.last == ")":
        return _of_method(_line(layout.source, token))
    if token.type == "RPAR" and re.search(r"\.\s*\w+\s*\($", _line(layout.source, token)):
        return _of_method(f"{_line(layout.source, token)})")
    if token.type == "IF" and _line(layout.source, token).strip():
        return "choose with `where(condition, a, b)`"
    if token.type == "COMMA" and not layout.open and "EQUAL" in expected:
        return "each name is assigned by a statement of its own"
    if "NAME" in expected and token.isidentifier():
        return f"`{token}` is a keyword"
    return ""


def _of_slice(text: str, at: int) -> str:
    """What to write for a slice whose colon is at a place."""
    start, rest = re.search(r"[^\[,:]*$", text[:at]), re.match(r"([^\],:]*)(?::([^\],:]*))?", text[at + 1 :])
    stop, step = (rest[1], rest[2] or "") if rest else ("", "")
    return elsewhere.of_slice(start[0].strip() if start else "", stop.strip(), step.strip())


def _of_method(line: str) -> str:
    """What to write for a call behind a dot."""
    name = re.search(r"\.\s*(\w+)\s*\([^()]*\)\s*$", line)
    if name is None or name[1] == "at":
        return "another rank's copy is addressed with its index: `A.at(r)[m, n]`"
    if name[1] in elsewhere.CONVERTING:
        return "write `cast(x, f32)`"
    return elsewhere.FUNCTIONS.get(name[1], f"functions come first: `{name[1]}(x)`")


def _line(source: Source, token: Token) -> str:
    """The line up to a word."""
    at = token.start_pos or 0
    return source.text[source.line_start(at) : at]


def _opened(token: Token, expected: set[str], layout: Layout) -> tuple[Label, ...]:
    """The bracket that should have been closed before a word."""
    if not layout.open or not expected & {"RPAR", "RSQB"} or token.type not in ("COLON", "RPAR", "RSQB"):
        return ()
    return (Label(layout.span(layout.open[-1]), "still open"),)


def _expected(error: LarkUnexpectedToken) -> set[str]:
    """The kinds of words that the parser would have taken."""
    accepts = cast("set[str] | None", cast(Any, error).accepts)
    return set(accepts or error.expected)


def _left_its_bracket(token: Token, layout: Layout) -> bool:
    """Whether a word begins a line, outside its block's lines, while a bracket is open."""
    if not layout.open or token.type in ("RPAR", "RSQB"):
        return False
    at = token.start_pos or 0
    start = layout.source.line_start(at)
    first_on_line = not layout.source.text[start:at].strip()
    return first_on_line and start > (layout.open[-1].start_pos or 0) and at - start <= layout.indents[-1]


def _describe(expected: set[str]) -> list[str]:
    shown: list[str] = []
    rest = set(expected)
    if expected >= _EXPRESSION:
        shown.append("an expression")
        rest -= _EXPRESSION | {"NOT", "LSQB"}
    shown += [text for kind, text in _FIXED.items() if kind in rest - _OPERATORS]
    if len(rest & _OPERATORS) > 2:
        # What may follow a name is only listed where little else may.
        shown = [text for text in shown if text != "`(`"]
        shown.append("an operator")
    else:
        shown += [_FIXED[kind] for kind in sorted(rest & _OPERATORS) if kind in _FIXED]
    return shown or ["the end of the file"]


def _list(alternatives: list[str]) -> str:
    if len(alternatives) == 1:
        return alternatives[0]
    return f"{', '.join(alternatives[:-1])} or {alternatives[-1]}"


def _visible_span(token: Token, layout: Layout) -> Span:
    """The span of a word; the end of a line, block or file is shown right after the last word."""
    if token.type not in _ENDS or layout.last is None:
        return layout.span(token)
    end = layout.span(layout.last).end
    return Span(layout.source, end, end)


def _next_word(source: Source, token: Token) -> Span:
    at = token.start_pos or 0
    word = re.compile(r"\w+|\S").match(source.text, at)
    return Span(source, at, word.end() if word else at)
