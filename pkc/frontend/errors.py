"""What can be wrong with a source file and its syntax: PK101 to PK149."""

from __future__ import annotations

from pkc.diagnostics import Diagnostic

# Words and lines


class UnexpectedCharacter(Diagnostic):
    """Raised for a character that begins no word of the language."""

    code = "PK101"
    title = "unexpected character {shown}"
    label = "not part of the language"
    help = "{hint}"
    shown: str
    hint: str = ""


class TabIndentation(Diagnostic):
    """Raised when a line is indented with a tab."""

    code = "PK102"
    title = "tab in the indentation"
    label = "a tab"
    help = "indent with spaces"


class InconsistentDedent(Diagnostic):
    """Raised when a line returns to an indentation that no open block has."""

    code = "PK103"
    title = "this indentation fits no open block"
    label = "indented by {found}"
    help = "open blocks are indented by {levels}"
    found: int
    levels: str


class UnexpectedIndent(Diagnostic):
    """Raised when a line is indented deeper than the one before, which opens no block."""

    code = "PK104"
    title = "unexpected indentation"
    label = "indented deeper than its block"


class MissingBlock(Diagnostic):
    """Raised when nothing follows the `:` of a kernel, loop, condition or `with`."""

    code = "PK105"
    title = "expected an indented block after `:`"
    label = "nothing follows this"


class UnclosedBracket(Diagnostic):
    """Raised when a `(` or `[` is still open where its statement should have ended."""

    code = "PK106"
    title = "`{bracket}` is never closed"
    label = "opened here"
    bracket: str


class UnexpectedToken(Diagnostic):
    """Raised when a word appears where the grammar does not allow it."""

    code = "PK107"
    title = "unexpected {found}"
    label = "expected {expected}"
    help = "{hint}"
    found: str
    expected: str
    hint: str = ""


class ReservedWord(Diagnostic):
    """Raised for a keyword of Python that the language does not have."""

    code = "PK108"
    title = "`{word}` is not part of the language"
    label = "a Python keyword"
    help = "{hint}"
    word: str
    hint: str = ""


class MalformedNumber(Diagnostic):
    """Raised for a word that begins with a digit and is no number."""

    code = "PK109"
    title = "malformed number `{text}`"
    label = "neither an integer nor a float"
    text: str


class NumberTooLarge(Diagnostic):
    """Raised for an integer beyond 64 bits or a float beyond the largest double."""

    code = "PK110"
    title = "number too large"
    label = "{limit}"
    help = "{hint}"
    limit: str
    hint: str = ""


# Structure


class NestedTooDeep(Diagnostic):
    """Raised when expressions or statements nest beyond the limit of the language."""

    code = "PK111"
    title = "{what} nest more than {limit} deep"
    label = "too deep here"
    help = "{hint}"
    what: str
    limit: int
    hint: str = ""


class ChainedComparison(Diagnostic):
    """Raised for `a < b < c`."""

    code = "PK112"
    title = "comparisons do not chain"
    label = "a second comparison"
    help = "write `a < b and b < c`"


class NotAssignable(Diagnostic):
    """Raised when the target of `=` or `+=` is neither a name nor an indexed array."""

    code = "PK113"
    title = "cannot assign to this"
    label = "neither a name nor an indexed array"


class NotAStatement(Diagnostic):
    """Raised for an expression alone on a line that is not a call."""

    code = "PK114"
    title = "this expression does nothing"
    label = "its value is not used"
    help = "assign it, or store it into an array"


class NotALoopList(Diagnostic):
    """Raised when a `for` runs over something that is not a call."""

    code = "PK115"
    title = "`for` cannot run over this"
    label = "not a list of the language"
    help = "loops run over `tasks(...)`, `blocks(...)`, `range(...)` or `ring()`"


class NotARole(Diagnostic):
    """Raised when what follows `with` is not a call."""

    code = "PK116"
    title = "`with` needs a role"
    label = "not a role"
    help = "write for example `with role(communicator, sms=16):`"


class NotIndexable(Diagnostic):
    """Raised when `[...]` follows an expression other than an array's name or `.at(r)`."""

    code = "PK117"
    title = "only an array can be indexed"
    label = "not the name of an array"


class UnknownAttribute(Diagnostic):
    """Raised for an attribute other than `.T`, or other than `.at(r)` before an index."""

    code = "PK118"
    title = "there is no attribute `.{name}`"
    label = "unknown attribute"
    help = "{hint}"
    name: str
    hint: str


class PositionalAfterKeyword(Diagnostic):
    """Raised for `f(a=1, b)`."""

    code = "PK119"
    title = "positional argument after a keyword argument"
    label = "belongs before the keyword arguments"


class RepeatedKeyword(Diagnostic):
    """Raised for `f(a=1, a=2)`."""

    code = "PK120"
    title = "keyword argument `{name}` is given twice"
    label = "given again"
    name: str


class NoKernel(Diagnostic):
    """Raised when a file has no kernel in it."""

    code = "PK121"
    title = "no kernel in {file}"
    help = "{hint}"
    file: str
    hint: str = "a kernel begins with `kernel name(parameters):`"


# Files


class FileNotFound(Diagnostic):
    """Raised when there is no file at a path."""

    code = "PK131"
    title = "there is no file {path}"
    path: str


class FileIsDirectory(Diagnostic):
    """Raised when a path is a directory."""

    code = "PK132"
    title = "{path} is a directory"
    path: str


class FileUnreadable(Diagnostic):
    """Raised when the system refuses to read a file, or it is not a regular file."""

    code = "PK133"
    title = "cannot read {path}: {reason}"
    path: str
    reason: str


class WrongExtension(Diagnostic):
    """Raised when a file's name does not end as its kind requires."""

    code = "PK134"
    title = "{path} is not a `{wanted}` file"
    help = "kernels are kept in `.pk` files, or in `.py` files with `@pkc.kernel`"
    path: str
    wanted: str


class BinaryFile(Diagnostic):
    """Raised when a file has a NUL byte."""

    code = "PK135"
    title = "{path} is a binary file"
    note = "byte {offset} is zero"
    path: str
    offset: int


class NotUtf8(Diagnostic):
    """Raised when a file's bytes are not UTF-8."""

    code = "PK136"
    title = "{path} is not UTF-8"
    note = "byte {offset} (0x{byte:02x}), on line {line}, is not valid"
    path: str
    offset: int
    byte: int
    line: int


class FileTooLarge(Diagnostic):
    """Raised for a source of more than 1 MiB."""

    code = "PK137"
    title = "{path} is too large"
    note = "a source has at most {limit} bytes"
    path: str
    limit: int
