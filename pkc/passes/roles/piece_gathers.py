"""The pass `pk-piece-gathers`: rows that come beside tasks come in pieces, of which several are in flight."""

from __future__ import annotations

from math import prod

from xdsl.ir import SSAValue

from pkc.dialect.access import LoadOp, StoreOp
from pkc.dialect.attributes import Role
from pkc.dialect.by_table import GatherOp
from pkc.dialect.coordinates import BlockOp, BlockPositionOp
from pkc.dialect.program import KernelOp
from pkc.dialect.tile import block_type, tile_type
from pkc.dialect.types import BlockType, dtype_bytes
from pkc.passes.build import before, constant
from pkc.passes.kernel_pass import KernelPass
from pkc.passes.roles.plan_warps import comm_sms
from pkc.remarks import missed
from pkc.targets.target import Target, target_of


class PieceGathers(KernelPass):
    """Let a communicator beside tasks fetch a tile of gathered rows in pieces of some rows, as small as the target says
    (2 KB).

    It has room for one tile. While its rows are on their way nothing else is, and while it is stored nothing comes. Of
    pieces in the same room one is stored while others come: a dispatch of 32768 tokens on four GPUs takes 3.19 ms, and
    3.67 without. With SMs of its own a communicator has room for many tiles.

    Before:

        %rows = pk.load %table[%e, %p : ...] : ... -> !pk.tile<128xi32>
        scf.for %i = ... {
          %0 = pk.gather %X rows %rows[%k : ...] : ... -> !pk.tile<128x64xbf16>
          pk.store %0, %X_fetched[%e, %p, %k : ...] : ...
        }

    After, for each of eight pieces:

        %first = pk.block_position %p : !pk.block<P by 128>
        %part = pk.block[%piece] from %first to %n : !pk.block<P by 16>
        %rows = pk.load %table[%e, %part : ...] : ... -> !pk.tile<16xi32>
        scf.for %i = ... {
          %0 = pk.gather %X rows %rows[%k : ...] : ... -> !pk.tile<16x64xbf16>
          pk.store %0, %X_fetched[%e, %part, %k : ...] : ...
        }
    """

    name = "pk-piece-gathers"
    ONLY_DERIVED = True

    def run(self, kernel: KernelOp) -> None:
        if comm_sms(kernel):
            return
        for role in kernel.roles:
            for op in list(role.walk()) if role.role.data is Role.Communicator else ():
                if isinstance(op, GatherOp):
                    _piece(op, target_of(kernel))


def _piece(gather: GatherOp, target: Target) -> None:
    kind = tile_type(gather.result)
    pieces, size = 1, prod(kind.shape) * dtype_bytes(kind.element_type)
    while size > pieces * target.tuning.copied_piece and kind.shape[0] % (2 * pieces) == 0:
        pieces *= 2
    if pieces == 1:
        return
    reason = _obstacle(gather)
    if reason:
        missed(PieceGathers.name, gather, f"a tile of its rows comes as a whole: {reason}")
        return
    load, (use,) = gather.rows.owner, gather.result.uses
    assert isinstance(load, LoadOp) and isinstance(use.operation, StoreOp)
    _into(gather, load, use.operation, pieces)


def _obstacle(gather: GatherOp) -> str:
    """Why the rows of a gather do not come in pieces; empty if they can."""
    users = [use.operation for use in gather.result.uses]
    if len(users) != 1 or not isinstance(users[0], StoreOp):
        return "they are more than stored"
    load = gather.rows.owner
    if not isinstance(load, LoadOp) or len(tile_type(load.result).shape) != 1:
        return "what names them is no row of a table"
    block = load.indices[-1].owner
    if not isinstance(block, BlockOp) or block.in_shard:
        return "what names them does not lie behind each other"
    if block.result not in users[0].indices:
        return "they are stored somewhere else"
    return ""


def _into(gather: GatherOp, load: LoadOp, store: StoreOp, pieces: int) -> None:
    """Gather and store so many pieces instead."""
    whole = load.indices[-1].owner
    assert isinstance(whole, BlockOp)
    kind = BlockType(block_type(whole.result).of, block_type(whole.result).extent // pieces)
    first = BlockPositionOp(whole)
    before(load, [first])
    for piece in range(pieces):
        number = constant(piece)
        part = BlockOp(number, kind, start=first.result, stop=whole.stop)
        inside: dict[SSAValue, SSAValue] = {whole.result: part.result}
        rows = LoadOp(load.array, [inside.get(index, index) for index in load.indices])
        before(load, [number, part, rows])
        some = GatherOp(gather.array, rows.result, gather.indices)
        before(gather, [some])
        before(store, [StoreOp(some.result, store.array, [inside.get(index, index) for index in store.indices])])
    for op in (store, gather, load):
        if not any(result.uses for result in op.results):
            op.detach()
            op.erase()
