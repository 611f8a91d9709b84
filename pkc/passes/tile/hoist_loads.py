"""The pass `pk-hoist-loads`: loads that give the same tile in each iteration of a loop move in front of it."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects import scf
from xdsl.ir import Block, BlockArgument, Operation, SSAValue
from xdsl.traits import MemoryEffectKind, Pure, get_effects

from pkc.dialect.access import LoadOp, ReadOp
from pkc.dialect.arrays import array_type
from pkc.dialect.coordinates import BlockCountOp, BlockPositionOp, DimOp
from pkc.dialect.program import KernelOp, TasksOp
from pkc.dialect.scalars import constant_of
from pkc.dialect.tile import block_type
from pkc.dialect.types import BlockType, Dim
from pkc.passes.analysis.dependence import ancestors, enclosing_tasks, never_changes, role_around
from pkc.passes.build import defined_in, is_constant
from pkc.passes.kernel_pass import KernelPass
from pkc.remarks import missed


class HoistLoads(KernelPass):
    """Move each load that gives the same tile in each iteration of a loop in front of the loop, and so out of as many
    loops as it can, but not out of its tasks.

    Its indices come from outside of the loop, or are integers and blocks computed from such alone, which move with it.
    The phase does not write its array. The loop is sure to run, or else the load is sure to be harmless: a tile that
    exists may be loaded in vain. Blocks exist wherever they are named: only lists of blocks make them. A position
    exists if it is one of a block, or numbers all positions of the array's dimension, or is a constant below a
    constant. Roles that an author wrote stay as they are: a wait may stand in front of each load.

    An element of a private array that the kernel only reads moves out of loops, and out of tasks in tasks: CTAs go
    through the outer ones together. Its position exists, too, if an element of a dimension of the same length is read
    there before.

    Before:

        scf.for %t = %zero to %n step %one {
          %kv = pk.block[%t] : !pk.block<T by 128>
          %d = pk.block[%zero] : !pk.block<128 by 128>
          %a = pk.load %Q[%q, %d : ...] : !pk.private<[S, 128], bf16> -> !pk.tile<128x128xbf16>
          %b = pk.load %K[%kv, %d : ...] : !pk.private<[T, 128], bf16> -> !pk.tile<128x128xbf16>
          ...

    After:

        %d = pk.block[%zero] : !pk.block<128 by 128>
        %a = pk.load %Q[%q, %d : ...] : !pk.private<[S, 128], bf16> -> !pk.tile<128x128xbf16>
        scf.for %t = %zero to %n step %one {
          %kv = pk.block[%t] : !pk.block<T by 128>
          %b = pk.load %K[%kv, %d : ...] : !pk.private<[T, 128], bf16> -> !pk.tile<128x128xbf16>
          ...
    """

    name = "pk-hoist-loads"

    def run(self, kernel: KernelOp) -> None:
        written: dict[TasksOp, set[SSAValue]] = {}
        for loop in reversed([op for op in kernel.walk() if isinstance(op, scf.ForOp)]):  # inner loops first
            tasks = enclosing_tasks(loop)
            if tasks and role_around(loop) is None:
                phase = tasks[-1]
                if phase not in written:
                    written[phase] = _written(phase)
                _hoist(kernel, loop, written[phase])
        for op in list(kernel.walk()):
            if isinstance(op, ReadOp) and never_changes(op) and role_around(op) is None:
                _hoist_read(op)


def _hoist_read(op: ReadOp) -> None:
    """Move an element out of one loop, or out of tasks in tasks, after another."""
    around = op.parent_op()
    while isinstance(around, scf.ForOp) or (isinstance(around, TasksOp) and isinstance(around.parent_op(), TasksOp)):
        if any(defined_in(index, around) for index in op.indices):
            return
        positions = zip(op.indices, array_type(op.array).dimensions, strict=True)
        if not all(_exists(index, dim) or _is_read_before(index, dim, around) for index, dim in positions):
            return
        op.detach()
        assert around.parent is not None
        around.parent.insert_op_before(op, around)
        around = op.parent_op()


def _is_read_before(index: SSAValue, dim: Dim, place: Operation) -> bool:
    """Whether an element of a dimension is read at an index in front of a place, whatever branches are taken."""
    for use in index.uses:
        read = use.operation
        if isinstance(read, ReadOp) and read.parent is place.parent and read.is_before_in_block(place):
            found = zip(read.indices, array_type(read.array).dimensions, strict=True)
            if any(other is index and there == dim for other, there in found):
                return True
    return False


def _hoist(kernel: KernelOp, loop: scf.ForOp, written: set[SSAValue]) -> None:
    for load in [op for op in loop.body.walk() if isinstance(op, LoadOp)]:
        if any(isinstance(around, scf.ForOp) for around in _between(load, loop)):
            continue  # the inner loop has said why it keeps it
        moved = _moved(load, loop)
        if moved is None:
            continue
        reason = _kept(load, loop, written)
        if reason:
            assert isinstance(load.array, BlockArgument)
            name = kernel.argument_name(load.array)
            missed(HoistLoads.name, load, f"`{name}` is loaded in each iteration again: {reason}")
            continue
        block = loop.parent
        assert block is not None
        for op in moved:
            op.detach()
            block.insert_op_before(op, loop)


def _moved(load: LoadOp, loop: scf.ForOp) -> list[Operation] | None:
    """The load, behind what it needs of the loop; None if something of that differs from iteration to iteration."""
    found: list[Operation] = []

    def add(op: Operation) -> bool:
        if op in found:
            return True
        for operand in op.operands:
            if defined_in(operand, loop) and (isinstance(operand.owner, Block) or not add_pure(operand.owner)):
                return False
        found.append(op)
        return True

    def add_pure(op: Operation) -> bool:
        return op.has_trait(Pure) and not op.regions and add(op)

    return found if add(load) else None


def _kept(load: LoadOp, loop: scf.ForOp, written: set[SSAValue]) -> str:
    """Why a load stays in a loop that does not change its tile; empty if it need not."""
    if load.array in written:
        return "this phase writes it"
    if load.parent_op() is not loop:
        return "it is in a branch"
    positions = zip(load.indices, array_type(load.array).dimensions, strict=True)
    if not _runs(loop) and not all(_exists(index, dim) for index, dim in positions):
        return "without an iteration, its position may not exist"
    return ""


def _runs(loop: scf.ForOp) -> bool:
    """Whether a loop is sure to have an iteration."""
    first, last = constant_of(loop.lb), constant_of(loop.ub)
    return first is not None and last is not None and first < last


def _exists(index: SSAValue, dim: Dim) -> bool:
    """Whether an index of an array's dimension is sure to be inside of it."""
    if isinstance(index.type, BlockType):
        return True
    if isinstance(index.owner, BlockPositionOp):
        return block_type(index.owner.block).of == dim
    number, count = constant_of(index), _count(index)
    if number is not None:
        return isinstance(dim, int) and 0 <= number < dim
    return count is not None and _reaches(count, dim)


def _count(index: SSAValue) -> SSAValue | None:
    """How many values, from 0 on, an index of tasks or of a loop takes."""
    if not isinstance(index, BlockArgument):
        return None
    around = index.owner.parent_op()
    if isinstance(around, TasksOp):
        return around.counts[index.index]
    from_zero = isinstance(around, scf.ForOp) and index.index == 0 and is_constant(around.lb, 0)
    return around.ub if isinstance(around, scf.ForOp) and from_zero else None


def _reaches(count: SSAValue, dim: Dim) -> bool:
    """Whether all numbers below `count` are positions of a dimension."""
    owner, number = count.owner, constant_of(count)
    if isinstance(owner, DimOp):
        return owner.dim.data == dim
    if isinstance(owner, BlockCountOp):
        return owner.block.extent == 1 and owner.block.of == dim
    return number is not None and isinstance(dim, int) and number <= dim


def _between(op: Operation, outer: Operation) -> Iterator[Operation]:
    """The operations around `op`, inside of `outer`."""
    for around in ancestors(op):
        if around is outer:
            return
        yield around


def _written(tasks: TasksOp) -> set[SSAValue]:
    """The arrays of operations that write some array, in the phase of these tasks."""
    found: set[SSAValue] = set()
    for op in tasks.walk():
        effects = get_effects(op) if not op.regions else ()
        if effects is None or any(effect.kind is MemoryEffectKind.WRITE for effect in effects):
            found.update(op.operands)
    return found
