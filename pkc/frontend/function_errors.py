"""What can be wrong with functions and imports: PK220 to PK239."""

from __future__ import annotations

from pkc.diagnostics import Diagnostic


class WrongCall(Diagnostic):
    """A function of the program is called with too many, too few, or named arguments."""

    code = "PK220"
    title = "wrong arguments for `{name}`"
    label = "{problem}"
    help = "write `{usage}`"
    name: str
    problem: str
    usage: str


class RecursiveCall(Diagnostic):
    """A function calls itself, or another one that calls it."""

    code = "PK221"
    title = "`{name}` calls itself"
    label = "called again here"
    help = "calls are replaced by what the function computes, so they must end: write a loop"
    name: str


class MissingReturn(Diagnostic):
    """A function does not end with `return` and a value."""

    code = "PK222"
    title = "`{name}` returns no value"
    label = "does not end with `return` and a value"
    help = "a function ends with `return value`; only kernels write into arrays"
    name: str


class MisplacedReturn(Diagnostic):
    """`return` stands in a kernel, or is not the last statement of a function."""

    code = "PK223"
    title = "`return` cannot be used here"
    label = "{problem}"
    help = "{hint}"
    problem: str
    hint: str


class ReservedFunction(Diagnostic):
    """A function has the name of a function or a type of the language."""

    code = "PK224"
    title = "`{name}` is a word of the language and cannot be defined"
    label = "choose another name"
    name: str


class TooManyCalls(Diagnostic):
    """The functions of a kernel call one another so often that the kernel would become too large."""

    code = "PK225"
    title = "the kernel calls functions more than {limit} times"
    label = "one call too many"
    note = "each call becomes the operations of its function"
    limit: int


class UnknownImport(Diagnostic):
    """A name is imported that the other file does not define as a function."""

    code = "PK230"
    title = "{path} has no function `{name}`"
    label = "imported here"
    help = "{hint}"
    path: str
    name: str
    hint: str


class ImportCycle(Diagnostic):
    """A file imports from itself, or from another one that imports from it."""

    code = "PK231"
    title = "{path} imports itself"
    label = "imported again here"
    help = "move what both files need into a third one"
    path: str
