"""The pass `pk-wrap-statements`: what a program does outside of tasks, each rank does in a phase of one task."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IndexType
from xdsl.ir import Block, Operation, Region, SSAValue

from pkc.dialect.access import AccumulateOp, GatherOp, LoadOp, ReadOp, ReduceOp, ScatterAccumulateOp, StoreOp
from pkc.dialect.program import KernelOp, TasksOp
from pkc.dialect.types import PGLType, PrivateType
from pkc.passes.analysis.effects import only_reads
from pkc.passes.build import append_copy, constant, copy_of, defined_in, phases
from pkc.passes.kernel_pass import KernelPass

_WRITES = (StoreOp, AccumulateOp, ScatterAccumulateOp)
_READS = (LoadOp, GatherOp, ReadOp, ReduceOp)


class WrapStatements(KernelPass):
    """Make a phase of one task of the statements between two `tasks`, where they write; what they read for tasks behind
    them, each of these tasks reads for itself.

    So a kernel is a sequence of phases, of which roles can be derived. What is left as it is, for whoever derives roles
    to refuse: `tasks` in loops, values that the number of tasks follows from, signals and waits, and reads of what is
    written before the tasks that need them end.

    Before:

        pk.tasks (%i) in (%rows) { ... pk.store %p, %part[%m : ...] : ... }
        %x = pk.load %part[%all : ...] : ... -> !pk.tile<64xf32>
        %s = pk.row_sum %x : !pk.tile<64xf32> -> !pk.tile<f32>
        pk.store %s, %loss[%zero : index] : ...
        pk.tasks (%i) in (%rows) { ... pk.broadcast %s ... }

    After:

        pk.tasks (%i) in (%rows) { ... pk.store %p, %part[%m : ...] : ... }
        pk.tasks (%j) in (%one) {
          %x = pk.load %part[%all : ...] : ... -> !pk.tile<64xf32>
          %s = pk.row_sum %x : !pk.tile<64xf32> -> !pk.tile<f32>
          pk.store %s, %loss[%zero : index] : ...
        }
        pk.tasks (%i) in (%rows) {
          %x = pk.load %part[%all : ...] : ... -> !pk.tile<64xf32>
          %s = pk.row_sum %x : !pk.tile<64xf32> -> !pk.tile<f32>
          ... pk.broadcast %s ...
        }
    """

    name = "pk-wrap-statements"

    def run(self, kernel: KernelOp) -> None:
        if kernel.roles or phases(kernel):
            return
        block = kernel.body.block
        if not all(isinstance(op, TasksOp) or _can_move(op) for op in block.ops) or not _can_wrap(list(block.ops)):
            return
        for run in _runs(list(block.ops)):
            _wrap(run)
        for tasks in [op for op in block.ops if isinstance(op, TasksOp)]:
            _read_inside(tasks)
        for op in reversed(list(block.ops)):
            if not isinstance(op, TasksOp) and not any(result.first_use for result in op.results):
                op.detach()
                op.erase()


def _can_move(op: Operation) -> bool:
    """Whether an operation beside tasks is arithmetic, reads, or writes arrays."""
    return all(
        (inner.regions and not isinstance(inner, TasksOp)) or isinstance(inner, _WRITES) or only_reads(inner)
        for inner in op.walk()
    )


def _can_wrap(ops: Sequence[Operation]) -> bool:
    """Whether all that tasks need from before them can be read in them: nothing of it is written in between."""
    runs = [set(run) for run in _runs(ops)]
    for place, op in enumerate(ops):
        if isinstance(op, TasksOp):
            if any(_reads(made) for made in _needed(op.counts)):
                return False
            needed = _needed(_used(op))
        elif _writes(op):
            around = next(run for run in runs if op in run)
            if any(use.operation not in around for result in op.results for use in result.uses):
                return False
            needed = [made for made in _needed(_used(op)) if made not in around]
        else:
            continue
        for made in needed:
            between = ops[ops.index(made) + 1 : place + 1]
            if _reads(made) & {array for other in between for array in _writes(other)}:
                return False
    return True


def _writes(op: Operation) -> set[SSAValue]:
    """The arrays that an operation writes, or may."""
    changing = [inner for inner in op.walk() if not inner.regions and not only_reads(inner)]
    return {value for inner in changing for value in inner.operands if isinstance(value.type, PrivateType | PGLType)}


def _reads(op: Operation) -> set[SSAValue]:
    """The arrays that an operation reads."""
    return {inner.array for inner in op.walk() if isinstance(inner, _READS)}


def _used(op: Operation) -> list[SSAValue]:
    """The values from outside that an operation, or what is in it, uses."""
    return [value for inner in op.walk() for value in inner.operands if not defined_in(value, op)]


def _needed(values: Sequence[SSAValue]) -> list[Operation]:
    """The operations beside tasks that values are computed by, each behind what it needs itself."""
    found: dict[Operation, None] = {}
    for value in values:
        made = value.owner
        if isinstance(made, Operation):
            found |= dict.fromkeys((*_needed(_used(made)), made))
    return list(found)


def _runs(ops: Sequence[Operation]) -> list[list[Operation]]:
    """The operations between tasks, where they write."""
    runs: list[list[Operation]] = [[]]
    for op in ops:
        if isinstance(op, TasksOp):
            runs.append([])
        else:
            runs[-1].append(op)
    return [run for run in runs if any(map(_writes, run))]


def _wrap(run: Sequence[Operation]) -> None:
    """A phase of one task that does the same, in place of what writes."""
    body, known, one = Block(arg_types=[IndexType()]), dict[SSAValue, SSAValue](), constant(1)
    for op in run:
        append_copy(body, op, known)
    around = run[-1].parent
    assert around is not None
    for op in (TasksOp([one.result], Region(body)), one):
        op.location = next(op for op in run if _writes(op)).location
        around.insert_op_after(op, run[-1])
    for op in reversed(run):
        if _writes(op):
            op.detach()
            op.erase()


def _read_inside(tasks: TasksOp) -> None:
    """Let tasks read, and compute of that, what they use from before them."""
    known: dict[SSAValue, SSAValue] = {}
    body, copies = tasks.body.block, list[Operation]()
    inside = set[Operation]()
    for op in _needed(_used(tasks)):
        if _reads(op) or any(value in known for value in _used(op)):
            copies.append(copy_of(op, known))
            known |= zip(op.results, copies[-1].results, strict=True)
            inside.add(op)
    first = body.first_op
    assert first is not None
    for copy in copies:
        body.insert_op_before(copy, first)
    for old, new in known.items():
        for use in [use for use in old.uses if _is_in(use.operation, tasks) and use.operation not in copies]:
            use.operation.operands[use.index] = new


def _is_in(op: Operation, tasks: TasksOp) -> bool:
    return tasks.is_ancestor(op) and op is not tasks
