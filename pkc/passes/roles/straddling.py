"""Blocks that straddle the ranks' shards of a dimension: which do, and what they overlap."""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.builtin import BoolAttr, UnitAttr
from xdsl.ir import Operation, SSAValue

from pkc.dialect.access import AccumulateOp, LoadOp, StoreOp
from pkc.dialect.arrays import is_pgl
from pkc.dialect.coordinates import BlockCountOp, BlockIndexOp, BlockOp
from pkc.dialect.program import KernelOp
from pkc.dialect.tile import block_type
from pkc.dialect.types import BlockType, Layout
from pkc.passes.analysis.covering import block_of
from pkc.passes.build import constant
from pkc.passes.roles.remote_accesses import divided_along, shard_of


def may_straddle(kernel: KernelOp) -> bool:
    """Whether the schedule lets blocks straddle shards."""
    return kernel.schedule.get("straddle") == BoolAttr.from_bool(True)


def straddles(index: SSAValue) -> bool:
    """Whether an index of a sharded dimension is a block that may straddle shards."""
    block = index.owner
    return isinstance(block, BlockOp) and block.sharded is None and block.shard is None


def on_several_ranks(op: Operation) -> bool:
    """Whether the rows of an access may belong to several ranks."""
    if not isinstance(op, LoadOp | StoreOp) or not is_pgl(op.array, Layout.Shard):
        return False
    return straddles(op.indices[shard_of(op.array)])


def has_several_owners(op: AccumulateOp) -> bool:
    """Whether the tiles of a sum that is divided among owners may have several."""
    split = divided_along(op)
    return split is not None and straddles(block_of(op.indices[split]))


def follow_shards(root: Operation, dim: object) -> None:
    """Let all lists of blocks of a dimension follow the boundaries of its shards."""
    for op in root.walk():
        if not isinstance(op, BlockCountOp | BlockOp):
            continue
        kind = op.block if isinstance(op, BlockCountOp) else block_type(op.result)
        if kind.of == dim and op.start is None and op.stop is None:
            op.sharded = UnitAttr()


def overlapping(
    block: SSAValue, kind: BlockType, *, sharded: bool = False
) -> tuple[list[Operation], SSAValue, SSAValue]:
    """Operations that find which blocks of a list overlap a block: the first one's index, and the one after the
    last's."""
    first, last = (BlockIndexOp(block, kind, sharded=sharded, last=end) for end in (False, True))
    one = constant(1)
    stop = arith.AddiOp(last.result, one.result)
    return [first, last, one, stop], first.result, stop.result
