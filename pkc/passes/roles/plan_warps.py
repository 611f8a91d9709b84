"""The pass `pk-plan-warps`: which SMs run each role, with how many warps and registers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import prod

from xdsl.dialects.builtin import IntegerAttr, ModuleOp, StringAttr, i64
from xdsl.ir import Operation

from pkc.diagnostics import PkcError
from pkc.dialect.access import LoadOp, Scatter, StoreOp
from pkc.dialect.arrays import array_type
from pkc.dialect.attributes import Role
from pkc.dialect.coordinates import RankOp, VisitedOp
from pkc.dialect.engines import is_engine
from pkc.dialect.pk import TILE
from pkc.dialect.program import COMM_SMS, CONSUMERS, FIRST_WARP, GROUP, REGISTERS, KernelOp, RoleOp, TasksOp, kernel_of
from pkc.dialect.roles import CommitOp, ConsumeOp
from pkc.dialect.tile import AnyMmaOp, tile_type
from pkc.dialect.transfers import TMA, moves_async
from pkc.dialect.types import PGLType, SignalType
from pkc.location import describe, span_of
from pkc.passes.analysis import budget_errors as errors
from pkc.passes.analysis.clusters import in_cta
from pkc.passes.analysis.pointwise import is_pointwise, is_spread
from pkc.passes.kernel_pass import KernelPass
from pkc.passes.roles.carrying import (
    adds,
    carries_tiles,
    copied_rows,
    gathers,
    is_carried,
    rows_of_a_thread,
    sends_packets,
    unpacks,
)
from pkc.passes.roles.remote_accesses import array_name
from pkc.passes.roles.straddling import on_several_ranks
from pkc.remarks import missed
from pkc.targets.target import Target, target_of

COMPUTE, COMMUNICATE = "compute", "communicate"

_TILE = frozenset(TILE)

_FEW = 3
"""Tiles of a role's tasks that threads without tiles of their own move, and need no more registers for."""


class PlanWarps(KernelPass):
    """Write which SMs run each role of a kernel, and its warps and registers.

    Each CTA has one SM. The last `comm_sms` SMs run the roles of the group `communicate`, the others those of the group
    `compute`. A communicator gets separate SMs if the schedule says `comm_sms`; otherwise it is two more warps of the
    CTAs that compute, or, if it adds tiles up and there are no consumers, as many warpgroups as these may have.

    - Consumers: a warpgroup for each 64 rows of the widest accumulator, or as many as the target's MMA has, or for each
      4096 elements of tiles that meet no MMA; at most as many as the target says (two), or `consumers` of the schedule.
    - A communicator that an author wrote, and no pass has split, has the `warps` that the author gave it.
    - Loader and storer: one warp each, behind the consumers, in a warpgroup that communicators share; two warps each
      where threads carry tiles, as all do on a target without TMA.
    - A communicator that adds tiles up on separate SMs has a power of two of warpgroups: these share a tile evenly.
    - Registers change by the warpgroup (`setmaxnreg`): few for warps that only move tiles (some more if they reach
      other ranks or carry tiles, and if arrays have more than two dimensions there), more for a communicator that adds
      them up or has separate SMs, all that is left for those that compute. What these cannot have goes to the others.

    Before:

        pk.role loader { ... }
        pk.role consumer { ... pk.mma ... -> !pk.tile<128x256xf32> ... }

    After, with `comm_sms = 0` on the kernel:

        pk.role loader warps 1 attributes {group = "compute", first_warp = 8, registers = 32} { ... }
        pk.role consumer warps 8 attributes {group = "compute", first_warp = 0, registers = 232} { ... }
    """

    name = "pk-plan-warps"

    def run(self, kernel: KernelOp) -> None:
        if _sm_roles(kernel):
            _write(kernel, plan_warps(kernel))


@dataclass(frozen=True)
class WarpPlan:
    """The SMs, warps and registers of one role, and why."""

    role: RoleOp
    group: str
    warps: int
    why: str
    first: int = 0
    registers: int = 0
    half: str = ""
    """What the role does, if it is one of the two of a communicator: "loads `A`", "stores `A.fetched`"."""

    @property
    def computes(self) -> bool:
        """Whether the role has whole warpgroups, and registers for tiles."""
        return self.warps % target_of(self.role).arch.warpgroup == 0

    def __str__(self) -> str:
        count = "1 warp" if self.warps == 1 else f"{self.warps} warps"
        role = " that ".join(filter(None, (str(self.role.role.data), self.half)))
        return (
            f"{describe(self.role.location)}: {role}: {count} of the SMs that {self.group},"
            f" {self.registers} registers ({self.why})"
        )


def explain_warps(module: ModuleOp) -> list[WarpPlan]:
    """What the pass decides, for each role of each kernel."""
    plans = (plan for kernel in module.walk() if isinstance(kernel, KernelOp) for plan in plan_warps(kernel))
    return [replace(plan, half=_half(plan.role)) for plan in plans]


def _half(role: RoleOp) -> str:
    """What a role does, if it is one of the two of a communicator (`pk-split-copies`)."""
    ops = list(role.walk()) if role.role.data is Role.Communicator else []
    passes_on, takes = (any(isinstance(op, kind) for op in ops) for kind in (CommitOp, ConsumeOp))
    if passes_on == takes:
        return ""
    arrays = dict.fromkeys(array_name(op.array) for op in ops if isinstance(op, LoadOp if passes_on else StoreOp))
    return f"{'loads' if passes_on else 'stores'} {' and '.join(f'`{name}`' for name in arrays)}"


def plan_warps(kernel: KernelOp) -> list[WarpPlan]:
    """The plan of each role, in program order. Raises `PkcError` if the schedule asks for what is not possible."""
    roles = _sm_roles(kernel)
    dedicated_sms = comm_sms(kernel)
    if dedicated_sms and not any(role.role.data is Role.Communicator for role in roles):
        raise PkcError(errors.NobodyCommunicates(span_of(kernel.location), kernel.sym_name.data, dedicated_sms))
    dedicated = [role for role in roles if dedicated_sms and role.role.data is Role.Communicator]
    others = [role for role in roles if role not in dedicated]
    target = target_of(kernel)
    arch = target.arch
    groups = (_compute(kernel, others, target), _communicate(kernel, dedicated, others, dedicated_sms, target))
    threads = max(_warpgroups(group, target) for group in groups) * arch.warpgroup * arch.warp
    if threads > arch.threads:
        name = kernel.sym_name.data
        raise PkcError(errors.TooManyWarps(span_of(kernel.location), name, threads, arch.threads))
    planned = {plan.role: plan for group in groups for plan in _with_registers(group, threads, target)}
    return [planned[role] for role in roles]


def comm_sms(kernel: KernelOp) -> int:
    """How many SMs only communicate: as the schedule says, or else the communicators that the author wrote."""
    given = [role.sms for role in _sm_roles(kernel) if role.sms is not None]
    wanted = kernel.scheduled_number(COMM_SMS)
    return wanted if wanted is not None else sum(number.value.data for number in given)


def has_separate_sms(role: RoleOp) -> bool:
    """Whether a role, once it is planned, has separate SMs."""
    return role.attributes.get(GROUP) == StringAttr(COMMUNICATE)


def _sm_roles(kernel: KernelOp) -> list[RoleOp]:
    """The roles that run on SMs."""
    return [role for role in kernel.roles if not is_engine(role)]


def _write(kernel: KernelOp, plans: Iterable[WarpPlan]) -> None:
    kernel.attributes[COMM_SMS] = IntegerAttr(comm_sms(kernel), i64)
    for plan in plans:
        plan.role.warps = IntegerAttr(plan.warps, i64)
        plan.role.attributes[GROUP] = StringAttr(plan.group)
        plan.role.attributes[FIRST_WARP] = IntegerAttr(plan.first, i64)
        plan.role.attributes[REGISTERS] = IntegerAttr(plan.registers, i64)
        _remark(plan)


def _remark(plan: WarpPlan) -> None:
    """Say where a role has too few threads, or where rows of an MMA are idle."""
    for op in plan.role.walk():
        if isinstance(op, AnyMmaOp) and (rows := tile_type(op.result).shape[0]) < (whole := target_of(op).mma.rows):
            reason = f"an MMA computes {whole}; make the operand with more rows the left one"
            missed(
                PlanWarps.name,
                op,
                f"{whole - rows} of {whole} rows are computed for nothing: {reason}",
            )
    if plan.role.role.data is Role.Communicator and plan.warps == 1 and adds(plan.role):
        reason = "other roles share its warpgroup; `comm_sms` gives it separate SMs"
        missed(PlanWarps.name, plan.role, f"one warp, not two, adds up the tiles: {reason}")


# Warps


def _compute(kernel: KernelOp, roles: Sequence[RoleOp], target: Target) -> list[WarpPlan]:
    """The CTAs that compute: consumers first, or what adds in their place, then a warpgroup for the roles that move
    tiles."""
    consumers = [role for role in roles if role.role.data is Role.Consumer]
    communicators = [role for role in roles if role.role.data is Role.Communicator]
    plans = [_consumer(kernel, role, target) for role in consumers]
    if len(communicators) == len(roles):
        return _in_line([*plans, *_alone(communicators, target)])
    adding = [] if consumers else [role for role in communicators if adds(role) or unpacks(role)]
    most, why = target.arch.consumers * target.arch.warpgroup, "nothing else computes: it adds with as many as that"
    plans += [WarpPlan(role, COMPUTE, most, why) for role in adding]
    plans += _sharing([role for role in roles if role not in (*consumers, *adding)], target)
    return _in_line(plans)


def _groups(count: int) -> str:
    return f"{count} warpgroup{'s' * (count != 1)}"


def _consumer(kernel: KernelOp, role: RoleOp, target: Target) -> WarpPlan:
    (rows, op), each = _rows(role), target.mma.rows
    consumers = kernel.scheduled_number(CONSUMERS)
    why = "as the schedule's `consumers` says, given or chosen"
    if consumers is None:
        consumers = max(1, min(rows // each, target.arch.consumers))
        why = f"{_groups(consumers)} for tiles of {rows} rows" if rows else "no tile has rows: one warpgroup"
        most, share = _elements(role), target.threads.elements * target.arch.warpgroup * target.arch.warp
        wanted = min(-(-most // share), target.arch.consumers)
        # A phase with an MMA has rows for so many.
        if wanted > consumers and not (isinstance(op, AnyMmaOp) and rows % (wanted * each)):
            consumers = wanted
            why = f"{_groups(consumers)} for tiles of {most} elements"
    if isinstance(op, AnyMmaOp) and consumers > 1 and rows % (consumers * each):
        found = errors.RowsNotShared(span_of(op.location), rows, consumers, each, consumers * each)
        raise PkcError(found)
    return WarpPlan(role, COMPUTE, consumers * target.arch.warpgroup, why)


def _rows(role: RoleOp) -> tuple[int, Operation | None]:
    """The rows of the highest accumulator of a role, else of its highest tile; the operation that makes it."""
    made = [(result, op) for op in role.walk() if type(op) in _TILE for result in op.results]
    mmas = [(result, op) for result, op in made if isinstance(op, AnyMmaOp)]
    rows = [(tile_type(result).shape[0], op) for result, op in mmas or made if tile_type(result).rank > 1]
    return max(rows, key=lambda found: found[0], default=(0, None))


def _elements(role: RoleOp) -> int:
    """The elements that a CTA has of the largest tile of tasks without MMA."""
    tasks = [op for op in role.walk() if isinstance(op, TasksOp) and is_spread(op) and not is_pointwise(op)]
    made = (op for around in tasks for op in around.walk() if type(op) in _TILE)
    part = in_cta(role)
    return max((prod(part(tile_type(value)).shape) for op in made for value in op.results), default=0)


def _alone(roles: Sequence[RoleOp], target: Target) -> list[WarpPlan]:
    """Communicators of a kernel that has nothing else."""
    warps = target.arch.consumers * target.arch.warpgroup
    return [WarpPlan(role, COMPUTE, warps if adds(role) else 2, "nothing else runs: it has all SMs") for role in roles]


def _sharing(roles: Sequence[RoleOp], target: Target) -> list[WarpPlan]:
    """Roles that share a warpgroup: one thread of a warp starts the copies of a tile, where the target has TMA."""
    if TMA not in target.transfers:
        why = f"its threads carry tiles: {target.name} has no TMA"
        return [WarpPlan(role, COMPUTE, target.tuning.carriers, why) for role in roles]
    communicators = sum(role.role.data is Role.Communicator for role in roles)
    carriers = sum(role.role.data is not Role.Communicator and carries_tiles(role) for role in roles)
    each = 2 if len(roles) + communicators <= target.arch.warpgroup else 1
    carried = [op for role in roles if role.role.data is not Role.Communicator for op in role.walk() if is_carried(op)]
    room = target.arch.warpgroup - (len(roles) + communicators - carriers)
    most = room // max(1, carriers) if all(map(_shifts_rows, carried)) else target.tuning.carriers
    carrying = most if 0 < carriers * most <= room else 1
    plans: list[WarpPlan] = []
    for role in roles:
        communicates = role.role.data is Role.Communicator
        why = (
            "no SMs of its own: warps beside those that load and store"
            if communicates
            else "it moves tiles, and computes none"
        )
        carries = not communicates and carries_tiles(role)
        if sends_packets(role):
            why = "its threads make packets"
        elif carries:
            why = "its threads carry tiles that TMA does not move"
        elif not communicates and any(map(on_several_ranks, role.walk())):
            why = "its threads store rows to several ranks"
        warps = each if communicates else carrying if carries else 1
        if sends_packets(role):
            warps = max(1, target.arch.warpgroup - (len(roles) - 1))
        plans.append(WarpPlan(role, COMPUTE, warps, why))
    return plans


def _communicate(
    kernel: KernelOp, roles: Sequence[RoleOp], others: Sequence[RoleOp], dedicated_sms: int, target: Target
) -> list[WarpPlan]:
    """The CTAs that communicate: whole warpgroups to add tiles up, two warps to move them."""
    adding = [role for role in roles if adds(role)]
    moving = [role for role in roles if role not in adding]
    why = f"{dedicated_sms} SMs of its own"
    beside = _warpgroups(_compute(kernel, others, target), target) if others else target.arch.consumers
    spare = beside - bool(moving)
    each = max(1, spare // len(adding)) if adding else 0
    each = 1 << each.bit_length() >> 1
    plans = [WarpPlan(role, COMMUNICATE, each * target.arch.warpgroup, why) for role in adding]
    return _in_line([*plans, *(WarpPlan(role, COMMUNICATE, 2, why) for role in moving)])


def _in_line(plans: Sequence[WarpPlan]) -> list[WarpPlan]:
    """One after the other; roles that compute come first, so that they begin with a warpgroup."""
    first, placed = 0, list[WarpPlan]()
    for plan in sorted(map(_as_written, plans), key=lambda plan: not plan.computes):
        placed.append(replace(plan, first=first))
        first += plan.warps
    return placed


def _as_written(plan: WarpPlan) -> WarpPlan:
    """The plan with as many warps as the author of the role asks for."""
    warps = None if GROUP in plan.role.attributes else plan.role.warps
    return plan if warps is None else replace(plan, warps=warps.value.data, why="as the role's `warps` says")


# Registers


def _warpgroups(plans: Sequence[WarpPlan], target: Target) -> int:
    """How many warpgroups a group of roles occupies."""
    return -(-sum(plan.warps for plan in plans) // target.arch.warpgroup)


def _moving(plans: Sequence[WarpPlan], target: Target) -> int:
    """Registers of threads that start copies, of several tiles, and find out which blocks are skipped; where they reach
    other GPUs, or carry tiles, the array with most dimensions decides."""
    ops = [op for plan in plans for op in plan.role.walk()]
    if not any(_reaches(op) or is_carried(op) for op in ops):
        skips = any(isinstance(op, VisitedOp) for op in ops)
        moved = max((sum(isinstance(op, LoadOp | StoreOp) for op in plan.role.walk()) for plan in plans), default=0)
        more = target.registers.tile * max(0, moved - _FEW) + target.registers.dimension * skips
        return target.registers.moving + -(-more // 8) * 8
    moves = (op for op in ops if isinstance(op, LoadOp | StoreOp | Scatter))
    dims = max((len(array_type(op.array).dimensions) for op in moves), default=0)
    # A tile that is carried from or to another GPU needs as many more as another dimension.
    far = any(_reaches(op) and is_carried(op) for op in ops)
    return target.registers.reaching + target.registers.dimension * (max(0, dims - 2) + far)


def _rows_at_once(plan: WarpPlan) -> int:
    """Of how many rows each of a role's threads keeps the address: of all that a loop copies."""
    rows: Counter[object] = Counter()
    for op in copied_rows(plan.role):
        rows[op.parent] += rows_of_a_thread(op, plan.warps)
    return max(rows.values())


def _shifts_rows(op: Operation) -> bool:
    """Whether threads carry a tile whose rows begin anywhere, many chunks of it at once: a store beside MMAs is that of
    the last block alone, or leaves memory behind, whose registers the consumers need."""
    if not is_carried(op) or moves_async(op):
        return False
    kernel = kernel_of(op)
    return isinstance(op, LoadOp) or (isinstance(op, StoreOp) and kernel is not None and is_spread(kernel))


def _reaches(op: Operation) -> bool:
    """Whether an operation needs the rank, an array that ranks share, or a counter."""
    return isinstance(op, RankOp) or any(isinstance(value.type, PGLType | SignalType) for value in op.operands)


def _with_registers(plans: Sequence[WarpPlan], threads: int, target: Target) -> list[WarpPlan]:
    """Registers by the warpgroup: movers get what they need, the others share the rest of the SM, in eights, up to what
    a thread can have; what that leaves goes to the movers.

    Without `setmaxnreg` all have the same.
    """
    launched, most = target.launched_registers(threads), target.arch.most_registers
    if not most:
        return [replace(plan, registers=launched // threads) for plan in plans]
    shared = [plan for plan in plans if not plan.computes]
    computing = sum(plan.warps for plan in plans if plan.computes) * target.arch.warp
    few = _moving(shared, target)
    if any(adds(plan.role) or gathers(plan.role) for plan in shared):
        sums = any(plan.role.role.data is Role.Communicator and adds(plan.role) for plan in shared)
        few = target.registers.adding if sums else target.registers.copying
    kept = max((_rows_at_once(plan) for plan in shared if copied_rows(plan.role)), default=None)
    if kept is not None:
        sets = max(sum(isinstance(op, TasksOp) and not op.encloses_tasks for op in plan.role.walk()) for plan in shared)
        few = max(few, (target.registers.copying + 2 * kept + target.registers.dimension * (sets - 1)) // 8 * 8)
    if any(_shifts_rows(op) for plan in shared for op in plan.role.walk()):
        few = max(few, target.registers.carrying)
    if any(plan.group == COMMUNICATE for plan in shared):
        few = target.registers.holding
    moving = threads - computing
    rest = (launched - moving * few) // computing // 8 * 8 if computing else 0
    many = min(rest, most)
    if computing and moving:
        few = min(most, few + (launched - moving * few - computing * many) // moving // 8 * 8)
    return [replace(plan, registers=many if plan.computes else few) for plan in plans]
