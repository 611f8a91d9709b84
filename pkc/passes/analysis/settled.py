"""Whether an element of an array is the same for all roles that read it, though the kernel writes the array."""

from __future__ import annotations

from xdsl.dialects.builtin import UnitAttr

from pkc.dialect.access import ReadOp
from pkc.dialect.program import WRITTEN, KernelOp
from pkc.passes.analysis.dependence import writes
from pkc.passes.build import phase_of

_OUTSIDE = "outside_tasks"
"""On an element that is read in front of all tasks: for tasks that come later it stays what it was there."""


def mark_outside(kernel: KernelOp) -> None:
    """Write on elements of arrays which the kernel writes that they are read outside of tasks, before copies of them
    are made elsewhere."""
    for op in kernel.body.block.ops:
        if isinstance(op, ReadOp) and any(map(writes, op.array.uses)):
            op.attributes[_OUTSIDE] = UnitAttr()


def unsettled(kernel: KernelOp, op: ReadOp) -> tuple[str, str]:
    """Why an element may not be what it stays while the phase runs that reads it, and what to write instead; empty if
    it is.

    Nobody writes the array, or tasks of other phases alone. `pk-order-phases` lets each role that reads it wait for the
    phases before, and those that write it later for this one.
    """
    writing = [use.operation for use in op.array.uses if writes(use)]
    phases, own = {phase_of(other) for other in writing}, phase_of(op)
    if not writing or (own is not None and _OUTSIDE not in op.attributes and phases.isdisjoint((None, own))):
        return "", ""
    if _OUTSIDE in op.attributes:
        return (
            "before `tasks` write it",
            "store it to a scratch array there, `kept[0] = count[0]`, and read that in `tasks`",
        )
    if own in phases and WRITTEN not in kernel.attributes:
        return "which the same `tasks` write", "write it in `tasks` of its own, before these"
    return "which a role writes", "write the array in a kernel of its own, before this one"
