"""The pass `pk-spread-roles`: what an author wrote as one role of a rank is shared out among its CTAs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import takewhile

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IndexType, IntegerAttr, UnitAttr, i64
from xdsl.ir import Block, BlockArgument, Operation, Region, SSAValue
from xdsl.traits import is_side_effect_free

from pkc.diagnostics import PkcError
from pkc.dialect.access import LOADS, LoadOp, ReadOp, StoreOp
from pkc.dialect.attributes import Role
from pkc.dialect.coordinates import BlockOp, CtasOp, RankOp, RingPeerOp
from pkc.dialect.counters import SignalAllOp, SignalOp, WaitOp, is_taken_down, takes_down
from pkc.dialect.program import DERIVED, PART, PER_CTA, WRITTEN, KernelOp, RoleOp, TasksOp
from pkc.dialect.types import PGLType, PrivateType, SignalType, TileType
from pkc.location import span_of
from pkc.passes import plan_errors as errors
from pkc.passes.analysis.dependence import never_changes, sources
from pkc.passes.analysis.settled import mark_settled
from pkc.passes.build import add_parameter, before, constant, copy_of
from pkc.passes.kernel_pass import KernelPass
from pkc.passes.roles.repeats import UnknownRepeatsError, around_in_role, runs_so_far
from pkc.remarks import missed

_SIGNALS = (SignalOp, SignalAllOp)


class SpreadRoles(KernelPass):
    """Let all CTAs of a role that an author wrote share its tasks. A role runs once on each rank, in order; so

    - every role computes what stands beside them, integers of a caller's scalars;
    - every CTA carries out waits that stand outside of tasks, and loads;
    - one carries out the rest, as a set of one task;
    - CTAs wait for each other, by the counter `joined`, where it matters: before a signal outside of tasks, which all
      earlier tasks must precede, before what uses an array that earlier tasks write, or writes one that they use, and
      before a wait for a counter that is taken down again.
      In loops no CTA signals again before all have signalled in the iteration before. Where only some iterations take
      a branch, all CTAs signal in place of it, too.

    From here on the roles are as those that pkc derives, and `written` says who wrote them. Communicators stay whole
    as long as no later pass splits their copies; all other roles that have tiles are split into loader, consumer and
    storer.

    Before:

        pk.role communicator sms 16 {
          pk.tasks (%i, %j) in (...) { ... pk.store %t, %Y at %r[%m, %n : ...] : ... }
          pk.signal_all %done[%0] by %1 : !pk.signal<[1]>
          pk.wait %done[%0] for %ranks : !pk.signal<[1]>
        }

    After:

        pk.role communicator sms 16 {
          pk.tasks (%i, %j) in (...) attributes {per_cta, part = 0} { ... pk.store %t, %Y at %r[%m, %n : ...] : ... }
          pk.signal %joined at %rank[%0] by %1 : !pk.signal<[1]>
          pk.tasks (%once) in (%1) attributes {per_cta, part = 1} {
            pk.wait %joined[%0] for %ctas : !pk.signal<[1]>
            pk.signal_all %done[%0] by %1 : !pk.signal<[1]>
          }
          pk.wait %done[%0] for %ranks : !pk.signal<[1]>
        }
    """

    name = "pk-spread-roles"

    def run(self, kernel: KernelOp) -> None:
        roles = kernel.roles
        if DERIVED in kernel.attributes or not roles:
            return
        kernel.attributes |= {DERIVED: UnitAttr(), WRITTEN: UnitAttr()}
        _give_integers(kernel)
        mark_settled(kernel)  # before the signals among CTAs, which tell nobody else
        for role in roles:
            _Spread(kernel, role).run()
        for number, tasks in enumerate(op for op in kernel.walk() if isinstance(op, TasksOp)):
            tasks.attributes |= {PER_CTA: UnitAttr(), PART: IntegerAttr(number, i64)}
        for role in roles:
            if role.role.data is not Role.Communicator and any(map(_has_tile, role.walk())):
                role.attributes[DERIVED] = UnitAttr()
                _remark(role)


def _give_integers(kernel: KernelOp) -> None:
    """Let each role compute for itself what stands beside all of them, the integers of a caller's scalars: what a role
    becomes stands alone."""
    beside = [op for op in kernel.body.block.ops if not isinstance(op, RoleOp) and is_side_effect_free(op)]
    for role in kernel.roles if beside else ():
        known: dict[SSAValue, SSAValue] = {}
        first = role.body.block.first_op
        assert first is not None
        for op in beside:
            role.body.block.insert_op_before(copy_of(op, known), first)
        for old, new in known.items():
            old.replace_uses_with_if(new, lambda use, role=role: role.is_ancestor(use.operation))
    for op in reversed(beside):
        op.detach()
        op.erase()


def _remark(role: RoleOp) -> None:
    """Say what of a role is not taken over."""
    for what, given in (("sms", role.sms), ("warps", role.warps)):
        if given is not None:
            reason = "pkc splits the role, and plans the warps of a loader, a consumer and a storer"
            missed(SpreadRoles.name, role, f"`{what}={given.value.data}` changes nothing: {reason}")


class _Spread:
    """Shares out one role."""

    def __init__(self, kernel: KernelOp, role: RoleOp) -> None:
        self._kernel, self._role = kernel, role
        self._not_taken: list[tuple[Region, BlockArgument]] = []
        """Where branches around signals are not taken, and the counters."""

    def run(self) -> None:
        """Share it out."""
        self.block(self._role.body.block, [])
        for region, joined in self._not_taken:
            self._signal_instead(region, joined)

    def block(self, block: Block, earlier: Sequence[Operation]) -> list[Operation]:
        """Share out what a block has outside of tasks; `earlier` are operations that other CTAs may not have finished.
        Gives those of them that still are, together with the block's."""
        pending = list(earlier)
        single: list[Operation] = []
        for op in [*block.ops, None]:
            if op is not None and not _has_tasks(op):
                single += [] if _is_everywhere(op) else [op]
                continue
            pending = self._single(single, pending)
            single = []
            if isinstance(op, TasksOp):
                pending = self._join(op, [op], pending)
                pending.append(op)
            elif op is not None:
                pending = self._around_tasks(op, pending)
        return pending

    def _around_tasks(self, op: Operation, pending: list[Operation]) -> list[Operation]:
        """A loop or branch around tasks."""
        left: list[Operation] = []
        for region in op.regions:
            if region.blocks:
                before_it = [*pending, op] if isinstance(op, scf.ForOp) else pending
                left += self.block(region.block, before_it)
        return list(dict.fromkeys([*pending, *left]))

    def _single(self, ops: list[Operation], pending: list[Operation]) -> list[Operation]:
        """What stands between tasks: one CTA carries out all but the waits at both ends."""
        first, last = [*takewhile(_only_waits, ops)], [*takewhile(_only_waits, reversed(ops))][::-1]
        pending = self._all_wait(first, pending)
        ops = self._once(ops[len(first) : len(ops) - len(last)])
        if ops:
            pending = self._in_one_task(ops, pending)
        return self._all_wait(last, pending)

    def _all_wait(self, waits: list[Operation], pending: list[Operation]) -> list[Operation]:
        """Waits that all CTAs carry out: what is taken down again is taken down before, or after all have."""
        if not waits:
            return pending
        pending = self._join(waits[0], waits, pending)
        return [*pending, *(op for op in waits if any(map(is_taken_down, _awaited([op]))))]

    def _in_one_task(self, ops: list[Operation], pending: list[Operation]) -> list[Operation]:
        """Let one CTA carry out operations."""
        block, behind = ops[-1].parent, ops[-1].next_op
        assert block is not None
        body = Block(arg_types=[IndexType()])
        one = constant(1)
        tasks = TasksOp([one.result], Region(body))
        for made in (one, tasks):
            made.location = ops[0].location
            block.insert_op_before(made, behind) if behind is not None else block.add_op(made)
        for op in ops:
            op.detach()
            body.add_op(op)
        signals = any(isinstance(inner, _SIGNALS) for op in ops for inner in op.walk())
        if pending and (signals or _conflict(pending, ops, self._variables(tasks))):
            self._wait(ops[0], self._signal(one, all_wait=False))
        return [*pending, tasks] if _shared(ops) else pending

    def _once(self, ops: list[Operation]) -> list[Operation]:
        """Those that one CTA carries out: what has effects beyond reading, and the tiles that only that needs."""
        kept = {op for op in ops if not _only_reads(op)}
        for op in reversed(ops):
            users = [use.operation for result in op.results for use in result.uses]
            if users and all(any(one is user or one.is_ancestor(user) for one in kept) for user in users):
                kept.add(op)
        for op in kept:
            outside = (use.operation for result in op.results for use in result.uses)
            if not all(any(one is user or one.is_ancestor(user) for one in kept) for user in outside):
                reason = "what it computes is used by other CTAs"
                raise _refused(op, "statement outside of `tasks`", reason, "use its result in the same statement")
        return [op for op in ops if op in kept]

    def _join(self, place: Operation, ops: list[Operation], pending: list[Operation]) -> list[Operation]:
        """Let all CTAs wait before `place` for what `ops` depend on; what is pending afterwards."""
        if not _conflict(pending, ops, self._variables(place)):
            return pending
        self._wait(place, self._signal(place))
        return []

    def _variables(self, place: Operation) -> list[SSAValue]:
        """The variables of the loops around an operation of the role."""
        found: list[SSAValue] = []
        parent = place.parent_op()
        while parent is not None and parent is not self._role:
            found += [parent.body.block.args[0]] if isinstance(parent, scf.ForOp) else []
            parent = parent.parent_op()
        return found

    def _signal(self, place: Operation, *, all_wait: bool = True) -> tuple[BlockArgument, list[Operation], SSAValue]:
        """Signal before `place` from each CTA; what to wait for: the counter, and its count by all CTAs.

        In a loop, unless all CTAs wait for that, each waits for those of the iterations before: else one that is ahead
        would be counted for one that is behind.
        """
        joined = add_parameter(self._kernel, "joined", SignalType((1,)), place.location)
        branches = _varying_branches(place)
        try:
            made, times = _runs_so_far(place)
            if not all_wait and self._variables(place):
                self._wait(place, (joined, *_fewer(place)))
        except UnknownRepeatsError as error:
            hint = "let `tasks` of one role use separate arrays, or divide the role"
            raise _refused(place, "role", f"its CTAs wait for each other here, and {error}", hint) from None
        _signal_once(place, joined)
        for number, branch in enumerate(branches):
            inside = [*branches[number + 1 :], place]
            others = (region for region in branch.regions if not any(map(region.is_ancestor, inside)))
            self._not_taken += [(region, joined) for region in others]
        return joined, made, times

    def _signal_instead(self, region: Region, joined: BlockArgument) -> None:
        """Signal where a branch is not taken: each iteration has as many signals, as all CTAs take the same one."""
        if not region.blocks:
            region.add_block(Block())
        block = region.block
        if block.first_op is None:
            block.add_op(scf.YieldOp())
        place = block.first_op
        assert place is not None
        self._wait(place, (joined, *_fewer(place)))
        _signal_once(place, joined)

    def _wait(self, place: Operation, expected: tuple[BlockArgument, list[Operation], SSAValue]) -> None:
        joined, made, times = expected
        zero, ctas = constant(0), CtasOp(self._role.role)
        total = arith.MuliOp(times, ctas.result)
        before(place, [*made, zero, ctas, total, WaitOp(joined, (zero.result,), total.result)])


def _signal_once(place: Operation, joined: BlockArgument) -> None:
    rank, zero, one = RankOp(), constant(0), constant(1)
    before(place, [rank, zero, one, SignalOp(joined, (zero.result,), rank, one)])


def _runs_so_far(place: Operation) -> tuple[list[Operation], SSAValue]:
    """As `runs_so_far`, with branches around it: those that all iterations take or none does, and others, which signal
    where they are not taken; but in these no loops, of which it is not known how often those would. Raises
    `UnknownRepeatsError`."""
    around, varying = around_in_role(place), _varying_branches(place)
    branches = [op for op in around if isinstance(op, scf.IfOp)]
    inside = around[around.index(varying[0]) :] if varying else []
    known = all(map(_is_alike, branches)) and not any(isinstance(op, scf.ForOp) for op in inside)
    return runs_so_far(place, in_branches=not known)


def _fewer(place: Operation) -> tuple[list[Operation], SSAValue]:
    """How often a place in loops has run before."""
    made, count = _runs_so_far(place)
    one = constant(1)
    fewer = arith.SubiOp(count, one.result)
    return [*made, one, fewer], fewer.result


def _varying_branches(place: Operation) -> list[scf.IfOp]:
    """The branches around a place that some iterations of the loops around them take and others do not, the outermost
    first."""
    found: list[scf.IfOp] = []
    carried: set[SSAValue] = set()
    for op in around_in_role(place):
        if isinstance(op, scf.ForOp):
            carried.update(op.body.block.args)
        if isinstance(op, scf.IfOp) and not carried.isdisjoint(sources([op.cond])):
            found.append(op)
    return found


def _is_alike(branch: scf.IfOp) -> bool:
    """Whether all CTAs of a rank take a branch or none does: it reads nothing that may change meanwhile."""
    made = (value.owner for value in sources([branch.cond]))
    return all(never_changes(op) for op in made if isinstance(op, LOADS))


def _refused(op: Operation, what: str, reason: str, hint: str) -> PkcError:
    return PkcError(errors.UnorderedRole(span_of(op.location), what, reason, hint))


def _has_tasks(op: Operation) -> bool:
    return any(isinstance(inner, TasksOp) for inner in op.walk())


def _has_tile(op: Operation) -> bool:
    return any(isinstance(value.type, TileType) for value in op.results)


def _is_everywhere(op: Operation) -> bool:
    """Whether every CTA carries out an operation: integers that it needs."""
    return not any(map(_has_tile, op.walk())) and all(
        isinstance(inner, ReadOp | scf.YieldOp) or inner.regions or is_side_effect_free(inner) for inner in op.walk()
    )


def _only_waits(op: Operation) -> bool:
    return all(isinstance(inner, WaitOp) or inner.regions or is_side_effect_free(inner) for inner in op.walk())


def _only_reads(op: Operation) -> bool:
    return all(isinstance(inner, LoadOp | ReadOp) or inner.regions or is_side_effect_free(inner) for inner in op.walk())


def _shared(ops: Sequence[Operation], *, written: bool = False) -> set[SSAValue]:
    """The arrays that operations use, or write, and counters that they take down again: those are awaited before or
    after that."""
    found: set[SSAValue] = set()
    for op in ops:
        for inner in op.walk():
            if isinstance(inner, _SIGNALS) and takes_down(inner):
                found.add(inner.signal)
            if not inner.regions and not (written and isinstance(inner, LoadOp | ReadOp)):
                found |= {value for value in inner.operands if isinstance(value.type, PrivateType | PGLType)}
    return found if written else found | _awaited(ops)


def _awaited(ops: Iterable[Operation]) -> set[SSAValue]:
    return {inner.signal for op in ops for inner in op.walk() if isinstance(inner, WaitOp)}


def _conflict(earlier: Sequence[Operation], later: Sequence[Operation], variables: Sequence[SSAValue]) -> bool:
    """Whether `later` uses an array that `earlier` writes, or writes one that it uses; or one of them takes down a
    counter that the other one awaits, or takes down too."""
    shared = (_shared(earlier, written=True) & _shared(later)) | (_shared(earlier) & _shared(later, written=True))
    return not all(_apart(array, [*earlier, *later], variables) for array in shared)


def _apart(array: SSAValue, ops: Sequence[Operation], variables: Sequence[SSAValue]) -> bool:
    """Whether all that use an array are one store, and in each iteration of the loops around it to another place."""
    using = {inner for op in ops for inner in op.walk() if array in inner.operands}
    if len(using) != 1:
        return False
    (store,) = using
    return isinstance(store, StoreOp) and bool(variables) and all(_names(store, one) for one in variables)


def _names(store: StoreOp, variable: SSAValue) -> bool:
    """Whether each value of a loop's variable means another place: it is an index, or picks the shard of a block."""
    for index in store.indices:
        block = index.owner
        places = [index]
        if isinstance(block, BlockOp):
            places = [block.index, *([block.shard] if block.shard is not None else [])]
        for place in places:
            peer = place.owner
            if place is variable or (isinstance(peer, RingPeerOp) and peer.step is variable):
                return True
    return False
