"""The pass `pk-reuse-memory`: channels of one phase lie where those of another one did."""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.dialects import scf
from xdsl.dialects.builtin import IntegerAttr, i64

from pkc.dialect.attributes import Role
from pkc.dialect.program import PHASE, KernelOp
from pkc.dialect.roles import ChannelOp, ConsumeOp
from pkc.dialect.tile import AnyMmaOp
from pkc.passes.analysis.dependence import roles_around
from pkc.passes.build import phase_of
from pkc.passes.kernel_pass import KernelPass
from pkc.passes.roles.merge_channels import merged
from pkc.passes.roles.order_phases import phases_in_order
from pkc.remarks import missed
from pkc.targets.target import target_of

_SEVERAL = 2
"""Phases of which each has channels that no other can use."""


class ReuseMemory(KernelPass):
    """Write on channels that serve one phase alone which one, where phases come one after the other: `phase`.

    Channels of different phases then have the same shared memory, all of it each, instead of a share. That needs that
    every CTA is through with one phase before it fills stages of the next: `pk-order-phases` lets roles that consume
    channels with a `phase` signal at its end, and roles that fill those of later phases wait for that. Phases between
    which something waits anyway, because of an array, are treated so, and those whose shares would leave loops of MMAs
    fewer stages than keep them busy; and only where `pk-merge-channels` could not merge channels of several phases, or
    of one whose share would be so small: phases that pass the same tiles need no memory of their own. Channels of
    communicators keep theirs.

    Before:

        %0 = pk.channel "A, B" stages 1 : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<64x128xbf16>>
        %1 = pk.channel "T, C" stages 1 : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<64x256xbf16>>

    After:

        %0 = pk.channel "A, B" stages 1 {phase = 0 : i64} : ...
        %1 = pk.channel "T, C" stages 1 {phase = 1 : i64} : ...
    """

    name = "pk-reuse-memory"
    ONLY_DERIVED = True

    def run(self, kernel: KernelOp) -> None:
        channels = [op for op in kernel.body.block.ops if isinstance(op, ChannelOp)]
        found = {channel: phase for channel in channels if (phase := _only_phase(channel)) is not None}
        alike = merged(kernel)
        alone = found.keys() - alike.keys() - set(alike.values())
        short = bool(alone) and _is_short(kernel, [op for op in channels if op not in alike])
        if len({found[channel] for channel in alone}) < _SEVERAL and not short:
            return
        if not phases_in_order(kernel) and not short:
            reason = "a phase uses nothing that the one before writes, so that they run at the same time"
            missed(self.name, kernel, f"channels of different phases divide shared memory among them: {reason}")
            return
        for channel, phase in found.items():
            channel.attributes[PHASE] = IntegerAttr(phase, i64)


def _is_short(kernel: KernelOp, channels: Iterable[ChannelOp]) -> bool:
    """Whether shared memory has no room for one stage of each channel, and as many for loops of MMAs as these want."""
    target = target_of(kernel)
    stages = {channel: target.tuning.stream_stages if _feeds_mmas(channel) else 1 for channel in channels}
    wanted = sum(target.footprint(channel.result.type) * count for channel, count in stages.items())
    return max(stages.values()) > 1 and wanted > target.stage_memory


def _feeds_mmas(channel: ChannelOp) -> bool:
    """Whether a loop of MMAs goes through the stages of a channel."""
    taken = [use.operation for use in channel.result.uses if isinstance(use.operation, ConsumeOp)]
    loops = [op.parent_op() for op in taken]
    return any(isinstance(loop, scf.ForOp) and any(isinstance(op, AnyMmaOp) for op in loop.walk()) for loop in loops)


def _only_phase(channel: ChannelOp) -> int | None:
    """The phase of all that uses a channel between roles that compute, if it is one."""
    users = [use.operation for use in channel.result.uses]
    if any(role.role.data is Role.Communicator for role in roles_around(users)):
        return None
    found = {phase_of(op) for op in users}
    return found.pop() if len(found) == 1 else None
