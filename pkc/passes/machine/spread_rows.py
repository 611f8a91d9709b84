"""The pass `pk-spread-rows`: each CTA of a cluster works on its part of long rows."""

from __future__ import annotations

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.ir import Attribute, Block, Operation, Region
from xdsl.rewriter import Rewriter

from pkc.dialect.access import StoreOp
from pkc.dialect.attributes import planned
from pkc.dialect.coordinates import BlockOp, PartOp
from pkc.dialect.program import SPREAD, KernelOp
from pkc.dialect.reductions import ACROSS, RowReduction
from pkc.dialect.roles import ChannelType
from pkc.dialect.tile import tile_type
from pkc.dialect.types import BlockType, TileType
from pkc.passes.analysis.clusters import channel_in_cta, cluster_of, in_cta
from pkc.passes.build import before, constant
from pkc.passes.kernel_pass import KernelPass


class SpreadRows(KernelPass):
    """Obey `pk-plan-clusters`: what was said of a cluster is said of each of its CTAs from here on.

    A block of a whole row becomes the CTA's part of it, by the number that the CTA has in its cluster. Reductions go
    `across` the CTAs, each of which gets the result. What is no part of a row is computed by all of them alike, and
    stored by the first.

    Before, with `cluster = 4` and `spread = 65536` on the kernel:

        %d = pk.block[%zero] : !pk.block<65536 by 65536>
        %x = pk.load %X[%m, %d : ...] : ... -> !pk.tile<65536xf32>
        %s = pk.row_sum %x : !pk.tile<65536xf32> -> !pk.tile<f32>
        pk.store %s, %S[%m : index] : ...

    After:

        %p = pk.part
        %d = pk.block[%p] : !pk.block<65536 by 16384>
        %x = pk.load %X[%m, %d : ...] : ... -> !pk.tile<16384xf32>
        %s = pk.row_sum %x {across = 4 : i64} : !pk.tile<16384xf32> -> !pk.tile<f32>
        %first = arith.cmpi eq, %p, %zero : index
        scf.if %first {
          pk.store %s, %S[%m : index] : ...
        }
    """

    name = "pk-spread-rows"

    def run(self, kernel: KernelOp) -> None:
        count = cluster_of(kernel)
        if count > 1:
            for op in list(kernel.body.block.ops):
                _spread(op, count, planned(kernel, SPREAD))


def _spread(outer: Operation, count: int, length: int) -> None:
    part, ops = PartOp(), list(outer.walk())
    stores = [op for op in ops if isinstance(op, StoreOp) and length not in tile_type(op.tile).shape]
    blocks = [op for op in ops if isinstance(op, BlockOp) and op.result.type.extent == length]
    for op in ops:
        if isinstance(op, RowReduction) and tile_type(op.tile).shape[-1] == length:
            op.attributes[ACROSS] = IntegerAttr(count, i64)
    for op in ops:
        inner = (argument for region in op.regions for block in region.blocks for argument in block.args)
        for value in (*op.results, *inner):
            Rewriter.replace_value_with_new_type(value, _part_of(op, value.type, count, length))
    if not stores and not blocks:
        return
    part.location, body = outer.location, outer.regions[0].block
    assert body.first_op is not None
    body.insert_op_before(part, body.first_op)
    for block in blocks:
        block.operands[0] = part.result
    for store in stores:
        _by_the_first(store, part)


def _part_of(op: Operation, kind: Attribute, count: int, length: int) -> Attribute:
    if isinstance(kind, TileType):
        return in_cta(op)(kind)
    if isinstance(kind, ChannelType):
        return channel_in_cta(op, kind)
    return BlockType(length, length // count) if kind == BlockType(length, length) else kind


def _by_the_first(store: StoreOp, part: PartOp) -> None:
    zero = constant(0)
    first = arith.CmpiOp(part.result, zero.result, "eq")
    branch = scf.IfOp(first.result, [], Region(Block()))
    before(store, [zero, first, branch])
    store.detach()
    end = scf.YieldOp()
    end.location = store.location
    branch.true_region.block.add_ops((store, end))
