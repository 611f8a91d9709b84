"""What a value is computed from: reachability along operands, loops and branches included."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Block, BlockArgument, Operation, OpResult, Region, SSAValue, Use
from xdsl.traits import MemoryEffectKind, Pure, get_effects

from pkc.dialect.access import LOADS, READING, ReadOp
from pkc.dialect.arrays import is_pgl
from pkc.dialect.coordinates import BlockCountOp, BlockOp, FirstVisitedOp, RankOp, RingPeerOp, VisitedOp
from pkc.dialect.copies import CopyOp
from pkc.dialect.inverse import InvertOp, SumRowsOp
from pkc.dialect.program import KernelOp, RoleOp, TasksOp
from pkc.dialect.types import Layout, PGLType, PrivateType


def sources(values: Iterable[SSAValue], given: Collection[SSAValue] = ()) -> set[SSAValue]:
    """The values, and everything they are computed from, except what is given."""
    found: set[SSAValue] = set()
    todo = list(values)
    while todo:
        value = todo.pop()
        if value in found or value in given:
            continue
        found.add(value)
        todo += _direct_sources(value)
    return found


def goes_over_blocks(loop: scf.ForOp) -> bool:
    """Whether the iterations of a loop have other blocks each."""
    blocks = (op for op in loop.body.walk() if isinstance(op, BlockOp))
    return any(loop.body.block.args[0] in sources(op.operands) for op in blocks)


def guards(op: Operation) -> Iterator[SSAValue]:
    """What decides whether and how often `op` runs inside its kernel, task counts aside."""
    for parent in ancestors(op):
        if isinstance(parent, scf.ForOp):
            yield from (parent.lb, parent.ub, parent.step)
        if isinstance(parent, scf.IfOp):
            yield parent.cond


def ancestors(op: Operation) -> Iterator[Operation]:
    """The operations around `op`, innermost first, up to its kernel."""
    parent = op.parent_op()
    while parent is not None and not isinstance(parent, KernelOp):
        yield parent
        parent = parent.parent_op()


def enclosing_tasks(op: Operation) -> list[TasksOp]:
    """The `pk.tasks` around `op`, innermost first."""
    return [parent for parent in ancestors(op) if isinstance(parent, TasksOp)]


def role_around(op: Operation) -> RoleOp | None:
    """The role that an operation is in; roles are not nested."""
    return next((parent for parent in ancestors(op) if isinstance(parent, RoleOp)), None)


def roles_around(ops: Iterable[Operation]) -> list[RoleOp]:
    """The roles that operations are in, each once, in the order of the operations."""
    return list(dict.fromkeys(role for op in ops if (role := role_around(op)) is not None))


def task_count(index: SSAValue) -> SSAValue | None:
    """How many values a task index takes; nothing for any other value."""
    tasks = index.owner.parent_op() if isinstance(index, BlockArgument) else None
    return tasks.counts[index.index] if isinstance(tasks, TasksOp) and isinstance(index, BlockArgument) else None


def maker(value: SSAValue) -> Operation:
    """The operation that makes a value, or whose region it is an argument of."""
    owner = value.owner
    found = owner.parent_op() if isinstance(owner, Block) else owner
    assert found is not None
    return found


def differs_by_rank(value: SSAValue) -> bool:
    """Whether the operation that makes `value` may give each rank another one."""
    owner = value.owner
    if isinstance(owner, RankOp | RingPeerOp):
        return True
    if not isinstance(owner, READING):
        return False
    return isinstance(owner.array.type, PrivateType) or is_pgl(owner.array, Layout.Symmetric)


def is_one(count: SSAValue) -> bool:
    """Whether a number of tasks is the constant 1."""
    owner = count.owner
    if isinstance(owner, arith.ConstantOp):
        return isinstance(owner.value, IntegerAttr) and owner.value.value.data == 1
    if not isinstance(owner, BlockCountOp) or owner.operands:
        return False
    return isinstance(owner.block.of, int) and owner.block.of <= owner.block.extent


def defined_outside(value: SSAValue, op: Operation) -> bool:
    """Whether a value is there before an operation begins, and follows from no memory."""
    return not any(isinstance(found.owner, READING) or op.is_ancestor(maker(found)) for found in sources([value]))


_NOTHING: Mapping[SSAValue, SSAValue] = MappingProxyType({})


def same_value(a: SSAValue, b: SSAValue, given: Mapping[SSAValue, SSAValue] = _NOTHING) -> bool:
    """Whether two values are surely equal: one value, or the same pure operation on equal operands.

    `given` has values on the left that stand for values on the right.
    """
    if given.get(a, a) is b:
        return True
    if not isinstance(a, OpResult) or not isinstance(b, OpResult):
        return False
    alike = (
        a.op.has_trait(Pure)
        and not a.op.regions
        and (a.op.name, a.op.properties, a.op.attributes, a.type)
        == (b.op.name, b.op.properties, b.op.attributes, b.type)
    )
    return alike and same_values(a.op.operands, b.op.operands, given)


def same_values(a: Sequence[SSAValue], b: Sequence[SSAValue], given: Mapping[SSAValue, SSAValue] = _NOTHING) -> bool:
    return len(a) == len(b) and all(same_value(x, y, given) for x, y in zip(a, b, strict=True))


def _direct_sources(value: SSAValue) -> Iterable[SSAValue]:
    if isinstance(value, BlockArgument):
        loop = value.owner.parent_op()
        return _loop_sources(loop, value.index - 1) if isinstance(loop, scf.ForOp) else ()
    assert isinstance(value, OpResult)
    owner = value.op
    if isinstance(owner, scf.ForOp):
        return _loop_sources(owner, value.index)
    if isinstance(owner, scf.IfOp):
        branches = (owner.true_region, owner.false_region)
        return (owner.cond, *(_yielded(branch, value.index) for branch in branches if branch.blocks))
    return owner.operands


def _loop_sources(loop: scf.ForOp, carried: int) -> tuple[SSAValue, ...]:
    """Of the loop's variable (`carried` is -1) or of one value that it carries."""
    if carried < 0:
        return first_iteration(loop), all_iterations(loop), loop.step
    return (loop.lb, loop.ub, loop.step, loop.iter_args[carried], _yielded(loop.body, carried))


def all_iterations(loop: scf.ForOp) -> SSAValue:
    """The upper bound of a loop's variable in all tasks together, though each may visit fewer."""
    bound = loop.ub.owner
    return bound.count if isinstance(bound, VisitedOp) else loop.ub


def first_iteration(loop: scf.ForOp) -> SSAValue:
    """The lower bound of a loop's variable in all tasks together, though each may begin later."""
    bound = loop.lb.owner
    return bound.first if isinstance(bound, FirstVisitedOp) else loop.lb


def _yielded(region: Region, number: int) -> SSAValue:
    last = region.block.last_op
    assert last is not None
    return last.operands[number]


def never_changes(op: Operation) -> bool:
    """Whether an operation reads an element of an array that nobody writes while the kernel runs."""
    if not isinstance(op, ReadOp) or not isinstance(op.array.type, PrivateType):
        return False
    return all(isinstance(use.operation, LOADS) for use in op.array.uses)


def writes(use: Use) -> bool:
    """Whether an operation may write the array that it uses."""
    op = use.operation
    if isinstance(op, CopyOp):
        return op.operands[use.index] is op.target
    if isinstance(op, InvertOp | SumRowsOp):
        return op.operands[use.index] in op.written
    return any(effect.kind is MemoryEffectKind.WRITE for effect in get_effects(op) or ())


def written_arrays(kernel: KernelOp) -> set[SSAValue]:
    """The arrays that a kernel writes, on any rank."""
    arrays = (array for array in kernel.arguments.values() if isinstance(array.type, PrivateType | PGLType))
    return {array for array in arrays if any(map(writes, array.uses))}
