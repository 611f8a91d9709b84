"""Where a piece of a program stands: sources, spans, and their form as IR locations.

Everything imports this module; xDSL takes 0.15 s and is imported when the first location is made or read.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from xdsl.dialects.builtin import FileLineColLoc, LocationAttr

_TOKEN = re.compile(r"\w+|\S")
_KNOWN: dict[str, Source] = {}
"""Sources by name, so that an IR location finds its text again."""


@dataclass(frozen=True, slots=True)
class Source:
    """A named text; `name` is what diagnostics print, usually a path as the user gave it."""

    name: str
    text: str = field(repr=False)

    def remember(self) -> Source:
        """Make this text the one that IR locations of this name refer to."""
        _KNOWN[self.name] = self
        return self

    def line_start(self, offset: int) -> int:
        return self.text.rfind("\n", 0, offset) + 1

    def line_text(self, line: int) -> str:
        lines = self.text.split("\n")
        return lines[line - 1].rstrip("\r") if 0 < line <= len(lines) else ""

    def offset(self, line: int, column: int) -> int:
        """The offset of a 1-based line and column, clamped to the text."""
        at = 0
        for _ in range(line - 1):
            newline = self.text.find("\n", at)
            if newline < 0:
                break
            at = newline + 1
        return min(at + column - 1, len(self.text))


@dataclass(frozen=True, slots=True)
class Span:
    """Code points `start` (inclusive) to `end` (exclusive) of a source."""

    source: Source
    start: int
    end: int

    @property
    def line(self) -> int:
        return self.source.text.count("\n", 0, self.start) + 1

    @property
    def column(self) -> int:
        return self.start - self.source.line_start(self.start) + 1

    @property
    def text(self) -> str:
        return self.source.text[self.start : self.end]

    def location(self) -> FileLineColLoc:
        """The IR location of the first character."""
        from xdsl.dialects.builtin import FileLineColLoc, IntAttr, StringAttr

        return FileLineColLoc(StringAttr(self.source.name), IntAttr(self.line), IntAttr(self.column))


NOWHERE = Span(Source("<unknown>", ""), 0, 0)


def span_of(location: LocationAttr) -> Span:
    """The token at an IR location; `NOWHERE` if it names none or its text is not known."""
    from xdsl.dialects.builtin import FileLineColLoc

    return span_at(*place_of(location)) if isinstance(location, FileLineColLoc) else NOWHERE


def span_at(name: str, line: int, column: int) -> Span:
    """The token at a 1-based place of a source; `NOWHERE` if its text is not known."""
    source = _KNOWN.get(name) or _read(name)
    if source is None:
        return NOWHERE
    start = source.offset(line, column)
    token = _TOKEN.match(source.text, start)
    return Span(source, start, token.end() if token else min(start + 1, len(source.text)))


def describe(location: LocationAttr) -> str:
    """`file:line` of an IR location, for reports of one line."""
    from xdsl.dialects.builtin import FileLineColLoc

    if not isinstance(location, FileLineColLoc):
        return "<unknown>"
    return f"{location.filename.data}:{location.line.data}"


def place_of(location: LocationAttr) -> tuple[str, int, int]:
    """File, line and column of an IR location, whether its text is known or not; those of `NOWHERE` if it has none."""
    from xdsl.dialects.builtin import FileLineColLoc

    if not isinstance(location, FileLineColLoc):
        return NOWHERE.source.name, NOWHERE.line, NOWHERE.column
    return location.filename.data, location.line.data, location.column.data


def shown(file: str) -> str:
    """A file as people know it: of a notebook's cell, which has a file of its own, `Cell In[3]`."""
    if "IPython" not in sys.modules:
        return file
    shell: Any = sys.modules["IPython"].get_ipython()
    name = shell and shell.compile.format_code_name(file)
    return " ".join(name) if name else file


def _read(name: str) -> Source | None:
    try:
        return Source(name, Path(name).read_text(encoding="utf-8")).remember()
    except (OSError, ValueError):
        return None
