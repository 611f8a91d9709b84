"""Findings about targets: PK520."""

from __future__ import annotations

from pkc.diagnostics import Diagnostic


class UnknownTarget(Diagnostic):
    """The command line, a program or an attribute names a target that pkc does not know."""

    code = "PK520"
    title = "unknown target `{name}`"
    label = "for this kernel"
    help = "{hint}"
    name: str
    hint: str
