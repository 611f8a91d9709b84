"""`pkc lsp`: the language server, which the extra `editor` has a library for."""

from __future__ import annotations

from pkc.diagnostics import Diagnostic, PkcError
from pkc.location import NOWHERE


class NoServer(Diagnostic):
    """Raised when the language server is started without its library."""

    code = "PK947"
    title = "the language server needs pygls, which is not installed"
    help = "`pip install 'pkc[editor]'`"


def execute() -> None:
    """Serve an editor over stdin and stdout until it ends. Raises `PkcError`."""
    try:
        from pkc.editor.server import server
    except ImportError:
        raise PkcError(NoServer(NOWHERE)) from None
    server().start_io()
