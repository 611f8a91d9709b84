"""Errors of a call of a kernel from Python, before its arrays are looked at: PK860 to PK865, but for PK864."""

from __future__ import annotations

from pkc.diagnostics import Diagnostic


class TooManyArguments(Diagnostic):
    """A kernel is called with more arguments by position than it has parameters."""

    code = "PK860"
    title = "`{kernel}` takes {most} argument{s}; {found} are given by position"
    help = "it is called as `{call}`"
    kernel: str
    most: int
    s: str
    found: int
    call: str


class UnknownArgument(Diagnostic):
    """An argument has a name that is neither a parameter of the kernel nor a dimension of it."""

    code = "PK861"
    title = "`{kernel}` has no parameter `{name}`"
    help = "{hint}"
    kernel: str
    name: str
    hint: str


class RepeatedArgument(Diagnostic):
    """A parameter is given by position and by name."""

    code = "PK862"
    title = "`{kernel}` is given `{name}` twice: by position and by name"
    help = "it is called as `{call}`"
    kernel: str
    name: str
    call: str


class MissingArguments(Diagnostic):
    """A parameter without default is not given."""

    code = "PK863"
    title = "`{kernel}` is called without {missing}"
    help = "it is called as `{call}`"
    kernel: str
    missing: str
    call: str


class NoSuchArray(Diagnostic):
    """An array is to be made for a name that is not an array parameter that the caller passes."""

    code = "PK865"
    title = "`{kernel}` has no array `{name}` that is passed to it"
    help = "{hint}"
    kernel: str
    name: str
    hint: str
