"""The pass `pk-lower-tiles`: from roles and tiles to what each thread of a CTA does."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from xdsl.dialects.builtin import IntegerAttr, StringAttr, UnitAttr, i64
from xdsl.ir import Block, Operation, SSAValue

from pkc.diagnostics import PkcError
from pkc.dialect.access import AddToArrayOp, LoadOp, Scatter, StoreOp
from pkc.dialect.attributes import Role, number_on, planned
from pkc.dialect.by_table import GatherOp
from pkc.dialect.coordinates import RankOp
from pkc.dialect.engines import is_engine
from pkc.dialect.inverse import InvertOp, SumRowsOp
from pkc.dialect.machine import ONE, ROLE, TensorMapOp
from pkc.dialect.program import COMM_SMS, FIRST_WARP, GROUP, QUEUE, REGISTERS, KernelOp, RoleOp, TasksOp
from pkc.dialect.roles import AcquireOp, ChannelOp, CommitOp, ConsumeOp, ReleaseOp
from pkc.dialect.transfers import TMA, begins_anywhere, needs_threads
from pkc.dialect.types import TileType
from pkc.dialect.walks import walk
from pkc.location import span_of
from pkc.passes.analysis.clusters import cluster_of
from pkc.passes.analysis.dependence import roles_around
from pkc.passes.analysis.folded_columns import folded_lanes
from pkc.passes.analysis.live_tiles import peak
from pkc.passes.analysis.register_axes import infer_axes
from pkc.passes.analysis.tables import is_table
from pkc.passes.kernel_pass import KernelPass
from pkc.passes.machine import machine_errors as errors
from pkc.passes.machine.emit import Emitter
from pkc.passes.machine.lowering import channels, exchange, signals, task_queue
from pkc.passes.machine.lowering.blocks import Dimensions
from pkc.passes.machine.lowering.context import Launch, Ring, TaskQueue, Threads, WarpRole
from pkc.passes.machine.lowering.missing import CannotLowerError
from pkc.passes.machine.lowering.structure import lower_block
from pkc.passes.machine.plan_barriers import FIRST_BARRIER, PlanBarriers
from pkc.passes.machine.plan_memory import BARRIERS, OFFSET, QUEUE_OFFSET, SHARED_BYTES, STAGE_BYTES, PlanMemory
from pkc.passes.roles.plan_warps import PlanWarps
from pkc.targets.arch import Arch
from pkc.targets.target import Target, target_of

THREADS = "threads"
"""On a kernel: threads of each CTA."""

MACHINE = "machine"
"""On a kernel: its body is at the machine level."""

SPARE = "spare_registers"
"""The attribute of a consumer's branch: registers of a thread beside those of tiles."""


class LowerTiles(KernelPass):
    """Write what every thread does, in instructions of the target: barriers and phases for channels, TMA or loads and
    stores for copies, MMA for matmuls.

    Roles become branches on the number of the warp. A role that only starts copies is one thread. The roles of copy
    engines stay as they are: the host enqueues their operations. The layouts of the target (`pkc/targets/layout.py`)
    say where a tile is: in a stage, or spread over the registers of the role's warpgroups.

    Before:

        pk.role consumer warps 8 attributes {first_warp = 0, registers = 232, ...} {
          %a, %b = pk.consume %0 : ...
          %acc_1 = pk.mma %a, %b, %acc : ...
          pk.release %0 : ...
        }

    After:

        scf.if %is_consumer {
          pk.instruction "setmaxnreg_inc_232"() : () -> ()
          pk.instruction "mbarrier_wait"(%full, %phase) : (index, index) -> ()
          pk.instruction "wgmma_fence"() : () -> ()
          pk.instruction "wgmma_n256_bf16_ss_kn"(%acc, %a, %b, %one) : (!pk.registers<128xf32>, i64, i64, index) -> ()
          pk.instruction "wgmma_commit"() : () -> ()
          pk.instruction "wgmma_wait_0"() : () -> ()
          pk.instruction "mbarrier_arrive"(%empty) : (index) -> ()
        }
    """

    name = "pk-lower-tiles"

    def run(self, kernel: KernelOp) -> None:
        if kernel.roles:
            _lower_kernel(kernel)


_PLANS: dict[type[Operation], tuple[tuple[str, str], ...]] = {
    KernelOp: ((SHARED_BYTES, PlanMemory.name), (COMM_SMS, PlanWarps.name)),
    ChannelOp: tuple((name, PlanMemory.name) for name in (OFFSET, BARRIERS, STAGE_BYTES)),
    RoleOp: (
        *((name, PlanWarps.name) for name in (GROUP, FIRST_WARP, REGISTERS)),
        (FIRST_BARRIER, PlanBarriers.name),
    ),
}
"""What the lowering obeys, by operation: the attribute, and the pass that writes it."""


def _lower_kernel(kernel: KernelOp) -> None:
    roles = [role for role in kernel.roles if not is_engine(role)]
    try:
        for op in (kernel, *(op for op in kernel.body.block.ops if not is_engine(op))):
            for name, writer in _PLANS.get(type(op), ()):
                if name not in op.attributes:
                    raise PkcError(errors.NotPlanned(span_of(op.location), op.name, name, writer))
        _lower(kernel, roles)
    except CannotLowerError as error:
        hint = error.hint or "the simulator runs it: `pkc run`"
        name = target_of(kernel).name
        raise PkcError(errors.NotLowered(span_of(error.op.location), name, error.what, hint)) from None


def _lower(kernel: KernelOp, roles: Sequence[RoleOp]) -> None:
    old = [op for op in kernel.body.block.ops if not is_engine(op)]
    body = Block()
    target = target_of(kernel)
    arch, emit = target.arch, Emitter(body, kernel.location, target)
    thread, warp = emit.value("thread_number"), emit.value("warp_number")
    lane = emit.bit_and(thread, arch.warp - 1)
    base = emit.value("shared_base")
    for value, hint in ((thread, "thread"), (warp, "warp"), (lane, "lane"), (base, "shared")):
        value.name_hint = hint
    rings: dict[SSAValue, Ring] = {op.result: _ring(op, target) for op in old if isinstance(op, ChannelOp)}
    launch, rank = _launch(kernel, emit, base, rings, roles)
    with emit.when(emit.compare("eq", thread, 0)):
        first = emit.block
        _barriers(emit, launch, roles)
    emit.do("sync_threads" if launch.cluster == 1 else "sync_cluster")
    _next_epoch(emit, launch, thread)
    threads = max(planned(role, FIRST_WARP) + _warps(role) for role in roles)
    threads = -(-threads // arch.warpgroup) * arch.warpgroup * arch.warp
    teams = _teams(roles, arch)
    for team in (*teams, *_idle(teams, threads, target)):
        _team(emit, launch, rank, team, Threads(0, 0, False, thread, lane, warp, 0, arch), threads)
    _prefetch_maps(kernel, body, first)
    for op in reversed(old):
        op.detach()
        op.drop_all_references()
    for op in (*body.ops, *kernel.body.block.ops):  # what the host enqueues comes behind the code of SMs
        op.detach()
        kernel.body.block.add_op(op)
    kernel.attributes[THREADS] = IntegerAttr(threads, i64)
    kernel.attributes[MACHINE] = IntegerAttr(1, i64)


def _ring(channel: ChannelOp, target: Target) -> Ring:
    kind = channel.kind
    slots, _ = target.stage_layout(kind.tiles)
    producer, consumer = _end(channel, AcquireOp), _end(channel, ReleaseOp)
    commits = (use.operation for use in channel.result.uses)
    by_threads = not all(_by_tma(op) for op in commits if isinstance(op, CommitOp))
    one = only_moves(producer) or not by_threads
    filled = sum(target.shared_layout(tile).moved_bytes for tile in kind.tiles)
    return Ring(
        channel,
        planned(channel, OFFSET),
        planned(channel, BARRIERS),
        channel.depth,
        slots,
        planned(channel, STAGE_BYTES),
        1 if one else _warps(producer) * target.arch.warp,
        1 if only_moves(consumer) else _warps(consumer),
        0 if by_threads else filled,
    )


def _by_tma(commit: CommitOp) -> bool:
    """Whether TMA fills a stage with so many bytes each time."""
    loads = [tile.owner for tile in commit.tiles if isinstance(tile.owner, LoadOp | GatherOp)]
    boxes = all(not needs_threads(op) and not begins_anywhere(op) for op in loads)
    return len(loads) == len(commit.tiles) and boxes


def _end(channel: ChannelOp, kind: type[Operation]) -> RoleOp:
    """The role at one end of a channel: the one with operations `kind`."""
    (role,) = roles_around(use.operation for use in channel.result.uses if isinstance(use.operation, kind))
    return role


def only_moves(role: RoleOp) -> bool:
    """Whether a role only starts copies and signals, so that one thread is enough."""
    for op in role.walk():
        if isinstance(op, Scatter | InvertOp | SumRowsOp):
            return False
        if is_table(op):
            continue
        if isinstance(op, LoadOp | GatherOp | StoreOp | AddToArrayOp):
            if needs_threads(op):
                return False
        elif any(isinstance(result.type, TileType) for result in op.results) and not isinstance(op, ConsumeOp):
            return False
    return True


def _warps(role: RoleOp) -> int:
    assert role.warps is not None
    return role.warps.value.data


def _barriers(emit: Emitter, launch: Launch, roles: Sequence[RoleOp]) -> None:
    """Initialise the barriers of all channels, which one thread does before any other touches them.

    Channels of CTAs that compute and of those that communicate may lie in the same places.
    """
    rings = launch.rings.values()
    groups = dict.fromkeys(_group(_end(ring.channel, ConsumeOp)) for ring in rings)
    for group in groups:
        inside = _of_group(emit, launch, group)
        with emit.when(inside) if inside is not None else contextlib.nullcontext():
            for ring in rings:
                if _group(_end(ring.channel, ConsumeOp)) == group:
                    _initialise(emit, launch.base, ring)
    if launch.tasks is not None:
        task_queue.initialise(emit, launch.base, launch.tasks)
    for role in roles if launch.cluster > 1 else ():
        exchange.initialise(emit, launch.base, number_on(role, OFFSET))
    if rings and TMA in emit.target.transfers:
        emit.do("mbarrier_init_fence")


def _initialise(emit: Emitter, base: SSAValue, ring: Ring) -> None:
    for stage in range(ring.depth):
        number = emit.const(stage)
        emit.do("mbarrier_init", ring.full(number, emit, base), emit.const(ring.filling))
        emit.do("mbarrier_init", ring.empty(number, emit, base), emit.const(ring.emptying))


def _prefetch_maps(kernel: KernelOp, body: Block, first: Block) -> None:
    """Prefetch the tensor maps first: else the first copy by each waits for memory twice."""
    block = Block()
    emit, seen = Emitter(block, kernel.location, target_of(kernel)), set[tuple[object, ...]]()
    for op in [op for outer in body.ops for op in walk(outer) if isinstance(op, TensorMapOp)]:
        key = (op.array, op.box, op.swizzle, op.split)
        if key not in seen:
            seen.add(key)
            used = op.clone()
            used.operands = [op.array, emit.const(0)]
            emit.add(used)
            emit.do("prefetch_map", used.result)
    head = first.first_op
    assert head is not None
    for op in list(block.ops):
        op.detach()
        first.insert_op_before(op, head)


def _launch(
    kernel: KernelOp, emit: Emitter, base: SSAValue, rings: Mapping[SSAValue, Ring], roles: Sequence[RoleOp]
) -> tuple[Launch, SSAValue]:
    cta, ctas = emit.value("cta_number"), emit.value("cta_count")
    comm_sms = planned(kernel, COMM_SMS)
    computing = emit.minus(ctas, comm_sms)
    cluster = cluster_of(kernel)
    part = emit.value("cta_of_cluster") if cluster > 1 else None
    counter = emit.plus(emit.launch_value("epochs"), emit.times(emit.wide(cta), 4))
    epoch = emit.plus(emit.value("load_u32", counter), 1)
    rank = RankOp()
    emit.add(rank)
    named = ((cta, "cta"), (computing, "computing"), (epoch, "epoch"), (rank.result, "rank"))
    for value, hint in named:
        value.name_hint = hint
    cta_of, counts = {"compute": emit.over(cta, cluster)}, {"compute": emit.over(computing, cluster)}
    if comm_sms:
        cta_of["communicate"] = emit.minus(cta, computing)
        counts["communicate"] = emit.const(comm_sms)
    groups = {str(role.role.data): _group(role) for role in roles}
    launch = Launch(kernel, rings, base, epoch, cta_of, counts, groups, cluster, part)
    if QUEUE in kernel.attributes:
        launch.tasks = _queue(kernel, emit, ctas, roles)
    return launch, rank.result


def _queue(kernel: KernelOp, emit: Emitter, ctas: SSAValue, roles: Sequence[RoleOp]) -> TaskQueue:
    """The queue of the tasks, whose counter lies behind the epochs of all CTAs. Of the roles that have tasks, the one
    that takes them is ahead of the others, if one is: its tasks get no tiles from any."""
    sets = {role: op for role in roles for op in role.walk() if isinstance(op, TasksOp)}
    ahead = (role for role, tasks in sets.items() if not any(isinstance(op, ConsumeOp) for op in tasks.walk()))
    taker = next(ahead, next(iter(sets)))
    readers = sum(1 if only_moves(role) else _warps(role) for role in sets if not (role is taker and only_moves(role)))
    counter = emit.plus(emit.launch_value("epochs"), emit.times(emit.wide(ctas), 4))
    return TaskQueue(counter, planned(kernel, QUEUE_OFFSET), planned(kernel, QUEUE), taker, readers)


def _group(role: RoleOp) -> str:
    group = role.attributes[GROUP]
    assert isinstance(group, StringAttr)
    return group.data


@dataclass
class _Team:
    """Warpgroups that change their registers together: those of one role, or one that several roles share."""

    group: str
    first: int
    end: int
    registers: int
    roles: list[RoleOp]


def _teams(roles: Sequence[RoleOp], arch: Arch) -> list[_Team]:
    teams: list[_Team] = []
    for role in sorted(roles, key=lambda role: (_group(role), planned(role, FIRST_WARP))):
        first, end = planned(role, FIRST_WARP), planned(role, FIRST_WARP) + _warps(role)
        end = -(-end // arch.warpgroup) * arch.warpgroup
        last = teams[-1] if teams else None
        if last is not None and last.group == _group(role) and first < last.end:
            last.roles.append(role)
            last.end = max(last.end, end)
            last.registers = max(last.registers, planned(role, REGISTERS))
        else:
            teams.append(_Team(_group(role), first, end, planned(role, REGISTERS), [role]))
    return teams


def _idle(teams: Sequence[_Team], threads: int, target: Target) -> Iterator[_Team]:
    """The warpgroups of a CTA without a role, if others wait for more registers than all were launched with."""
    end, launched = threads // target.arch.warp, target.launched_registers(threads) // threads
    for group in dict.fromkeys(team.group for team in teams):
        here = [team for team in teams if team.group == group]
        first = max(team.end for team in here)
        if first < end and any(team.registers > launched for team in here):
            yield _Team(group, first, end, target.registers.idle, [])


def _team(emit: Emitter, launch: Launch, rank: SSAValue, team: _Team, threads: Threads, total: int) -> None:
    """Emit the roles of a team, each for its warps, on the CTAs of its group."""
    in_team = _in_group(emit, launch, team.group, emit.between(threads.warp, team.first, team.end))
    with emit.when(in_team):
        start, arch = emit.target.launched_registers(total) // total, emit.target.arch
        if total > arch.warpgroup * arch.warp and team.registers != start:
            emit.do(f"setmaxnreg_{'inc' if team.registers > start else 'dec'}_{team.registers}")
        for role in team.roles:
            first, warps = planned(role, FIRST_WARP), _warps(role)
            barrier, registers = planned(role, FIRST_BARRIER), planned(role, REGISTERS)
            role_threads = replace(
                threads, first=first, warps=warps, one=only_moves(role), barrier=barrier, registers=registers
            )
            emit.location = role.location
            emit.comment(f"{role.role.data}: {'warp' if warps == 1 else f'{warps} warps'} from {first}")
            in_role = emit.between(threads.warp, first, first + warps)
            if role_threads.one:
                in_role = emit.both(emit.compare("eq", threads.warp, first), emit.compare("eq", threads.lane, 0))
            with emit.when(in_role):
                _label(emit.block, role, role_threads)
                _work(emit, launch, rank, role, role_threads, team.group)


def _label(body: Block, role: RoleOp, threads: Threads) -> None:
    """Mark the branch that a role becomes with the role's name and first warp, and what tiles leave of registers."""
    branch = body.parent_op()
    assert branch is not None
    branch.attributes |= {ROLE: StringAttr(str(role.role.data)), FIRST_WARP: role.attributes[FIRST_WARP]}
    if role.role.data is Role.Consumer:  # others go chunk by chunk
        tiles = -(-peak(role).registers // (threads.warps * threads.arch.warp))
        branch.attributes[SPARE] = IntegerAttr(planned(role, REGISTERS) - tiles, i64)
    if threads.one:
        branch.attributes[ONE] = UnitAttr()


def _in_group(emit: Emitter, launch: Launch, group: str, condition: SSAValue) -> SSAValue:
    """A condition, restricted to the CTAs of a group."""
    inside = _of_group(emit, launch, group)
    return condition if inside is None else emit.both(condition, inside)


def _of_group(emit: Emitter, launch: Launch, group: str) -> SSAValue | None:
    """Whether this CTA belongs to a group; None if there is one group."""
    if "communicate" not in launch.ctas:
        return None
    side = "slt" if group == "compute" else "sge"
    return emit.compare(side, launch.cta_of["compute"], launch.ctas["compute"])


def _work(emit: Emitter, launch: Launch, rank: SSAValue, role: RoleOp, threads: Threads, group: str) -> None:
    axes, folded = infer_axes(role.body), folded_lanes(role.body)
    warp_role = WarpRole(launch, emit, Dimensions(emit), threads, rank, group, axes, folded)
    warp_role.takes_tasks = launch.tasks is not None and launch.tasks.taker is role
    warp_role.words = number_on(role, OFFSET) or 0
    exchange.prepare(warp_role, role, number_on(role, OFFSET))
    inside = set(role.walk())
    users = {channel: [use.operation for use in channel.uses if use.operation in inside] for channel in launch.rings}
    channels.prepare(warp_role, {channel: ops for channel, ops in users.items() if ops})
    warp_role.filling += [channel for channel, ops in users.items() if any(isinstance(op, AcquireOp) for op in ops)]
    signals.prepare(warp_role, inside)
    for argument in launch.kernel.body.block.args:
        warp_role.known[argument] = argument
    lower_block(warp_role, role.body.block)


def _next_epoch(emit: Emitter, launch: Launch, thread: SSAValue) -> None:
    """Count the launch of this CTA; all threads have read its number by now."""
    with emit.when(emit.compare("eq", thread, 0)):
        cta = emit.value("cta_number") if launch.cluster > 1 else launch.cta_of["compute"]
        counter = emit.plus(emit.launch_value("epochs"), emit.times(emit.wide(cta), 4))
        emit.do("store_u32", counter, launch.epoch)
