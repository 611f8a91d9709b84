"""What commands print on a terminal: diagnostics, progress, failures."""

from __future__ import annotations

import contextlib
import os
import sys
import traceback
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TextIO

from pkc.diagnostics import Diagnostic, PkcError, render_all
from pkc.location import NOWHERE
from pkc.remarks import Remark
from pkc.version import VERSION


@dataclass(frozen=True)
class InternalError(Diagnostic):
    """Shown instead of a traceback when pkc fails because of a mistake in pkc."""

    code = "PK999"
    title = "internal error: {what}"
    note = "this is a mistake in pkc {version}, not in your program"
    help = "please report it, with the program and the command; PKC_DEBUG=1 in the environment shows the traceback"
    what: str
    version: str


@dataclass(frozen=True)
class OutputUnwritable(Diagnostic):
    """Raised when a result cannot be written to its file."""

    code = "PK924"
    title = "cannot write `{path}`"
    note = "{reason}"
    path: str
    reason: str


def coloured(stream: TextIO) -> bool:
    """Whether to write colours: only to a terminal, and never against NO_COLOR."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def diagnostics(found: Iterable[Diagnostic]) -> None:
    """Print diagnostics to stderr."""
    text = render_all(found, colour=coloured(sys.stderr))
    if text:
        sys.stderr.write(f"{text}\n")


def lines(found: Iterable[str]) -> None:
    """Print lines to stderr."""
    for line in found:
        sys.stderr.write(f"{line}\n")


def explanations(found: Iterable[object]) -> None:
    """Print to stderr what the planning passes decided, and why: one line for each decision."""
    for explanation in found:
        sys.stderr.write(f"{explanation}\n")


def remarks(found: Iterable[Remark]) -> None:
    """Print to stderr what was not optimised, and why, by the lines of the program."""
    ordered = sorted(found, key=lambda remark: (remark.span.source.name, remark.span.start))
    lines(["not optimised:", *map(str, ordered)] if ordered else [])


def progress(what: str) -> contextlib.AbstractContextManager[object]:
    """Show on the terminal what is being done, as long as it takes; nothing elsewhere."""
    if not sys.stderr.isatty():
        return contextlib.nullcontext()
    from rich.console import Console

    return Console(stderr=True).status(what)


def failure(error: Exception) -> None:
    """Print what ended a command: its diagnostics, or one that says pkc itself is wrong."""
    if isinstance(error, PkcError):
        diagnostics(error.diagnostics)
        return
    if os.environ.get("PKC_DEBUG") == "1":
        traceback.print_exception(error)
    text = str(error).strip().splitlines()
    what = f"{type(error).__name__}: {text[0]}" if text else type(error).__name__
    diagnostics([InternalError(NOWHERE, what, VERSION)])
