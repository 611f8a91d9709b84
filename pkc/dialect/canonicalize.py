"""Canonicalization patterns of the pk dialect; each keeps the meaning of a program to the bit."""

from __future__ import annotations

from xdsl.ir import SSAValue
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern

from pkc.dialect.access import GatherOp, LoadOp
from pkc.dialect.elementwise import AddOp
from pkc.dialect.tile import CastOp, ClipOp, FullOp, MmaOp, TransposeOp
from pkc.dialect.types import BlockType


class DropIdentityCast(RewritePattern):
    """A cast to the type that the tile has already is the tile."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: CastOp, rewriter: PatternRewriter) -> None:
        if op.tile.type == op.result.type:
            rewriter.replace(op, (), (op.tile,))


class DropClipOfLoad(RewritePattern):
    """A load is zero past the end of each of its blocks: clipping it to one of them with zero changes nothing.

    So is a gather along all axes but that of its rows, and a transposed tile along the other axis.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ClipOp, rewriter: PatternRewriter) -> None:
        if op.constant == 0 and _ends_with(op.tile, op.axis.value.data, op.block):
            rewriter.replace(op, (), (op.tile,))


def _ends_with(tile: SSAValue, axis: int, block: SSAValue) -> bool:
    """Whether a tile is surely zero past the end of a block along an axis."""
    owner = tile.owner
    if isinstance(owner, TransposeOp):
        return _ends_with(owner.tile, 1 - axis, block)
    if not isinstance(owner, LoadOp | GatherOp):
        return False
    blocks: list[SSAValue | None] = [index for index in owner.indices if isinstance(index.type, BlockType)]
    if isinstance(owner, GatherOp):
        blocks.insert(0, None)
    return blocks[axis] is block


class AccumulateInMma(RewritePattern):
    """x + mma(a, b, 0) is mma(a, b, x), in either order of the sum: the product's order is not defined anyway.

    Only inside one block: a product that stands before a loop is not to be repeated in it.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: AddOp, rewriter: PatternRewriter) -> None:
        for product, addend in ((op.rhs, op.lhs), (op.lhs, op.rhs)):
            mma = product.owner
            if not isinstance(mma, MmaOp) or mma.parent is not op.parent or not product.has_one_use():
                continue
            start = mma.acc.owner
            if isinstance(start, FullOp) and start.constant == 0:
                rewriter.replace(op, MmaOp(mma.a, mma.b, addend))
                return
