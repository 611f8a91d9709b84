"""The pass `pk-wrap-statements`: what a program does outside of tasks, each rank does in a phase of one task."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import groupby
from typing import TypeAlias

from xdsl.dialects import scf
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.traits import is_side_effect_free

from pkc.dialect.access import READING, AccumulateOp, StoreOp
from pkc.dialect.by_table import ScatterAccumulateOp, ScatterStoreOp
from pkc.dialect.program import KernelOp, TasksOp
from pkc.dialect.types import PGLType, PrivateType
from pkc.passes.analysis.dependence import never_changes, sources
from pkc.passes.analysis.effects import only_reads
from pkc.passes.analysis.settled import mark_outside
from pkc.passes.build import append_copy, constant, copy_of, defined_in, is_constant, phases
from pkc.passes.kernel_pass import KernelPass
from pkc.remarks import missed

_WRITES = (StoreOp, ScatterStoreOp, AccumulateOp, ScatterAccumulateOp)

_REPEATED = "each task behind this loop repeats it; stored in an array that the tasks load, its result is computed once"

_Reads: TypeAlias = dict[Operation, dict[SSAValue, int]]
"""Of operations, the arrays that their results follow from, and the place where each is read first."""


class WrapStatements(KernelPass):
    """Make a phase of one task of the statements between two `tasks`, where they write; what they read for tasks behind
    them, each of these tasks reads for itself. Numbers of tasks that nobody writes are read in front of all tasks;
    others by one task around the tasks that they number.

    So a kernel is a sequence of phases, of which roles can be derived. What is left as it is, for whoever derives roles
    to refuse: `tasks` in loops, signals and waits, and reads of what is written before the tasks that need them end.

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
        self._wrap_all(kernel)
        mark_outside(kernel)

    def _wrap_all(self, kernel: KernelOp) -> None:
        block = kernel.body.block
        if not kernel.roles and not phases(kernel):
            _count_first(block)
        ops = list(block.ops)
        if kernel.roles or phases(kernel) or not all(isinstance(op, TasksOp) or _can_move(op) for op in ops):
            return
        reads = _first_reads(ops)
        if not _can_wrap(ops, reads):
            return
        for run in _runs(ops):
            _wrap(run)
        for tasks in [op for op in ops if isinstance(op, TasksOp) and _merged(op.counts, reads)]:
            _enclose(tasks)
        places = {op: place for place, op in enumerate(ops)}
        for tasks in [op for op in block.ops if isinstance(op, TasksOp)]:
            _read_inside(tasks, sorted(_needed(tasks, reads), key=places.__getitem__))
        for op in reversed(list(block.ops)):
            if not isinstance(op, TasksOp) and not any(result.first_use for result in op.results):
                op.detach()
                op.erase()


def _count_first(block: Block) -> None:
    """Read in front of all tasks what numbers of tasks follow from, where nobody writes it."""
    first = next((op for op in block.ops if isinstance(op, TasksOp)), None)
    counted = sources(count for op in block.ops if isinstance(op, TasksOp) for count in op.counts)
    for op in list(block.ops):
        moves = never_changes(op) or (is_side_effect_free(op) and not op.regions)
        if first is None or not moves or counted.isdisjoint(op.results) or op.is_before_in_block(first):
            continue
        made = (value.owner for value in op.operands)
        if all(by.parent is not block or by.is_before_in_block(first) for by in made if isinstance(by, Operation)):
            op.detach()
            block.insert_op_before(op, first)


def _can_move(op: Operation) -> bool:
    """Whether an operation beside tasks is arithmetic, reads, or writes arrays."""
    return all(
        (inner.regions and not isinstance(inner, TasksOp)) or isinstance(inner, _WRITES) or only_reads(inner)
        for inner in op.walk()
    )


def _can_wrap(ops: Sequence[Operation], reads: _Reads) -> bool:
    """Whether all that tasks need from before them can be read in them: nothing of it is written in between."""
    written: dict[SSAValue, list[int]] = {}
    for place, op in enumerate(ops):
        for array in _writes(op):
            written.setdefault(array, []).append(place)
    runs = [(ops.index(run[0]), set(run)) for run in _runs(ops)]
    around_of = {op: run for run in runs for op in run[1]}
    for place, op in enumerate(ops):
        start, around = around_of.get(op, (place, set[Operation]()))
        is_tasks = isinstance(op, TasksOp)
        if not is_tasks and not _writes(op):
            continue
        if not is_tasks and any(use.operation not in around for result in op.results for use in result.uses):
            return False
        for array, first in _merged(_used(op), reads).items():
            later = bisect_right(places := written.get(array, []), first)
            if first < start and later < len(places) and places[later] <= place:
                return False
    return True


def _writes(op: Operation) -> set[SSAValue]:
    """The arrays that an operation writes, or may."""
    changing = [inner for inner in op.walk() if not inner.regions and not only_reads(inner)]
    return {value for inner in changing for value in inner.operands if isinstance(value.type, PrivateType | PGLType)}


def _used(op: Operation) -> list[SSAValue]:
    """The values from outside that an operation, or what is in it, uses."""
    return [value for inner in op.walk() for value in inner.operands if not defined_in(value, op)]


def _first_reads(ops: Sequence[Operation]) -> _Reads:
    """Of each operation beside tasks, the arrays that its results follow from, and where each is read first."""
    found: _Reads = {}
    for place, op in enumerate(ops):
        own = {inner.array: place for inner in op.walk() if isinstance(inner, READING)}
        found[op] = own | _merged(_used(op), found)
    return found


def _merged(values: Sequence[SSAValue], reads: _Reads) -> dict[SSAValue, int]:
    """The arrays that values follow from, and where each is read first."""
    found: dict[SSAValue, int] = {}
    for made in _makers(values):
        for array, place in reads[made].items():
            found[array] = min(place, found.get(array, place))
    return found


def _makers(values: Sequence[SSAValue]) -> set[Operation]:
    return {value.owner for value in values if isinstance(value.owner, Operation)}


def _needed(tasks: TasksOp, reads: _Reads) -> set[Operation]:
    """The operations from before tasks that what they use follows from, as far as arrays are read for it."""
    found, waiting = set[Operation](), list[Operation]([tasks])
    while waiting:
        new = {made for made in _makers(_used(waiting.pop())) if reads.get(made)} - found
        found |= new
        waiting += new
    return found


def _runs(ops: Sequence[Operation]) -> list[list[Operation]]:
    """The operations between tasks, where they write."""
    runs = [list(run) for is_tasks, run in groupby(ops, lambda op: isinstance(op, TasksOp)) if not is_tasks]
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


def _enclose(tasks: TasksOp) -> None:
    """One task around others, in which their number can be read."""
    around, body, one = tasks.parent, Block(arg_types=[IndexType()]), constant(1)
    assert around is not None
    outer = TasksOp([one.result], Region(body))
    for op in (one, outer):
        op.location = tasks.location
        around.insert_op_before(op, tasks)
    tasks.detach()
    body.add_op(tasks)


def _read_inside(tasks: TasksOp, needed: Sequence[Operation]) -> None:
    """Let tasks read, and compute of that, what they use from before them."""
    known: dict[SSAValue, SSAValue] = {}
    first = tasks.body.block.first_op
    assert first is not None
    repeated = not all(is_constant(count, 1) for count in tasks.counts)
    for op in needed:
        loop = next((inner for inner in op.walk() if isinstance(inner, scf.ForOp)), None)
        if repeated and loop is not None:
            missed(WrapStatements.name, loop, _REPEATED)
        copy = copy_of(op, known)
        tasks.body.block.insert_op_before(copy, first)
        known |= zip(op.results, copy.results, strict=True)
    for inner in tasks.body.walk():
        for place, value in enumerate(inner.operands):
            if value in known:
                inner.operands[place] = known[value]
