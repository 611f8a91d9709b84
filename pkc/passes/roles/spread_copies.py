"""The pass `pk-spread-copies`: the tiles of one awaited cell are copied by many CTAs at once."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass

from pkc.dialect.access import LoadOp, StoreOp
from pkc.dialect.attributes import Role
from pkc.dialect.counters import RaiseOp, SignalOp, WaitOp
from pkc.dialect.program import KernelOp, RoleOp, TasksOp
from pkc.passes.analysis.dependence import sources
from pkc.passes.cells import is_constant
from pkc.passes.derive import DERIVED, before
from pkc.passes.roles.program_slices import CannotCopyError, copy_value


@dataclass(frozen=True)
class SpreadCopies(ModulePass):
    """Make each turn of a communicator's loop over the tiles of a cell a task of its own.

    The cell is then complete when as many signals have come as the loop had turns: the first cell is not held up by
    what one CTA can copy, and no CTA has more to copy than another. For loops whose length every rank and task knows.

    Before:

        pk.tasks (%i) in (%rows) {
          scf.for %s = %zero to %n step %one {
            %a = pk.load %A[%m, %k : ...] : ...
            pk.store %a, %A_landing[%m, %k : ...] : ...
          }
          pk.raise %A_ready at %rank[%row] to %one : ...
        }
        ... pk.wait %A_ready[%row] for %one : ...

    After:

        pk.tasks (%i, %s) in (%rows, %n) {
          %a = pk.load %A[%m, %k : ...] : ...
          pk.store %a, %A_landing[%m, %k : ...] : ...
          pk.signal %A_ready at %rank[%row] by %one : ...
        }
        ... pk.wait %A_ready[%row] for %n : ...
    """

    name = "pk-spread-copies"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel in op.walk():
            if isinstance(kernel, KernelOp) and DERIVED in kernel.attributes:
                for part in [part for part in kernel.body.block.ops if isinstance(part, RoleOp)]:
                    if part.role.data is Role.Communicator:
                        _spread(part)


def _spread(part: RoleOp) -> None:
    all_tasks = [op for op in part.body.block.ops if isinstance(op, TasksOp)]
    if len(all_tasks) != 1:
        return
    tasks = all_tasks[0]
    loops = [op for op in tasks.body.block.ops if isinstance(op, scf.ForOp) and _loads(op)]
    announced = [op for op in tasks.walk() if isinstance(op, RaiseOp | SignalOp)]
    if len(loops) != 1 or len(announced) != 1 or not _only_copies(tasks, loops[0], announced[0]):
        return
    loop, sent = loops[0], announced[0]
    waits = [use.operation for use in sent.signal.uses if isinstance(use.operation, WaitOp)]
    if isinstance(sent, RaiseOp) and not all(is_constant(wait.count, 1) for wait in waits):
        return
    try:
        lengths = [_copied_before(wait, loop.ub) for wait in waits]
        count = _copied_before(tasks, loop.ub)
    except CannotCopyError:
        return
    for wait, length in zip(waits, lengths, strict=True):
        needed = length
        if isinstance(sent, SignalOp):  # several pieces of a cell, each with as many turns
            every = arith.MuliOp(wait.count, length)
            before(wait, [every])
            needed = every.result
        wait.operands = [needed if operand is wait.count else operand for operand in wait.operands]
    _replace(tasks, loop, count)


def _loads(op: Operation) -> bool:
    return any(isinstance(inner, LoadOp) for inner in op.walk())


def _only_copies(tasks: TasksOp, loop: scf.ForOp, sent: RaiseOp | SignalOp) -> bool:
    """Whether the turns of a loop copy tiles, each for itself, and no index of the tasks decides how many they are.

    What is announced is announced once behind the loop, or in a loop over the cells that were reached.
    """
    body = loop.body.block
    inner = [op for op in body.ops if isinstance(op, LoadOp | StoreOp | scf.ForOp | scf.IfOp)]
    simple = [type(op) for op in inner] == [LoadOp, StoreOp]
    counted = is_constant(loop.lb, 0) and is_constant(loop.step, 1) and not loop.iter_args
    independent = sources([loop.ub]).isdisjoint(tasks.body.block.args)
    if isinstance(sent, SignalOp):
        once = not loop.is_ancestor(sent) and is_constant(sent.amount, 1)
    else:
        once = sent.parent is tasks.body.block and is_constant(sent.value, 1)
    return simple and counted and independent and once


def _copied_before(anchor: Operation, value: SSAValue) -> SSAValue:
    """What `value` is computed from, once more in front of an operation."""
    scratch = Block()
    copy = copy_value(scratch, value, {})
    ops = list(scratch.ops)
    for op in ops:
        op.detach()
    before(anchor, ops)
    return copy


def _replace(tasks: TasksOp, loop: scf.ForOp, count: SSAValue) -> None:
    """New tasks, one for each turn of the loop, which signal instead of raising."""
    old = tasks.body.block
    body = Block(arg_types=[*(arg.type for arg in old.args), loop.body.block.args[0].type])
    pairs = [*zip(old.args, body.args[:-1], strict=True), (loop.body.block.args[0], body.args[-1])]
    for before_, after in pairs:
        after.name_hint = before_.name_hint
        before_.replace_all_uses_with(after)
    for op in list(old.ops):
        op.detach()
        if op is loop:
            for inner in list(loop.body.block.ops):
                inner.detach()
                if not isinstance(inner, scf.YieldOp):
                    body.add_op(inner)
        elif isinstance(op, RaiseOp):
            signal = SignalOp(op.signal, tuple(op.indices), op.rank, op.value)
            signal.location = op.location
            body.add_op(signal)
            op.drop_all_references()
        else:
            body.add_op(op)
    spread = TasksOp([*tasks.counts, count], Region(body))
    spread.attributes |= tasks.attributes
    spread.location = tasks.location
    block = tasks.parent
    assert block is not None
    block.insert_op_before(spread, tasks)
    loop.drop_all_references()
    tasks.detach()
    tasks.erase(safe_erase=False)
