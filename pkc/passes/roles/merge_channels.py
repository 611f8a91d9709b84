"""The pass `pk-merge-channels`: phases that pass tiles of one kind between the same roles have one channel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import scf
from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Block, Operation

from pkc.dialect.program import KernelOp, RoleOp, TasksOp
from pkc.dialect.roles import AcquireOp, ChannelOp, ChannelType, CommitOp
from pkc.passes.analysis.dependence import ancestors, roles_around
from pkc.passes.build import phase_of
from pkc.passes.kernel_pass import KernelPass


class MergeChannels(KernelPass):
    """Use one channel for tiles of one kind that go from one role to another in one phase, then in a later one; or in
    one loop of a task, then in a later one.

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
    kept: dict[ChannelOp, list[_Use]] = {}
    found: dict[ChannelOp, ChannelOp] = {}
    look = _Look(kernel)
    for channel in [op for op in kernel.body.block.ops if isinstance(op, ChannelOp)]:
        use = look.at(channel)
        first = next((first for first, earlier in kept.items() if all(use.is_behind(one) for one in earlier)), None)
        if first is not None:
            found[channel] = first
        kept.setdefault(first or channel, []).append(use)
    return found


@dataclass(frozen=True)
class _End:
    """What one role does with a channel, by the numbers of operations in their order."""

    role: RoleOp | None
    """None if there are several."""
    statements: tuple[int, int]
    """The first and the last statement of the role."""
    tasks: Operation | None
    """The tasks, if these are the only statement."""
    loops: tuple[int, int] | None
    """The first and the last statement of these tasks, if all are loops: later passes move what a task consumes once
    to where it is used."""

    def is_behind(self, other: _End) -> bool:
        """Whether the role is through with the other channel before it begins with this one; if both are for the same
        tasks, in each of these."""
        if self.role is None or self.role is not other.role:
            return False
        if self.tasks is None or self.tasks is not other.tasks:
            return other.statements[1] < self.statements[0]
        return self.loops is not None and other.loops is not None and other.loops[1] < self.loops[0]


@dataclass(frozen=True)
class _Use:
    """What goes through a channel in which phase, and what the producing and the consuming role do with it."""

    kind: ChannelType
    phase: int | None
    produced: _End
    consumed: _End

    def is_behind(self, other: _Use) -> bool:
        """Whether both roles are through with the other channel before they begin with this one."""
        if self.phase != other.phase or self.kind != other.kind:
            return False
        return self.produced.is_behind(other.produced) and self.consumed.is_behind(other.consumed)


class _Look:
    """How channels of a kernel are used."""

    def __init__(self, kernel: KernelOp) -> None:
        self._numbers = {op: number for number, op in enumerate(kernel.walk())}

    def at(self, channel: ChannelOp) -> _Use:
        users = [use.operation for use in channel.result.uses]
        producing: list[Operation] = [op for op in users if isinstance(op, AcquireOp | CommitOp)]
        consuming = [op for op in users if not isinstance(op, AcquireOp | CommitOp)]
        return _Use(channel.kind, phase_of(channel), self._end(producing), self._end(consuming))

    def _end(self, ops: Sequence[Operation]) -> _End:
        roles = roles_around(ops)
        if len(roles) != 1:
            return _End(None, (0, 0), None, None)
        tops = self._statements(roles[0].body.block, ops)
        tasks = tops[0]
        if len(tops) > 1 or not isinstance(tasks, TasksOp):
            return _End(roles[0], self._ends(tops), None, None)
        inner = self._statements(tasks.body.block, ops)
        loops = self._ends(inner) if all(isinstance(op, scf.ForOp) for op in inner) else None
        return _End(roles[0], self._ends(tops), tasks, loops)

    def _ends(self, statements: Sequence[Operation]) -> tuple[int, int]:
        return self._numbers[statements[0]], self._numbers[statements[-1]]

    def _statements(self, block: Block, ops: Sequence[Operation]) -> list[Operation]:
        """The statements of a block that operations are in, in their order."""
        tops = {next(around for around in (op, *ancestors(op)) if around.parent is block) for op in ops}
        return sorted(tops, key=self._numbers.__getitem__)
