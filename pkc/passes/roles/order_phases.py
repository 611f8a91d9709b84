"""The pass `pk-order-phases`: what one phase of a kernel does to an array comes before what a later one does to it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from functools import cached_property

from xdsl.dialects import arith
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.traits import MemoryEffectKind, only_has_effect

from pkc.dialect.coordinates import CtasOp, DimOp, RankOp
from pkc.dialect.counters import SignalAllOp, SignalOp, WaitOp
from pkc.dialect.program import PHASE, KernelOp, RoleOp, TasksOp
from pkc.dialect.roles import AcquireOp, ConsumeOp, channel_of
from pkc.dialect.types import RANKS, PGLType, PrivateType, SignalType
from pkc.passes.analysis.dependence import role_around
from pkc.passes.analysis.entered import follows_through_channels
from pkc.passes.build import add_parameter, constant, phase_of, product_ops
from pkc.passes.kernel_pass import KernelPass
from pkc.passes.roles.remote_accesses import reached


class OrderPhases(KernelPass):
    """Let what one phase does to an array come before what a later one does to it.

    Roles that use such an array signal at the end of their tasks of the earlier phase. Those that use it later wait for
    all of them, on all ranks if other ranks reach the array, else on this rank. An array that is only read, or that one
    phase alone uses, orders nothing. A role serves one phase, or goes through several one after the other. Where
    channels of phases lie in the same shared memory (`phase`, `pk-reuse-memory`), who consumes one signals too, and who
    fills one of a later phase waits, unless tiles that it has consumed before tell that: they come from a role that has
    waited.

    Before:

        pk.role loader {
          pk.tasks (%i) in (%rows) attributes {per_cta, phase = 0} { ... }
          pk.tasks (%j) in (%rows) attributes {per_cta, phase = 1} { ... pk.load %T ... }
        pk.role storer {
          pk.tasks (%i) in (%rows) attributes {per_cta, phase = 0} { ... pk.store %t, %T ... }
          pk.tasks (%j) in (%rows) attributes {per_cta, phase = 1} { ... }

    After:

        pk.role loader {
          pk.tasks (%i) in (%rows) attributes {per_cta, phase = 0} { ... }
          pk.wait %phase0_over[%zero] for %storers : !pk.signal<[1]>
          pk.tasks (%j) in (%rows) attributes {per_cta, phase = 1} { ... pk.load %T ... }
        pk.role storer {
          pk.tasks (%i) in (%rows) attributes {per_cta, phase = 0} { ... pk.store %t, %T ... }
          pk.signal %phase0_over at %rank[%zero] by %one : !pk.signal<[1]>
          pk.tasks (%j) in (%rows) attributes {per_cta, phase = 1} { ... }
    """

    name = "pk-order-phases"
    ONLY_DERIVED = True

    def run(self, kernel: KernelOp) -> None:
        # All is looked at before anything is added; what follows the same stretch is added in the order of the phases.
        stretches = _all_stretches(kernel)
        afar = {array for role in {s.role for s in stretches} for _, array in reached(role)}
        ends = [end for phase in _phases(stretches)[:-1] if (end := _end(kernel, stretches, phase, afar))]
        for end in ends:
            for stretch in end.signalling:
                _insert(stretch, stretch.ops[-1].next_op, end.signal_ops())
            for stretch in end.waiting:
                _insert(stretch, stretch.ops[0], end.wait())


def phases_in_order(kernel: KernelOp) -> bool:
    """Whether something of each phase but the last is awaited by a later one."""
    stretches = _all_stretches(kernel)
    return all(_shared(stretches, phase) for phase in _phases(stretches)[:-1])


@dataclass(frozen=True)
class _Stretch:
    """The consecutive operations of a role that belong to one phase."""

    role: RoleOp
    phase: int
    ops: list[Operation]

    @cached_property
    def used(self) -> set[BlockArgument]:
        """The arrays that it reads or writes."""
        return {array for op in self.ops for array in _arrays(op)}

    @cached_property
    def written(self) -> set[BlockArgument]:
        reading = MemoryEffectKind.READ
        inner = (op for outer in self.ops for op in outer.walk() if not op.regions and not only_has_effect(op, reading))
        return {array for op in inner for array in _arrays(op)}

    def users(self, kind: type[AcquireOp | ConsumeOp]) -> list[Operation]:
        """The operations that fill or consume channels of its phase."""
        ops = (op for outer in self.ops for op in outer.walk() if isinstance(op, kind))
        return [op for op in ops if PHASE in channel_of(op.channel).attributes]


def _all_stretches(kernel: KernelOp) -> list[_Stretch]:
    return [stretch for role in kernel.roles for stretch in _stretches(role)]


def _phases(stretches: Sequence[_Stretch]) -> list[int]:
    return sorted({stretch.phase for stretch in stretches})


def _stretches(role: RoleOp) -> list[_Stretch]:
    """What a role does, phase by phase: all of it belongs to one, or what stands up to each of its task sets."""
    ops = list(role.body.block.ops)
    phase = phase_of(role)
    if phase is not None:
        return [_Stretch(role, phase, ops)] if ops else []
    found: list[_Stretch] = []
    pending: list[Operation] = []
    for op in ops:
        pending.append(op)
        phase = phase_of(op) if isinstance(op, TasksOp) else None
        if phase is None:
            continue
        if found and found[-1].phase == phase:
            found[-1].ops.extend(pending)
        else:
            found.append(_Stretch(role, phase, pending))
        pending = []
    return found


def _end(kernel: KernelOp, stretches: Sequence[_Stretch], phase: int, afar: Set[BlockArgument]) -> _End | None:
    """The signal at the end of a phase, if a later one needs it; `afar` are the arrays that other ranks reach."""
    shared = _shared(stretches, phase)
    ending = [stretch for stretch in stretches if stretch.phase == phase]
    if not shared and not any(stretch.users(ConsumeOp) for stretch in ending):
        return None
    signal = add_parameter(kernel, f"phase{phase}.over", SignalType((1,)), kernel.location)
    signalling = [stretch for stretch in ending if stretch.used & shared or stretch.users(ConsumeOp)]
    waiting: dict[RoleOp, _Stretch] = {}
    for stretch in _waiting(ending, [stretch for stretch in stretches if stretch.phase > phase]):
        waiting.setdefault(stretch.role, stretch)
    return _End(signal, signalling, list(waiting.values()), shared.isdisjoint(afar))


def _waiting(ending: Sequence[_Stretch], later: Sequence[_Stretch]) -> list[_Stretch]:
    """Those that wait for the end of a phase: for its arrays, or for its memory if no other one waits for them."""
    needed = [stretch for stretch in later if _clashing(ending, stretch)]
    filling = [stretch for stretch in later if stretch not in needed and stretch.users(AcquireOp)]
    waiting = [*needed, *filling]
    for stretch in reversed(filling):
        fewer = [other for other in waiting if other is not stretch]
        if all(_is_told(other, fewer) for other in filling if other not in fewer):
            waiting = fewer
    return sorted(waiting, key=later.index)


def _is_told(stretch: _Stretch, waiting: Sequence[_Stretch]) -> bool:
    """Whether it fills each stage after others of its CTA, which wait, have passed it tiles."""

    def has_waited(op: Operation) -> bool:
        return any(role_around(op) is other.role and other.phase <= (phase_of(op) or 0) for other in waiting)

    return all(follows_through_channels(op, has_waited) for op in stretch.users(AcquireOp))


def _shared(stretches: Sequence[_Stretch], phase: int) -> set[BlockArgument]:
    """The arrays because of which later phases wait for one."""
    ending = [stretch for stretch in stretches if stretch.phase == phase]
    later = [stretch for stretch in stretches if stretch.phase > phase]
    return {array for stretch in later for array in _clashing(ending, stretch)}


def _clashing(ending: Sequence[_Stretch], later: _Stretch) -> set[BlockArgument]:
    """The arrays that one of them uses and the other writes."""
    used = {array for stretch in ending for array in stretch.used}
    written = {array for stretch in ending for array in stretch.written}
    return (later.used & written) | (later.written & used)


def _arrays(op: Operation) -> Iterator[BlockArgument]:
    for inner in op.walk():
        for operand in inner.operands:
            if isinstance(operand, BlockArgument) and isinstance(operand.type, PrivateType | PGLType):
                yield operand


def _insert(stretch: _Stretch, place: Operation | None, ops: Sequence[Operation]) -> None:
    """Add operations before another one, or at the end of a role."""
    block = stretch.role.body.block
    for op in ops:
        op.location = stretch.role.location
        if place is None:
            block.add_op(op)
        else:
            block.insert_op_before(op, place)


@dataclass(frozen=True)
class _End:
    """The end of one phase: its counter, who signals it and who waits, and whether each rank waits only for itself."""

    signal: BlockArgument
    signalling: Sequence[_Stretch]
    waiting: Sequence[_Stretch]
    alone: bool

    def signal_ops(self) -> list[Operation]:
        """Each CTA that comes here signals once."""
        zero, one = constant(0), constant(1)
        if not self.alone:
            return [zero, one, SignalAllOp(self.signal, (zero.result,), one)]
        rank = RankOp()
        return [zero, one, rank, SignalOp(self.signal, (zero.result,), rank, one)]

    def wait(self) -> list[Operation]:
        """Wait until every CTA of the roles has signalled."""
        zero = constant(0)
        ctas = [CtasOp(stretch.role.role) for stretch in self.signalling]
        ops: list[Operation] = [zero, *ctas]
        total: SSAValue = ctas[0].result
        for more in ctas[1:]:
            ops.append(arith.AddiOp(total, more.result))
            total = ops[-1].results[0]
        if not self.alone:
            ranks = DimOp(RANKS)
            multiply, total = product_ops([total, ranks.result])
            ops += [ranks, *multiply]
        return [*ops, WaitOp(self.signal, (zero.result,), total)]
