"""The pass `pk-overlap-mma`: MMAs of an iteration run while vector instructions compute what others of it need."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects import scf
from xdsl.ir import Operation, SSAValue
from xdsl.traits import is_side_effect_free

from pkc.dialect.program import REGISTERS, KernelOp, RoleOp
from pkc.dialect.roles import AcquireOp, CommitOp, ConsumeOp, ReleaseOp
from pkc.dialect.tile import AnyMmaOp, FullOp, MmaIssueOp, MmaOp, MmaWaitOp, tile_type
from pkc.dialect.transfers import mma_operand_stage
from pkc.dialect.types import TileType, f32
from pkc.passes.analysis.dependence import ancestors
from pkc.passes.kernel_pass import KernelPass
from pkc.passes.roles.budgets import tiles
from pkc.passes.roles.loop_halves import is_free, used_by
from pkc.remarks import missed
from pkc.targets.target import Operands, target_of


class OverlapMma(KernelPass):
    """Issue each MMA of an iteration as soon as its operands are there, and wait for it where its result is used.

    In a loop where one MMA needs what is computed from another one of the same iteration, `pk-pipeline-mma` lets the
    MMAs of one iteration run beside the computation of the next. Where it leaves a loop as it is, several MMAs of one
    iteration can still be in flight at once, and beside what is computed for the next of them: the gradients of
    attention are five MMAs, of which two can begin at once. A single MMA runs beside what its result is scaled by,
    where there are registers for all of it.

    MMAs keep their order. They move up, with the stages that they consume, in front of what is computed between; the
    release of a stage moves down behind the wait for the MMAs that read it. All else keeps its order. An MMA that adds
    to what the iteration computes begins when all before it are complete, and an iteration ends when its MMAs are.

    Before:

        %s = pk.mma %k, %q, %nil : ...
        %p = pk.exp2 %s : ...
        %o = pk.consume %1 : ...
        %d = pk.mma %v, %o, %nil : ...
        %g = pk.mul %p, %d : ...
        pk.release %1 : ...

    After:

        %0 = pk.mma_issue %k, %q, %nil : ...
        %o = pk.consume %1 : ...
        %2 = pk.mma_issue %v, %o, %nil : ...
        %s = pk.mma_wait %0 left 1 : ...
        %p = pk.exp2 %s : ...
        %d = pk.mma_wait %2 left 0 behind %p : ...
        pk.release %1 : ...
        %g = pk.mul %p, %d : ...
    """

    name = "pk-overlap-mma"

    def run(self, kernel: KernelOp) -> None:
        for loop in list(kernel.walk()):
            if isinstance(loop, scf.ForOp) and _has_used(loop):
                _Schedule(loop).write()


def _has_used(loop: scf.ForOp) -> bool:
    """Whether a loop has MMAs, one of which something else needs in the same iteration."""
    body = loop.body.block
    mmas = [op for op in loop.walk() if isinstance(op, AnyMmaOp) and _loop_of(op) is loop]
    if not mmas or target_of(loop).mma.operands is Operands.REGISTERS:
        return False
    if any(isinstance(op, MmaIssueOp) for op in mmas):
        return False
    used = [op for op in mmas if any(use.operation is not body.last_op for use in op.result.uses)]
    if not used or (len(mmas) == 1 and not (mmas[0].parent is body and _gains(loop))):
        return False
    for op in mmas:
        if op.parent is not body:
            missed(OverlapMma.name, op, "each MMA of the loop is waited for: this one stands in a branch")
            return False
        if isinstance(op.acc.owner, MmaOp) and op.acc.owner.parent is body:
            missed(OverlapMma.name, op, "each MMA of the loop is waited for: this one adds to the result of another")
            return False
    return True


def _gains(loop: scf.ForOp) -> bool:
    """Whether a single MMA is to run beside what its result is scaled by. The tiles of its role must have registers:
    else it comes in pieces (`pk-fuse-chains`)."""
    role = next(op for op in ancestors(loop) if isinstance(op, RoleOp))
    return REGISTERS not in role.attributes or not any(tiles(role, target_of(loop)))


def _loop_of(op: Operation) -> Operation | None:
    """The innermost loop around an operation."""
    return next((around for around in ancestors(op) if isinstance(around, scf.ForOp)), None)


class _Schedule:
    """The operations of a loop's body in their new order."""

    def __init__(self, loop: scf.ForOp) -> None:
        self._body = loop.body.block
        last = self._body.last_op
        assert last is not None
        self._last = last
        self._ops = [op for op in self._body.ops if op is not last]
        self._pending = [op for op in self._ops if isinstance(op, MmaOp)]
        self._order: list[Operation] = []
        self._done: set[Operation] = set()
        self._issued: dict[MmaOp, MmaIssueOp] = {}
        """The MMAs in flight, in the order in which they were issued."""
        self._held: list[ReleaseOp] = []

    def write(self) -> None:
        for op in self._ops:
            self._issue_ready()
            if op not in self._done and op not in self._pending:
                self._put(op)
        self._issue_ready()
        self._wait_for(*self._issued)
        for op in (*self._ops, self._last):
            op.detach()
        for op in (*self._order, self._last):
            self._body.add_op(op)
        for op in self._ops:
            if isinstance(op, MmaOp):
                op.erase()

    def _issue_ready(self) -> None:
        """Issue the next MMAs, in their order, as far as nothing has to be computed for them."""
        while self._pending and self._is_ready(self._pending[0]):
            mma = self._pending.pop(0)
            for op in self._missing(mma):
                self._put(op)
            if self._issued and self._is_computed(mma.acc):
                missed(
                    OverlapMma.name, mma, "the MMAs before it are waited for: it adds to what the iteration computes"
                )
                self._wait_for(*self._issued)
            issue = MmaIssueOp(mma.a, mma.b, mma.acc)
            issue.location = mma.location
            self._order.append(issue)
            self._done.add(mma)
            self._issued[mma] = issue

    def _is_computed(self, acc: SSAValue) -> bool:
        """Whether instructions of this iteration write what an MMA adds to: compilers let them wait for all MMAs."""
        return isinstance(acc.owner, Operation) and acc.owner.parent is self._body and not isinstance(acc.owner, FullOp)

    def _is_ready(self, mma: MmaOp) -> bool:
        needed = [*self._missing(mma), mma]
        if any(owner in self._issued for op in needed for owner in _makers(op)):
            return False
        return all(is_free(op) or self._may_come(op) for op in needed[:-1])

    def _missing(self, op: Operation) -> list[Operation]:
        """What an operation needs, directly or not, and is not there yet, in its order."""
        found, todo = set[Operation](), [op]
        while todo:
            for owner in _makers(todo.pop()):
                if owner.parent is self._body and owner not in self._done and owner not in found:
                    found.add(owner)
                    todo.append(owner)
        return [other for other in self._ops if other in found]

    def _may_come(self, op: Operation) -> bool:
        """Whether an operation takes a stage, and nothing on its channel stands before it."""
        if not isinstance(op, ConsumeOp):
            return False
        before = self._ops[: self._ops.index(op)]
        return not any(_channel(other) is op.channel and other not in self._done for other in before)

    def _put(self, op: Operation) -> None:
        """Put an operation behind all that it needs."""
        self._wait_for(*(owner for owner in _makers(op) if isinstance(owner, MmaOp)))
        self._done.add(op)
        reading = self._reading(op)
        if isinstance(op, ReleaseOp) and reading:
            if sum(_channel(other) is op.channel and isinstance(other, ReleaseOp) for other in self._ops) == 1:
                self._held.append(op)
                return
            self._wait_for(*reading)
        self._order.append(op)

    def _reading(self, op: Operation) -> list[MmaOp]:
        """The MMAs in flight that read a stage of the channel of an operation."""
        channel = _channel(op)
        stages = {mma: (mma_operand_stage(mma.a), mma_operand_stage(mma.b)) for mma in self._issued}
        return [mma for mma, read in stages.items() if any(stage and stage.channel is channel for stage in read)]

    def _wait_for(self, *wanted: MmaOp) -> None:
        """Wait for MMAs in flight and those issued before them, and release the stages that only these read."""
        flying = list(self._issued)
        last = max((flying.index(mma) for mma in wanted if mma in self._issued), default=-1)
        most = target_of(self._body.parent_op() or self._last).mma.in_flight
        for number, mma in enumerate(flying[: last + 1]):
            behind = self._computed(self._issued[mma])
            wait = MmaWaitOp(self._issued.pop(mma).result, min(len(flying) - number - 1, most), behind)
            wait.location, wait.result.name_hint = mma.location, mma.result.name_hint
            mma.result.replace_all_uses_with(wait.result)
            self._order.append(wait)
            for release in [op for op in self._held if not self._reading(op)]:
                self._held.remove(release)
                self._order.append(release)

    def _computed(self, issue: MmaIssueOp) -> list[SSAValue]:
        """The tiles computed since an MMA was issued that something later uses: what runs beside it."""
        since = self._order[self._order.index(issue) + 1 :]
        made = [value for op in since if _computes(op) for value in op.results]
        kinds = [value for value in made if isinstance(value.type, TileType) and tile_type(value).element_type == f32]
        return [value for value in kinds if any(self._is_later(use.operation) for use in value.uses)]

    def _is_later(self, op: Operation) -> bool:
        around = self._body.find_ancestor_op_in_block(op)
        return around is self._last or (around is not None and around not in self._done)


def _computes(op: Operation) -> bool:
    return is_side_effect_free(op) and not is_free(op) and not isinstance(op, AnyMmaOp | MmaWaitOp)


def _channel(op: Operation) -> SSAValue | None:
    return op.channel if isinstance(op, AcquireOp | CommitOp | ConsumeOp | ReleaseOp) else None


def _makers(op: Operation) -> Iterator[Operation]:
    """The operations whose results an operation uses, in its regions too."""
    return (value.owner for value in used_by(op) if isinstance(value.owner, Operation))
