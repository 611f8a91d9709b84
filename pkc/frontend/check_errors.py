"""What can be wrong with a program that parses: names, parameters, schedules. Tiles and arrays: `tile_errors.py`."""

from __future__ import annotations

from pkc.diagnostics import Diagnostic

# Names


class UnknownName(Diagnostic):
    """A name that is not defined at this place."""

    code = "PK201"
    title = "unknown name `{name}`"
    label = "not defined here"
    help = "{hint}"
    name: str
    hint: str = ""


class DuplicateName(Diagnostic):
    """Two parameters, or two functions or kernels of a file, with one name."""

    code = "PK202"
    title = "`{name}` is defined twice"
    label = "the second {what}"
    name: str
    what: str


class ReservedName(Diagnostic):
    """A parameter, dimension or word of the language is assigned or used as a loop variable."""

    code = "PK203"
    title = "`{name}` is {what} and cannot be assigned"
    label = "choose another name"
    name: str
    what: str


class NotAValue(Diagnostic):
    """Something without a value, such as an array or a function, is used as a value."""

    code = "PK204"
    title = "{what} is not a value"
    label = "a tile or a number is needed here"
    help = "{hint}"
    what: str
    hint: str = ""


class UnknownFunction(Diagnostic):
    """A call of something that is not a function of the language."""

    code = "PK205"
    title = "unknown function `{name}`"
    label = "not a function of the language"
    help = "{hint}"
    name: str
    hint: str = ""


class WrongArguments(Diagnostic):
    """A call with too many, too few, or unknown arguments."""

    code = "PK206"
    title = "wrong arguments for `{name}`"
    label = "{problem}"
    help = "write `{usage}`"
    name: str
    problem: str
    usage: str


class MisplacedCall(Diagnostic):
    """A call in the wrong place: a statement as an expression or the reverse, a list outside of a loop."""

    code = "PK207"
    title = "`{name}` cannot be used here"
    label = "{problem}"
    help = "{hint}"
    name: str
    problem: str
    hint: str = ""


# Parameters and constants


class UnknownType(Diagnostic):
    """A parameter of an element type that the language does not have."""

    code = "PK210"
    title = "unknown type `{name}`"
    label = "not an element type"
    help = "{hint}"
    name: str
    hint: str


class BadAnnotation(Diagnostic):
    """A parameter with an annotation or default that its kind does not take."""

    code = "PK211"
    title = "the declaration of `{name}` is not valid"
    label = "{problem}"
    name: str
    problem: str


class BadModifier(Diagnostic):
    """An unknown layout, or two that exclude each other."""

    code = "PK212"
    title = "{problem}"
    label = "not possible here"
    help = (
        "a layout is one of `.shard(d)`, `.shard(d, zigzag=True)`, `.replicate()`, `.symmetric()`;"
        " `.scratch()` may follow each, or stand alone"
    )
    problem: str


class BadShard(Diagnostic):
    """`.shard(d)` names a dimension that the array does not have, or that cannot be sharded."""

    code = "PK213"
    title = "`{name}` cannot be sharded along dimension {dim}"
    label = "{problem}"
    help = "{hint}"
    name: str
    dim: int
    problem: str
    hint: str = ""


class OtherOrder(Diagnostic):
    """An array has a dimension in another order than an array with `zigzag=True`; blocks are the same for both."""

    code = "PK219"
    title = "`{name}` has dimension {dim} in another order than other arrays"
    label = "{dim} is not in zigzag order here"
    help = "{hint}"
    name: str
    dim: str
    hint: str


class BadDimension(Diagnostic):
    """A dimension that is neither a name nor a positive integer constant."""

    code = "PK214"
    title = "not a dimension"
    label = "{problem}"
    help = "{hint}"
    problem: str
    hint: str = "a dimension is a name, a positive constant, or `ranks`"


class NotConstant(Diagnostic):
    """A value that must be an integer constant is not one."""

    code = "PK215"
    title = "{what} must be an integer constant"
    label = "{problem}"
    help = "use a number or a `const` parameter"
    what: str
    problem: str


class MissingConstant(Diagnostic):
    """A `const` parameter without default that is not given a value."""

    code = "PK216"
    title = "the constant `{name}` has no value"
    label = "no default"
    help = "give it with `--const {name}=...`, or a default: `{name}: const = ...`"
    name: str


class UnknownConstant(Diagnostic):
    """A value is given for a constant that the kernel does not have."""

    code = "PK217"
    title = "kernel `{kernel}` has no constant `{name}`"
    label = "{known}"
    kernel: str
    name: str
    known: str


class ConstantArgument(Diagnostic):
    """The value that is given for a constant is not a number."""

    code = "PK864"
    title = "`{name}` of `{kernel}` is a constant; it cannot be {found}"
    help = "a constant is an integer, a float, `True` or `False`"
    kernel: str
    name: str
    found: str


class ConstantArithmetic(Diagnostic):
    """Constant arithmetic without a result."""

    code = "PK218"
    title = "this constant has no value"
    label = "{problem}"
    problem: str


# The schedule


class UnknownScheduleKey(Diagnostic):
    """A schedule key that does not exist."""

    code = "PK501"
    title = "unknown schedule key `{key}`"
    label = "not a key"
    help = "{known}"
    key: str
    known: str


class BadScheduleValue(Diagnostic):
    """A value that a schedule key does not take."""

    code = "PK502"
    title = "the schedule key `{key}` cannot be {value}"
    label = "not a value of `{key}`"
    help = "`{key}` is {expected}"
    key: str
    value: str
    expected: str


class MisplacedSchedule(Diagnostic):
    """`schedule(...)` is not the first statement of the kernel."""

    code = "PK503"
    title = "`schedule(...)` must be the first statement of a kernel"
    label = "too late here"


class NoTiles(Diagnostic):
    """The schedule sets the tile of a dimension, but the kernel has no `blocks(...)` of this dimension."""

    code = "PK504"
    title = "the schedule sets the tile of `{dim}`, but `{kernel}` has no blocks of `{dim}`"
    label = "this kernel"
    help = "{hint}"
    kernel: str
    dim: str
    hint: str
