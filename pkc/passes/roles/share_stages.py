"""The pass `pk-share-stages`: tiles that leave in the stage in which others came."""

from __future__ import annotations

from xdsl.ir import Block, Operation

from pkc.dialect.program import KernelOp, TasksOp
from pkc.dialect.roles import AcquireOp, ChannelOp, CommitOp, ConsumeOp, ReleaseOp
from pkc.dialect.tile import MmaOp, tile_type
from pkc.passes.analysis.dependence import role_around
from pkc.passes.kernel_pass import KernelPass
from pkc.remarks import missed
from pkc.targets.target import target_of


class ShareStages(KernelPass):
    """Let a task's result leave in the stage of an operand that the task is done with.

    Both are passed once in a task, and have one kind. The operand is only a left operand of MMAs, of which each
    warpgroup reads the rows that it writes of the result: so no warpgroup waits for another one before it writes. The
    memory of the result's own stages serves others (attention: Q of the next task comes while O of this one leaves).
    Operands that warpgroups read otherwise get a remark. `pk-release-shared` obeys.

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
        channels = [op for op in kernel.body.block.ops if isinstance(op, ChannelOp)]
        for guest in channels:
            for host in channels:
                consumed = _before(host, guest)
                if consumed is None:
                    continue
                uses = [use for tile in consumed.tiles for use in tile.uses]
                if not all(_reads_own_rows(use.operation, use.index) for use in uses):
                    what = f"{guest.label.data} has stages of its own, not those of {host.label.data}"
                    missed(
                        ShareStages.name, guest, f"{what}, of which a warpgroup reads rows that others would overwrite"
                    )
                    continue
                guest.operands = [host.result]
                guest.detach()
                kernel.body.block.insert_op_after(guest, host)
                break


def _before(host: ChannelOp, guest: ChannelOp) -> ConsumeOp | None:
    """What consumes a channel of the same kind that each task is done with before it acquires a stage of `guest`."""
    if host is guest or host.result.type != guest.result.type:
        return None
    if any(channel.host is not None or channel.guest is not None for channel in (host, guest)):
        return None
    came, left = _once(host), _once(guest)
    if came is None or left is None:
        return None
    (_, consumed, release), (acquire, _, _) = came, left
    if consumed.parent is not acquire.parent or not release.is_before_in_block(acquire):
        return None
    return consumed


def _once(channel: ChannelOp) -> tuple[AcquireOp, ConsumeOp, ReleaseOp] | None:
    """The operations of a channel through which each task passes once."""
    users = [use.operation for use in channel.result.uses]
    if len(users) != 4 or not all(_in_task(op.parent) for op in users):
        return None
    acquire = next((op for op in users if isinstance(op, AcquireOp)), None)
    consume = next((op for op in users if isinstance(op, ConsumeOp)), None)
    release = next((op for op in users if isinstance(op, ReleaseOp)), None)
    if acquire is None or consume is None or release is None or not any(isinstance(op, CommitOp) for op in users):
        return None
    return acquire, consume, release


def _in_task(block: Block | None) -> bool:
    return block is not None and isinstance(block.parent_op(), TasksOp)


def _reads_own_rows(op: Operation, index: int) -> bool:
    """Whether each warpgroup reads only its own rows of an operand: those that it has of all tiles of that shape."""
    if not isinstance(op, MmaOp) or op.operands[index] is not op.a or op.a is op.b:
        return False
    target, role = target_of(op), role_around(op)
    assert role is not None
    groups = (role.warps.value.data if role.warps is not None else 0) // target.arch.warpgroup
    return groups > 0 and tile_type(op.a).shape[0] % (groups * target.mma.rows) == 0
