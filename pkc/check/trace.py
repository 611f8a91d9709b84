"""What a warp role does to counters and channels, in order.

Loops, branches and counts of a role depend on the rank, the CTA, the launch, sizes, and integers that the caller gives,
never on when others run. So each warp role has one sequence of events in every order. It is found by evaluating its
integers alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from xdsl.ir import Operation

from pkc.dialect.program import RoleOp, TasksOp
from pkc.location import describe

ADD, RAISE, WAIT, FORK, ARRIVE, ARRIVED, RESET = range(7)
"""Kinds of events: add to a counter, raise it, wait for it; begin tasks and wait for them; the halves of a barrier;
reset all counters of a name and a rank to zero."""

Counter: TypeAlias = tuple[str, int, tuple[int, ...]]
"""A name, a rank, indices. For a channel: `full` or `free` with its label and number, a rank, a CTA."""

Event: TypeAlias = tuple[int, Counter, int, Operation]
"""A kind, a counter, a number, and the operation of the event."""


Visit: TypeAlias = tuple[TasksOp, tuple[int, ...], tuple["int | None", ...]]
"""A task: its indices, outermost first, and for each that is reordered the number of the block that it picks."""


@dataclass(eq=False)
class WarpRole:
    """One role of one CTA of one rank in one launch, or a task that an author's role runs beside others."""

    rank: int
    role: RoleOp
    cta: int | None
    events: list[Event] = field(default_factory=list[Event])
    children: list[WarpRole] = field(default_factory=list["WarpRole"])
    """The warp roles that its `FORK` events begin, in order; the number of an event says how many."""
    visits: list[Visit] = field(default_factory=list["Visit"])
    """The tasks it runs, in order."""

    def where(self, op: Operation) -> str:
        """The warp role at one of its operations, in words."""
        cta = "" if self.cta is None else f" of CTA {self.cta}"
        return f"rank {self.rank}, {self.role.role.data}{cta}, {describe(op.location)}"

    def everyone(self) -> Iterator[WarpRole]:
        """This warp role and those that it begins."""
        yield self
        for child in self.children:
            yield from child.everyone()


def of_channel(counter: Counter) -> bool:
    """Whether a counter counts the stages of a channel."""
    return counter[0].startswith(("full stages of ", "free stages of "))


def counter_name(counter: Counter) -> str:
    """A counter as messages name it."""
    name, _, indices = counter
    return name if of_channel(counter) else f"`{name}[{', '.join(map(str, indices))}]`"
