"""The pass `pk-share-stages`: tiles that leave in the stage in which others came."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from xdsl.ir import Attribute, Block, Operation, Use

from pkc.dialect.program import KernelOp, TasksOp
from pkc.dialect.roles import AcquireOp, ChannelOp, CommitOp, ConsumeOp, ReleaseOp
from pkc.dialect.tile import CastOp, ClipOp, MmaOp, tile_type
from pkc.passes.analysis.chains import is_elementwise, takes
from pkc.passes.analysis.dependence import role_around
from pkc.passes.analysis.pointwise import is_spread
from pkc.passes.kernel_pass import KernelPass
from pkc.remarks import missed
from pkc.targets.target import target_of


class ShareStages(KernelPass):
    """Let a task's result leave in the stage of an operand that the task is done with.

    Both are passed once in a task, and have one kind. The operand is a left operand of MMAs, of which each warpgroup
    reads the rows that it writes of the result, or is combined with other tiles element by element (a residual): so no
    warpgroup waits for another one before it writes. What is computed from elements is used up when the result is
    written, as chains of operations read an operand at the end (`pk-fuse-chains`). The memory of the result's own
    stages serves others (attention: Q of the next task comes while O of this one leaves; a residual: one more stage of
    the operands of the MMAs). Operands that warpgroups read otherwise get a remark. `pk-release-shared` obeys.

    Before:

        %0 = pk.channel "Q" stages 1 : !pk.channel<!pk.tile<128x128xbf16>>
        %1 = pk.channel "O" stages 1 : !pk.channel<!pk.tile<128x128xbf16>>
        pk.role consumer warps 8 {
          pk.tasks ... {
            %q = pk.consume %0 : ...
            scf.for ... { ... pk.mma %q, %k, %zero ... }
            pk.release %0 : ...
            pk.acquire %1 : ...
            pk.commit %1, %o : ...
          }
        }

    After:

        %1 = pk.channel "O" stages 1 in %0 : !pk.channel<!pk.tile<128x128xbf16>>
        ...
    """

    name = "pk-share-stages"

    def run(self, kernel: KernelOp) -> None:
        numbers = {op: number for number, op in enumerate(kernel.walk())}
        channels = [op for op in kernel.body.block.ops if isinstance(op, ChannelOp)]
        passages = {channel: passage for channel in channels if (passage := _once(channel)) is not None}
        shared = {channel for channel in channels if channel.host is not None or channel.guest is not None}
        hosts: dict[tuple[Attribute, Block | None], list[ChannelOp]] = {}
        for channel, passage in passages.items():
            hosts.setdefault((channel.result.type, passage.consume.parent), []).append(channel)
        spread = {block for _, block in hosts if block is not None and is_spread(_task(block))}
        for guest, left in passages.items():
            others: list[ChannelOp] = []
            for host in hosts.get((guest.result.type, left.commit.parent), ()):
                came = passages[host]
                if guest is host or guest in shared or host in shared or numbers[came.consume] > numbers[left.commit]:
                    continue
                if left.commit.parent in spread or not _is_done_with(came, left, numbers):
                    others.append(host)
                    continue
                shared |= {guest, host}
                guest.operands = [host.result]
                guest.detach()
                kernel.body.block.insert_op_after(guest, host)
                break
            for label in dict.fromkeys(host.label.data for host in others):
                what = f"{guest.label.data} has stages of its own, not those of {label}"
                missed(ShareStages.name, guest, f"{what}, of which a warpgroup reads rows that others would overwrite")


@dataclass(frozen=True)
class _Passage:
    """The operations of a channel through which each task passes once."""

    acquire: AcquireOp
    commit: CommitOp
    consume: ConsumeOp
    release: ReleaseOp


def _once(channel: ChannelOp) -> _Passage | None:
    """How each task passes through a channel, if it does so once."""
    users = [use.operation for use in channel.result.uses]
    if len(users) != 4 or not all(_in_task(op.parent) for op in users):
        return None
    found = [next((op for op in users if isinstance(op, kind)), None) for kind in _ENDS]
    match found:
        case [AcquireOp() as acquire, CommitOp() as commit, ConsumeOp() as consume, ReleaseOp() as release]:
            return _Passage(acquire, commit, consume, release)
        case _:
            return None


_ENDS = (AcquireOp, CommitOp, ConsumeOp, ReleaseOp)


def _in_task(block: Block | None) -> bool:
    return block is not None and isinstance(block.parent_op(), TasksOp)


def _task(block: Block) -> TasksOp:
    task = block.parent_op()
    assert isinstance(task, TasksOp)
    return task


def _is_done_with(came: _Passage, left: _Passage, numbers: Mapping[Operation, int]) -> bool:
    """Whether each warpgroup has read all rows of a tile that it overwrites with a result, beside MMAs."""
    done = came.release.parent is left.acquire.parent and numbers[came.release] < numbers[left.acquire]
    return all(
        (done and _reads_own_rows(use.operation, use.index)) or _is_used_up(use, left.commit, numbers)
        for tile in came.consume.tiles
        for use in tile.uses
    )


def _is_used_up(use: Use, written: CommitOp, numbers: Mapping[Operation, int]) -> bool:
    """Whether a tile is used element by element alone, and what is computed so is used up when `written` is: each
    thread then overwrites what it has read."""
    todo, done = [use.operation], set[Operation]()
    while todo:
        op = todo.pop()
        if op.parent is not written.parent or numbers[op] > numbers[written]:
            return False
        if isinstance(op, CastOp | ClipOp) or is_elementwise(op):
            todo += [other.operation for result in op.results for other in result.uses if other.operation not in done]
        elif not takes(op) or op is use.operation:
            return False
        done.add(op)
    return True


def _reads_own_rows(op: Operation, index: int) -> bool:
    """Whether each warpgroup reads only its own rows of an operand: those that it has of all tiles of that shape."""
    if not isinstance(op, MmaOp) or op.operands[index] is not op.a or op.a is op.b:
        return False
    target, role = target_of(op), role_around(op)
    assert role is not None
    groups = (role.warps.value.data if role.warps is not None else 0) // target.arch.warpgroup
    return groups > 0 and tile_type(op.a).shape[0] % (groups * target.mma.rows) == 0
