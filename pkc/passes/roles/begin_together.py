"""The pass `pk-begin-together`: the first tasks of lists begin when the rows of all of them have come."""

from __future__ import annotations

from xdsl.dialects import scf
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Block, Region, SSAValue

from pkc.dialect.attributes import Role, RoleAttr
from pkc.dialect.coordinates import CtasOp
from pkc.dialect.counters import RaiseOp, WaitOp
from pkc.dialect.program import KernelOp, TasksOp
from pkc.dialect.tile import AnyMmaOp
from pkc.passes.analysis.dependence import ancestors, role_around, sources
from pkc.passes.build import before, computes
from pkc.passes.integers import Integers
from pkc.passes.kernel_pass import KernelPass
from pkc.passes.program_slices import Known, can_copy
from pkc.remarks import missed


class BeginTogether(KernelPass):
    """Let tasks in lists, which wait for rows that come list by list, begin when the last row has come that a first
    task of some CTA needs.

    Tasks of a list share the other operand of their matmuls, such as an expert's weights. CTAs that are at the same
    place of it at the same time read it from the L2 cache, all but one of them. Those that began when their own rows
    came stay apart from then on, as all tasks take the same time, and read it from memory again: a dispatch of 32,768
    tokens to 256 experts on 4 GPUs had 25 per cent fewer tasks in a millisecond, long after all rows had come.

    The wait is for one counter, the last that the last of the first tasks awaits. It decides about time alone: each
    task still waits for its rows. Rows that come later are there before they are needed if the link brings them faster
    than they are computed with.

    Before:

        pk.tasks (%e) in (%experts) {
          pk.tasks (%i, %j) in (%blocks, %columns) {
            scf.for %s = %zero to %steps step %one {
              scf.if %first_of_group {
                pk.wait %X_ready[%e, %block, %group] for %one : ...

    After:

        %last, %before = scf.for %l = %zero to %some step %one iter_args(%found = %none, %tasks = %zero) { ... }
        scf.if %any {
          pk.wait %X_ready[%last, %last_block, %last_group] for %one : ...
        }
        pk.tasks (%e) in (%experts) {
    """

    name = "pk-begin-together"

    def run(self, kernel: KernelOp) -> None:
        for tasks in list(kernel.walk()):
            if not isinstance(tasks, TasksOp) or tasks.outermost is not tasks or not computes(tasks, kernel):
                continue
            waits = [op for op in tasks.walk() if isinstance(op, WaitOp) and _comes_by_lists(tasks, op)]
            if not waits or not any(isinstance(op, AnyMmaOp) for op in tasks.walk()):
                continue
            if len(tasks.counts) > 1:
                reason = f"lists have {len(tasks.counts)} indices, and it is not known which are the first ones"
                missed(self.name, tasks, f"each task begins when its rows have come: {reason}")
                continue
            for wait in {wait.signal: wait for wait in waits}.values():
                _begin(tasks, wait)


def _comes_by_lists(tasks: TasksOp, wait: WaitOp) -> bool:
    """Whether a task in a list waits for a counter of that list, which a communicator raises."""
    inner = next((parent for parent in ancestors(wait) if isinstance(parent, TasksOp)), None)
    if inner is None or inner is tasks or inner.parent_op() is not tasks:
        return False
    raised = [use.operation for use in wait.signal.uses if isinstance(use.operation, RaiseOp)]
    roles = [role_around(op) for op in raised]
    if not raised or not all(role is not None and role.role.data is Role.Communicator for role in roles):
        return False
    lists = tasks.body.block.args
    variables = [*lists, *inner.body.block.args, *_loops(wait)]
    return not sources(wait.indices).isdisjoint(lists) and can_copy([*wait.indices, wait.count], variables)


def _loops(wait: WaitOp) -> dict[SSAValue, SSAValue]:
    """The variables of the loops around a wait, and where they end."""
    loops = [parent for parent in ancestors(wait) if isinstance(parent, scf.ForOp)]
    return {loop.body.block.args[0]: loop.ub for loop in loops}


def _begin(tasks: TasksOp, wait: WaitOp) -> None:
    """Wait before the tasks for the last counter that first tasks of the CTAs await."""
    inner = next(parent for parent in ancestors(wait) if isinstance(parent, TasksOp))
    ahead = Integers(tasks)
    zero, one, none = map(ahead.number, (0, 1, -1))
    ctas = ahead.made(CtasOp(RoleAttr(Role.Consumer)))
    lists = ahead.least(tasks.counts[0], _most(ahead, inner, ctas))
    last = ahead.made(scf.ForOp(zero, lists, one, [none, zero], _last_to_begin(tasks, inner, ctas)))
    there = scf.IfOp(ahead.compare("sge", last, zero), [], Region(Block([end := scf.YieldOp()])), Region())
    before(tasks, [there])
    end.location = wait.location
    branch, known = Integers(end), Known({tasks.body.block.args[0]: last})
    ends = dict(zip(inner.body.block.args, inner.counts, strict=True))
    for variable, stop in (*ends.items(), *_loops(wait).items()):
        known[variable] = branch.minus(branch.copied(stop, known), branch.number(1))
    places = [branch.copied(index, known) for index in wait.indices]
    before(end, [WaitOp(wait.signal, places, branch.copied(wait.count, known))])


def _last_to_begin(tasks: TasksOp, inner: TasksOp, ctas: SSAValue) -> Region:
    """A loop over lists that carries the last one with tasks that begins before each CTA has one; -1 if none does."""
    body = Block([end := scf.YieldOp()], arg_types=[IndexType()] * 3)
    end.location = tasks.location
    number, last, passed = body.args
    build, known = Integers(end), Known({tasks.body.block.args[0]: number})
    every = build.product([build.copied(count, known) for count in inner.counts])
    takes = build.both(build.compare("sgt", every, build.number(0)), build.compare("slt", passed, ctas))
    end.operands = [build.chosen(takes, number, last), build.plus(passed, every)]
    return Region(body)


def _most(build: Integers, inner: TasksOp, ctas: SSAValue) -> SSAValue:
    """The most lists that the first tasks of the CTAs are in: one that has tasks has a task for each column."""
    one, columns = build.number(1), [count for count in inner.counts if can_copy([count], ())]
    each = build.most(build.product([build.copied(count, Known()) for count in columns]), one)
    return build.over(build.plus(ctas, build.minus(each, one)), each)
