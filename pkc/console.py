"""What commands print on a terminal: diagnostics, progress, failures."""

from __future__ import annotations

import contextlib
import os
import sys
import traceback
from collections.abc import Generator, Iterable
from contextvars import ContextVar
from pathlib import Path
from typing import TextIO, TypeAlias

from pkc.diagnostics import Diagnostic, PkcError, render_all
from pkc.location import NOWHERE
from pkc.remarks import Remark
from pkc.version import VERSION


class InternalError(Diagnostic):
    """Shown instead of a traceback when pkc fails because of a mistake in pkc."""

    code = "PK999"
    title = "internal error: {what}"
    note = "this is a mistake in pkc {version}, not in your program"
    help = "please report it, with {means}"
    what: str
    version: str
    means: str


class OutputUnwritable(Diagnostic):
    """Raised when a result cannot be written to its file."""

    code = "PK924"
    title = "cannot write `{path}`"
    note = "{reason}"
    help = "{hint}"
    path: str
    reason: str
    hint: str = ""


Said: TypeAlias = tuple[str, str]
"""A text for stderr, without and with colours."""

_RECORDED: ContextVar[list[Said] | None] = ContextVar("recorded", default=None)


@contextlib.contextmanager
def writing(path: str | Path) -> Generator[None]:
    """While a result is written: raises `PkcError` if its file cannot be."""
    try:
        yield
    except OSError as error:
        raise unwritable(path, error) from None


def unwritable(path: str | Path, error: OSError) -> PkcError:
    """What to say of a file that cannot be written."""
    return PkcError(OutputUnwritable(NOWHERE, str(path), error.strerror or str(error)))


def coloured(stream: TextIO) -> bool:
    """Whether to write colours: only to a terminal, and never against NO_COLOR."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def diagnostics(found: Iterable[Diagnostic]) -> None:
    """Print diagnostics to stderr."""
    shown = list(found)
    if shown:
        say((f"{render_all(shown)}\n", f"{render_all(shown, colour=True)}\n"))


def lines(found: Iterable[str]) -> None:
    """Print lines to stderr."""
    for line in found:
        say((f"{line}\n", f"{line}\n"))


def say(text: Said) -> None:
    """Print a text to stderr."""
    recorded = _RECORDED.get()
    if recorded is not None:
        recorded.append(text)
    sys.stderr.write(text[coloured(sys.stderr)])


@contextlib.contextmanager
def recording() -> Generator[list[Said], None, None]:
    """All texts that go to stderr meanwhile, so that they can be said again."""
    said: list[Said] = []
    token = _RECORDED.set(said)
    try:
        yield said
    finally:
        _RECORDED.reset(token)


def explanations(found: Iterable[object]) -> None:
    """Print to stderr what the planning passes decided, and why: one line for each decision."""
    lines(map(str, found))


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
    report = _reported(error)
    if report is None:
        means = "the program and the command; PKC_DEBUG=1 in the environment shows the traceback"
    else:
        means = f"the program and `{report}`, which has the command and the traceback"
    diagnostics([InternalError(NOWHERE, what, VERSION, means)])


def _reported(error: Exception) -> Path | None:
    """The file, in the folder for temporary ones, that says how to provoke an error; None if it cannot be written."""
    import platform
    import shlex
    import tempfile

    where = f"pkc {VERSION}, Python {platform.python_version()}, {platform.platform()}"
    text = "".join([f"{where}\n{shlex.join(sys.argv)}\n\n", *traceback.format_exception(error)])
    try:
        with tempfile.NamedTemporaryFile(
            "w", prefix="pkc-report-", suffix=".txt", delete=False, encoding="utf-8", errors="backslashreplace"
        ) as file:
            file.write(text)
    except OSError:
        return None
    return Path(file.name)
