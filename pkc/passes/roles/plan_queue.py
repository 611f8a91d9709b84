"""The pass `pk-plan-queue`: tasks go to whichever CTA is done with one."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import BoolAttr, IntegerAttr, ModuleOp, i64

from pkc.dialect.attributes import planned
from pkc.dialect.program import CLUSTER, PER_CTA, QUEUE, KernelOp, RoleOp, TasksOp
from pkc.dialect.scalars import constant_of
from pkc.dialect.tile import AnyMmaOp
from pkc.dialect.types import SignalType
from pkc.location import describe
from pkc.passes.kernel_pass import KernelPass
from pkc.passes.roles.budgets import queue_bytes, shared_memory
from pkc.passes.roles.remote_accesses import reached
from pkc.remarks import missed
from pkc.targets.target import target_of

PLACES = 8
"""So many tasks the first role of a CTA can be ahead of its last one: more than there are stages between them."""

TAKE = "take_number"
"""The instruction that takes the next number from a counter of the GPU."""


class PlanQueue(KernelPass):
    """Let CTAs take their tasks from a queue, where memory is what these wait for.

    With equal shares, CTA c of n takes tasks c, c + n, ... Not all SMs reach memory equally fast, and some are done
    with their share long before the others. From a queue each CTA takes the next task when it has room for it; the
    first one is that of its number. Only tasks that nothing orders can go to any CTA: those of a kernel with one phase,
    which tells no other rank or CTA anything. A single task needs no queue. Where MMAs are the limit, which are equally
    fast on all SMs, shares are equal unless the schedule says `queue=true`.

    Before:

        pk.kernel @copy(...) attributes {derived, ...} {
          pk.role loader ... { pk.tasks (%m) in (%count) attributes {per_cta} { ... } }
          pk.role storer ... { pk.tasks (%m) in (%count) attributes {per_cta} { ... } }
        }

    After:

        pk.kernel @copy(...) attributes {derived, queue = 8 : i64, ...} { ... }
    """

    name = "pk-plan-queue"
    ONLY_DERIVED = True

    def run(self, kernel: KernelOp) -> None:
        said = kernel.schedule.get(QUEUE)
        if said == BoolAttr.from_bool(False):
            return
        ordered = _order(kernel)
        if said is None and (ordered or _is_single(kernel) or any(isinstance(op, AnyMmaOp) for op in kernel.walk())):
            return
        obstacle = ordered or _obstacle(kernel)
        if not obstacle:
            kernel.attributes[QUEUE] = IntegerAttr(PLACES, i64)
            return
        what = "each CTA has an equal share of the tasks" if said is None else "`queue=true` changes nothing"
        missed(PlanQueue.name, kernel, f"{what}: {obstacle}")


@dataclass(frozen=True)
class QueueExplanation:
    """Why the tasks of a kernel come from a queue, for so many of which a CTA has places."""

    place: str
    places: int
    why: str

    def __str__(self) -> str:
        return f"{self.place}: tasks from a queue, {self.places} places in each CTA ({self.why})"


def explain_queue(module: ModuleOp) -> list[QueueExplanation]:
    """The queues that the pass has given to kernels."""
    found = [op for op in module.walk() if isinstance(op, KernelOp) and QUEUE in op.attributes]
    return [QueueExplanation(describe(op.location), planned(op, QUEUE), _why(op)) for op in found]


def _why(kernel: KernelOp) -> str:
    return "the schedule says so" if QUEUE in kernel.schedule else "not all SMs reach memory equally fast"


def _order(kernel: KernelOp) -> str:
    """What orders the tasks of a kernel; empty if any CTA may take any of them at any time."""
    if any(isinstance(arg.type, SignalType) for arg in kernel.body.block.args):
        return "signals order them"
    return "they reach other ranks" if any(any(reached(role)) for role in kernel.roles) else ""


def _obstacle(kernel: KernelOp) -> str:
    """Why CTAs cannot take the tasks of a kernel from a queue, though nothing orders these; empty if they can."""
    target = target_of(kernel)
    if target.instruction(TAKE) is None:
        return f"{target.name} has no instruction that takes a number"
    if _is_single(kernel):
        return "there is a single task"
    if reason := _shared(kernel):
        return reason
    has_room = shared_memory(kernel) + queue_bytes(PLACES, target) <= target.stage_memory
    return "" if has_room else "shared memory has no room for their numbers"


def _shared(kernel: KernelOp) -> str:
    """Why roles or CTAs would not go through the same tasks."""
    if CLUSTER in kernel.attributes:
        return "clusters of CTAs take them"
    with_tasks = [role for role in kernel.roles if _tasks(role)]
    if not with_tasks:
        return "there are none"
    return "" if all(map(_has_one_set, with_tasks)) else "the kernel has several sets of them"


def cannot_have_queue(kernel: KernelOp) -> str:
    """Why the tasks of a kernel must not come from a queue; empty if they may."""
    return _order(kernel) or _shared(kernel)


def _tasks(role: RoleOp) -> list[TasksOp]:
    """The sets of tasks of a role; none if it only loads what stays for all of them."""
    return [op for op in role.walk() if isinstance(op, TasksOp)]


def _is_single(kernel: KernelOp) -> bool:
    """Whether a kernel has a single task."""
    return all(constant_of(count) == 1 for role in kernel.roles for tasks in _tasks(role) for count in tasks.counts)


def _has_one_set(role: RoleOp) -> bool:
    """Whether the tasks of a role are those of one set, in which no others are."""
    tasks = _tasks(role)
    return len(tasks) == 1 and PER_CTA in tasks[0].attributes and tasks[0].parent_op() is role
