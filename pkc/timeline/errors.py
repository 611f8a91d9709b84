"""Diagnostics of time lines."""

from __future__ import annotations

from pkc.diagnostics import Diagnostic


class NotPredicted(Diagnostic):
    """Raised when no time line can be predicted of a kernel."""

    code = "PK917"
    title = "no time line of kernel `{kernel}` can be predicted: {reason}"
    help = "`pkc trace` measures one on GPUs"
    kernel: str
    reason: str


class WrongTimeline(Diagnostic):
    """Raised when a file is no time line that `pkc trace` or `pkc timeline` wrote."""

    code = "PK918"
    title = "`{path}` is no time line: {what}"
    help = "`pkc trace FILE --ranks N --set M=... -o {other}` writes one on GPUs"
    path: str
    what: str
    other: str


class NoMatplotlib(Diagnostic):
    """Raised when a PNG is to be drawn without matplotlib."""

    code = "PK919"
    title = "`{path}` cannot be drawn: matplotlib is not installed"
    help = "`pip install 'pkc[pictures]'`; a name that ends in .html needs nothing more"
    path: str
