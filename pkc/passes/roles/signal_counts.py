"""How many signals each counter gets in a launch, for all sizes, and whether each wait counts as many.

Of a signal inside loops and tasks it is asked how often it reaches one counter of one rank. A loop or task index that
says which counter is meant takes one value of many; one that says which rank, those of the rank's blocks; of any other,
all values count. What is in no task is run by every CTA.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.dialects import arith, scf
from xdsl.ir import BlockArgument, Operation, SSAValue

from pkc.diagnostics import Diagnostic, Label
from pkc.dialect.coordinates import (
    BlockCountOp,
    BlockNumberOp,
    BlockOp,
    EpochOp,
    InterleaveOp,
    OwnerOp,
    RankOp,
    RotateOp,
)
from pkc.dialect.counters import EARLIER, BarrierOp, RaiseOp, ResetOp, SignalAllOp, SignalOp, WaitOp
from pkc.dialect.program import PER_CTA, KernelOp, TasksOp
from pkc.dialect.tile import block_type
from pkc.dialect.types import RANKS, SignalType
from pkc.location import span_of
from pkc.passes import plan_errors as errors
from pkc.passes.analysis.dependence import ancestors, role_around, same_value, sources, task_count
from pkc.passes.analysis.polynomials import (
    EPOCH,
    HALF_EPOCH,
    HALF_OF_LAUNCHES,
    Polynomial,
    blocks_of_this_rank,
    polynomial,
)
from pkc.passes.build import is_constant
from pkc.passes.roles.written_counts import sent_to

_NOT_EQUAL = arith.CMPI_COMPARISON_OPERATIONS.index("ne")


@dataclass(frozen=True)
class Counted:
    """One wait: what it waits for, and what its counter gets; None where that is not known for all sizes."""

    wait: WaitOp
    wanted: Polynomial | None
    sent: Polynomial | None
    signal: Operation | None
    whole: bool = True
    """Whether a wait for other than all signals is wrong; an author's may be for the first of several rounds."""

    @property
    def shown(self) -> bool:
        """Whether it counts right for all sizes, ranks and numbers of CTAs."""
        return self.wanted is not None and self.sent is not None and (self.wanted - self.sent).is_zero

    @property
    def wrong(self) -> bool:
        """Whether it counts wrong for some sizes."""
        if not self.whole or self.wanted is None or self.sent is None:
            return False
        return (self.wanted - self.sent).surely_not_zero


def counted(kernel: KernelOp) -> list[Counted]:
    """Each wait of a kernel beside the signals that its counter gets."""
    return [each for array in _signal_arrays(kernel) for each in _of_array(array)]


def count_findings(kernel: KernelOp) -> Iterator[Diagnostic]:
    """Waits that surely count wrong; counters that are added to and raised."""
    for array in _signal_arrays(kernel):
        kinds = {type(use.operation): use.operation for use in array.uses}
        if RaiseOp in kinds and (SignalOp in kinds or SignalAllOp in kinds):
            yield errors.AddedAndRaised(span_of(kinds[RaiseOp].location), kernel.argument_name(array))
    for each in counted(kernel):
        if not each.wrong:
            continue
        assert isinstance(each.wait.signal, BlockArgument)
        also = (Label(span_of(each.signal.location), "signalled here"),) if each.signal is not None else ()
        name = kernel.argument_name(each.wait.signal)
        yield errors.WaitNotCovered(span_of(each.wait.location), name, str(each.wanted), str(each.sent), also=also)


def orders(kernel: KernelOp) -> Iterator[Diagnostic]:
    """Orders of tasks that are no bijection."""
    for op in kernel.walk():
        if isinstance(op, RotateOp | InterleaveOp) and task_count(op.index) is not None and not _is_bijection(op):
            yield errors.OrderOfOthers(span_of(op.location))


def _signal_arrays(kernel: KernelOp) -> list[BlockArgument]:
    return [argument for argument in kernel.body.block.args if isinstance(argument.type, SignalType)]


def _of_array(array: BlockArgument) -> Iterator[Counted]:
    ops = [use.operation for use in array.uses]
    if any(isinstance(op, BarrierOp | ResetOp) for op in ops):
        for op in ops:
            if isinstance(op, WaitOp):
                wanted, sent = sent_to(op)
                yield Counted(op, wanted, sent, None, whole=False)
        return
    signals = [op for op in ops if isinstance(op, SignalOp | SignalAllOp)]
    raises = [op for op in ops if isinstance(op, RaiseOp)]
    first = next(iter((*raises, *signals)), None)
    for op in ops:
        if isinstance(op, WaitOp):
            sent = _raised(raises) if raises else _sent(signals, op)
            yield Counted(op, polynomial(op.count), sent, first)


def _raised(raises: list[RaiseOp]) -> Polynomial | None:
    values = [polynomial(op.value) for op in raises]
    first = values[0]
    alike = first is not None and all(value is not None and (value - first).is_zero for value in values)
    return first if alike else None


def _sent(signals: list[SignalOp | SignalAllOp], wait: WaitOp) -> Polynomial | None:
    """What a counter that a wait is for gets in all launches that the wait is for."""
    total, launches = Polynomial.constant(0), _launches(signals, wait)
    for op in signals:
        each = _each_launch(op)
        if each is None:
            return None
        total += each
    return None if launches is None else total * launches


def _launches(signals: list[SignalOp | SignalAllOp], wait: WaitOp) -> Polynomial | None:
    """How many launches signal a counter up to the end of a wait: all so far, or, of two counters that they take in
    turn, half of those, or half of those before this one if the wait is for the counter of the last."""
    in_turn = [_is_turn(op, of_last=False) for op in signals]
    if not any(in_turn):
        return None if EARLIER in wait.attributes else Polynomial.of(EPOCH)
    if not all(in_turn):
        return None
    if _is_turn(wait, of_last=False):
        return Polynomial.of(HALF_OF_LAUNCHES)
    return Polynomial.of(HALF_EPOCH) if _is_turn(wait, of_last=True) else None


def _is_turn(op: SignalOp | SignalAllOp | WaitOp, *, of_last: bool) -> bool:
    """Whether of two counters the one is meant that this launch takes, or the last one."""
    turn = op.indices[0].owner
    if not isinstance(turn, arith.RemSIOp) or not is_constant(turn.rhs, 2):
        return False
    launch = turn.lhs.owner
    if not of_last:
        return isinstance(launch, EpochOp)
    return isinstance(launch, arith.SubiOp) and isinstance(launch.lhs.owner, EpochOp) and is_constant(launch.rhs, 1)


def _foreign_block(op: SignalOp | SignalAllOp) -> SSAValue | None:
    """The block for which a signal is sent if another rank has it, by the branch that it stands in."""
    branch = op.parent_op()
    condition = branch.cond.owner if isinstance(branch, scf.IfOp) else None
    if not isinstance(branch, scf.IfOp) or not isinstance(condition, arith.CmpiOp):
        return None
    owner, rank = condition.lhs.owner, condition.rhs.owner
    foreign = condition.predicate.value.data == _NOT_EQUAL and op.parent is branch.true_region.block
    return owner.block if foreign and isinstance(owner, OwnerOp) and isinstance(rank, RankOp) else None


def _each_launch(op: SignalOp | SignalAllOp) -> Polynomial | None:
    """What one counter of one rank gets by a signal in a launch."""
    total = polynomial(op.amount)
    tasks: TasksOp | None = None
    owned: Polynomial | None = None
    foreign = _foreign_block(op)
    for parent in ancestors(op):
        if isinstance(parent, scf.IfOp) and parent is op.parent_op() and foreign is not None:
            continue  # until its blocks are counted
        if isinstance(parent, scf.IfOp) or (isinstance(parent, TasksOp) and PER_CTA not in parent.attributes):
            return None
        if isinstance(parent, scf.ForOp) and not _counts_from_zero(parent):
            return None
        tasks = parent if isinstance(parent, TasksOp) else tasks
        for index, count in _indices(parent):
            others = foreign is not None and _is_of_all_shards(_list_of(foreign, index, count))
            if _names_counter(op, index, count):
                if others:
                    return None  # counters of this rank's blocks get none
                continue
            blocks = _names_owner(op, index, count)
            if blocks is not None:
                owned = blocks
                continue
            factor = None if index in _deciding(op) else polynomial(count)
            if factor is not None and foreign is not None and others:
                factor, foreign = factor - blocks_of_this_rank(block_type(foreign)), None
            total = None if total is None or factor is None else total * factor
    role = role_around(op)
    if total is None or role is None or foreign is not None:
        return None
    if tasks is None:
        total *= Polynomial.of(f"ctas of {role.role.data}")
    return _over_ranks(op, total, owned)


def _over_ranks(op: SignalOp | SignalAllOp, total: Polynomial, owned: Polynomial | None) -> Polynomial | None:
    """The signals of one sender, given, from all ranks that send."""
    if isinstance(op, SignalOp) and isinstance(op.rank.owner, RankOp):
        return total
    to_owner = isinstance(op, SignalOp) and isinstance(op.rank.owner, OwnerOp)
    if total.differs_by_rank or not (to_owner or isinstance(op, SignalAllOp)):
        return None
    if isinstance(op, SignalAllOp) and any(map(_is_of_this_rank, op.indices)):
        return total
    total *= Polynomial.of(RANKS)
    return total if owned is None else total * owned


def _is_of_this_rank(counter: SSAValue) -> bool:
    """Whether an index of a counter is the number of a block of this rank's shard: no other rank signals there."""
    made = counter.owner.block.owner if isinstance(counter.owner, BlockNumberOp) else None
    return isinstance(made, BlockOp) and made.shard is not None and isinstance(made.shard.owner, RankOp)


def _indices(parent: Operation) -> Iterator[tuple[BlockArgument, SSAValue]]:
    """The indices of a loop or of tasks, each with the count that it runs below."""
    if isinstance(parent, TasksOp):
        yield from zip(parent.body.block.args, parent.counts, strict=True)
    if isinstance(parent, scf.ForOp):
        yield parent.body.block.args[0], parent.ub


def _counts_from_zero(loop: scf.ForOp) -> bool:
    return is_constant(loop.lb, 0) and is_constant(loop.step, 1)


def _deciding(op: SignalOp | SignalAllOp) -> set[SSAValue]:
    """All that says which counter of which rank is meant."""
    return sources([*op.indices, *((op.rank,) if isinstance(op, SignalOp) else ())])


def _names_counter(op: SignalOp | SignalAllOp, index: BlockArgument, count: SSAValue) -> bool:
    """Whether a counter belongs to one value of an index: it is the number of the block, or the index itself."""
    for place in op.indices:
        if place is index:
            return True
        if isinstance(place.owner, BlockNumberOp) and _list_of(place.owner.block, index, count) is not None:
            return True
    return False


def _names_owner(op: SignalOp | SignalAllOp, index: BlockArgument, count: SSAValue) -> Polynomial | None:
    """If an index says which rank is meant, by the owner of its block: how many of its values mean one rank."""
    if not isinstance(op, SignalOp) or not isinstance(op.rank.owner, OwnerOp):
        return None
    block = _list_of(op.rank.owner.block, index, count)
    return blocks_of_this_rank(block_type(block.result)) if block is not None and _is_of_all_shards(block) else None


def _is_of_all_shards(block: BlockOp | None) -> bool:
    """Whether a block is of a list that goes through all shards, one after the other."""
    return block is not None and block.sharded is not None and block.shard is None


def _list_of(block: SSAValue, index: BlockArgument, count: SSAValue) -> BlockOp | None:
    """The block that an index picks from a list, if the index runs below the length of that list."""
    made, length = block.owner, count.owner
    if not isinstance(made, BlockOp) or not isinstance(length, BlockCountOp):
        return None
    picked = made.index.owner
    number = picked.index if isinstance(picked, RotateOp | InterleaveOp) and _is_bijection(picked) else made.index
    alike = (block_type(block), made.sharded) == (length.block, length.sharded) and all(
        (one is None) == (other is None) and (one is None or other is None or same_value(one, other))
        for one, other in ((made.shard, length.shard), (made.start, length.start), (made.stop, length.stop))
    )
    return made if number is index and alike else None


def _is_bijection(op: RotateOp | InterleaveOp) -> bool:
    """Whether an index is rotated by the count that it runs below, or takes the numbers of all blocks of a list."""
    count = task_count(op.index)
    if isinstance(op, RotateOp) or count is None:
        return isinstance(op, RotateOp) and count is not None and same_value(op.count, count)
    length = count.owner
    if not isinstance(length, BlockCountOp) or length.block != op.block or length.sharded is None:
        return False
    return length.shard is None and length.start is None and length.stop is None
