"""The pass `pk-canonicalize`, and the wrapper that keeps locations through a rewrite."""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import UNKNOWN_LOC, LocationAttr, ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import (
    GreedyRewritePatternApplier,
    PatternRewriter,
    PatternRewriterListener,
    PatternRewriteWalker,
    RewritePattern,
    op_type_rewrite_pattern,
)
from xdsl.transforms.canonicalize import CanonicalizationRewritePattern
from xdsl.transforms.dead_code_elimination import region_dce

from pkc.dialect.access import GatherOp, LoadOp
from pkc.dialect.elementwise import AddOp
from pkc.dialect.tile import CastOp, ClipOp, FullOp, MmaOp, TransposeOp
from pkc.dialect.types import BlockType


class Located(RewritePattern):
    """Runs another pattern; the operations that it makes get the location of the matched one."""

    def __init__(self, inner: RewritePattern) -> None:
        self.inner = inner
        self.location: LocationAttr = UNKNOWN_LOC

    def stamp(self, op: Operation) -> None:
        for made in op.walk():
            if made.location is UNKNOWN_LOC:
                made.location = self.location

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
        self.location = op.location
        self.inner.match_and_rewrite(op, rewriter)


def located_walker(pattern: RewritePattern, *, clean: bool = False) -> PatternRewriteWalker:
    """A walker that keeps locations; `clean` removes dead code after each walk. Passes use no other walker."""
    located = Located(pattern)
    listener = PatternRewriterListener(operation_insertion_handler=[located.stamp])
    return PatternRewriteWalker(located, listener=listener, post_walk_func=region_dce if clean else None)


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
    """x + mma(a, b, 0) is mma(a, b, x), in either order of the sum: the order of an MMA's additions is not defined.

    Only inside one block: a matmul in front of a loop is not to be repeated in it.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: AddOp, rewriter: PatternRewriter) -> None:
        for matmul, addend in ((op.rhs, op.lhs), (op.lhs, op.rhs)):
            mma = matmul.owner
            if not isinstance(mma, MmaOp) or mma.parent is not op.parent or not matmul.has_one_use():
                continue
            start = mma.acc.owner
            if isinstance(start, FullOp) and start.constant == 0:
                rewriter.replace(op, MmaOp(mma.a, mma.b, addend))
                return


PATTERNS: tuple[RewritePattern, ...] = (DropIdentityCast(), DropClipOfLoad(), AccumulateInMma())
"""Those of the dialect; each keeps the meaning of a program to the bit."""


class Canonicalize(ModulePass):
    """Fold constants, apply the canonicalization patterns of every dialect, drop what is unused.

    Before:

        %zero = pk.full 0.0 : f32 : !pk.tile<128x256xf32>
        %p = pk.mma %a, %b, %zero : !pk.tile<128x64xbf16>, !pk.tile<64x256xbf16> -> !pk.tile<128x256xf32>
        %s = pk.add %acc, %p : !pk.tile<128x256xf32>

    After, with the location of the sum:

        %s = pk.mma %a, %b, %acc : !pk.tile<128x64xbf16>, !pk.tile<64x256xbf16> -> !pk.tile<128x256xf32>
    """

    name = "pk-canonicalize"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        patterns = GreedyRewritePatternApplier(
            [*PATTERNS, CanonicalizationRewritePattern()], ctx=ctx, folding_enabled=True
        )
        located_walker(patterns, clean=True).rewrite_module(op)
