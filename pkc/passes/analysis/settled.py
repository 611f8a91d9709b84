"""Whether an element of an array is the same for all roles that read it, though the kernel writes the array."""

from __future__ import annotations

from xdsl.dialects import scf
from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Operation, SSAValue

from pkc.dialect.access import ReadOp
from pkc.dialect.counters import SignalAllOp, SignalOp
from pkc.dialect.program import WRITTEN, KernelOp, TasksOp
from pkc.passes.analysis.dependence import ancestors, writes
from pkc.passes.build import phase_of

_OUTSIDE = "outside_tasks"
"""On an element that is read in front of all tasks: for tasks that come later it stays what it was there."""


_SETTLED = "settled"
"""On an element that a role of an author reads: it is the same for all roles that become of this one."""


def mark_outside(kernel: KernelOp) -> None:
    """Write on elements of arrays which the kernel writes that they are read outside of tasks, before copies of them
    are made elsewhere."""
    for op in kernel.body.block.ops:
        if isinstance(op, ReadOp) and any(map(writes, op.array.uses)):
            op.attributes[_OUTSIDE] = UnitAttr()


def mark_settled(kernel: KernelOp) -> None:
    """Write on elements that roles of an author read, of arrays which the kernel writes, that they stay what they are
    until all parts of the role have read them.

    So it is where the role sends no signal behind them, and does not write the array: nobody can know that they have
    been read, and write others, before the launch is over.
    """
    for role in kernel.roles:
        order = list(role.walk())
        for place, op in enumerate(order):
            if not isinstance(op, ReadOp) or not any(map(writes, op.array.uses)):
                continue
            around = [each for each in ancestors(op) if isinstance(each, scf.ForOp | TasksOp)]
            again = [each for each in order[:place] if any(loop.is_ancestor(each) for loop in around)]
            if not any(_ends(each, op.array) for each in (*order[place:], *again)):
                op.attributes[_SETTLED] = UnitAttr()


def _ends(op: Operation, array: SSAValue) -> bool:
    """Whether an operation lets others write an array, or does it itself."""
    if isinstance(op, SignalOp | SignalAllOp):
        return True
    return any(use.operation is op and writes(use) for use in array.uses)


def unsettled(kernel: KernelOp, op: ReadOp) -> tuple[str, str]:
    """Why an element may not be what it stays while the phase runs that reads it, and what to write instead; empty if
    it is.

    Nobody writes the array, or tasks of other phases alone. `pk-order-phases` lets each role that reads it wait for the
    phases before, and those that write it later for this one.
    """
    writing = [use.operation for use in op.array.uses if writes(use)]
    if not writing or _SETTLED in op.attributes:
        return "", ""
    phases, own = {phase_of(other) for other in writing}, phase_of(op)
    if own is not None and _OUTSIDE not in op.attributes and phases.isdisjoint((None, own)):
        return "", ""
    if _OUTSIDE in op.attributes:
        return (
            "before `tasks` write it",
            "store it to a scratch array there, `kept[0] = count[0]`, and read that in `tasks`",
        )
    if own in phases and WRITTEN not in kernel.attributes:
        return "which the same `tasks` write", "write it in `tasks` of its own, before these"
    what = "which the kernel writes, by a role that signals behind it or writes the array"
    return what, "write the array in a kernel of its own, before this one"
