"""Copies of parts of a program: what a value is computed from, and the loops that make an address vary."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from xdsl.dialects import scf
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Block, BlockArgument, Operation, Region, SSAValue

from pkc.dialect.program import KernelOp, TasksOp
from pkc.passes.analysis.dependence import ancestors, sources
from pkc.passes.cells import constant
from pkc.passes.splits import part_of

Known = dict[SSAValue, SSAValue]
"""What stands for each value of the original in the copy."""


class CannotCopyError(Exception):
    """A copy cannot have all that a value depends on: a carried variable, a branch, a count that varies."""


def copy_value(block: Block, value: SSAValue, known: Known) -> SSAValue:
    """Append to `block` what `value` is computed from, as far as it is not known there; the copy of `value`."""
    if value in known:
        return known[value]
    owner = value.owner
    if isinstance(owner, Block):
        if isinstance(owner.parent_op(), KernelOp):
            return value
        raise CannotCopyError
    if owner.regions:
        raise CannotCopyError
    for operand in owner.operands:
        known[operand] = copy_value(block, operand, known)
    copy = owner.clone(value_mapper=known)
    copy.location = owner.location
    block.add_op(copy)
    return known[value]


def variables(op: Operation, values: Iterable[SSAValue]) -> list[SSAValue]:
    """The variables of the loops and tasks around `op` on which `values` depend, outermost first."""
    needed = needed_by(op, values)
    found: list[SSAValue] = []
    for parent in reversed(list(ancestors(op))):
        if isinstance(parent, TasksOp):
            found += [index for index in parent.body.block.args if index in needed]
        elif isinstance(parent, scf.ForOp) and parent.body.block.args[0] in needed:
            found.append(parent.body.block.args[0])
    return found


def copy_nest(block: Block, op: Operation, wanted: Sequence[SSAValue], known: Known) -> Block:
    """Append the loops and tasks around `op` that the `wanted` variables belong to; the innermost body.

    The copied loops have no terminators yet: `close_loops` adds them when the body is complete.
    """
    indices = set(wanted)
    for parent in reversed(list(ancestors(op))):
        if isinstance(parent, TasksOp):
            block = _copy_tasks(block, parent, indices, known)
        elif isinstance(parent, scf.ForOp) and parent.body.block.args[0] in indices:
            block = _copy_for(block, parent, known)
        elif isinstance(parent, scf.IfOp):
            raise CannotCopyError
    return block


def close_loops(block: Block) -> None:
    """Give every loop in `block` that carries nothing its terminator."""
    for op in block.walk():
        if isinstance(op, scf.ForOp) and not isinstance(op.body.block.last_op, scf.YieldOp):
            _add(op.body.block, scf.YieldOp(), op)


def needed_by(op: Operation, values: Iterable[SSAValue]) -> set[SSAValue]:
    """All that `values`, which `op` uses, depend on, through the counts of tasks too.

    Of a loop that goes through one part of its turns the number of that part does not count: what is done for all parts
    alike is done for all turns.
    """
    found = _sources(op, values)
    tasks = [parent for parent in ancestors(op) if isinstance(parent, TasksOp)]
    while True:
        counts = [
            count
            for parent in tasks
            for index, count in zip(parent.body.block.args, parent.counts, strict=True)
            if index in found and count not in found
        ]
        if not counts:
            return found
        found |= sources(counts)


def _sources(op: Operation, values: Iterable[SSAValue]) -> set[SSAValue]:
    parts = {loop: part_of(loop) for loop in ancestors(op) if isinstance(loop, scf.ForOp)}
    bounds = {bound for loop, part in parts.items() if part is not None for bound in (loop.lb, loop.ub)}
    found = sources(values, given=bounds)
    turns = [part.turns for loop, part in parts.items() if part is not None and loop.body.block.args[0] in found]
    return found | sources(turns)


def _copy_tasks(block: Block, tasks: TasksOp, indices: set[SSAValue], known: Known) -> Block:
    chosen = [i for i, argument in enumerate(tasks.body.block.args) if argument in indices]
    if not chosen:
        return block
    counts = [copy_value(block, tasks.counts[i], known) for i in chosen]
    body = Block(arg_types=[IndexType()] * len(chosen))
    _add(block, TasksOp(counts, Region(body)), tasks)
    known |= {tasks.body.block.args[i]: argument for i, argument in zip(chosen, body.args, strict=True)}
    _keep_names(tasks.body.block.args, known)
    return body


def _copy_for(block: Block, loop: scf.ForOp, known: Known) -> Block:
    part = part_of(loop)
    if part is None or part.index in known:
        first, last = copy_value(block, loop.lb, known), copy_value(block, loop.ub, known)
    else:
        start = constant(0)
        _add(block, start, loop)
        first, last = start.result, copy_value(block, part.turns, known)
    step = copy_value(block, loop.step, known)
    body = Block(arg_types=[IndexType()])
    known[loop.body.block.args[0]] = body.args[0]
    _keep_names(loop.body.block.args[:1], known)
    _add(block, scf.ForOp(first, last, step, [], body), loop)
    return body


def _keep_names(arguments: Sequence[BlockArgument], known: Known) -> None:
    for argument in arguments:
        if argument in known:
            known[argument].name_hint = argument.name_hint


def _add(block: Block, op: Operation, origin: Operation) -> None:
    op.location = origin.location
    block.add_op(op)
