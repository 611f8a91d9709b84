"""The pass `pk-order-phases`: what one phase of a kernel does, on all ranks, comes before the next phase."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.passes import ModulePass

from pkc.dialect.access import SignalAllOp, SignalOp, WaitOp
from pkc.dialect.program import CtasOp, DimOp, KernelOp, RankOp, RoleOp, TasksOp
from pkc.dialect.types import RANKS, SignalType
from pkc.passes.cells import constant, product_ops
from pkc.passes.derive import DERIVED, add_parameter, phase_of
from pkc.passes.edges import reached


@dataclass(frozen=True)
class OrderPhases(ModulePass):
    """Let every part signal all ranks at the end of a phase, and wait for all parts of all ranks before the next one.

    A part serves one phase, or goes through several one after the other. Phases of a kernel that reaches no other rank
    are ordered on each rank by itself.

    Before:

        pk.role loader {
          pk.tasks (%i) in (%rows) attributes {per_cta, phase = 0} { ... }
          pk.tasks (%j) in (%rows) attributes {per_cta, phase = 1} { ... }

    After:

        pk.role loader {
          pk.tasks (%i) in (%rows) attributes {per_cta, phase = 0} { ... }
          pk.signal_all %phase0_over[%zero] by %one : !pk.signal<[1]>
          pk.wait %phase0_over[%zero] for %all : !pk.signal<[1]>
          pk.tasks (%j) in (%rows) attributes {per_cta, phase = 1} { ... }
    """

    name = "pk-order-phases"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel in op.walk():
            if isinstance(kernel, KernelOp) and DERIVED in kernel.attributes:
                _order_kernel(kernel)


def _order_kernel(kernel: KernelOp) -> None:
    parts = [op for op in kernel.body.block.ops if isinstance(op, RoleOp)]
    served = {part: _served(part) for part in parts}
    last = max((phase for phases in served.values() for phase in phases), default=0)
    if not last:
        return
    alone = not any(any(reached(part)) for part in parts)
    ends: list[_End] = []
    for phase in range(last):
        signal = add_parameter(kernel, f"phase{phase}.over", SignalType((1,)), kernel.location)
        ends.append(_End(signal, [part for part in parts if phase in served[part]], alone))
    for part in parts:
        _order_part(part, served[part], ends)


def _served(part: RoleOp) -> dict[int, TasksOp | None]:
    """The phases that a part serves, in their order: all of it one phase, or each of its task sets another."""
    phase = phase_of(part)
    if phase is not None:
        return {phase: None}
    sets = (op for op in part.body.block.ops if isinstance(op, TasksOp))
    return {phase: op for op in sets if (phase := phase_of(op)) is not None}


def _order_part(part: RoleOp, served: dict[int, TasksOp | None], ends: list[_End]) -> None:
    place = part.body.block.first_op
    for phase, tasks in served.items():
        if phase > 0:
            # Right behind the set before: what stands between the two may read what other parts have written.
            _insert(part, place, ends[phase - 1].wait())
        place = None if tasks is None else tasks.next_op
        if phase < len(ends):
            _insert(part, place, ends[phase].signal_ops())


def _insert(part: RoleOp, place: Operation | None, ops: Sequence[Operation]) -> None:
    """Add operations before another one, or at the end of a part."""
    block = part.body.block
    for op in ops:
        op.location = part.location
        if place is None:
            block.add_op(op)
        else:
            block.insert_op_before(op, place)


@dataclass(frozen=True)
class _End:
    """The end of one phase: its counter, who signals it, and whether each rank is by itself."""

    signal: BlockArgument
    parts: Sequence[RoleOp]
    alone: bool

    def signal_ops(self) -> list[Operation]:
        """Each CTA that comes here signals once."""
        zero, one = constant(0), constant(1)
        if not self.alone:
            return [zero, one, SignalAllOp(self.signal, (zero.result,), one)]
        rank = RankOp()
        return [zero, one, rank, SignalOp(self.signal, (zero.result,), rank, one)]

    def wait(self) -> list[Operation]:
        """Until every CTA of the parts has signalled."""
        zero = constant(0)
        ctas = [CtasOp(part.role) for part in self.parts]
        ops: list[Operation] = [zero, *ctas]
        total: SSAValue = ctas[0].result
        for more in ctas[1:]:
            ops.append(arith.AddiOp(total, more.result))
            total = ops[-1].results[0]
        if not self.alone:
            ranks = DimOp(RANKS)
            product, total = product_ops([total, ranks.result])
            ops += [ranks, *product]
        return [*ops, WaitOp(self.signal, (zero.result,), total)]
