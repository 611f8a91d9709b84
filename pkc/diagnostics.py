"""Diagnostics as data: a code, a title, labelled spans, notes, help; and how they are drawn.

A diagnostic is a class that derives from `Diagnostic`, and by that a frozen dataclass. Its texts are class-level
templates filled from its fields, so that each kind is written once and can be listed:

    class UnknownName(Diagnostic):
        code = "PK201"
        title = "unknown name `{name}`"
        label = "not defined here"
        help = "{hint}"
        name: str
        hint: str = ""
"""

from __future__ import annotations

import difflib
import os
import sys
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, fields
from pathlib import Path
from traceback import extract_tb, format_list
from typing import TYPE_CHECKING, ClassVar, dataclass_transform

from pkc.location import NOWHERE, Span, shown

REGISTRY: dict[str, type[Diagnostic]] = {}
"""Every kind of diagnostic by its code."""

PACKAGE = f"{Path(__file__).parent}{os.sep}"
"""How the names of pkc's files begin."""

_WIDTH = 160
"""Longer source lines are cut around the caret."""


@dataclass(frozen=True)
class Label:
    """A second place that a diagnostic points at."""

    span: Span
    text: str


@dataclass_transform(frozen_default=True)
@dataclass(frozen=True)
class Diagnostic:
    """One finding, at `span`. Templates: `title`, `label`, `note`, `help`; an empty one is left out."""

    code: ClassVar[str] = ""
    severity: ClassVar[str] = "error"
    title: ClassVar[str] = ""
    label: ClassVar[str] = ""
    note: ClassVar[str] = ""
    help: ClassVar[str] = ""

    span: Span
    also: tuple[Label, ...] = field(default=(), kw_only=True)
    context: str = field(default="", kw_only=True)
    """A further help: a possible cause that is not in the text of the program, such as an option."""
    tried: tuple[tuple[str, str], ...] = field(default=(), kw_only=True)
    """Settings of the schedule, by key, with which the program compiles: it has been tried."""

    def __init_subclass__(cls) -> None:
        if cls.code in REGISTRY and REGISTRY[cls.code].__qualname__ != cls.__qualname__:
            raise ValueError(f"diagnostic code {cls.code} is used twice")
        REGISTRY[cls.code] = cls

    if not TYPE_CHECKING:  # it takes what `__init__` takes

        def __new__(cls, *_arguments: object, **_named: object) -> Diagnostic:
            _make_dataclass(cls)
            return object.__new__(cls)

    def fill(self, template: str) -> str:
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        return template.format(**values)

    def render(self, *, colour: bool = False) -> str:
        """The diagnostic as lines of text, without a final newline."""
        paint = _Paint(colour)
        head = f"{self.severity}[{self.code}]"
        lines = [paint.severity(head, self.severity) + paint.bold(f": {self.fill(self.title)}")]
        lines += _labels((Label(self.span, self.fill(self.label)), *self.also), paint)
        settings = ",".join(f"{key}={value}" for key, value in self.tried)
        tried = f"it compiles with `--schedule {settings}`" if settings else ""
        texts = (
            ("note", self.fill(self.note)),
            ("help", self.fill(self.help)),
            ("help", self.context),
            ("help", tried),
        )
        for kind, text in texts:
            lines += [f"  {paint.blue('=')} {paint.bold(kind)}: {text}"] if text else []
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.render()


def _make_dataclass(cls: type[Diagnostic]) -> None:
    """Make a kind of diagnostic a dataclass when the first one is made.

    Most kinds never occur in a process, and to make all of them dataclasses takes a fifth of the time to import pkc.
    """
    for kind in reversed(cls.__mro__):
        if issubclass(kind, Diagnostic) and "__dataclass_fields__" not in kind.__dict__:
            dataclass(frozen=True)(kind)


class PkcError(Exception):
    """Raised for a mistake in a program or its use; has one or more diagnostics."""

    def __init__(self, *diagnostics: Diagnostic) -> None:
        super().__init__(*diagnostics)
        self.diagnostics: tuple[Diagnostic, ...] = diagnostics

    def __str__(self) -> str:
        return "\n\n".join(d.render() for d in self.diagnostics)

    def traceback(self) -> list[str]:
        """What Python prints of it: the lines of the program that led to it, without those of pkc and of IPython."""
        left_out = (PACKAGE, *_folders_of("IPython"))
        frames = [frame for frame in extract_tb(self.__traceback__) if not frame.filename.startswith(left_out)]
        lines = [
            line.replace(one.filename, shown(one.filename))
            for one, line in zip(frames, format_list(frames), strict=True)
        ]
        return ["Traceback (most recent call last):", *map(str.rstrip, lines), str(self)]

    _render_traceback_ = traceback  # the name that IPython looks for


def _folders_of(module: str) -> tuple[str, ...]:
    """Where a package lies, if it is imported."""
    return tuple(f"{folder}{os.sep}" for folder in getattr(sys.modules.get(module), "__path__", ()))


def render_all(diagnostics: Iterable[Diagnostic], *, colour: bool = False) -> str:
    return "\n\n".join(d.render(colour=colour) for d in diagnostics)


@dataclass(frozen=True)
class _Paint:
    on: bool

    def _wrap(self, text: str, codes: str) -> str:
        return f"\x1b[{codes}m{text}\x1b[0m" if self.on else text

    def bold(self, text: str) -> str:
        return self._wrap(text, "1")

    def blue(self, text: str) -> str:
        return self._wrap(text, "1;34")

    def severity(self, text: str, severity: str) -> str:
        return self._wrap(text, "1;31" if severity == "error" else "1;33")


def _labels(labels: tuple[Label, ...], paint: _Paint) -> list[str]:
    shown = [label for label in labels if label.span.source is not NOWHERE.source]
    if not shown:
        return []
    gutter = max(len(str(label.span.line)) for label in shown)
    bar = paint.blue("|")
    lines: list[str] = []
    for position, label in enumerate(shown):
        span = label.span
        arrow = "-->" if position == 0 else ":::"
        lines.append(f"{' ' * gutter}{paint.blue(arrow)} {span.source.name}:{span.line}:{span.column}")
        text, column, width = _window(span)
        mark = ("^" if position == 0 else "-") * width
        lines += [
            f"{' ' * gutter} {bar}",
            f"{paint.blue(str(span.line).rjust(gutter))} {bar} {text}".rstrip(),
            f"{' ' * gutter} {bar} {' ' * column}{paint.severity(mark, 'error')} {label.text}".rstrip(),
        ]
    return lines


def _window(span: Span) -> tuple[str, int, int]:
    """The line of a span as printable text, the column of the caret in it (from 0), its width."""
    text = span.source.line_text(span.line)
    column = span.column - 1
    width = max(1, min(span.end - span.start, len(text) - column))
    first = 0 if len(text) <= _WIDTH else max(0, column - _WIDTH // 2)
    cut = text[first : first + _WIDTH]
    printable = "".join(c if c.isprintable() else " " if c == "\t" else "?" for c in cut)
    column -= first
    return printable, column, max(1, min(width, len(cut) - column))


def near(name: str, known: Collection[str], introduction: str) -> str:
    """A hint: the known name that was probably meant, else all of them."""
    if not known:
        return ""
    closest = difflib.get_close_matches(name, known, n=1)
    if not closest:
        folded = [other for other in known if other.lower() == name.lower()]
        closest = folded[:1]
    return f"did you mean `{closest[0]}`?" if closest else introduction + listing(known)


def to_write(path: str | Path, suffix: str) -> Path:
    """The file that a help says to write in place of one that is not what it should be: a program or a folder may lie
    at `path`."""
    path = Path(path)
    return path / f"kernel{suffix}" if path.is_dir() else path.with_suffix(suffix)


def listing(names: Iterable[str]) -> str:
    """Names in backquotes, between commas."""
    return ", ".join(f"`{name}`" for name in names)
