"""Findings of the static layer of `pkc check` (PK480...)."""

from __future__ import annotations

from pkc.diagnostics import Diagnostic


class CyclicWait(Diagnostic):
    """Roles wait for signals or stages that each would send only after its own wait."""

    code = "PK480"
    title = "cyclic wait in launch {launch}: {count} roles wait for each other"
    label = "waits here"
    note = "each waits for the next, the last for the first:{lines}"
    help = "signal before the wait, or from another role"
    launch: int
    count: int
    lines: str


class NotResident(Diagnostic):
    """Tasks of a role that an author wrote wait for tasks that no CTA has begun."""

    code = "PK487"
    title = "a task waits for one that begins only after it where a role has {ctas}"
    label = "waits here"
    note = "a CTA runs its tasks in order, each to its end:{lines}"
    help = (
        "wait for earlier tasks alone, or write a constant number of tasks, at most {resident}: these have a CTA each"
    )
    ctas: str
    resident: int
    lines: str


class NeverSatisfied(Diagnostic):
    """A wait counts more signals than all roles send."""

    code = "PK481"
    title = "{counter} of rank {rank} never reaches {wanted}: it gets {sent} by the end of launch {launch}"
    label = "waits here, for ever"
    note = "waiting:{lines}"
    help = "each wait needs as many signals to its own rank as it counts"
    counter: str
    rank: int
    wanted: int
    sent: int
    launch: int
    lines: str


class NotAllAwaited(Diagnostic):
    """A counter gets more signals than any wait counts, so that the wait may end before all have arrived."""

    code = "PK482"
    title = "{counter} of rank {rank} gets {sent} signals by the end of launch {launch}, but the wait counts {wanted}"
    label = "this wait may end before all have arrived"
    help = "wait for as many signals as are sent"
    counter: str
    rank: int
    sent: int
    wanted: int
    launch: int


class NeverAwaited(Diagnostic):
    """Signals that no role waits for."""

    code = "PK483"
    title = "nobody waits for {counter} of rank {rank}, which gets {sent} signals"
    label = "signalled here"
    help = "a `wait` is missing in front of what they announce; signals that announce nothing can go"
    counter: str
    rank: int
    sent: int


class TilesLeft(Diagnostic):
    """A channel is not empty when all roles have ended."""

    code = "PK484"
    title = "the channel of `{channel}` gets {committed} stages on rank {rank}, CTA {cta}, and {consumed} are consumed"
    label = "a channel must be empty at the end"
    help = "the roles at its two ends must run the same tasks and loops"
    channel: str
    committed: int
    rank: int
    cta: int
    consumed: int


class TasksNotOnce(Diagnostic):
    """The CTAs of a role run a task more than once, and so never run another."""

    code = "PK485"
    title = "the {role} of rank {rank} runs task {task} {times} times"
    label = "these tasks"
    help = "a task order must run each task once: rotate by the count of the same dimension"
    role: str
    rank: int
    task: str
    times: int


class OtherTasks(Diagnostic):
    """Two roles of one CTA that a channel joins run different tasks, or the same in different orders."""

    code = "PK486"
    title = "{first} and {second} of CTA {cta} of rank {rank} run different tasks: {one} and {other}, after {number}"
    label = "this order of tasks"
    help = "roles of a CTA that a channel joins must run the same tasks in the same order"
    first: str
    second: str
    cta: int
    rank: int
    one: str
    other: str
    number: int
