"""What surely follows a wait, for the entry of all ranks into a launch or for the end of a phase: because of one in its
role, or in another one that its tiles come through."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from xdsl.dialects import arith, scf
from xdsl.ir import Operation, SSAValue

from pkc.dialect.coordinates import BlockCountOp, CtasOp, DimOp, EpochOp, OwnerOp, RankOp
from pkc.dialect.counters import RaiseOp, SignalAllOp, SignalOp, WaitOp
from pkc.dialect.program import AFTER_ALL, PER_CTA, RoleOp, TasksOp, packed
from pkc.dialect.roles import CommitOp, ConsumeOp
from pkc.dialect.scalars import constant_of
from pkc.passes.analysis.dependence import ancestors, enclosing_tasks, role_around, same_value, same_values
from pkc.passes.build import phase_of

_SIGNALS = (SignalOp, RaiseOp, SignalAllOp)


def follows_entry(op: Operation, waiting: Collection[RoleOp], target: SSAValue | None = None) -> bool:
    """Whether all ranks have entered the launch whenever `op` runs, if the roles `waiting` await that when they begin.

    With a `target`, a block: it is enough if that holds whenever another rank owns the block. What has run before `op`
    in its role may tell so:

    - a wait for signals that every rank sends;
    - a wait for signals of any ranks, or the consumption of a stage, if what signals or commits follows the entry. Of
      signals that each CTA of this rank sends after its tasks it is enough if one does, since all of them are awaited.
    """

    def begins(other: Operation) -> bool:
        role = role_around(other)
        return role is not None and (role in waiting or AFTER_ALL in role.attributes)

    return _Search(begins, _Target(target, tuple(enclosing_tasks(op)))).follows(op)


def follows_through_channels(op: Operation, begins: Callable[[Operation], bool]) -> bool:
    """Whether `op` runs after something that `begins` is true of, in its role or in one that passes it tiles.

    Only stages count that are consumed outside of the loops around it: later passes may rotate these.
    """
    loops = [loop for loop in ancestors(op) if isinstance(loop, scf.ForOp)]
    return _Search(begins, _NO_TARGET, waits=False).follows(loops[-1] if loops else op)


def ends_behind_entry(role: RoleOp) -> bool:
    """Whether all ranks have entered the launch when a role ends, whatever its tasks are."""
    search = _Search(lambda op: False, _NO_TARGET)
    return any(map(search.tells, role.body.block.ops))


@dataclass(frozen=True)
class _Target:
    """A block, or none, and the tasks around what accesses it, innermost first."""

    block: SSAValue | None
    tasks: tuple[TasksOp, ...]

    def is_own(self, condition: SSAValue) -> bool:
        """Whether a condition in the same task, of this or another role, says that this rank owns the block."""
        compare = condition.owner
        if self.block is None or not isinstance(compare, arith.CmpiOp) or compare.predicate.value.data != _EQUAL:
            return False
        owner = compare.lhs.owner
        if not isinstance(owner, OwnerOp) or owner.last is not None or not isinstance(compare.rhs.owner, RankOp):
            return False
        pairs = list(zip(enclosing_tasks(compare), self.tasks, strict=False))
        args = ((mine.body.block.args, others.body.block.args) for mine, others in pairs)
        given: dict[SSAValue, SSAValue] = {
            arg: other for mine, others in args for arg, other in zip(mine, others, strict=False)
        }
        alike = all(same_values(mine.counts, others.counts) for mine, others in pairs)
        return alike and same_value(owner.block, self.block, given)


_NO_TARGET = _Target(None, ())


class _Search:
    def __init__(self, begins: Callable[[Operation], bool], target: _Target, *, waits: bool = True) -> None:
        self._begins = begins
        self._target = target
        self._waits = waits
        self._known: dict[tuple[Operation, _Target | WaitOp], bool] = {}

    def follows(self, op: Operation) -> bool:
        return self._follows(op, self._target)

    def tells(self, op: Operation) -> bool:
        return self._tells(op, self._target)

    def _follows(self, op: Operation, target: _Target) -> bool:
        key = op, target
        if key not in self._known:
            self._known[key] = False  # what waits for itself follows nothing
            self._known[key] = self._begins(op) or any(self._tells(earlier, target) for earlier in _before(op))
        return self._known[key]

    def _tells(self, op: Operation, target: _Target) -> bool:
        """Whether what is asked for has come once `op` has run."""
        if isinstance(op, ConsumeOp):  # roles of a CTA run the same tasks
            commits = [use.operation for use in op.channel.uses if isinstance(use.operation, CommitOp)]
            return all(self._follows(commit, target) for commit in commits if phase_of(commit) == phase_of(op))
        if self._waits and isinstance(op, WaitOp) and _tells_of_others(op) and _is_positive(op.count, target):
            sent = [use.operation for use in op.signal.uses if isinstance(use.operation, _SIGNALS)]
            return bool(sent) and all(_is_from_all(signal) or self._is_behind(signal, op) for signal in sent)
        if isinstance(op, scf.ForOp) and constant_of(op.lb) == 0 and _is_positive(op.ub, target):
            return any(self._tells(inner, target) for inner in op.body.block.ops)
        return False

    def _is_behind(self, signal: Operation, wait: WaitOp) -> bool:
        """Whether a signal, which may be of any task, follows the entry: of all ranks, so it does not matter whose."""
        if self._follows(signal, _NO_TARGET):
            return True
        own = isinstance(signal, SignalOp | RaiseOp) and isinstance(signal.rank.owner, RankOp)
        return own and self._some_follows(signal, wait)

    def _some_follows(self, signal: Operation, wait: WaitOp) -> bool:
        """Whether each CTA signals once, all of these are awaited, and one of them has run a task that tells."""
        key = signal, wait
        if key not in self._known:
            self._known[key] = False
            self._known[key] = self._tasks_tell(signal, wait)
        return self._known[key]

    def _tasks_tell(self, signal: Operation, wait: WaitOp) -> bool:
        counts = [count for tasks in enclosing_tasks(wait) for count in tasks.counts]  # more than 0, in a task
        for tasks in _before(signal) if isinstance(signal.parent_op(), RoleOp) else ():
            if not isinstance(tasks, TasksOp) or PER_CTA not in tasks.attributes:
                continue
            known = (_is_positive(n, _NO_TARGET) or any(same_value(n, other) for other in counts) for n in tasks.counts)
            if all(known) and any(self._tells(inner, _NO_TARGET) for inner in tasks.body.block.ops):
                return True
        return False


def _tells_of_others(wait: WaitOp) -> bool:
    """Whether a wait is for all signals of a counter, and not for packets, which tell of themselves alone."""
    return not packed(wait) and wait.rows is None


def _is_from_all(signal: Operation) -> bool:
    """Whether every rank sends a signal to all ranks, whatever its tasks are."""
    return isinstance(signal, SignalAllOp) and isinstance(signal.parent_op(), RoleOp)


def _is_positive(number: SSAValue, target: _Target) -> bool:
    """Whether an integer is surely more than 0, as dimensions are, if another rank owns the target."""
    owner, constant = number.owner, constant_of(number)
    if constant is not None:
        return constant > 0
    if isinstance(owner, arith.MuliOp | arith.AddiOp | arith.MinSIOp):
        return all(_is_positive(operand, target) for operand in owner.operands)
    if isinstance(owner, arith.SelectOp):
        values = (owner.rhs,) if target.is_own(owner.cond) else (owner.lhs, owner.rhs)
        return all(_is_positive(value, target) for value in values)
    if isinstance(owner, BlockCountOp):
        return not owner.operands  # a shard may have no block
    return isinstance(owner, DimOp | CtasOp | EpochOp)


_EQUAL = 0
"""The predicate of `arith.cmpi eq`."""


def _before(op: Operation) -> Iterator[Operation]:
    """What has run in the role of an operation whenever that runs, the last first."""
    for inner in (op, *ancestors(op)):
        if isinstance(inner, RoleOp):
            return
        earlier = inner.prev_op
        while earlier is not None:
            yield earlier
            earlier = earlier.prev_op
