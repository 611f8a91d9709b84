"""Errors of a command: PK901 to PK949; PK999 is a mistake in pkc itself."""

from __future__ import annotations

from pkc.diagnostics import Diagnostic

# Values given as NAME=VALUE


class MalformedAssignment(Diagnostic):
    """Raised when an option takes `NAME=VALUE` and got something else."""

    code = "PK901"
    title = "`{option} {text}` is not of the form NAME=VALUE"
    help = "for example `{option} {example}`"
    option: str
    text: str
    example: str


class RepeatedAssignment(Diagnostic):
    """Raised when one name is given two values."""

    code = "PK902"
    title = "`{option}` gives `{name}` twice"
    option: str
    name: str


class NotANumber(Diagnostic):
    """Raised when the value of a dimension, constant or scalar is not a number."""

    code = "PK903"
    title = "`{option}` gives `{name}` the value `{text}`, which is not a number"
    help = "a value is an integer, a float, `True` or `False`"
    option: str
    name: str
    text: str


class UnknownSetting(Diagnostic):
    """Raised when `--set` names no dimension, constant or scalar of the kernel."""

    code = "PK904"
    title = "kernel `{kernel}` has no dimension, constant or scalar `{name}`"
    help = "{hint}"
    kernel: str
    name: str
    hint: str


class ArraySetting(Diagnostic):
    """Raised when `--set` names an array."""

    code = "PK905"
    title = "`{name}` is an array; `--set` gives values to dimensions, constants and scalars"
    help = "pass an array with `--in {name}={name}.npy`; without it, its elements are drawn from the seed"
    name: str


class BadDelay(Diagnostic):
    """Raised when `--delay` names no known rank or role."""

    code = "PK906"
    title = "`--delay {text}` delays nothing"
    help = "for example `--delay rank=1,role=storer`; {hint}"
    text: str
    hint: str


# References


# Arrays in files


class UnknownArray(Diagnostic):
    """Raised when `--in` or `--out` names no array that the caller passes to the kernel."""

    code = "PK920"
    title = "`{option}`: kernel `{kernel}` has no array `{name}` that is passed to it"
    help = "{hint}"
    option: str
    kernel: str
    name: str
    hint: str


class NoTable(Diagnostic):
    """Raised when `--in` of `pkc check` gives an array of floats: what these are decides about no order."""

    code = "PK925"
    title = "`--in` of `pkc check` takes arrays of integers; `{name}` has {element}"
    help = "arrays of floats are drawn; `pkc run --in {name}=FILE.npy` takes them from files"
    name: str
    element: str


class InputUnreadable(Diagnostic):
    """Raised when the file of an input cannot be read as an array."""

    code = "PK921"
    title = "cannot read the input `{name}` from `{path}`"
    note = "{reason}"
    name: str
    path: str
    reason: str


# Resources, and mistakes in pkc


class OutOfMemory(Diagnostic):
    """Raised when the arrays of a run do not fit into memory."""

    code = "PK930"
    title = "not enough memory to run the kernel with these sizes"
    note = "{reason}"
    help = "the simulator needs memory for the arrays of all ranks; set smaller dimensions"
    reason: str
