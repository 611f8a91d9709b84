"""The pass `pk-release-shared`: stages that two channels have are released when the second one is done with them."""

from __future__ import annotations

from xdsl.ir import Operation

from pkc.dialect.program import KernelOp
from pkc.dialect.roles import ChannelOp, ReleaseDeferredOp, ReleaseOp
from pkc.passes.kernel_pass import KernelPass


class ReleaseShared(KernelPass):
    """Move the release of a stage behind that of what was written into it (`in`), to the role that consumes this.

    Before:

        %0 = pk.channel "Q" stages 2 : ...
        %1 = pk.channel "O" stages 2 in %0 : ...
        pk.role consumer { pk.tasks ... { %q = pk.consume %0 ... pk.release %0 pk.acquire %1 pk.commit %1, %o } }
        pk.role storer { pk.tasks ... { %o = pk.consume %1 pk.store %o, ... pk.release %1 } }

    After:

        pk.role consumer { pk.tasks ... { %q = pk.consume %0 ... pk.acquire %1 pk.commit %1, %o } }
        pk.role storer { pk.tasks ... { %o = pk.consume %1 pk.store %o, ... pk.release %1 pk.release %0 } }
    """

    name = "pk-release-shared"

    def run(self, kernel: KernelOp) -> None:
        for host in [op for op in kernel.body.block.ops if isinstance(op, ChannelOp)]:
            guest = host.guest
            if guest is None:
                continue
            for op in _releases(host):
                op.detach()
                op.erase()
            for op in _releases(guest):
                also = ReleaseOp(host.result, op.kept) if isinstance(op, ReleaseOp) else ReleaseDeferredOp(host.result)
                also.location = op.location
                assert op.parent is not None
                op.parent.insert_op_after(also, op)


def _releases(channel: ChannelOp) -> list[Operation]:
    users = (use.operation for use in channel.result.uses)
    return [op for op in users if isinstance(op, ReleaseOp | ReleaseDeferredOp)]
