"""Program slices: copies of what a value is computed from, and of the loops that make an address vary."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from xdsl.dialects import scf
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Block, BlockArgument, Operation, Region, SSAValue

from pkc.dialect.access import READING
from pkc.dialect.program import KernelOp, TasksOp, is_scalar
from pkc.passes.analysis.dependence import all_iterations, ancestors, first_iteration, sources
from pkc.passes.build import constant, is_constant
from pkc.passes.splits import split_of

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


def can_copy(values: Iterable[SSAValue], given: Sequence[SSAValue]) -> bool:
    """Whether other tasks can compute values, too, if they are given some."""
    scratch, known = Block(), dict(zip(given, given, strict=True))
    try:
        for value in values:
            copy_value(scratch, value, known)
    except CannotCopyError:
        return False
    finally:
        scratch.erase()
    return True


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


def iterations_of(variable: SSAValue) -> SSAValue:
    """How many values the variable of a loop from 0 in steps of 1, or of tasks, takes; in all splits of a loop, and in
    all tasks."""
    assert isinstance(variable, BlockArgument)
    loop = variable.owner.parent_op()
    if isinstance(loop, TasksOp):
        return loop.counts[variable.index]
    assert isinstance(loop, scf.ForOp)
    split = split_of(loop)
    return all_iterations(loop) if split is None else split.iterations


def from_zero(variable: SSAValue) -> bool:
    """Whether the variable of a loop or tasks takes each value from 0 up, all splits of its iterations together."""
    assert isinstance(variable, BlockArgument)
    loop = variable.owner.parent_op()
    if not isinstance(loop, scf.ForOp) or split_of(loop) is not None:
        return True
    return is_constant(first_iteration(loop), 0) and is_constant(loop.step, 1)


def copy_nest(
    block: Block, op: Operation, wanted: Sequence[SSAValue], known: Known, spread: Sequence[SSAValue] = ()
) -> Block:
    """Append the loops and tasks around `op` that the `wanted` variables belong to; the innermost body.

    Loops in `spread` become indices of the innermost tasks; nothing else may decide how many iterations they have. The
    copied loops have no terminators yet: `close_loops` adds them when the body is complete.
    """
    indices = set(wanted)
    around = list(reversed(list(ancestors(op))))
    tasks = [parent for parent in around if isinstance(parent, TasksOp)]
    holder = [parent for parent in tasks if indices.intersection(parent.body.block.args)] or tasks
    for parent in around:
        if isinstance(parent, TasksOp):
            block = _copy_tasks(block, parent, indices, known, spread if parent is holder[-1] else ())
        elif isinstance(parent, scf.ForOp) and parent.body.block.args[0] in indices.difference(spread):
            block = _copy_for(block, parent, known)
        elif isinstance(parent, scf.IfOp):
            raise CannotCopyError
    return block


def close_loops(block: Block) -> None:
    """Give every loop and branch in `block` that carries nothing its terminator."""
    for op in block.walk():
        body = op.body if isinstance(op, scf.ForOp) else op.true_region if isinstance(op, scf.IfOp) else None
        if body is not None and not isinstance(body.block.last_op, scf.YieldOp):
            _add(body.block, scf.YieldOp(), op)


def needed_by(op: Operation, values: Iterable[SSAValue]) -> set[SSAValue]:
    """All that `values`, which `op` uses, depend on, through the counts of tasks too.

    Of a loop that runs one split of its iterations, the number of that split does not count: what is done for all
    splits alike is done for all iterations.
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


def from_memory(op: Operation, values: Iterable[SSAValue]) -> bool:
    """Whether elements of arrays decide what `values` are that `op` uses, or how often it runs."""
    return any(isinstance(value.owner, READING) for value in needed_by(op, values))


def by_launch(op: Operation, values: Sequence[SSAValue]) -> str:
    """What may decide otherwise in the next launch, with the same dimensions, what `values` are that `op` uses, or how
    often it runs: `an array` or `a scalar`; empty if nothing does."""
    if from_memory(op, values):
        return "an array"
    return "a scalar" if any(map(is_scalar, needed_by(op, values))) else ""


def _sources(op: Operation, values: Iterable[SSAValue]) -> set[SSAValue]:
    splits = {loop: split_of(loop) for loop in ancestors(op) if isinstance(loop, scf.ForOp)}
    of_splits = [loop for loop, split in splits.items() if split is not None]
    bounds = {bound for loop in of_splits for bound in (first_iteration(loop), all_iterations(loop))}
    found = sources(values, given=bounds)
    iterations = [
        split.iterations for loop, split in splits.items() if split is not None and loop.body.block.args[0] in found
    ]
    return found | sources(iterations)


def _copy_tasks(
    block: Block, tasks: TasksOp, indices: set[SSAValue], known: Known, spread: Sequence[SSAValue]
) -> Block:
    chosen = [*(argument for argument in tasks.body.block.args if argument in indices), *spread]
    if not chosen:
        return block
    counts = [copy_value(block, iterations_of(variable), known) for variable in chosen]
    body = Block(arg_types=[IndexType()] * len(chosen))
    _add(block, TasksOp(counts, Region(body)), tasks)
    known |= dict(zip(chosen, body.args, strict=True))
    _keep_names(chosen, known)
    return body


def _copy_for(block: Block, loop: scf.ForOp, known: Known) -> Block:
    split = split_of(loop)
    if split is None or split.index in known:
        first, last = (copy_value(block, end, known) for end in (first_iteration(loop), all_iterations(loop)))
    else:
        start = constant(0)
        _add(block, start, loop)
        first, last = start.result, copy_value(block, split.iterations, known)
    step = copy_value(block, loop.step, known)
    body = Block(arg_types=[IndexType()])
    known[loop.body.block.args[0]] = body.args[0]
    _keep_names(loop.body.block.args[:1], known)
    _add(block, scf.ForOp(first, last, step, [], body), loop)
    return body


def _keep_names(arguments: Sequence[SSAValue], known: Known) -> None:
    for argument in arguments:
        if argument in known:
            known[argument].name_hint = argument.name_hint


def _add(block: Block, op: Operation, origin: Operation) -> None:
    op.location = origin.location
    block.add_op(op)
