"""Findings of the passes, as data: whole-program rules (PK401...), malformed IR (PK44x), the pass tool (PK45x)."""

from __future__ import annotations

from pkc.diagnostics import Diagnostic


class TasksOverlap(Diagnostic):
    """Tasks that differ in one index store to the same place, since nothing of the place depends on that index."""

    code = "PK401"
    title = "two tasks write the same elements of `{array}`"
    label = "{index} takes no part in what is written here"
    help = "index `{array}` with it, leave it out of the tasks, or sum with `+=` into a sharded or replicated array"
    array: str
    index: str


class RanksOverlap(Diagnostic):
    """Every rank stores to the same place of an array that is one over all ranks."""

    code = "PK402"
    title = "every rank writes the same elements of `{array}`"
    label = "what is written here does not depend on the rank"
    note = "every rank runs every task, and `{array}` is one array over all ranks"
    help = "{own}`+=` sums over ranks; `blocks(..., of=rank)` gives each rank the blocks of its shard"
    array: str
    own: str = ""
    """What to do where each rank has a copy."""


class SumReadInPhase(Diagnostic):
    """A `tasks` reads an array that it sums with `+=`."""

    code = "PK403"
    title = "`{array}` is read while it is summed"
    label = "read here, in the same `tasks`"
    note = "a sum over ranks is complete only when all tasks of all ranks have ended"
    help = "read it in a second `tasks` statement after this one"
    array: str


PICKED = "; or pick it out of the tile that is loaded: `rowsum(where(positions(N) == i, x, 0.0))`"
"""For an element of what a task reads as a whole before it writes it."""

COLLECTED = "; or collect it in a tile, `t = where(positions(N) == i, x, t)`, which is stored once, behind the loop"
"""For what a task has written itself."""


class ReadAndWritten(Diagnostic):
    """A `tasks` reads an array that it also writes, at a place that may be another task's."""

    code = "PK404"
    title = "`{array}` is read and written by the same `tasks`"
    label = "this may read what another task or rank writes"
    note = "tasks and ranks run in no order; only the very tile that a task writes may be read by it"
    help = "write to another array, or read in another `tasks` statement{hint}"
    array: str
    hint: str = ""


class StoredAndSummed(Diagnostic):
    """A `tasks` writes one array with `=` and with `+=`."""

    code = "PK405"
    title = "`{array}` is both stored and summed by the same `tasks`"
    label = "stored here"
    note = "a sum over ranks begins at zero, so a stored element would be lost or added to"
    help = "use either `=` or `+=` on `{array}`, or two `tasks` statements"
    array: str


class WaitNeverSignalled(Diagnostic):
    """A wait for a signal that no statement of the kernel sends."""

    code = "PK406"
    title = "nothing signals `{signal}`"
    label = "this wait never ends"
    help = "add `signal({signal}.at(r)[...], 1)` or `signal_all({signal}[...], 1)` to the role that is waited for"
    signal: str


class OutsideRole(Diagnostic):
    """A signal, wait or barrier that is not inside `with role(...)`."""

    code = "PK407"
    title = "`{what}` outside a role"
    label = "signals and waits belong to `with role(...)`"
    help = "without roles pkc places the signals; to place them by hand, put the whole body into roles"
    what: str


class BesideRoles(Diagnostic):
    """A kernel with roles does something outside them."""

    code = "PK408"
    title = "a statement beside the roles of a kernel"
    label = "this is in no role"
    note = "the roles of a kernel run at the same time; nothing comes before or after them"
    help = "move it into a `with role(...)`"


class UndefinedScratch(Diagnostic):
    """A scratch array is read, and nothing in the kernel writes it."""

    code = "PK409"
    title = "scratch array `{array}` is read but never written"
    label = "its elements are undefined"
    help = "write it first, or drop `.scratch()` so that the caller passes it"
    array: str


class WritesNothing(Diagnostic):
    """A kernel that writes no array of its caller."""

    code = "PK410"
    title = "kernel `{kernel}` writes nothing"
    label = "no array of the caller is written"
    help = "store a result: `C[m, n] = t`; an array of `.scratch()` does not count"
    kernel: str


class MisplacedTasks(Diagnostic):
    """A `tasks` inside `tasks` stands in a loop or branch of the outer one."""

    code = "PK411"
    title = "`tasks` inside a {what} inside `tasks`"
    label = "this belongs to a {what} of one task"
    help = "{hint}`tasks` stands directly inside `tasks`; inside a task use a plain loop, `for k in blocks(...)`"
    what: str
    hint: str = ""


class UnusedParameter(Diagnostic):
    """A parameter from which nothing is computed."""

    code = "PK420"
    severity = "warning"
    title = "parameter `{parameter}` is never used"
    label = "not used in kernel `{kernel}`"
    parameter: str
    kernel: str


class InvalidOperation(Diagnostic):
    """The verifier of an operation refuses it: malformed IR, or a mistake in a pass."""

    code = "PK440"
    title = "invalid `{op}`: {message}"
    label = ""
    op: str
    message: str


class UsedBeforeDefined(Diagnostic):
    """An operation uses a value that nothing defines before it."""

    code = "PK441"
    title = "operand {number} of `{op}` is not defined where it is used"
    label = "used here"
    op: str
    number: int


class UnknownPass(Diagnostic):
    """A name in a pipeline that is no pass."""

    code = "PK450"
    title = "unknown pass `{name}`"
    help = "{hint}"
    name: str
    hint: str


class BadPassOption(Diagnostic):
    """A pass is given an option that it does not have, or a value of another type."""

    code = "PK451"
    title = "pass `{name}`: {message}"
    help = "options: {options}"
    name: str
    message: str
    options: str


class MalformedPipeline(Diagnostic):
    """A text that does not read as passes separated by commas."""

    code = "PK452"
    title = "not a list of passes: {message}"
    label = "here"
    help = 'write -p "pass,pass{{option=value option=value}}"'
    message: str


class UnusableFile(Diagnostic):
    """A file of the pass tool cannot be read or written."""

    code = "PK453"
    title = "cannot {verb} `{path}`: {reason}"
    verb: str
    path: str
    reason: str


class PassFailed(Diagnostic):
    """A pass gives up on the IR it is given."""

    code = "PK454"
    title = "pass `{name}` failed: {message}"
    name: str
    message: str


class UnreadableIR(Diagnostic):
    """A text breaks xDSL's parser without a place where it fails, or would keep it busy for ever."""

    code = "PK455"
    title = "this is not IR that can be read: {message}"
    label = "near here"
    message: str
