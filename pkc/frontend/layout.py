"""Lines and indentation: the postlexer that turns raw tokens into what the grammar expects."""

from __future__ import annotations

import keyword
from collections.abc import Iterator

from lark import Token

from pkc.diagnostics import Label, PkcError
from pkc.frontend import elsewhere, errors
from pkc.location import NOWHERE, Source, Span

_DEFINITIONS = ("kernel", "def", "return", "from", "import")
_CONTROL = ("for", "in", "with", "if", "elif", "else")
KEYWORDS = frozenset((*_DEFINITIONS, *_CONTROL, "and", "or", "not", "True", "False", "inf"))

_RESERVED = frozenset(keyword.kwlist) - KEYWORDS


class Layout:
    """Drops meaningless line ends and adds INDENT and DEDENT; refuses words reserved by Python.

    While the parser runs, `open` has the brackets that are open at the current token, `indents` the
    indentation of the open blocks, and `last` the word before the current token.
    """

    always_accept = ()

    def __init__(self) -> None:
        self.source: Source = NOWHERE.source
        self._reset()

    def _reset(self) -> None:
        self.open: list[Token] = []
        self.indents = [0]
        self.last: Token | None = None

    def span(self, token: Token) -> Span:
        start = token.start_pos or 0
        return Span(self.source, start, start + len(token))

    def process(self, stream: Iterator[Token]) -> Iterator[Token]:
        self._reset()
        inside_line = False
        for token in stream:
            if token.type == "NEWLINE":
                if inside_line and not self.open:
                    inside_line = False
                    yield token
                continue
            if not inside_line:
                inside_line = True
                yield from self._indentation(token)
            if token.type == "NAME" and token in _RESERVED:
                raise PkcError(errors.ReservedWord(self.span(token), str(token), elsewhere.KEYWORDS.get(token, "")))
            yield token
            self._count_bracket(token)
            self.last = token
        if self.open:
            raise PkcError(self.unclosed(None))
        end = Token("NEWLINE", "", start_pos=len(self.source.text))
        if inside_line:
            yield end
        for _ in self.indents[1:]:
            yield Token.new_borrow_pos("DEDENT", "", end)

    def unclosed(self, found: Token | None) -> errors.UnclosedBracket:
        """The innermost open bracket, noticed at `found` or at the end of the file."""
        bracket = self.open[-1]
        also = (Label(self.span(found), "still open here"),) if found is not None else ()
        return errors.UnclosedBracket(self.span(bracket), str(bracket), also=also)

    def _count_bracket(self, token: Token) -> None:
        if token.type in ("LPAR", "LSQB"):
            self.open.append(token)
        elif token.type in ("RPAR", "RSQB"):
            self.open.pop()

    def _indentation(self, token: Token) -> Iterator[Token]:
        """INDENT or DEDENTs before the first word of a line."""
        at = token.start_pos or 0
        start = self.source.line_start(at)
        tab = self.source.text.find("\t", start, at)
        if tab >= 0:
            raise PkcError(errors.TabIndentation(Span(self.source, tab, tab + 1)))
        indent = at - start
        if indent > self.indents[-1]:
            self.indents.append(indent)
            yield Token.new_borrow_pos("INDENT", "", token)
            return
        if indent not in self.indents:
            levels = ", ".join(map(str, self.indents[-5:]))
            raise PkcError(errors.InconsistentDedent(self.span(token), indent, levels))
        while indent < self.indents[-1]:
            self.indents.pop()
            yield Token.new_borrow_pos("DEDENT", "", token)
