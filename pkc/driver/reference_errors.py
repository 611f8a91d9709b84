"""What can be wrong with a reference that a program names: PK907 to PK909, PK912 and PK913."""

from __future__ import annotations

from pkc.diagnostics import Diagnostic


class UnnamedReference(Diagnostic):
    """Raised when it is not clear which array an expression is the reference of."""

    code = "PK907"
    title = "`{text}` is the reference of no array of kernel `{kernel}`"
    help = "write NAME=EXPRESSION, or dict(NAME=EXPRESSION, ...) for several; the kernel writes {written}"
    text: str
    kernel: str
    written: str


class NoSuchReference(Diagnostic):
    """Raised when the file of a reference has no such function."""

    code = "PK908"
    title = "`{path}` has no function `{name}`"
    help = "{hint}"
    path: str
    name: str
    hint: str


class ReferenceArgument(Diagnostic):
    """Raised when a reference takes an argument that is nothing of the kernel's."""

    code = "PK909"
    title = "the reference `{name}` takes `{argument}`, which kernel `{kernel}` does not have"
    help = "it has {known}"
    name: str
    argument: str
    kernel: str
    known: str


class ReferenceFailed(Diagnostic):
    """Raised when a reference ends with an exception."""

    code = "PK912"
    title = "the reference `{name}` failed: {what}"
    label = "raised here"
    help = "it gets {known}"
    name: str
    what: str
    known: str


class WrongReference(Diagnostic):
    """Raised when a reference gives something else than arrays of numbers for what the kernel writes."""

    code = "PK913"
    title = "the reference `{name}` gives {found}"
    help = "{expected}"
    name: str
    found: str
    expected: str
