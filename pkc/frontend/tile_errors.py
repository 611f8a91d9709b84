"""What can be wrong with tiles, arrays, loops and distributed writes."""

from __future__ import annotations

from pkc.diagnostics import Diagnostic

# Tiles


class AxesDiffer(Diagnostic):
    """Two tiles with axes that do not align, in an operation element by element."""

    code = "PK301"
    title = "the axes of the operands of `{op}` do not align"
    label = "{left} and {right}"
    note = (
        "axes align by the block they come from: both have the same, or one has all of the other's, or they share none"
    )
    help = "{hint}"
    op: str
    left: str
    right: str
    hint: str = ""


class InnerAxesDiffer(Diagnostic):
    """The inner axes of a matmul differ."""

    code = "PK302"
    title = "the inner axes of `@` differ: {left} and {right}"
    label = "{left_axes} @ {right_axes}"
    help = "{hint}"
    left: str
    right: str
    left_axes: str
    right_axes: str
    hint: str = ""


class BadMatmul(Diagnostic):
    """An operand of a matmul without two axes, or of a type that a matmul does not take."""

    code = "PK303"
    title = "`@` cannot multiply {left} and {right}"
    label = "{problem}"
    help = "{hint}"
    left: str
    right: str
    problem: str
    hint: str = ""


class TypesDiffer(Diagnostic):
    """Integers, floats and booleans mixed in one operator."""

    code = "PK304"
    title = "`{op}` cannot mix {left} and {right}"
    label = "{left} and {right}"
    help = "{hint}"
    op: str
    left: str
    right: str
    hint: str = "convert one of them with `cast(x, f32)` or `cast(x, i32)`"


class BadOperand(Diagnostic):
    """An operand of a kind or type that the operator does not take."""

    code = "PK305"
    title = "`{op}` does not take {got}"
    label = "expected {expected}"
    help = "{hint}"
    op: str
    got: str
    expected: str
    hint: str = ""


class AmbiguousAxes(Diagnostic):
    """An axis that could align with two axes of the other operand."""

    code = "PK306"
    title = "axis {axis} could align with either axis of {wide}"
    label = "{axis} occurs twice"
    help = (
        "`x.T` of a tile with one axis goes along the last of them; with a name for {axis} everywhere, as in "
        "`D: const = {axis}`, `x` goes along the first"
    )
    wide: str
    axis: str


class VariableChangesType(Diagnostic):
    """A variable that a loop carries, or a branch assigns, has another type at the end."""

    code = "PK310"
    title = "`{name}` changes its type in {where}"
    label = "{before}, {after}"
    help = "{hint}"
    name: str
    where: str
    before: str
    after: str
    hint: str = ""


class AssignedInTasks(Diagnostic):
    """A variable from outside is assigned inside tasks or a role, which run in no order."""

    code = "PK311"
    title = "`{name}` is assigned inside {what}, but defined outside"
    label = "assigned here"
    note = "{what} have no order, so nothing can be carried from one to the next"
    help = "define it inside, or write the result to an array"
    name: str
    what: str


class NotCarried(Diagnostic):
    """A loop or branch assigns a variable that is a block; only tiles, integers and booleans can be carried."""

    code = "PK312"
    title = "`{name}` is {got}, which {where} cannot carry"
    label = "`{name}` is assigned inside"
    help = "assign `start(...)` of a block instead: an integer can be carried"
    name: str
    got: str
    where: str


class BadCondition(Diagnostic):
    """The condition of `if` is not a boolean scalar computed from integers."""

    code = "PK313"
    title = "the condition of `if` {problem}"
    label = "expected a comparison of integers: `if` decides for the whole task"
    help = "{hint}"
    problem: str
    hint: str = ""


# Arrays


class IndexCount(Diagnostic):
    """An array is indexed with too many or too few indices."""

    code = "PK321"
    title = "`{name}` has {dims}, but {given} given"
    label = "{name} is {declared}"
    help = "{hint}"
    name: str
    dims: str
    given: str
    declared: str
    hint: str = ""


class BlockOfOtherDimension(Diagnostic):
    """A block indexes a dimension that it does not come from."""

    code = "PK322"
    title = "a block of {block} indexes dimension {dim} of `{name}`"
    label = "`{index}` comes from blocks({block}, {size})"
    help = "{hint}"
    name: str
    index: str
    block: str
    size: int
    dim: str
    hint: str = ""


class BadIndex(Diagnostic):
    """An index of a kind that cannot index an array, or out of range."""

    code = "PK323"
    title = "{got} cannot index `{name}`"
    label = "{problem}"
    help = "{hint}"
    name: str
    got: str
    hint: str = ""
    problem: str = "expected a block or an integer"


class WholeRunTimeDimension(Diagnostic):
    """`:` on a dimension whose size is not a constant."""

    code = "PK324"
    title = "`:` takes the whole of dimension {dim} of `{name}`, which is not a constant"
    label = "a tile has constant size"
    help = "index it with a block of blocks({dim}, ...), or make {dim} a `const` parameter"
    name: str
    dim: str


class BadRows(Diagnostic):
    """The row table of a gather or scatter is not of the right type or shape."""

    code = "PK326"
    title = "the rows of {what} are {got}"
    label = "expected {expected}"
    what: str
    got: str
    expected: str


class StoredAxesDiffer(Diagnostic):
    """A tile is written to a place with other axes."""

    code = "PK327"
    title = "a tile with axes {value} does not fit the place with axes {place}"
    label = "axes {value}"
    help = "{hint}"
    value: str
    place: str
    hint: str = ""


class StoredTypeDiffers(Diagnostic):
    """Integers are written to an array of floats, or the other way round."""

    code = "PK328"
    title = "{value} cannot be written to `{name}` of {dtype}"
    label = "{value}"
    help = "{hint}"
    name: str
    value: str
    dtype: str
    hint: str


# Loops


class BadIterable(Diagnostic):
    """A loop over something that is not a list of the language."""

    code = "PK331"
    title = "cannot loop over `{name}`"
    label = "expected tasks(...), blocks(...), range(...) or ring()"
    name: str


class TargetCount(Diagnostic):
    """A loop has more or fewer variables than lists."""

    code = "PK332"
    title = "{lists} for {targets}"
    label = "{targets}"
    lists: str
    targets: str


class BadBlocks(Diagnostic):
    """A list of blocks with an impossible size, dimension or bounds."""

    code = "PK333"
    title = "`blocks(...)` is not valid: {problem}"
    label = "not possible"
    help = "{hint}"
    problem: str
    hint: str = ""


# Distributed writes and primitives


class SumIntoPrivate(Diagnostic):
    """`+=` on a private array, where a sum over ranks was meant."""

    code = "PK341"
    title = "`+=` sums over ranks, but `{name}` is private to each rank"
    label = "{name} is {declared}"
    help = (
        "to add to what `{name}` has, {instead}; for the sum over tasks and ranks, which begins at zero, declare it"
        " {shared}`{declared}.replicate()` to give all ranks the whole"
    )
    name: str
    declared: str
    instead: str
    """What to write, which depends on whether one task adds to a place, or several."""
    shared: str
    """How to give each owner its shard, where it can have one."""


class AtOnNonSymmetric(Diagnostic):
    """`.at(r)` on an array that is not symmetric."""

    code = "PK342"
    title = "`.at(r)` on `{name}`, which is not symmetric"
    label = "{name} is {declared}"
    help = "{hint}"
    name: str
    declared: str
    hint: str


class BadUpdate(Diagnostic):
    """An array is updated by an operator other than `+=`."""

    code = "PK343"
    title = "`{op}=` cannot update an array"
    label = "only `=` and `+=` write arrays"
    help = "compute the new value and store it: `{place} = {place} {op} ...`"
    op: str
    place: str


class NotAPlace(Diagnostic):
    """An argument must be an array, or a place in an array, and is not."""

    code = "PK344"
    title = "`{name}` needs {expected}"
    label = "this is {got}"
    help = "write `{usage}`"
    name: str
    expected: str
    got: str
    usage: str


class NotSymmetric(Diagnostic):
    """`reduce` or `all_reduce` of an array that is not symmetric."""

    code = "PK345"
    title = "`{func}` takes a symmetric array, and `{name}` is not symmetric"
    label = "{name} is {declared}"
    help = "declare it `.symmetric()`, so that every rank has a copy to add"
    func: str
    name: str
    declared: str


class BadRole(Diagnostic):
    """An unknown role, a role with wrong options, or a role in the wrong place."""

    code = "PK346"
    title = "{problem}"
    label = "in this role"
    help = "{hint}"
    problem: str
    hint: str = ""
