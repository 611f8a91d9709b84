"""Errors in naming a kernel of a file: PK910, PK911."""

from __future__ import annotations

from pkc.diagnostics import Diagnostic


class UnknownKernel(Diagnostic):
    """Raised when `--kernel` names no kernel of the file."""

    code = "PK910"
    title = "`{path}` has no kernel `{name}`"
    help = "{hint}"
    path: str
    name: str
    hint: str


class KernelNotChosen(Diagnostic):
    """Raised when a file has several kernels and the command does not name one."""

    code = "PK911"
    title = "`{path}` has {count} kernels"
    help = "choose one with `--kernel`, in Python with `kernel=`: {names}"
    path: str
    count: int
    names: str
