"""Diagnostics of the passes that plan and derive a protocol (PK430...)."""

from __future__ import annotations

from pkc.diagnostics import Diagnostic


class IllegalOverlap(Diagnostic):
    """The schedule asks for an overlap that an access cannot have."""

    code = "PK430"
    title = "`overlap={overlap}` is not possible for this {access} of `{array}`"
    label = "{reason}"
    help = "leave `overlap` out to let pkc choose, or use another one"
    overlap: str
    access: str
    array: str
    reason: str


class OutsideTasks(Diagnostic):
    """A kernel without roles has a `tasks` statement inside a loop, or reads or writes outside of them."""

    code = "PK431"
    title = "no roles can be derived for `{kernel}`: it is not a sequence of `tasks` statements"
    label = "{what}"
    help = "{hint}"
    kernel: str
    what: str = "this kernel has statements outside of `tasks`"
    hint: str = "make each phase a separate kernel, or write `with role(...)`"


class CannotStage(Diagnostic):
    """The schedule asks to fetch an operand ahead whose address only the computing task knows."""

    code = "PK432"
    title = "`{array}` cannot be fetched ahead"
    label = (
        "its address depends on a carried variable, a branch, a computed table or the task that uses it, or is the same"
        " for several iterations"
    )
    help = "`overlap=intra_sm` lets the SM that computes fetch it"
    array: str


class CannotStageSum(Diagnostic):
    """A sum over ranks to which not every rank contributes every tile exactly once."""

    code = "PK433"
    title = "the contributions to `{array}` cannot be counted"
    label = "{reason}"
    help = "{hint}`schedule(deterministic=False)` adds each contribution where it lives, in no order"
    array: str
    reason: str
    hint: str = ""


class SharedMemory(Diagnostic):
    """The stages of a kernel's channels do not fit into shared memory."""

    code = "PK435"
    title = "`{kernel}` needs {needed} bytes of shared memory, and a CTA has {available}"
    label = "tiles and stages of this kernel"
    note = "{tiles}"
    help = "{hint}"
    kernel: str
    needed: int
    available: int
    tiles: str = ""
    """What lies there, with its bytes."""
    hint: str = "use smaller blocks, or fewer `stages`"


class ReorderedAccess(Diagnostic):
    """A task reads an array and writes it, and what it writes does not follow from what it reads."""

    code = "PK436"
    title = "a task reads and writes `{array}` in an order that its loader and storer would not keep"
    label = "read here"
    help = "{how}{hint}"
    array: str
    how: str = "keep the value in a variable, and store it once, after the last read"
    hint: str = ""


ELSEWHERE = "store to another array what does not follow from what is read here"
"""For what is stored behind all reads, and yet may come before one of them."""


class CannotPush(Diagnostic):
    """The schedule asks the owner of an operand to send it, but the owner does not know what goes where."""

    code = "PK438"
    title = "`transfer=push` is not possible for this {access} of `{array}`"
    label = "{reason}"
    help = "without `transfer=push` each rank fetches what it reads"
    access: str
    array: str
    reason: str


class UsedBeforeSum(Diagnostic):
    """A kernel of several phases reads or writes an array before a later phase, or in the one that, sums into it."""

    code = "PK439"
    title = "`{array}` is used before it is summed over ranks"
    label = "summed here, from zero on"
    help = (
        "use another array for what an earlier phase reads or writes, or an element for each sum: constants tell them "
        "apart, and indices of loops with constant bounds, as in `{array}[i] += t`"
    )
    array: str


class CannotSplit(Diagnostic):
    """The schedule divides loops over a dimension among tasks, and there are none, or they cannot be divided."""

    code = "PK442"
    title = "`{key}` is not possible in `{kernel}`"
    label = "{reason}"
    help = (
        "loops over blocks of a dimension can be divided that carry sums, maxima, minima, and sums that grow with a"
        " maximum, such as those of a softmax"
    )
    key: str
    kernel: str
    reason: str


class CannotStraddle(Diagnostic):
    """The schedule lets blocks straddle the ranks' shards, and an access cannot."""

    code = "PK443"
    title = "`straddle=true` is not possible for {what}"
    label = "{reason}"
    help = "leave `straddle` out: blocks then end where the ranks' shards do"
    what: str
    reason: str


class UncountedBarrier(Diagnostic):
    """A barrier whose place among all barriers by its counter is not known before the kernel runs."""

    code = "PK444"
    title = "this barrier by `{signal}` cannot be counted"
    label = "{reason}"
    help = "give each barrier a separate counter, outside of branches and loops; or write `signal_all` and `wait`"
    signal: str
    reason: str


class UnorderedRole(Diagnostic):
    """A role that several CTAs, or several warp roles, carry out, in an order that cannot be kept."""

    code = "PK445"
    title = "the order of this {what} cannot be kept"
    label = "{reason}"
    help = "{hint}"
    what: str
    reason: str
    hint: str


class NotACopy(Diagnostic):
    """A copy engine has an operation that is neither a copy nor a counter's, or that the host cannot know."""

    code = "PK437"
    title = "a copy engine cannot do `{op}`"
    label = "the host enqueues all that a copy engine does before the kernel runs"
    help = "a copy engine copies, waits for counters and raises them; tiles and sums are for roles on SMs"
    op: str


class NotSharedOut(Diagnostic):
    """Some tasks of a kernel are shared out among CTAs and others are not."""

    code = "PK460"
    title = "these tasks are not shared out among the CTAs, but others of the kernel are"
    label = "every CTA would run all of them"
    help = "all `pk.tasks` of a kernel have `per_cta`, or none"


class NoQueue(Diagnostic):
    """The tasks of a kernel come from a queue, and it matters which CTA runs one, or when."""

    code = "PK477"
    title = "the tasks of `{kernel}` cannot come from a queue: {reason}"
    label = "`queue` stands here"
    help = "leave `queue` out: `pk-plan-queue` writes it where any CTA may take any task at any time"
    kernel: str
    reason: str


class ChannelEnds(Diagnostic):
    """A channel does not join exactly two roles."""

    code = "PK461"
    title = "the channel of `{channel}` has {count} {side} roles"
    label = "a channel has one at each end"
    channel: str
    count: int
    side: str


class ChannelOutOfOrder(Diagnostic):
    """In some block a stage is not acquired and then committed, or consumed and then released."""

    code = "PK462"
    title = "`{op}` out of order on the channel of `{channel}`"
    label = "its other half is missing in this block, or comes first"
    help = "a stage is acquired and then committed, or consumed and then released, in one block"
    channel: str
    op: str


class WaitNotCovered(Diagnostic):
    """A wait is for another number of signals than its counter gets, whatever the sizes."""

    code = "PK471"
    title = "`{array}` is awaited for {wanted}, and gets {sent}"
    label = "waits here"
    note = "both for each counter, by the end of launch number `epoch`"
    help = "each wait needs as many signals to its own rank as it counts"
    array: str
    wanted: str
    sent: str


class OrderOfOthers(Diagnostic):
    """An order of tasks that leaves some out and runs others twice."""

    code = "PK472"
    title = "these tasks are put in an order of another number of tasks"
    label = "some tasks are run twice, or never"
    help = "rotate an index by the count that it runs below, interleave it with the blocks that it counts"


class AddedAndRaised(Diagnostic):
    """Counters that some roles add to and others raise: the value that they reach depends on the order."""

    code = "PK473"
    title = "counters of `{array}` are both added to and raised"
    label = "raised here"
    help = "raise a counter that has one writer, add to one that has several"
    array: str


class NeverReleased(Diagnostic):
    """A signal is deferred and nothing in its block sends it, or a release is and nothing carries it out."""

    code = "PK474"
    title = "`{op}` is deferred, and nothing carries it out later"
    label = "deferred here"
    help = "`{needed}` behind it: {where}"
    op: str
    needed: str
    where: str


class UsedAfterRelease(Diagnostic):
    """A tile is used after its stage was released, when the producer may overwrite it."""

    code = "PK463"
    title = "a tile of the channel of `{channel}` is used after its stage is released"
    label = "the producer may have overwritten the stage by now"
    help = "release the stage after the last use of its tiles"
    channel: str
