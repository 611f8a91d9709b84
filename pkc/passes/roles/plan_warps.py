"""The pass `pk-plan-warps`: which SMs run each part, with how many warps and registers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from xdsl.context import Context
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, StringAttr, i64
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from pkc.diagnostics import PkcError
from pkc.dialect import TILE
from pkc.dialect.access import AllReduceOp, LoadOp, ReduceOp, StoreOp, array_type
from pkc.dialect.attributes import Role
from pkc.dialect.program import COMM_SMS, FIRST_WARP, GROUP, REGISTERS, KernelOp, RoleOp
from pkc.dialect.tile import MmaOp, tile_type
from pkc.dialect.transfers import TMA
from pkc.dialect.types import TileType, i32
from pkc.location import describe, span_of
from pkc.passes.analysis import budget_errors as errors
from pkc.passes.roles.straddling import on_several_ranks
from pkc.remarks import missed
from pkc.targets.target import Target, target_of

COMPUTE, COMMUNICATE = "compute", "communicate"

_CARRYING = 2
"""Warps of a part whose threads carry tiles between global and shared memory."""


@dataclass(frozen=True)
class PlanWarps(ModulePass):
    """Write which SMs run each part of a kernel, and its warps and registers.

    A CTA has one SM for itself. The last `comm_sms` SMs run the parts of the group `communicate`, the others those of
    the group `compute`. A communicator gets SMs of its own if the schedule says `comm_sms`; otherwise it is two more
    warps of the CTAs that compute.

    - Consumers: a warpgroup for each 64 rows of the widest accumulator, or as many as the target's MMA has, at most as
      many as the target says (two), or `consumers` of the schedule.
    - Loader and storer: one warp each, behind the consumers, in a warpgroup that communicators share; two warps each
      where the target has no TMA and threads carry tiles.
    - A communicator that adds tiles up on SMs of its own has a power of two of warpgroups: so many threads share a tile
      evenly.
    - Registers change by the warpgroup (`setmaxnreg`): few for warps that only move tiles (some more if arrays have
      more than two dimensions), more for a communicator that adds them up or has SMs of its own, all that is left for
      those that compute.

    Before:

        pk.role loader { ... }
        pk.role consumer { ... pk.mma ... -> !pk.tile<128x256xf32> ... }

    After, with `comm_sms = 0` on the kernel:

        pk.role loader warps 1 attributes {group = "compute", first_warp = 8, registers = 40} { ... }
        pk.role consumer warps 8 attributes {group = "compute", first_warp = 0, registers = 232} { ... }
    """

    name = "pk-plan-warps"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel in op.walk():
            if isinstance(kernel, KernelOp) and _parts(kernel):
                _write(kernel, plan_warps(kernel))


@dataclass(frozen=True)
class WarpPlan:
    """The SMs, warps and registers of one part, and why."""

    part: RoleOp
    group: str
    warps: int
    why: str
    first: int = 0
    registers: int = 0

    @property
    def computes(self) -> bool:
        """Whether the part has warpgroups for itself, and registers for tiles."""
        return self.warps % target_of(self.part).arch.warpgroup == 0

    def __str__(self) -> str:
        count = "1 warp" if self.warps == 1 else f"{self.warps} warps"
        return (
            f"{describe(self.part.location)}: {self.part.role.data}: {count} of the SMs that {self.group},"
            f" {self.registers} registers ({self.why})"
        )


def explain_warps(module: ModuleOp) -> list[WarpPlan]:
    """What the pass decides, for each part of each kernel."""
    return [plan for kernel in module.walk() if isinstance(kernel, KernelOp) for plan in plan_warps(kernel)]


def plan_warps(kernel: KernelOp) -> list[WarpPlan]:
    """The plan of each part, in their order. Raises `PkcError` if the schedule asks for what cannot be."""
    parts = _parts(kernel)
    own_sms = comm_sms(kernel)
    if own_sms and not any(part.role.data is Role.Communicator for part in parts):
        raise PkcError(errors.NobodyCommunicates(span_of(kernel.location), kernel.sym_name.data, own_sms))
    apart = [part for part in parts if own_sms and part.role.data is Role.Communicator]
    together = [part for part in parts if part not in apart]
    target = target_of(kernel)
    arch = target.arch
    groups = (_compute(kernel, together, target), _communicate(kernel, apart, together, own_sms, target))
    threads = max(_warpgroups(group, target) for group in groups) * arch.warpgroup * arch.warp
    if threads > arch.threads:
        name = kernel.sym_name.data
        raise PkcError(errors.TooManyWarps(span_of(kernel.location), name, threads, arch.threads))
    planned = {plan.part: plan for group in groups for plan in _with_registers(group, threads, target)}
    return [planned[part] for part in parts]


def comm_sms(kernel: KernelOp) -> int:
    """How many SMs only communicate: as the schedule says, or the author of a communicator."""
    given = [part.sms for part in _parts(kernel) if part.sms is not None]
    wanted = kernel.scheduled_number(COMM_SMS)
    return wanted if wanted is not None else sum(number.value.data for number in given)


def has_sms_of_its_own(part: RoleOp) -> bool:
    """Whether a part, once it is planned, has SMs of its own."""
    return part.attributes.get(GROUP) == StringAttr(COMMUNICATE)


def _parts(kernel: KernelOp) -> list[RoleOp]:
    """The parts that run on SMs."""
    parts = (op for op in kernel.body.block.ops if isinstance(op, RoleOp))
    return [part for part in parts if part.role.data is not Role.CopyEngine]


def _write(kernel: KernelOp, plans: Iterable[WarpPlan]) -> None:
    kernel.attributes[COMM_SMS] = IntegerAttr(comm_sms(kernel), i64)
    for plan in plans:
        plan.part.warps = IntegerAttr(plan.warps, i64)
        plan.part.attributes[GROUP] = StringAttr(plan.group)
        plan.part.attributes[FIRST_WARP] = IntegerAttr(plan.first, i64)
        plan.part.attributes[REGISTERS] = IntegerAttr(plan.registers, i64)
        _remark(plan)


def _remark(plan: WarpPlan) -> None:
    """What of a part's threads, or of the tensor cores' rows, is left idle or scarce."""
    for op in plan.part.walk():
        if isinstance(op, MmaOp) and (rows := tile_type(op.result).shape[0]) < (whole := target_of(op).mma.rows):
            reason = f"an MMA computes {whole}; make what has more rows the left operand"
            missed(
                PlanWarps.name,
                op,
                f"{whole - rows} of {whole} rows are computed for nothing: {reason}",
            )
    if plan.part.role.data is Role.Communicator and plan.warps == 1 and _adds(plan.part):
        reason = "so many parts share the warpgroup; `comm_sms` gives it SMs of its own"
        missed(PlanWarps.name, plan.part, f"one warp, not two, adds up the tiles: {reason}")


# Warps


def _compute(kernel: KernelOp, parts: Sequence[RoleOp], target: Target) -> list[WarpPlan]:
    """The CTAs that compute: consumers first, then a warpgroup for all that moves tiles."""
    consumers = [part for part in parts if part.role.data is Role.Consumer]
    movers = [part for part in parts if part not in consumers]
    plans = [_consumer(kernel, part, target) for part in consumers]
    if movers and all(part.role.data is Role.Communicator for part in parts):
        plans += _alone(movers, target)
    else:
        plans += _sharing(movers, target)
    return _in_line(plans)


def _consumer(kernel: KernelOp, part: RoleOp, target: Target) -> WarpPlan:
    (rows, op), each = _rows(part), target.mma.rows
    consumers = kernel.scheduled_number("consumers")
    why = "as the schedule's `consumers` says"
    if consumers is None:
        consumers = max(1, min(rows // each, target.arch.consumers))
        why = f"{consumers} warpgroups for tiles of {rows} rows" if rows else "no tile has rows: one warpgroup"
    if isinstance(op, MmaOp) and consumers > 1 and rows % (consumers * each):
        found = errors.RowsNotShared(span_of(op.location), rows, consumers, each, consumers * each)
        raise PkcError(found)
    return WarpPlan(part, COMPUTE, consumers * target.arch.warpgroup, why)


def _rows(part: RoleOp) -> tuple[int, Operation | None]:
    """The rows of the widest accumulator of a part, else of its largest tile; what makes it."""
    made = [(result, op) for op in part.walk() if isinstance(op, TILE) for result in op.results]
    products = [(result, op) for result, op in made if isinstance(op, MmaOp)]
    rows = [(tile_type(result).shape[0], op) for result, op in products or made if tile_type(result).rank > 1]
    return max(rows, key=lambda found: found[0], default=(0, None))


def _alone(parts: Sequence[RoleOp], target: Target) -> list[WarpPlan]:
    """Communicators without anything beside them."""
    warps = target.arch.consumers * target.arch.warpgroup
    return [WarpPlan(part, COMPUTE, warps if _adds(part) else 2, "nothing else runs: it has all SMs") for part in parts]


def _sharing(parts: Sequence[RoleOp], target: Target) -> list[WarpPlan]:
    """Parts that share a warpgroup: one thread of a warp starts the copies of a tile, where the target has any."""
    if TMA not in target.transfers:
        why = f"its threads carry tiles: {target.name} has no TMA"
        return [WarpPlan(part, COMPUTE, _CARRYING, why) for part in parts]
    communicators = sum(part.role.data is Role.Communicator for part in parts)
    each = 2 if len(parts) + communicators <= target.arch.warpgroup else 1
    plans: list[WarpPlan] = []
    for part in parts:
        apart = part.role.data is Role.Communicator
        why = (
            "no SMs of its own: warps beside those that load and store"
            if apart
            else "it moves tiles, and computes none"
        )
        if not apart and any(map(on_several_ranks, part.walk())):
            why = "its threads store rows to several ranks"
        plans.append(WarpPlan(part, COMPUTE, each if apart else 1, why))
    return plans


def _communicate(
    kernel: KernelOp, parts: Sequence[RoleOp], others: Sequence[RoleOp], own_sms: int, target: Target
) -> list[WarpPlan]:
    """The CTAs that communicate: whole warpgroups to add tiles up, two warps to move them."""
    adding = [part for part in parts if _adds(part)]
    moving = [part for part in parts if part not in adding]
    why = f"{own_sms} SMs of its own"
    spare = _warpgroups(_compute(kernel, others, target), target) - bool(moving)
    each = max(1, spare // len(adding)) if adding else 0
    each = 1 << each.bit_length() >> 1
    plans = [WarpPlan(part, COMMUNICATE, each * target.arch.warpgroup, why) for part in adding]
    return _in_line([*plans, *(WarpPlan(part, COMMUNICATE, 2, why) for part in moving)])


def _adds(part: RoleOp) -> bool:
    """Whether a part computes with tiles; positions of rows in a table are addresses."""
    made = (op for op in part.walk() if isinstance(op, (*TILE, ReduceOp)))
    types = [result.type for op in made for result in op.results]
    tables = [kind for kind in types if isinstance(kind, TileType) and kind.element_type == i32 and kind.rank == 1]
    return len(tables) < len(types) or any(isinstance(op, AllReduceOp) for op in part.walk())


def _in_line(plans: Sequence[WarpPlan]) -> list[WarpPlan]:
    """One after the other; who computes comes first, so that it begins with a warpgroup."""
    first, placed = 0, list[WarpPlan]()
    for plan in sorted(plans, key=lambda plan: not plan.computes):
        placed.append(replace(plan, first=first))
        first += plan.warps
    return placed


# Registers


def _warpgroups(plans: Sequence[WarpPlan], target: Target) -> int:
    """How many warpgroups a group of parts occupies."""
    return -(-sum(plan.warps for plan in plans) // target.arch.warpgroup)


def _moving(plans: Sequence[WarpPlan], target: Target) -> int:
    """Registers of threads that start copies, by the array of most dimensions."""
    moved = (op.array for plan in plans for op in plan.part.walk() if isinstance(op, LoadOp | StoreOp))
    dims = max((len(array_type(array).dimensions) for array in moved), default=0)
    return target.registers.moving + target.registers.dimension * max(0, dims - 2)


def _with_registers(plans: Sequence[WarpPlan], threads: int, target: Target) -> list[WarpPlan]:
    """Registers by the warpgroup: movers get what they need, the others share the rest of the SM.

    Without `setmaxnreg` all have the same.
    """
    launched, most = target.launched_registers(threads), target.arch.most_registers
    if not most:
        return [replace(plan, registers=launched // threads) for plan in plans]
    shared = [plan for plan in plans if not plan.computes]
    own = sum(plan.warps for plan in plans if plan.computes) * target.arch.warp
    few = target.registers.adding if any(_adds(plan.part) for plan in shared) else _moving(shared, target)
    if any(plan.group == COMMUNICATE for plan in shared):
        few = target.registers.holding
    rest = (launched - (threads - own) * few) // own // 8 * 8 if own else 0
    many = min(rest, most)
    return [replace(plan, registers=many if plan.computes else few) for plan in plans]
