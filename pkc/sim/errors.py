"""What can be wrong when a program runs: PK601 to PK649 for dimensions and data, PK701 to PK729 for findings of the
simulator."""

from __future__ import annotations

from pkc.diagnostics import Diagnostic

# Dimensions and data


class UnsetDimension(Diagnostic):
    """Raised when neither a setting nor the shape of an input gives a run-time dimension."""

    code = "PK601"
    title = "dimension `{name}` is not set"
    label = "the kernel needs a value for `{name}`"
    help = "set it, as `--set {name}=1024` does, or pass an array that has it"
    name: str


class ContradictoryDimension(Diagnostic):
    """Raised when two sources give a run-time dimension different values."""

    code = "PK602"
    title = "dimension `{name}` is {first} by {first_source}, but {second} by {second_source}"
    label = "`{name}` has one value, the same on every rank"
    name: str
    first: int
    first_source: str
    second: int
    second_source: str


class BadDimension(Diagnostic):
    """Raised when a run-time dimension is not a positive integer of 64 bits."""

    code = "PK603"
    title = "dimension `{name}` cannot be {value}"
    label = "`{name}` is the length of a dimension"
    help = "a dimension is an integer from 1 to 2^63 - 1"
    name: str
    value: str


class UnknownDimension(Diagnostic):
    """Raised when a value is set for a dimension that the kernel does not have."""

    code = "PK604"
    title = "kernel `{kernel}` has no dimension `{name}`"
    help = "its dimensions are {known}"
    kernel: str
    name: str
    known: str


class NotAnInput(Diagnostic):
    """Raised when data is passed for a name that takes none."""

    code = "PK605"
    title = "`{name}` is not an input of kernel `{kernel}`"
    label = "`{name}` takes no data"
    help = "{reason}"
    kernel: str
    name: str
    reason: str


class WrongInputShape(Diagnostic):
    """Raised when an array does not have the shape of its parameter."""

    code = "PK606"
    title = "`{name}` has shape {found}"
    label = "what is passed for this does not fit"
    help = "expected {expected}"
    name: str
    found: str
    expected: str


class WrongInputType(Diagnostic):
    """Raised when the elements of an array that is passed cannot become those of its parameter."""

    code = "PK607"
    title = "{source} has elements of type {found}; `{name}` is of type {expected}"
    label = "what is passed for this does not fit"
    help = "{rule}"
    source: str
    found: str
    name: str
    expected: str
    rule: str


class InputBeyondRange(Diagnostic):
    """Raised when an array that is passed has a number that is too large for its parameter."""

    code = "PK614"
    title = "{source} has {value}, which does not fit into `{name}` of type {element}"
    label = "what is passed for this does not fit"
    help = "the largest number of {element} is {largest}"
    source: str
    value: str
    name: str
    element: str
    largest: str


class MissingInput(Diagnostic):
    """Raised when an array or scalar that the kernel reads is not passed."""

    code = "PK608"
    title = "input `{name}` is missing"
    label = "nothing is passed for this"
    help = "kernel `{kernel}` reads `{name}`: pass it"
    kernel: str
    name: str


class BadScalar(Diagnostic):
    """Raised when the value of a scalar parameter is not a number of its type."""

    code = "PK609"
    title = "`{name}` cannot be {value}"
    label = "what is passed for this does not fit"
    help = "expected a number of type {expected}"
    name: str
    value: str
    expected: str


class BadRanks(Diagnostic):
    """Raised when the number of ranks is not one the simulator runs."""

    code = "PK610"
    title = "cannot simulate {ranks} ranks"
    help = "from 1 to {most} ranks can be simulated"
    ranks: int
    most: int


class NoSuchKernel(Diagnostic):
    """Raised when the kernel to run is not in the program, or is not named where there are several."""

    code = "PK611"
    title = "{problem}"
    help = "the program has {known}"
    problem: str
    known: str


class TooLarge(Diagnostic):
    """Raised when the arrays of all ranks would take more memory than the simulator allows itself."""

    code = "PK612"
    title = "simulating the arrays of all ranks takes {found} GiB"
    help = "at most {most} GiB can be taken: set smaller dimensions, or fewer ranks"
    found: int
    most: int


class TooMuchWork(Diagnostic):
    """Raised when a simulation would take hours, which is known when a loop begins."""

    code = "PK613"
    title = "simulating this takes more than {most}"
    label = "{times} iterations begin here"
    help = "let loops have fewer iterations: with smaller dimensions or constants, or fewer ranks"
    times: int
    most: str


# Findings


class Deadlock(Diagnostic):
    """Raised when every role that has not ended waits, and nothing is left to wake it."""

    code = "PK701"
    title = "deadlock: {count} blocked, nothing left to run"
    label = "waits here"
    note = "blocked:{blocked}"
    help = "each wait needs as many signals to its own rank as it counts"
    count: str
    blocked: str


class DoubleWrite(Diagnostic):
    """Raised when two tasks, or two ranks, store to one element with `=` in one phase, or two entries of a table name
    it."""

    code = "PK702"
    title = "`{array}` is written twice at {element}"
    label = "written here by {second}"
    help = "{hint}"
    array: str
    element: str
    second: str
    hint: str


class ReadOfSum(Diagnostic):
    """Raised when an array is read in the phase in which it is summed."""

    code = "PK703"
    title = "`{array}` is read while it is summed"
    label = "read here"
    help = "{hint}"
    array: str
    hint: str


class ReadOfOther(Diagnostic):
    """Raised when a task reads an element that another task writes in the same phase."""

    code = "PK704"
    title = "`{array}` is read and written in one phase at {element}"
    label = "read here by {reader}"
    help = "tasks run in no particular order: read it in a later `tasks`"
    array: str
    element: str
    reader: str


class ReadUnwritten(Diagnostic):
    """Raised when an element of a scratch array is read, or added to, before anything is stored there."""

    code = "PK705"
    title = "`{array}` is {done} before it is written at {element}"
    label = "{done} here by {reader}"
    note = "a scratch array is undefined at entry"
    help = "{hint}"
    array: str
    element: str
    done: str
    reader: str
    hint: str


class TileOnTwoRanks(Diagnostic):
    """Raised when a tile is read that straddles two ranks' shards of an array."""

    code = "PK708"
    title = "a tile of `{array}` lies on two ranks: {first} to {last} of dimension {axis}"
    label = "rank {rank} addresses it here"
    help = "a shard is {shard} long; a block by which a sharded array is read may not straddle two shards"
    array: str
    first: int
    last: int
    axis: int
    rank: int
    shard: int


class NotSimulated(Diagnostic):
    """Raised when a program has an operation that the tile level does not have."""

    code = "PK710"
    title = "`{operation}` cannot be simulated at the tile level"
    label = "here"
    operation: str


class NoSuchShard(Diagnostic):
    """Raised when a block list is of the shard of a rank that does not exist."""

    code = "PK711"
    title = "`blocks(..., of={found})` is of a rank that does not exist"
    label = "its blocks are listed here"
    help = "the ranks are 0 to {last}"
    found: int
    last: int


class NotRelaunched(Diagnostic):
    """Raised when launches are simulated of a kernel that is not split into roles, or that sums in no order."""

    code = "PK712"
    title = "launches of `{kernel}` cannot be simulated"
    label = "it is not split into roles, or adds up contributions in no order"
    help = "compile it to the roles level; a sum over ranks is then staged"
    kernel: str


class LeftOver(Diagnostic):
    """Raised when a wait of a derived protocol does not count all signals of its launch, or when no wait does."""

    code = "PK713"
    title = "{counter} of rank {rank} reaches {total} in launch {launch}, {problem}"
    label = "here"
    help = "each wait must count every signal that its launch and those before it send to the counter"
    counter: str
    rank: int
    launch: int
    total: int
    problem: str


class Overwritten(Diagnostic):
    """Raised when an element of a scratch array is stored again before it is read."""

    code = "PK714"
    title = "`{array}` is stored again before it is read at {element}"
    label = "stored here by {writer}"
    help = "wait until it has been read, or store elsewhere"
    array: str
    element: str
    writer: str


class CounterOverflow(Diagnostic):
    """Raised when a counter gets, or a wait is for, what 32 bits do not hold."""

    code = "PK715"
    title = "{counter} of rank {rank} {verb} {value}, and counters have 32 bits"
    label = "here"
    help = "count events by one: a counter goes from -2^31 to 2^31 - 1"
    counter: str
    rank: int
    verb: str
    value: int


class MemoryInUse(Diagnostic):
    """Raised when a channel is filled whose shared memory a channel of another phase still uses."""

    code = "PK716"
    title = "`{channel}` is filled where `{other}`, of another phase, may still have tiles"
    label = "filled here by {warp_role}"
    help = "let those who consume `{other}` signal when they are done, and wait for that first"
    channel: str
    other: str
    warp_role: str
