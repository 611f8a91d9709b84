"""The pass `pk-clip-operands`: operands of MMAs that may end inside of their arrays are cleared past their ends."""

from __future__ import annotations

from xdsl.ir import SSAValue, Use

from pkc.dialect.access import LoadOp
from pkc.dialect.by_table import GatherOp
from pkc.dialect.coordinates import BlockOp
from pkc.dialect.program import KernelOp
from pkc.dialect.tile import ClipOp, MmaOp, TransposeOp, tile_type
from pkc.dialect.transfers import TMA, boxes
from pkc.dialect.types import BlockType, bf16, f16
from pkc.passes.analysis.boxed_rows import boxes_of
from pkc.passes.analysis.multiples import ends_with_whole_block
from pkc.passes.kernel_pass import KernelPass
from pkc.targets.target import Operands, target_of


class ClipOperands(KernelPass):
    """Clip operands of MMAs that are summed over along their rows, if these may end inside of their array.

    TMA reads on past the end of such a block, to what the array has there, and times zero that need not be zero: it may
    be infinite. So threads had to load the last block. Now whoever multiplies clears its rows past the end where they
    lie in shared memory, and nothing reads what TMA has loaded there (`pk-plan-padding`). The same goes for rows that
    tables name and boxes bring (`pk-plan-boxes`), up to the end of a box.

    Before:

        %kv = pk.block[%i] from %first to %end : !pk.block<T by 128>
        %v = pk.load %V[%h, %kv, %d : ...] : ... -> !pk.tile<128x64xbf16>
        %o = pk.mma %p, %v, %acc : ...

    After:

        %v = pk.load %V[%h, %kv, %d : ...] : ... -> !pk.tile<128x64xbf16>
        %0 = pk.clip %v axis 0 to %kv fill 0.0 : bf16 : ...
        %o = pk.mma %p, %0, %acc : ...
    """

    name = "pk-clip-operands"

    def run(self, kernel: KernelOp) -> None:
        target = target_of(kernel)
        if TMA not in target.transfers or target.mma.operands is Operands.REGISTERS:
            return
        for op in list(kernel.walk()):
            if isinstance(op, LoadOp):
                _clip(op, next((index for index in op.indices if isinstance(index.type, BlockType)), None))
            if isinstance(op, GatherOp) and boxes(op) is not None and (found := boxes_of(op)) is not None:
                _clip(op, found.block)


def _clip(op: LoadOp | GatherOp, rows: SSAValue | None) -> None:
    block = None if rows is None else rows.owner
    if not isinstance(block, BlockOp) or ends_with_whole_block(block):
        return
    kind, uses = tile_type(op.result), list(op.result.uses)
    if kind.rank != 2 or kind.element_type not in (bf16, f16) or not all(map(_sums_rows, uses)):
        return
    clip = ClipOp(op.result, block.result, 0, 0.0)
    clip.location = op.location
    assert op.parent is not None
    op.parent.insert_op_after(clip, op)
    for use in uses:
        use.operation.operands[use.index] = clip.result


def _sums_rows(use: Use) -> bool:
    """Whether a tile is used as an operand of MMAs that sum over its rows."""
    op = use.operation
    if isinstance(op, TransposeOp):
        return all(isinstance(other.operation, MmaOp) and other.index == 0 for other in op.result.uses)
    return isinstance(op, MmaOp) and use.index == 1
