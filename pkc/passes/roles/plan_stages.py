"""The pass `pk-plan-stages`: how many stages each channel has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from xdsl.dialects import scf
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i64
from xdsl.ir import Operation

from pkc.diagnostics import PkcError
from pkc.dialect.access import LoadOp
from pkc.dialect.attributes import Role
from pkc.dialect.counters import WaitOp
from pkc.dialect.program import STAGES, KernelOp, RoleOp, TasksOp
from pkc.dialect.roles import AcquireOp, ChannelOp, CommitOp, ConsumeOp, channel_of
from pkc.dialect.tile import AnyMmaOp, ClipOp, MmaOp, TransposeOp, tile_type
from pkc.dialect.types import dtype_bytes
from pkc.location import describe, span_of
from pkc.passes import plan_errors as errors
from pkc.passes.analysis.dependence import roles_around
from pkc.passes.kernel_pass import KernelPass
from pkc.passes.roles.budgets import (
    Taken,
    between_warps,
    bytes_of,
    channel_group,
    content,
    group_of,
    in_cta_of,
    queue_of,
    read_behind,
    stages_hint,
    stages_text,
)
from pkc.remarks import missed
from pkc.targets.target import target_of

_TWO = 2
"""The least stages with which a tile arrives while another is in use, whatever the GPU."""


class PlanStages(KernelPass):
    """Fill shared memory with stages: the more loads an SM has in flight, the faster memory is for it.

    Channels that loops go through get one stage more each, round after round, up to four, or two if an iteration
    multiplies for longer than a load takes that awaits no other rank. Then each tile that is passed once in a task gets
    a second stage if there is room for it, so that the next task begins while it is still in use; up to four where no
    loop needs any. The rest goes to loops, up to 32 stages each. `stages` of the schedule says how many those of loops
    have. The channels of communicators stay as they are. Each phase has the memory of those that lie in the same place
    (`pk-reuse-memory`). `task_stages` says how many those of tasks have at most.

    Before:

        %0 = pk.channel "A, B" stages 1 : !pk.channel<!pk.tile<64x64xbf16>, !pk.tile<64x64xbf16>>
        %1 = pk.channel "C" stages 1 : !pk.channel<!pk.tile<64x64xbf16>>
        pk.role loader { pk.tasks ... { scf.for ... { pk.acquire %0 ... } } }
        pk.role consumer { pk.tasks ... { pk.acquire %1 ... } }

    After:

        %0 = pk.channel "A, B" stages 13 : !pk.channel<!pk.tile<64x64xbf16>, !pk.tile<64x64xbf16>>
        %1 = pk.channel "C" stages 2 : !pk.channel<!pk.tile<64x64xbf16>>
        ...
    """

    name = "pk-plan-stages"

    def run(self, kernel: KernelOp) -> None:
        for plan in plan_stages(kernel):
            plan.channel.stages = IntegerAttr(plan.stages, i64)
            _remark(plan)


@dataclass(frozen=True)
class StagePlan:
    """The stages of one channel, and why."""

    channel: ChannelOp
    stages: int
    why: str
    loaded: bool = False
    """Whether its tiles come from memory."""

    @property
    def is_alone(self) -> bool:
        """Whether an iteration waits for the tiles of the one before."""
        return self.stages == 1 and self.why == _ROOM

    @property
    def delays_loads(self) -> bool:
        """Whether what the next task loads waits for the tiles of this one."""
        return self.stages == 1 and self.why == _NO_ROOM and self.loaded

    def __str__(self) -> str:
        channel = self.channel
        each = _footprint(channel)
        count = "1 stage" if self.stages == 1 else f"{self.stages} stages"
        return f"{describe(channel.location)}: channel of {channel.label.data}: {count} of {each} bytes ({self.why})"


def explain_stages(module: ModuleOp) -> list[StagePlan]:
    """What the pass decides, for each channel that it gives stages to."""
    return [plan for kernel in module.walk() if isinstance(kernel, KernelOp) for plan in plan_stages(kernel)]


def plan_stages(kernel: KernelOp) -> list[StagePlan]:
    """The plan of each channel between roles that compute. Raises `PkcError` if shared memory does not suffice."""
    channels = [op for op in kernel.body.block.ops if isinstance(op, ChannelOp)]
    planned = [channel for channel in channels if not _communicates(channel)]
    if not planned:
        return []
    target, group = target_of(kernel), channel_group(planned[0])
    beside = {c: c.depth for c in channels if c not in planned and channel_group(c) == group}
    others = bytes_of(beside)
    others += sum(between_warps(role, target) for role in kernel.roles if group_of(role) == group)
    return _divide(kernel, planned, target.stage_memory - others - read_behind(kernel) - queue_of(kernel), beside)


def _divide(
    kernel: KernelOp, channels: Sequence[ChannelOp], available: int, beside: Mapping[ChannelOp, int]
) -> list[StagePlan]:
    turning = [channel for channel in channels if _in_loop(channel)]
    passed = [channel for channel in channels if channel not in turning and channel.host is None]
    wanted, tuning = kernel.scheduled_number(STAGES) or 0, target_of(kernel).tuning
    stages = {channel: wanted if wanted and channel in turning else 1 for channel in (*turning, *passed)}
    guests = {channel.guest: count for channel, count in stages.items() if channel.guest is not None}
    taken = Taken({**stages, **guests})
    if taken.bytes > available:
        most = target_of(kernel).stage_memory
        every = stages_text({**stages, **beside})  # stages of communicators take memory of the same CTA
        found = (kernel.sym_name.data, taken.bytes + most - available, most, every, stages_hint(kernel, stages))
        raise PkcError(errors.SharedMemory(span_of(kernel.location), *found))
    growing = [] if wanted else turning
    few, many = tuning.loop_stages, tuning.most_stages
    slow = [channel for channel in growing if _hides_loads(channel)]
    quick = [channel for channel in growing if channel not in slow]
    said = kernel.scheduled_number("task_stages") or 0
    once = said or (_TWO if turning else few)
    again = [channel for channel in passed if not _stays(channel)]
    for some, most in ((growing, _TWO), (quick, few), (again, once), (growing, many)):
        _grow(taken, some, most, available)
    stages = taken.depths

    def plan(channel: ChannelOp) -> StagePlan:
        if channel.host is not None:
            return _in_others(channel, stages[channel_of(channel.host)])
        if _stays(channel):
            return StagePlan(channel, 1, _STAYS)
        most = _TWO if _goes_across(channel) else many
        why = _why(channel in turning, stages[channel], wanted, most, said)
        return StagePlan(channel, stages[channel], why, _is_loaded(channel))

    return [plan(channel) for channel in channels]


def _is_loaded(channel: ChannelOp) -> bool:
    committed = (use.operation for use in channel.result.uses if isinstance(use.operation, CommitOp))
    return any(isinstance(tile.owner, LoadOp) for op in committed for tile in op.tiles)


def _goes_across(channel: ChannelOp) -> bool:
    """Whether a role hands tiles from its threads to its threads (`pk-stage-axes`): while they read a stage, those
    that are done with it fill another one, and then they wait."""
    ends = {kind: [use.operation for use in channel.result.uses if isinstance(use.operation, kind)] for kind in _ENDS}
    read = (use.operation for op in ends[ConsumeOp] for tile in op.results for use in tile.uses)
    filling, reading = roles_around(ends[CommitOp]), roles_around(ends[ConsumeOp])
    return bool(filling) and filling == reading and not any(map(_is_mma, read))


def _is_mma(op: Operation) -> bool:
    seen = [use.operation for use in op.results[0].uses] if isinstance(op, TransposeOp | ClipOp) else []
    return isinstance(op, AnyMmaOp) or any(map(_is_mma, seen))


_ENDS = (CommitOp, ConsumeOp)


def _stays(channel: ChannelOp) -> bool:
    """Whether a CTA fills a channel once, for all its tasks (`pk-load-once`)."""
    acquired = [use.operation for use in channel.result.uses if isinstance(use.operation, AcquireOp)]
    blocks = [op.parent for op in acquired if isinstance(op.parent_op(), RoleOp)]
    tasks = any(isinstance(op, TasksOp) for block in blocks if block is not None for op in block.ops)
    return len(acquired) == len(blocks) == 1 and tasks


def _in_others(guest: ChannelOp, stages: int) -> StagePlan:
    assert guest.host is not None
    return StagePlan(guest, stages, f"those of {channel_of(guest.host).label.data}, which is done with them")


def _remark(plan: StagePlan) -> None:
    """What waits where a channel has one stage."""
    channel = plan.channel
    if plan.stages > 1 or plan.why in (_AS_SAID, _AS_TASKS_SAID, _STAYS) or channel.host is not None:
        return
    waits = (
        "each iteration waits for the tiles of the last one"
        if _in_loop(channel)
        else "the next task waits for this one"
    )
    room = f"shared memory has no room for {_footprint(channel)} bytes more"
    missed(PlanStages.name, channel, f"{content(channel)} has one stage: {waits}; {room}")


_AS_SAID, _AS_TASKS_SAID = (f"as the schedule's `{key}` says, given or chosen" for key in (STAGES, "task_stages"))


_ROOM = "as many as there is room for"
_NO_ROOM = "no room for that of the next task"
_STAYS = "loaded once for all tasks"


def _grow(taken: Taken, channels: Sequence[ChannelOp], most: int, available: int) -> None:
    """Give each channel a stage more, round after round, as long as there is room."""
    for count in range(1, most):
        for channel in channels:
            if taken.depths[channel] != count or (count >= _TWO and _goes_across(channel)):
                continue
            taken.add(channel, 1)
            if taken.bytes > available:
                taken.add(channel, -1)


def _why(turning: bool, stages: int, wanted: int, most: int, said: int) -> str:
    if not turning:
        if stages == said:
            return _AS_TASKS_SAID
        return "of this task, and of the next" if stages > 1 else _NO_ROOM
    if wanted:
        return _AS_SAID
    return "more are of no use" if stages == most else _ROOM


def _footprint(channel: ChannelOp) -> int:
    """Bytes that a stage takes, with the barriers of what leaves in it."""
    target = target_of(channel)
    return target.footprint(in_cta_of(channel)) + (2 * target.arch.mbarrier_bytes if channel.guest is not None else 0)


def _in_loop(channel: ChannelOp) -> bool:
    """Whether a stage is passed on in each iteration of a loop."""
    acquired = [use.operation for use in channel.result.uses if isinstance(use.operation, AcquireOp)]
    return any(isinstance(op.parent_op(), scf.ForOp) for op in acquired)


def _hides_loads(channel: ChannelOp) -> bool:
    """Whether the iterations that consume a channel multiply for longer than a load takes, which awaits nobody."""
    rates = target_of(channel).rates
    sources = [use.operation.parent for use in channel.result.uses if isinstance(use.operation, AcquireOp)]
    if any(isinstance(op, WaitOp) for block in sources if block is not None for op in block.walk()):
        return False
    loops = {use.operation.parent for use in channel.result.uses if isinstance(use.operation, ConsumeOp)}
    mmas = [[op for op in loop.ops if isinstance(op, MmaOp)] for loop in loops if loop is not None]
    hidden = rates.mma_flops * rates.clock * rates.load_latency
    return bool(mmas) and all(sum(map(_flops, ops)) > hidden for ops in mmas)


def _flops(mma: MmaOp) -> float:
    """What an MMA takes, in operations on 16-bit elements."""
    left = tile_type(mma.a)
    return 2 * prod(left.shape) * tile_type(mma.b).shape[1] * dtype_bytes(left.element_type) / 2


def _communicates(channel: ChannelOp) -> bool:
    roles = roles_around(use.operation for use in channel.result.uses)
    return any(role.role.data is Role.Communicator for role in roles)
