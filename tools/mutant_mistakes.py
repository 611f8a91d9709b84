"""Breaks that people make, each after a kind of bug that is reported of PTX and NCCL programs, not after pkc's passes.

Flags of another slot, scopes that are too small, data sent to the wrong neighbour or taken from one's own memory,
counts of the wrong rank, waits and signals that one rank leaves out, counters that overflow, tasks that wait for some
that need the same CTA, warps that two roles have or that no CTA has.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IntegerAttr, StringAttr, i64
from xdsl.ir import Block, Operation, Region, SSAValue

from pkc.dialect import access, coordinates, counters
from pkc.dialect.attributes import number_on
from pkc.dialect.counters import ORDER, Order, order_of
from pkc.dialect.program import FIRST_WARP, GROUP, PART, WRITTEN, KernelOp, RoleOp, TasksOp
from pkc.dialect.scalars import constant_of
from pkc.dialect.types import SignalType
from pkc.passes.analysis.dependence import role_around
from pkc.passes.build import before, constant
from pkc.passes.roles.remote_accesses import array_name
from tools.mutant_changes import kernel_around, orders
from tools.mutant_operators import Operator

_WIDTH = 2**31


def first_counter(op: Operation) -> None:
    """Wait for the first counter along the last dimension."""
    assert isinstance(op, counters.WaitOp)
    zero = constant(0)
    before(op, [zero])
    _replace(op, op.indices[-1], zero.result)


def has_several(op: Operation) -> bool:
    assert isinstance(op, counters.WaitOp)
    kind = op.signal.type
    return (
        bool(op.indices)
        and isinstance(kind, SignalType)
        and kind.dimensions[-1] != 1
        and constant_of(op.indices[-1]) is None
    )


def next_rank(op: Operation) -> None:
    """Store on the rank after the right one."""
    assert isinstance(op, access.StoreOp)
    assert op.rank is not None
    one, ranks = constant(1), coordinates.DimOp("ranks")
    following = arith.AddiOp(op.rank, one.result)
    rank = arith.RemSIOp(following.result, ranks.result)
    before(op, [one, ranks, following, rank])
    _replace(op, op.rank, rank.result)


def goes_to_one_rank(op: Operation) -> bool:
    """Whether a store goes to one rank, and not to each in turn."""
    assert isinstance(op, access.StoreOp)
    return op.rank is not None and not isinstance(op.rank.owner, coordinates.RingPeerOp)


def own_memory(op: Operation) -> None:
    """Load from this rank what another one has."""
    assert isinstance(op, access.LoadOp)
    assert op.rank is not None
    rank = coordinates.RankOp()
    before(op, [rank])
    _replace(op, op.rank, rank.result)


def is_of_a_peer(op: Operation) -> bool:
    """Whether a load is from another rank. What a role stages for sums by others is left out: it is loaded by rank."""
    assert isinstance(op, access.LoadOp)
    return op.rank is not None and not isinstance(op.rank.owner, coordinates.RankOp)


def not_on_the_first(op: Operation) -> None:
    """Leave an operation out on rank 0."""
    rank, zero = coordinates.RankOp(), constant(0)
    other = arith.CmpiOp(rank.result, zero.result, "ne")
    branch = scf.IfOp(other.result, [], Region(Block()), Region())
    before(op, [rank, zero, other, branch])
    op.detach()
    branch.true_region.block.add_ops([op, scf.YieldOp()])


def of_the_gpu(op: Operation) -> None:
    """Release to this GPU alone."""
    op.attributes[ORDER] = StringAttr(str(Order.Release_Gpu))


def releases_to_all(op: Operation) -> bool:
    """Whether a signal releases to other GPUs, and no role that its tiles go to signals the same."""
    return order_of(op) is Order.Release_Sys and is_needed(op) and orders(op)


def is_needed(op: Operation) -> bool:
    """Whether a signal or wait is not one of those that pkc adds at the entry and exit of an author's protocol: the
    author's own may order the same."""
    assert isinstance(op, counters.CounterOp)
    return WRITTEN not in kernel_around(op).attributes or array_name(op.signal) not in ("entered", "left")


def is_awaited_here_alone(op: Operation) -> bool:
    """Whether a wait is needed; in an author's protocol none that pkc adds among the CTAs of a role, or that several
    roles of a CTA have because tiles go from one to the other."""
    assert isinstance(op, counters.WaitOp)
    if WRITTEN not in kernel_around(op).attributes:
        return True
    others = (use.operation for use in op.signal.uses if isinstance(use.operation, counters.WaitOp))
    twice = any(role_around(other) is not role_around(op) for other in others)
    return is_needed(op) and not array_name(op.signal).startswith("joined") and not twice


def own_blocks(op: Operation) -> None:
    """The number of blocks of this rank in place of another's."""
    assert isinstance(op, coordinates.BlockCountOp)
    assert op.shard is not None
    rank = coordinates.RankOp()
    before(op, [rank])
    _replace(op, op.shard, rank.result)


def is_of_another(op: Operation) -> bool:
    """Whether blocks of another rank are counted, and not only to say in which order tasks come."""
    assert isinstance(op, coordinates.BlockCountOp)
    if op.shard is None or isinstance(op.shard.owner, coordinates.RankOp):
        return False
    return any(not isinstance(use, coordinates.RotateOp) for use in _ends(op.result))


def _ends(value: SSAValue) -> Iterator[Operation]:
    """What uses a value, itself or as a factor."""
    for use in value.uses:
        if isinstance(use.operation, arith.MuliOp):
            yield from _ends(use.operation.result)
        else:
            yield use.operation


def wide(op: Operation) -> None:
    """Count by 2^31 what is counted by one."""
    for inner in list(op.walk()):
        if isinstance(inner, counters.SignalOp | counters.SignalAllOp | counters.WaitOp):
            number = inner.count if isinstance(inner, counters.WaitOp) else inner.amount
            factor = constant(_WIDTH)
            product = arith.MuliOp(number, factor.result)
            before(inner, [factor, product])
            _replace(inner, number, product.result)


def counts(op: Operation) -> bool:
    return any(isinstance(inner, counters.WaitOp) for inner in op.walk())


def warps_of_another(op: Operation) -> None:
    """The first warp of another role of the CTA."""
    other = _beside(op)
    assert other is not None
    op.attributes[FIRST_WARP] = IntegerAttr(number_on(other, FIRST_WARP) or 0, i64)


def shares_its_cta(op: Operation) -> bool:
    return _beside(op) is not None


def beyond_the_cta(op: Operation) -> None:
    """Warps behind the last one that a CTA has."""
    op.attributes[FIRST_WARP] = IntegerAttr(32, i64)


def has_warps(op: Operation) -> bool:
    return number_on(op, FIRST_WARP) is not None


def _beside(op: Operation) -> RoleOp | None:
    block = op.parent
    assert block is not None
    others = (other for other in block.ops if isinstance(other, RoleOp) and other is not op)
    return next((other for other in others if other.attributes.get(GROUP) == op.attributes.get(GROUP)), None)


def last_first(op: Operation) -> None:
    """Take the tasks of all roles in the reverse order, so that each one waits for what comes behind it."""
    assert isinstance(op, KernelOp)
    for tasks in _in_parts(op):
        body, one = tasks.body.block, constant(1)
        index, first = body.args[0], body.first_op
        assert first is not None
        last = arith.SubiOp(tasks.counts[0], one.result)
        number = arith.SubiOp(last.result, index)
        before(first, [one, last, number])
        uses = [use for use in index.uses if use.operation is not number]
        for use in uses:
            use.operation.operands[use.index] = number.result


def waits_for_earlier(op: Operation) -> bool:
    """Whether tasks wait for others of their list: on one CTA these have to come before."""
    assert isinstance(op, KernelOp)
    return any(
        isinstance(wait, counters.WaitOp)
        and any(isinstance(at.owner, arith.SubiOp) and at.owner.lhs in tasks.body.block.args for at in wait.indices)
        for tasks in _in_parts(op)
        for wait in tasks.walk()
    )


def _in_parts(op: KernelOp) -> list[TasksOp]:
    """The tasks that an author wrote."""
    return [tasks for tasks in op.walk() if isinstance(tasks, TasksOp) and PART in tasks.attributes]


def _replace(op: Operation, old: SSAValue, new: SSAValue) -> None:
    place = list(op.operands).index(old)
    op.operands[place] = new


MISTAKES: tuple[Operator, ...] = (
    Operator("flag of another slot", (counters.WaitOp,), first_counter, has_several),
    Operator("data for the wrong neighbour", (access.StoreOp,), next_rank, goes_to_one_rank),
    Operator("its own memory for a peer's", (access.LoadOp,), own_memory, is_of_a_peer),
    Operator("a wait that one rank leaves out", (counters.WaitOp,), not_on_the_first, is_awaited_here_alone),
    Operator(
        "a signal that one rank leaves out",
        (counters.SignalOp, counters.SignalAllOp, counters.RaiseOp),
        not_on_the_first,
    ),
    Operator(
        "scope of one GPU",
        (counters.SignalOp, counters.SignalAllOp, counters.RaiseOp),
        of_the_gpu,
        releases_to_all,
    ),
    Operator("count of its own shard", (coordinates.BlockCountOp,), own_blocks, is_of_another),
    Operator("counters of more than 32 bits", (KernelOp,), wide, counts),
    Operator("tasks in the reverse order", (KernelOp,), last_first, waits_for_earlier),
    Operator("warps of two roles", (RoleOp,), warps_of_another, shares_its_cta),
    Operator("warps that no CTA has", (RoleOp,), beyond_the_cta, has_warps),
)
"""The second set of operators."""
