"""What the command line prints: diagnostics, progress, results, failures."""

from __future__ import annotations

import contextlib
import os
import sys
import traceback
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TextIO

from pkc import __version__
from pkc.cli_errors import InternalError
from pkc.diagnostics import Diagnostic, PkcError, render_all
from pkc.location import NOWHERE

if TYPE_CHECKING:
    from pkc.remarks import Remark
    from pkc.sim.reference import Comparison, Expected


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
    diagnostics([InternalError(NOWHERE, what, __version__)])


def comparison_table(expected: Mapping[str, Expected], compared: Sequence[Comparison]) -> str:
    """One line for each array that was checked: shape, part written, largest error, what is allowed there, verdict."""
    rows = [("array", "shape", "written", "max error", "bound there", "error/bound", "")]
    for item in compared:
        written = expected[item.array].written
        rows.append(
            (
                item.array,
                " x ".join(map(str, written.shape)),
                "all" if written.all() else f"{int(written.sum())} of {written.size}",
                f"{item.max_error:.3e}",
                f"{item.bound_there:.3e}",
                f"{item.worst_ratio:.3f}",
                "ok" if item.ok else f"WRONG: [{', '.join(map(str, item.where))}] {item.problem}",
            )
        )
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)
    return "\n".join(f"  {line}".rstrip() for line in lines)


def unwritten(expected: Mapping[str, Expected]) -> list[str]:
    """A line for each array of which the kernel writes nothing at all: there was nothing to check."""
    painted = coloured(sys.stdout)
    head = "\x1b[1;33mwarning\x1b[0m" if painted else "warning"
    names = [name for name, array in expected.items() if not array.written.any()]
    return [f"{head}: no element of `{name}` is written" for name in names]


def verdict(compared: Sequence[Comparison]) -> str:
    """The last line of a run."""
    wrong = [item.array for item in compared if not item.ok]
    painted = coloured(sys.stdout)
    if not wrong:
        text = f"ok: {', '.join(item.array for item in compared)} within the bound of the float64 reference"
        return f"\x1b[1;32m{text}\x1b[0m" if painted else text
    text = f"WRONG: {', '.join(wrong)} outside the bound of the float64 reference"
    return f"\x1b[1;31m{text}\x1b[0m" if painted else text
