"""The pass `pk-merge-channels`: phases that pass tiles of one kind between the same roles have one channel."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import scf
from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Block, Operation

from pkc.dialect.program import KernelOp, TasksOp
from pkc.dialect.roles import AcquireOp, ChannelOp, CommitOp
from pkc.passes.analysis.dependence import ancestors, roles_around
from pkc.passes.analysis.pointwise import is_spread
from pkc.passes.build import phase_of
from pkc.passes.kernel_pass import KernelPass


class MergeChannels(KernelPass):
    """Use one channel for tiles of one kind that go from one role to another in one phase, then in a later one; or in
    one loop of a task without MMAs, then in a later one.

    Both roles are through with the first phase before they begin with the second, so its tiles come behind the others
    in the same ring. Its stages are those of both phases, which otherwise would divide shared memory, unless each has
    all of it (`pk-reuse-memory`). So are those of the loops of a task, each of which has all stages while it runs.

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
    ends = zip(_ends(first), _ends(channel), strict=True)
    return all(_comes_later(before, after) for before, after in ends)


def _ends(channel: ChannelOp) -> tuple[list[Operation], list[Operation]]:
    """The operations of the producing and of the consuming role on a channel."""
    users = [use.operation for use in channel.result.uses]
    producing: list[Operation] = [op for op in users if isinstance(op, AcquireOp | CommitOp)]
    return producing, [op for op in users if op not in producing]


def _comes_later(before: Sequence[Operation], after: Sequence[Operation]) -> bool:
    """Whether a role is through with some operations before it begins with others; if those are of the same tasks, in
    each of these."""
    roles = roles_around((*before, *after))
    if len(roles) != 1:
        return False
    (role,) = roles
    first, second = _statements(role.body.block, before), _statements(role.body.block, after)
    if len({*first, *second}) == 1 and isinstance(first[0], TasksOp) and is_spread(first[0]):
        block = first[0].body.block
        first, second = _statements(block, before), _statements(block, after)
        if not all(isinstance(op, scf.ForOp) for op in (*first, *second)):
            return False  # later passes move what a task consumes once to where it is used
    return first[-1] is not second[0] and first[-1].is_before_in_block(second[0])


def _statements(block: Block, ops: Sequence[Operation]) -> list[Operation]:
    """The statements of a block that operations are in, in their order."""
    tops = {next(around for around in (op, *ancestors(op)) if around.parent is block) for op in ops}
    return [op for op in block.ops if op in tops]
