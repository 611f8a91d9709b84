"""The pass `pk-lower-tiles`: from parts and tiles to what each thread of a CTA does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from xdsl.context import Context
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, StringAttr, UnitAttr, i64
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from pkc.diagnostics import PkcError
from pkc.dialect.access import LoadOp, StoreOp
from pkc.dialect.attributes import planned
from pkc.dialect.coordinates import RankOp
from pkc.dialect.engines import is_engine
from pkc.dialect.machine import ONE, PART, TensorMapOp
from pkc.dialect.program import COMM_SMS, FIRST_WARP, GROUP, REGISTERS, KernelOp, RoleOp
from pkc.dialect.roles import AcquireOp, ChannelOp, ChannelType, CommitOp, ConsumeOp
from pkc.dialect.transfers import TMA, moves_by_tma
from pkc.dialect.types import TileType
from pkc.location import span_of
from pkc.passes.analysis.dependence import ancestors
from pkc.passes.derive import DERIVED
from pkc.passes.machine import machine_errors as errors
from pkc.passes.machine.emit import Emitter
from pkc.passes.machine.lowering import channels, signals
from pkc.passes.machine.lowering.axes import infer_axes
from pkc.passes.machine.lowering.blocks import Dimensions
from pkc.passes.machine.lowering.context import Launch, Ring, Threads, WarpRole
from pkc.passes.machine.lowering.missing import UNKNOWN, CannotLowerError
from pkc.passes.machine.lowering.structure import lower_block
from pkc.passes.machine.plan_memory import BARRIERS, OFFSET, SHARED_BYTES, STAGE_BYTES, PlanMemory
from pkc.passes.roles.plan_warps import PlanWarps
from pkc.targets.arch import Arch
from pkc.targets.target import Target, target_of

THREADS = "threads"
"""On a kernel: threads of each CTA."""

MACHINE = "machine"
"""On a kernel: its body is at the machine level."""


@dataclass(frozen=True)
class LowerTiles(ModulePass):
    """Write what every thread does, in instructions of the target: barriers and phases for channels, TMA or loads and
    stores for copies, MMA for products.

    Parts become branches on the number of the warp. A part that only starts copies is one thread. The parts of copy
    engines stay as they are: the host enqueues what they do. A tile is where the layouts of the target say
    (`pkc/targets/layout.py`): in a stage, or spread over the registers of the warpgroups of its part.

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

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel in op.walk():
            if isinstance(kernel, KernelOp) and any(isinstance(part, RoleOp) for part in kernel.body.block.ops):
                _lower_kernel(kernel)


_PLANS: dict[type[Operation], tuple[tuple[str, str], ...]] = {
    KernelOp: ((SHARED_BYTES, PlanMemory.name), (COMM_SMS, PlanWarps.name)),
    ChannelOp: tuple((name, PlanMemory.name) for name in (OFFSET, BARRIERS, STAGE_BYTES)),
    RoleOp: tuple((name, PlanWarps.name) for name in (GROUP, FIRST_WARP, REGISTERS)),
}
"""What the lowering obeys, by operation: the attribute, and the pass that writes it."""


def _lower_kernel(kernel: KernelOp) -> None:
    parts = [op for op in kernel.body.block.ops if isinstance(op, RoleOp) and not is_engine(op)]
    try:
        _refuse(kernel, parts)
        for op in (kernel, *(op for op in kernel.body.block.ops if not is_engine(op))):
            for name, writer in _PLANS.get(type(op), ()):
                if name not in op.attributes:
                    raise PkcError(errors.NotPlanned(span_of(op.location), op.name, name, writer))
        _lower(kernel, parts)
    except CannotLowerError as error:
        hint = error.hint or "the simulator runs it: `pkc run`"
        name = target_of(kernel).name
        raise PkcError(errors.NotLowered(span_of(error.op.location), name, error.what, hint)) from None


def _refuse(kernel: KernelOp, parts: Sequence[RoleOp]) -> None:
    if DERIVED not in kernel.attributes:
        hint = "leave them out, and pkc derives the roles; the simulator runs both: `pkc run`"
        raise CannotLowerError(parts[0], "roles that a kernel writes itself", hint)
    for op in kernel.walk():
        if type(op) in UNKNOWN:
            raise CannotLowerError(op)


def _lower(kernel: KernelOp, parts: Sequence[RoleOp]) -> None:
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
    launch, rank = _launch(kernel, emit, base, rings, parts)
    with emit.when(emit.compare("eq", thread, 0)):
        first = emit.block
        _barriers(emit, base, rings)
    emit.do("sync_threads")
    _next_epoch(emit, launch, thread)
    threads = max(planned(part, FIRST_WARP) + _warps(part) for part in parts)
    threads = -(-threads // arch.warpgroup) * arch.warpgroup * arch.warp
    teams = _teams(parts, arch)
    for team in (*teams, *_idle(teams, threads, target)):
        _team(emit, launch, rank, team, Threads(0, 0, False, thread, lane, warp, 0, arch), threads)
    _prefetch_maps(kernel, body, first)
    for op in reversed(old):
        op.detach()
        op.drop_all_references()
    for op in (*body.ops, *kernel.body.block.ops):  # behind what SMs do, what the host enqueues
        op.detach()
        kernel.body.block.add_op(op)
    kernel.attributes[THREADS] = IntegerAttr(threads, i64)
    kernel.attributes[MACHINE] = IntegerAttr(1, i64)


def _ring(channel: ChannelOp, target: Target) -> Ring:
    kind = channel.result.type
    assert isinstance(kind, ChannelType)
    slots, _ = target.stage_layout(kind.tiles)
    producer, consumer = _end(channel, AcquireOp), _end(channel, ConsumeOp)
    by_tma = [_by_tma(use.operation) for use in channel.result.uses if isinstance(use.operation, CommitOp)]
    filled = sum(target.shared_layout(tile).moved_bytes for tile in kind.tiles)
    return Ring(
        channel,
        planned(channel, OFFSET),
        planned(channel, BARRIERS),
        channel.depth,
        slots,
        planned(channel, STAGE_BYTES),
        1 if all(by_tma) else _warps(producer) * target.arch.warp,
        1 if _moves(consumer) else _warps(consumer),
        filled if all(by_tma) else 0,
    )


def _by_tma(commit: CommitOp) -> bool:
    return all(isinstance(tile.owner, LoadOp) and moves_by_tma(tile.owner) for tile in commit.tiles)


def _end(channel: ChannelOp, kind: type[Operation]) -> RoleOp:
    """The part at one end of a channel."""
    op = next(use.operation for use in channel.result.uses if isinstance(use.operation, kind))
    return next(part for part in ancestors(op) if isinstance(part, RoleOp))


def _moves(part: RoleOp) -> bool:
    """Whether a part only starts copies and signals, which one thread does."""
    for op in part.walk():
        if isinstance(op, LoadOp | StoreOp):
            if not moves_by_tma(op):
                return False
        elif any(isinstance(result.type, TileType) for result in op.results) and not isinstance(op, ConsumeOp):
            return False
    return True


def _warps(part: RoleOp) -> int:
    assert part.warps is not None
    return part.warps.value.data


def _barriers(emit: Emitter, base: SSAValue, rings: Mapping[SSAValue, Ring]) -> None:
    """The barriers of all channels, made by one thread before any other touches them."""
    for ring in rings.values():
        for stage in range(ring.depth):
            number = emit.const(stage)
            emit.do("mbarrier_init", ring.full(number, emit, base), emit.const(ring.filling))
            emit.do("mbarrier_init", ring.empty(number, emit, base), emit.const(ring.emptying))
    if rings and TMA in emit.target.transfers:
        emit.do("mbarrier_init_fence")


def _prefetch_maps(kernel: KernelOp, body: Block, first: Block) -> None:
    """Begin with fetching the tensor maps: else the first copy by each waits for memory twice."""
    block = Block()
    emit, seen = Emitter(block, kernel.location, target_of(kernel)), set[tuple[object, ...]]()
    for op in [op for part in body.ops for op in part.walk() if isinstance(op, TensorMapOp)]:
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
    kernel: KernelOp, emit: Emitter, base: SSAValue, rings: Mapping[SSAValue, Ring], parts: Sequence[RoleOp]
) -> tuple[Launch, SSAValue]:
    cta, ctas = emit.value("cta_number"), emit.value("cta_count")
    apart = planned(kernel, COMM_SMS)
    computing = emit.minus(ctas, apart)
    counter = emit.plus(emit.launch_value("epochs"), emit.times(emit.wide(cta), 4))
    epoch = emit.plus(emit.value("load_u32", counter), 1)
    own = RankOp()
    emit.add(own)
    named = ((cta, "cta"), (computing, "computing"), (epoch, "epoch"), (own.result, "rank"))
    for value, hint in named:
        value.name_hint = hint
    cta_of, counts = {"compute": cta}, {"compute": computing}
    if apart:
        cta_of["communicate"] = emit.minus(cta, computing)
        counts["communicate"] = emit.const(apart)
    groups = {str(part.role.data): _group(part) for part in parts}
    return Launch(kernel, rings, base, epoch, cta_of, counts, groups), own.result


def _group(part: RoleOp) -> str:
    group = part.attributes[GROUP]
    assert isinstance(group, StringAttr)
    return group.data


@dataclass
class _Team:
    """Warpgroups that change their registers together: those of one part, or one that several parts share."""

    group: str
    first: int
    end: int
    registers: int
    parts: list[RoleOp]


def _teams(parts: Sequence[RoleOp], arch: Arch) -> list[_Team]:
    teams: list[_Team] = []
    for part in sorted(parts, key=lambda part: (_group(part), planned(part, FIRST_WARP))):
        first, end = planned(part, FIRST_WARP), planned(part, FIRST_WARP) + _warps(part)
        end = -(-end // arch.warpgroup) * arch.warpgroup
        last = teams[-1] if teams else None
        if last is not None and last.group == _group(part) and first < last.end:
            last.parts.append(part)
            last.end = max(last.end, end)
            last.registers = max(last.registers, planned(part, REGISTERS))
        else:
            teams.append(_Team(_group(part), first, end, planned(part, REGISTERS), [part]))
    return teams


def _idle(teams: Sequence[_Team], threads: int, target: Target) -> Iterator[_Team]:
    """The warpgroups of a CTA that run no part, where others wait for more registers than all were launched with."""
    end, launched = threads // target.arch.warp, target.launched_registers(threads) // threads
    for group in dict.fromkeys(team.group for team in teams):
        here = [team for team in teams if team.group == group]
        first = max(team.end for team in here)
        if first < end and any(team.registers > launched for team in here):
            yield _Team(group, first, end, target.registers.idle, [])


def _team(emit: Emitter, launch: Launch, rank: SSAValue, team: _Team, threads: Threads, total: int) -> None:
    """The parts of a team, each by its warps, on the CTAs of its group."""
    mine = _in_group(emit, launch, team.group, _between(emit, threads.warp, team.first, team.end))
    with emit.when(mine):
        start, arch = emit.target.launched_registers(total) // total, emit.target.arch
        if total > arch.warpgroup * arch.warp and team.registers != start:
            emit.do(f"setmaxnreg_{'inc' if team.registers > start else 'dec'}_{team.registers}")
        for part in team.parts:
            first, warps = planned(part, FIRST_WARP), _warps(part)
            number = 1 + [op for op in launch.kernel.body.block.ops if isinstance(op, RoleOp)].index(part)
            workers = replace(
                threads, first=first, warps=warps, one=_moves(part), barrier=number, registers=planned(part, REGISTERS)
            )
            emit.location = part.location
            emit.comment(f"{part.role.data}: {'warp' if warps == 1 else f'{warps} warps'} from {first}")
            mine = _between(emit, threads.warp, first, first + warps)
            if workers.one:
                mine = emit.both(emit.compare("eq", threads.warp, first), emit.compare("eq", threads.lane, 0))
            with emit.when(mine):
                _label(emit.block, part, workers)
                _work(emit, launch, rank, part, workers, team.group)


def _label(body: Block, part: RoleOp, threads: Threads) -> None:
    """Say of the branch that a part becomes whose it is."""
    branch = body.parent_op()
    assert branch is not None
    branch.attributes |= {PART: StringAttr(str(part.role.data)), FIRST_WARP: part.attributes[FIRST_WARP]}
    if threads.one:
        branch.attributes[ONE] = UnitAttr()


def _between(emit: Emitter, value: SSAValue, first: int, end: int) -> SSAValue:
    if first == 0:
        return emit.compare("slt", value, end)
    return emit.both(emit.compare("sge", value, first), emit.compare("slt", value, end))


def _in_group(emit: Emitter, launch: Launch, group: str, condition: SSAValue) -> SSAValue:
    """A condition, on the CTAs of a group only."""
    if "communicate" not in launch.ctas:
        return condition
    side = "slt" if group == "compute" else "sge"
    return emit.both(condition, emit.compare(side, launch.cta_of["compute"], launch.ctas["compute"]))


def _work(emit: Emitter, launch: Launch, rank: SSAValue, part: RoleOp, threads: Threads, group: str) -> None:
    worker = WarpRole(launch, emit, Dimensions(emit), threads, rank, group, infer_axes(part.body))
    inside = set(part.walk())
    for channel in launch.rings:
        users = [use.operation for use in channel.uses if use.operation in inside]
        if users:
            channels.prepare(worker, channel, users)
        if any(isinstance(op, AcquireOp) for op in users):
            worker.filling.append(channel)
    signals.prepare(worker, inside)
    for argument in launch.kernel.body.block.args:
        worker.known[argument] = argument
    lower_block(worker, part.body.block)


def _next_epoch(emit: Emitter, launch: Launch, thread: SSAValue) -> None:
    """The next launch of this CTA has the next number; all threads have read this one's by now."""
    with emit.when(emit.compare("eq", thread, 0)):
        counter = emit.plus(emit.launch_value("epochs"), emit.times(emit.wide(launch.cta_of["compute"]), 4))
        emit.do("store_u32", counter, launch.epoch)
