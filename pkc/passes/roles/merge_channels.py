"""The pass `pk-merge-channels`: phases that pass tiles of one kind between the same roles have one channel."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation

from pkc.dialect.program import KernelOp, RoleOp
from pkc.dialect.roles import AcquireOp, ChannelOp, CommitOp
from pkc.passes.analysis.dependence import ancestors
from pkc.passes.build import phase_of
from pkc.passes.kernel_pass import KernelPass


class MergeChannels(KernelPass):
    """Use one channel for tiles of one kind that go from one role to another in one phase, then in a later one.

    Both roles are through with the first phase before they begin with the second, so its tiles come behind the others
    in the same ring. Its stages are those of both phases, which otherwise would divide shared memory, unless each has
    all of it (`pk-reuse-memory`).

    Before:

        %0 = pk.channel "A, B" stages 1 : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<64x256xbf16>>
        %1 = pk.channel "T, C" stages 1 : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<64x256xbf16>>
        pk.role loader {
          pk.tasks ... { scf.for ... { pk.acquire %0 ... } }
          pk.tasks ... { scf.for ... { pk.acquire %1 ... } }
        }

    After:

        %0 = pk.channel "A, B; T, C" stages 1 : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<64x256xbf16>>
        pk.role loader {
          pk.tasks ... { scf.for ... { pk.acquire %0 ... } }
          pk.tasks ... { scf.for ... { pk.acquire %0 ... } }
        }
    """

    name = "pk-merge-channels"

    def run(self, kernel: KernelOp) -> None:
        for channel, first in merged(kernel).items():
            first.label = StringAttr(f"{first.label.data}; {channel.label.data}")
            channel.result.replace_all_uses_with(first.result)
            channel.detach()
            channel.erase()


def merged(kernel: KernelOp) -> dict[ChannelOp, ChannelOp]:
    """The channels that can be merged with one before them, and with which."""
    kept: list[ChannelOp] = []
    found: dict[ChannelOp, ChannelOp] = {}
    for channel in [op for op in kernel.body.block.ops if isinstance(op, ChannelOp)]:
        others = {first: [channel for channel, other in found.items() if other is first] for first in kept}
        first = next((first for first in kept if _follows(channel, [first, *others[first]])), None)
        if first is None:
            kept.append(channel)
        else:
            found[channel] = first
    return found


def _follows(channel: ChannelOp, earlier: Sequence[ChannelOp]) -> bool:
    """Whether the roles of a channel are those of earlier ones, and use it when they are through with these."""
    return all(_is_behind(channel, other) for other in earlier)


def _is_behind(channel: ChannelOp, first: ChannelOp) -> bool:
    if channel.kind != first.kind or phase_of(channel) != phase_of(first):
        return False
    return all(
        role is not None and role is other and before[-1].is_before_in_block(after[0])
        for (other, before), (role, after) in zip(_ends(first), _ends(channel), strict=True)
    )


def _ends(channel: ChannelOp) -> list[tuple[RoleOp | None, list[Operation]]]:
    """The producing and the consuming role, and the statements of each that use a channel, in their order."""
    users = [use.operation for use in channel.result.uses]
    producing: list[Operation] = [op for op in users if isinstance(op, AcquireOp | CommitOp)]
    return [_statements(producing), _statements([op for op in users if op not in producing])]


def _statements(users: Sequence[Operation]) -> tuple[RoleOp | None, list[Operation]]:
    """The role of operations, if they are of one, and the statements of it that they are in, in their order."""
    tops: set[Operation] = set()
    roles: set[RoleOp] = set()
    for op in users:
        top = op
        for around in ancestors(op):
            if isinstance(around, RoleOp):
                roles.add(around)
                break
            top = around
        tops.add(top)
    if len(roles) != 1:
        return None, []
    (role,) = roles
    return role, [op for op in role.body.block.ops if op in tops]
