"""The pass `pk-split-stores`: stores by TMA of whole blocks, and by threads of a last one."""

from __future__ import annotations

from xdsl.dialects import arith, scf
from xdsl.ir import Block, Operation, Region

from pkc.dialect.access import StoreOp
from pkc.dialect.coordinates import IsWholeOp
from pkc.dialect.program import KernelOp
from pkc.dialect.transfers import INSIDE, REGISTER, TMA, TRANSFER, only_whole, transfer
from pkc.passes.analysis.multiples import cut_blocks
from pkc.passes.build import before
from pkc.passes.kernel_pass import KernelPass


class SplitStores(KernelPass):
    """Store by TMA the blocks that are whole, and by ordinary instructions those that end inside of their array.

    Before:

        pk.store %t, %Y[%p, %n : ...] {transfer = {by = "tma", whole, ...}} : ...

    After:

        %whole = pk.is_whole %p : !pk.block<P by 128>
        scf.if %whole {
          pk.store %t, %Y[%p, %n : ...] {transfer = {by = "tma", ...}} : ...
        } else {
          pk.store %t, %Y[%p, %n : ...] {transfer = {by = "register", ...}} : ...
        }
    """

    name = "pk-split-stores"
    ONLY_DERIVED = True

    def run(self, kernel: KernelOp) -> None:
        for op in list(kernel.walk()):
            if isinstance(op, StoreOp) and only_whole(op):
                _split(op)


def _split(op: StoreOp) -> None:
    wholes = [IsWholeOp(block.result) for block in cut_blocks(op)]
    made: list[Operation] = [*wholes]
    condition = wholes[0].result
    for other in wholes[1:]:
        both = arith.AndIOp(condition, other.result)
        made.append(both)
        condition = both.result
    ways = (TMA, "its block is whole"), (REGISTER, INSIDE)
    then, orelse = (_branch(op, by, why) for by, why in ways)
    before(op, [*made, scf.IfOp(condition, [], then, orelse)])
    op.detach()
    op.erase()


def _branch(op: StoreOp, by: str, why: str) -> Region:
    store, end = op.clone(), scf.YieldOp()
    store.attributes[TRANSFER] = transfer(by, why)
    store.location = end.location = op.location
    return Region(Block([store, end]))
