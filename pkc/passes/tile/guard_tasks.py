"""The pass `pk-guard-tasks`: a branch around tasks becomes one inside of each task."""

from __future__ import annotations

from xdsl.dialects import scf
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.traits import is_side_effect_free

from pkc.dialect.program import KernelOp, TasksOp
from pkc.passes.kernel_pass import KernelPass
from pkc.remarks import missed


class GuardTasks(KernelPass):
    """Put the condition of a branch around `pk.tasks`, outside of tasks, into each of them, and its opposite into those
    of the other branch. So tasks are phases, of which roles can be derived, whatever memory says.

    Branches that store, read or carry something beside their tasks are left for whoever derives roles to refuse.

    Before:

        scf.if %live {
          pk.tasks (%i) in (%rows) { ... pk.store %t, %Y[%m : ...] : ... }
        }

    After:

        pk.tasks (%i) in (%rows) {
          scf.if %live { ... pk.store %t, %Y[%m : ...] : ... }
        }
    """

    name = "pk-guard-tasks"

    def run(self, kernel: KernelOp) -> None:
        if kernel.roles:
            return
        for op in list(kernel.body.block.ops):
            if not isinstance(op, scf.IfOp) or not _runs_tasks(op):
                continue
            if _has_only_tasks(op):
                _put_inside(op)
            else:
                missed(self.name, op, "this branch does more than run `tasks`")


def _runs_tasks(op: Operation) -> bool:
    return any(isinstance(inner, TasksOp) for inner in op.walk())


def _bodies(op: scf.IfOp) -> list[tuple[Block, bool]]:
    regions = ((op.true_region, True), (op.false_region, False))
    return [(region.block, holds) for region, holds in regions if region.blocks]


def _has_only_tasks(op: scf.IfOp) -> bool:
    inside = [inner for body, _ in _bodies(op) for inner in body.ops if not isinstance(inner, scf.YieldOp)]
    return not op.results and all(
        isinstance(inner, TasksOp) or (is_side_effect_free(inner) and not inner.regions) for inner in inside
    )


def _put_inside(op: scf.IfOp) -> None:
    block = op.parent
    assert block is not None
    for body, holds in _bodies(op):
        for inner in list(body.ops):
            if isinstance(inner, scf.YieldOp):
                continue
            inner.detach()
            block.insert_op_before(inner, op)
            if isinstance(inner, TasksOp):
                _guard(inner, op.cond, op, holds=holds)
    op.detach()
    op.erase()


def _guard(tasks: TasksOp, condition: SSAValue, origin: scf.IfOp, *, holds: bool) -> None:
    """Let tasks, or those directly inside of them, do what they do only under a condition."""
    body = tasks.body.block
    nested = [op for op in body.ops if isinstance(op, TasksOp)]
    for inner in nested:
        _guard(inner, condition, origin, holds=holds)
    if nested:
        return
    guarded, empty = Block(), Block([scf.YieldOp()])
    for op in list(body.ops):
        op.detach()
        guarded.add_op(op)
    guarded.add_op(scf.YieldOp())
    taken, other = (guarded, empty) if holds else (empty, guarded)
    made = scf.IfOp(condition, [], Region(taken), None if holds else Region(other))
    for each in (made, taken.last_op, other.last_op):
        if each is not None:
            each.location = origin.location
    body.add_op(made)
