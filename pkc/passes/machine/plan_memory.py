"""The pass `pk-plan-memory`: where channels and their barriers lie in shared memory."""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr, i64

from pkc.dialect.program import KernelOp
from pkc.dialect.roles import ChannelOp, channel_of
from pkc.passes.analysis.row_lanes import shared_words
from pkc.passes.build import phase_of
from pkc.passes.kernel_pass import KernelPass
from pkc.passes.roles.budgets import channel_group, group_of, queue_of, shared_memory
from pkc.passes.roles.plan_warps import COMPUTE
from pkc.targets.target import Target, target_of

OFFSET, BARRIERS, STAGE_BYTES = "offset", "barriers", "stage_bytes"
"""On a channel: bytes from the start of shared memory to its first stage and barrier, and from stage to stage; on a
role: to the words in which its warps share rows."""

QUEUE_OFFSET = "queue_offset"
"""On a kernel whose CTAs take tasks from a queue: where its barriers, and behind these its numbers, begin."""

SHARED_BYTES = "shared_bytes"
"""On a kernel: the shared memory it needs, with room to align its start."""


class PlanMemory(KernelPass):
    """Give every channel its place in shared memory.

    CTAs that compute and CTAs that communicate are planned separately. Tiles begin at multiples of the target's
    alignment. A channel in the stages of another one begins where that begins. Channels of one phase (`phase`) lie
    behind those of all phases, and where those of other phases lie. Behind all stages come the barriers:
    those of a channel that say a stage is full, one for each stage, then those that say it is empty. Behind these come
    the numbers of tasks that were taken from a queue, with barriers of the same kind in front of them, and what warps
    hand each other when they reduce a row together.

    Before:

        %0 = pk.channel "A, B" stages 3 : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<64x256xbf16>>

    After, with `shared_bytes` on the kernel:

        %0 = pk.channel "A, B" stages 3 {offset = 0 : i64, stage_bytes = 49152 : i64, barriers = 147456 : i64} : ...
    """

    name = "pk-plan-memory"

    def run(self, kernel: KernelOp) -> None:
        target, groups = target_of(kernel), dict[str, list[ChannelOp]]()
        for op in kernel.body.block.ops:
            if isinstance(op, ChannelOp):
                groups.setdefault(channel_group(op), []).append(op)
        ends = {group: _place(channels, target) for group, channels in groups.items()}
        if size := queue_of(kernel):
            kernel.attributes[QUEUE_OFFSET] = IntegerAttr(ends.get(COMPUTE, 0), i64)
            ends[COMPUTE] = ends.get(COMPUTE, 0) + size
        for role in kernel.roles:
            if words := shared_words(role, target.arch.warp):
                end = ends.get(group_of(role), 0)
                role.attributes[OFFSET] = IntegerAttr(end, i64)
                ends[group_of(role)] = end + words * target.arch.register_bytes
        kernel.attributes[SHARED_BYTES] = IntegerAttr(shared_memory(kernel) + target.alignment, i64)


def _place(channels: list[ChannelOp], target: Target) -> int:
    """The channels of one group of CTAs, those of each phase behind those of all; where they end."""
    ends: dict[int | None, int] = {None: 0}
    for channel in sorted(channels, key=lambda channel: phase_of(channel) is not None):
        phase, length, host = phase_of(channel), target.stage_bytes(channel.kind), channel.host
        offset = ends.setdefault(phase, ends[None])
        channel.attributes[OFFSET] = IntegerAttr(offset, i64) if host is None else channel_of(host).attributes[OFFSET]
        channel.attributes[STAGE_BYTES] = IntegerAttr(length, i64)
        ends[phase] += channel.depth * length if host is None else 0
    offset = max(ends.values())
    for channel in channels:
        channel.attributes[BARRIERS] = IntegerAttr(offset, i64)
        offset += 2 * channel.depth * target.arch.mbarrier_bytes
    return offset
