"""What can be wrong with reading a kernel that is a Python function: PK150 to PK179."""

from __future__ import annotations

from pkc.diagnostics import Diagnostic


class NoSource(Diagnostic):
    """Raised when the source of a Python kernel cannot be found."""

    code = "PK150"
    title = "cannot read the source of `{name}`: {reason}"
    label = "this {kind}"
    help = "write the {kind} as a `def` in a file"
    name: str
    reason: str
    kind: str = "kernel"


class NotInLanguage(Diagnostic):
    """Raised for a construct of Python that the language does not have."""

    code = "PK151"
    title = "{construct} is not part of the language"
    label = "not allowed in a kernel"
    help = "{hint}"
    construct: str
    hint: str = ""


class CapturedObject(Diagnostic):
    """Raised when a kernel uses a Python object that is not a constant, a dimension or a word of the language."""

    code = "PK152"
    title = "`{name}` is a Python object of type `{type}`"
    label = "cannot be used in a kernel"
    help = "{hint}"
    name: str
    type: str
    hint: str = "a kernel can capture numbers, booleans, dimensions, functions and the names of pkc.language"


class CapturedUnderOtherName(Diagnostic):
    """Raised when a dimension or a word of pkc.language is used under another name."""

    code = "PK153"
    title = "`{name}` is another name for `{word}`"
    label = "must be called `{word}`"
    note = "a kernel is read, not run: words and dimensions are recognised by their names"
    name: str
    word: str


class CapturedNaN(Diagnostic):
    """Raised when a captured float is not a number."""

    code = "PK154"
    title = "the captured constant `{name}` is not a number"
    label = "has the value nan"
    name: str


class MissingAnnotation(Diagnostic):
    """Raised for a parameter without a type."""

    code = "PK155"
    title = "parameter `{name}` has no type"
    label = "add one after `:`"
    help = "for example `{name}: bf16[M, N]`, `{name}: f32` or `{name}: const`"
    name: str


class OutsideKernel(Diagnostic):
    """Raised when Python code calls a word of pkc.language outside of a kernel."""

    code = "PK156"
    title = "`{name}` can only be used inside a @pkc.kernel function"
    label = "called here"
    name: str


class ImportFailed(Diagnostic):
    """Raised when a Python file with kernels raises an exception as it is imported."""

    code = "PK157"
    title = "importing {path} failed: {error}"
    label = "raised here"
    help = "{hint}"
    path: str
    error: str
    hint: str = ""


class InvalidDimension(Diagnostic):
    """Raised when `dims(...)` is given a text that cannot name a dimension."""

    code = "PK158"
    title = "`{text}` cannot name a dimension"
    label = "given here"
    help = 'write for example `M, N = dims("M N")`'
    text: str


class InvalidScheduleValue(Diagnostic):
    """Raised when a keyword of the kernel decorator is not a boolean, an integer or a word."""

    code = "PK159"
    title = "the schedule key `{name}` cannot be {value}"
    label = "given here"
    help = 'use a boolean, an integer, or a word such as "intra_sm"'
    name: str
    value: str


class PythonSyntax(Diagnostic):
    """Raised when a Python file with kernels is not valid Python."""

    code = "PK160"
    title = "not valid Python: {error}"
    label = "here"
    error: str


class NotAFunction(Diagnostic):
    """Raised when the kernel decorator is applied to something that is not a Python function."""

    code = "PK161"
    title = "a kernel is a Python function, not an object of type `{type}`"
    label = "decorated here"
    type: str


class KnownWhenImported(Diagnostic):
    """Raised with `--no-import` when a kernel uses what only Python can tell."""

    code = "PK162"
    title = "what `{name}` is, is known only when the file is imported"
    label = "not a number, a dimension or a word of the language"
    help = "write a number here; or leave out `--no-import`, which executes the file"
    name: str
