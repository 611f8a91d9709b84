"""Findings of the passes, as data: whole-program rules (PK401...), malformed IR (PK44x), the pass tool (PK45x)."""

from __future__ import annotations

from dataclasses import dataclass

from pkc.diagnostics import Diagnostic


@dataclass(frozen=True)
class TasksOverlap(Diagnostic):
    code = "PK401"
    title = "two tasks write the same elements of `{array}`"
    label = "{index} takes no part in what is written here"
    help = "index `{array}` with it, or sum with `+=` into a sharded or replicated array"
    array: str
    index: str


@dataclass(frozen=True)
class RanksOverlap(Diagnostic):
    code = "PK402"
    title = "every rank writes the same elements of `{array}`"
    label = "what is written here does not depend on the rank"
    note = "every rank runs every task, and `{array}` is one array over all ranks"
    help = "`+=` sums over ranks; `blocks(..., of=rank)` gives each rank its own blocks"
    array: str


@dataclass(frozen=True)
class SumReadInPhase(Diagnostic):
    code = "PK403"
    title = "`{array}` is read while it is summed"
    label = "read here, in the same `tasks`"
    note = "a sum over ranks is complete only when all tasks of all ranks have ended"
    help = "read it in a second `tasks` statement after this one"
    array: str


@dataclass(frozen=True)
class ReadAndWritten(Diagnostic):
    code = "PK404"
    title = "`{array}` is read and written by the same `tasks`"
    label = "this may read what another task writes"
    note = "tasks run in no order; only the very tile that a task writes may be read by it"
    help = "write to another array, or read in a `tasks` statement of its own"
    array: str


@dataclass(frozen=True)
class StoredAndSummed(Diagnostic):
    code = "PK405"
    title = "`{array}` is both stored and summed by the same `tasks`"
    label = "stored here"
    note = "a sum over ranks begins at zero, so a stored element would be lost or added to"
    help = "use either `=` or `+=` on `{array}`, or two `tasks` statements"
    array: str


@dataclass(frozen=True)
class WaitNeverSignalled(Diagnostic):
    code = "PK406"
    title = "nothing signals `{signal}`"
    label = "this wait never ends"
    help = "add `signal({signal}.at(r)[...], 1)` or `signal_all({signal}[...], 1)` to the role that is waited for"
    signal: str


@dataclass(frozen=True)
class OutsideRole(Diagnostic):
    code = "PK407"
    title = "`{what}` outside a role"
    label = "signals and waits belong to `with role(...)`"
    help = "without roles pkc places the signals; to place them by hand, put the whole body into roles"
    what: str


@dataclass(frozen=True)
class BesideRoles(Diagnostic):
    code = "PK408"
    title = "a statement beside the roles of a kernel"
    label = "this is in no role"
    help = "move it into a `with role(...)`"


@dataclass(frozen=True)
class UndefinedScratch(Diagnostic):
    code = "PK409"
    title = "scratch array `{array}` is read but never written"
    label = "its elements are undefined"
    help = "write it first, or drop `.scratch()` so that the caller passes it"
    array: str


@dataclass(frozen=True)
class WritesNothing(Diagnostic):
    code = "PK410"
    title = "kernel `{kernel}` writes nothing"
    label = "no array of the caller is written"
    help = "store a result: `C[m, n] = t`"
    kernel: str


@dataclass(frozen=True)
class MisplacedTasks(Diagnostic):
    code = "PK411"
    title = "`tasks` inside a loop or branch inside `tasks`"
    label = "this is done once for each pass of the loop, in order"
    help = "inside a task use a plain loop, `for k in blocks(...)`; `tasks` stands directly inside `tasks`"


@dataclass(frozen=True)
class UnusedParameter(Diagnostic):
    code = "PK420"
    severity = "warning"
    title = "parameter `{parameter}` is never used"
    label = "not used in kernel `{kernel}`"
    parameter: str
    kernel: str


@dataclass(frozen=True)
class InvalidOperation(Diagnostic):
    code = "PK440"
    title = "invalid `{op}`: {message}"
    label = ""
    op: str
    message: str


@dataclass(frozen=True)
class UsedBeforeDefined(Diagnostic):
    code = "PK441"
    title = "operand {number} of `{op}` is not defined where it is used"
    label = "used here"
    op: str
    number: int


@dataclass(frozen=True)
class UnknownPass(Diagnostic):
    code = "PK450"
    title = "unknown pass `{name}`"
    help = "{hint}"
    name: str
    hint: str


@dataclass(frozen=True)
class BadPassOption(Diagnostic):
    code = "PK451"
    title = "pass `{name}`: {message}"
    help = "options: {options}"
    name: str
    message: str
    options: str


@dataclass(frozen=True)
class MalformedPipeline(Diagnostic):
    code = "PK452"
    title = "not a list of passes: {message}"
    label = "here"
    help = 'write -p "pass,pass{{option=value option=value}}"'
    message: str


@dataclass(frozen=True)
class UnusableFile(Diagnostic):
    code = "PK453"
    title = "cannot {verb} `{path}`: {reason}"
    verb: str
    path: str
    reason: str


@dataclass(frozen=True)
class PassFailed(Diagnostic):
    code = "PK454"
    title = "pass `{name}` failed: {message}"
    name: str
    message: str


@dataclass(frozen=True)
class UnreadableIR(Diagnostic):
    code = "PK455"
    title = "this is not IR that can be read: {message}"
    label = "near here"
    message: str
