"""The pass `pk-unroll-phases`: a loop around tasks, of a constant number of iterations, is written out."""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.dialects import scf
from xdsl.ir import Block, Operation, SSAValue

from pkc.dialect.program import KernelOp, TasksOp
from pkc.dialect.scalars import constant_of
from pkc.passes.build import append_copy, constant
from pkc.passes.kernel_pass import KernelPass
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
            numbers, tasks = _iterations(loop), sum(isinstance(op, TasksOp) for op in loop.walk())
            if numbers is None:
                missed(self.name, loop, "a run-time value says how many iterations this loop around `tasks` has")
            elif len(numbers) * tasks > _MOST:
                missed(self.name, loop, f"this loop has {len(numbers) * tasks} `tasks` written out, more than {_MOST}")
            else:
                todo += _loops(_write_out(loop, numbers))


def _loops(ops: Iterable[Operation]) -> list[scf.ForOp]:
    """Those around tasks."""
    return [op for op in ops if isinstance(op, scf.ForOp) and any(isinstance(inner, TasksOp) for inner in op.walk())]


def _iterations(loop: scf.ForOp) -> range | None:
    first, end, step = map(constant_of, (loop.lb, loop.ub, loop.step))
    return None if first is None or end is None or not step else range(first, end, step)


def _write_out(loop: scf.ForOp, numbers: range) -> list[Operation]:
    """The operations that stand in place of a loop."""
    variable, *carried = loop.body.block.args
    values: list[SSAValue] = list(loop.iter_args)
    made = Block()
    for number in numbers:
        which = constant(number)
        which.location = loop.location
        made.add_op(which)
        known: dict[SSAValue, SSAValue] = {variable: which.result, **dict(zip(carried, values, strict=True))}
        *body, last = loop.body.block.ops
        for op in body:
            append_copy(made, op, known)
        values = [known.get(value, value) for value in last.operands]
    for result, value in zip(loop.results, values, strict=True):
        result.replace_all_uses_with(value)
    block = loop.parent
    assert block is not None
    ops = list(made.ops)
    for op in ops:
        op.detach()
        block.insert_op_before(op, loop)
    loop.detach()
    loop.erase()
    return ops
