"""The pass `pk-unroll-phases`: a loop around tasks, of a constant number of iterations, is written out."""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.dialects import scf
from xdsl.ir import Operation

from pkc.dialect.program import KernelOp, TasksOp
from pkc.passes.kernel_pass import KernelPass
from pkc.passes.tile.write_out import iterations, write_out
from pkc.remarks import missed

_MOST = 64
"""So many `tasks` a kernel may have that its loops are written out for: each is compiled for itself."""


class UnrollPhases(KernelPass):
    """Write out loops around `pk.tasks` that stand outside of tasks, where constants say how many iterations they have.

    So the steps of an iteration are a sequence of phases, of which roles can be derived. Loops of more than 64 phases,
    and those of which a run-time value says how long they are, are left for whoever derives roles to refuse.

    Before:

        scf.for %i = %zero to %two step %one {
          pk.tasks (%j) in (%rows) { ... pk.store %t, %Y[%i, %m : ...] : ... }
        }

    After:

        %first = arith.constant 0 : index
        pk.tasks (%j) in (%rows) { ... pk.store %t, %Y[%first, %m : ...] : ... }
        %second = arith.constant 1 : index
        pk.tasks (%j) in (%rows) { ... pk.store %t, %Y[%second, %m : ...] : ... }
    """

    name = "pk-unroll-phases"

    def run(self, kernel: KernelOp) -> None:
        if kernel.roles:
            return
        todo = _loops(kernel.body.block.ops)
        while todo:
            loop = todo.pop()
            numbers, tasks = iterations(loop), sum(isinstance(op, TasksOp) for op in loop.walk())
            if numbers is None:
                missed(self.name, loop, "a run-time value says how many iterations this loop around `tasks` has")
            elif len(numbers) * tasks > _MOST:
                missed(self.name, loop, f"this loop has {len(numbers) * tasks} `tasks` written out, more than {_MOST}")
            else:
                todo += _loops(write_out(loop, numbers))


def _loops(ops: Iterable[Operation]) -> list[scf.ForOp]:
    """Those around tasks."""
    return [op for op in ops if isinstance(op, scf.ForOp) and any(isinstance(inner, TasksOp) for inner in op.walk())]
