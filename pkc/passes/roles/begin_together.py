"""The pass `pk-begin-together`: the first tasks of lists begin when the rows of all of them have come."""

from __future__ import annotations

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Block, Operation, Region, SSAValue

from pkc.dialect.attributes import Role, RoleAttr
from pkc.dialect.coordinates import CtasOp
from pkc.dialect.counters import RaiseOp, WaitOp
from pkc.dialect.program import KernelOp, TasksOp
from pkc.dialect.tile import AnyMmaOp
from pkc.passes.analysis.dependence import ancestors, role_around, sources
from pkc.passes.build import append, before, computes, constant
from pkc.passes.kernel_pass import KernelPass
from pkc.passes.program_slices import Known, can_copy, copy_value
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
    ahead = Block()
    zero, one, none = (_made(ahead, tasks, constant(number)) for number in (0, 1, -1))
    ctas = _made(ahead, tasks, CtasOp(RoleAttr(Role.Consumer)))
    lists = _made(ahead, tasks, arith.MinSIOp(tasks.counts[0], _most(ahead, tasks, inner, ctas)))
    body = Block(arg_types=[IndexType()] * 3)
    found = scf.ForOp(zero, lists, one, [none, zero], Region(body))
    append(ahead, found, wait.location)
    number, last, passed = body.args
    every = _product(body, tasks, inner, {tasks.body.block.args[0]: number})
    some = _made(body, tasks, arith.CmpiOp(every, zero, "sgt"))
    early = _made(body, tasks, arith.CmpiOp(passed, ctas, "slt"))
    takes = _made(body, tasks, arith.AndIOp(some, early))
    now = _made(body, tasks, arith.SelectOp(takes, number, last))
    append(body, scf.YieldOp(now, _made(body, tasks, arith.AddiOp(passed, every))), wait.location)
    final = found.results[0]
    any_at_all = _made(ahead, tasks, arith.CmpiOp(final, zero, "sge"))
    branch = Block()
    append(ahead, scf.IfOp(any_at_all, [], Region(branch), Region()), wait.location)
    known: Known = Known({tasks.body.block.args[0]: final})
    ends = dict(zip(inner.body.block.args, inner.counts, strict=True))
    for variable, end in (*ends.items(), *_loops(wait).items()):
        known[variable] = _made(branch, tasks, arith.SubiOp(copy_value(branch, end, known), one))
    places = [copy_value(branch, index, known) for index in wait.indices]
    append(branch, WaitOp(wait.signal, places, copy_value(branch, wait.count, known)), wait.location)
    append(branch, scf.YieldOp(), wait.location)
    for op in list(ahead.ops):
        op.detach()
        location = op.location
        before(tasks, [op])
        op.location = location


def _most(block: Block, tasks: TasksOp, inner: TasksOp, ctas: SSAValue) -> SSAValue:
    """The most lists that the first tasks of the CTAs are in: one that has tasks has a task for each column."""
    counts = [count for count in inner.counts if can_copy([count], ())]
    columns = _made(block, tasks, constant(1))
    for count in counts:
        columns = _made(block, tasks, arith.MuliOp(columns, copy_value(block, count, Known())))
    one = _made(block, tasks, constant(1))
    columns = _made(block, tasks, arith.MaxSIOp(columns, one))
    rounded = _made(block, tasks, arith.AddiOp(ctas, _made(block, tasks, arith.SubiOp(columns, one))))
    return _made(block, tasks, arith.DivSIOp(rounded, columns))


def _product(block: Block, tasks: TasksOp, inner: TasksOp, given: dict[SSAValue, SSAValue]) -> SSAValue:
    """How many tasks a list has."""
    known, product = Known(given), _made(block, tasks, constant(1))
    for count in inner.counts:
        product = _made(block, tasks, arith.MuliOp(product, copy_value(block, count, known)))
    return product


def _made(block: Block, tasks: TasksOp, op: Operation) -> SSAValue:
    return append(block, op, tasks.location).results[0]
