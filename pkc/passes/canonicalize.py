"""The pass `pk-canonicalize`, and the wrapper that keeps locations through a rewrite."""

from __future__ import annotations

from collections.abc import Iterator

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

from pkc.dialect.access import LoadOp
from pkc.dialect.elementwise import AddOp, NegOp, SubOp
from pkc.dialect.tile import BroadcastOp, CastOp, ClipOp, FullOp, MmaOp, TransposeOp, tile_type
from pkc.passes.analysis.dependence import sources
from pkc.passes.analysis.past_end import is_zero_past_end
from pkc.passes.dce import drop_dead
from pkc.passes.turned import is_matrix, turned, turns


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
    return PatternRewriteWalker(located, listener=listener, post_walk_func=drop_dead if clean else None)


class DropIdentityCast(RewritePattern):
    """A cast to the type that the tile has already is the tile."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: CastOp, rewriter: PatternRewriter) -> None:
        if op.tile.type == op.result.type:
            rewriter.replace(op, (), (op.tile,))


class DropClipOfLoad(RewritePattern):
    """A load is zero past the end of each of its blocks: clipping it to one of them with zero changes nothing.

    So it is past the end of one of which it is shifted, of a list with the same index. So is a gather along all axes
    but that of its rows, and a transposed tile along the other axis.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ClipOp, rewriter: PatternRewriter) -> None:
        if op.constant == 0 and is_zero_past_end(op.tile, op.axis.value.data, op.block):
            rewriter.replace(op, (), (op.tile,))


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


class SubtractInMma(RewritePattern):
    """mma(a, b, 0) - x is mma(a, b, -x) where x is a row or a column, of which few elements are negated.

    Only where nothing but what makes x stands between them: the MMA is not to begin later.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: SubOp, rewriter: PatternRewriter) -> None:
        mma, spread = op.lhs.owner, op.rhs.owner
        if not isinstance(mma, MmaOp) or mma.parent is not op.parent or not op.lhs.has_one_use():
            return
        start = mma.acc.owner
        if not isinstance(start, FullOp) or start.constant != 0 or not isinstance(spread, BroadcastOp):
            return
        needed = {value.owner for value in sources([op.rhs])}
        if needed.issuperset(_between(mma, op)):
            negated = NegOp(spread.tile)
            again = BroadcastOp(negated, spread.positions, tile_type(op.rhs))
            rewriter.replace(op, (negated, again, MmaOp(mma.a, mma.b, again)))


def _between(first: Operation, last: Operation) -> Iterator[Operation]:
    """The operations between two of a block."""
    op = first.next_op
    while op is not None and op is not last:
        yield op
        op = op.next_op


class TransposeOperands(RewritePattern):
    """The transpose of what is computed element by element is computed from transposed operands, down to loads, whose
    stages can be read either way. Operands of MMAs stay: they are staged as they are computed."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: TransposeOp, rewriter: PatternRewriter) -> None:
        made = op.tile.owner
        if isinstance(made, LoadOp) or not turns(op.tile) or _is_multiplied(op.result):
            return
        assert isinstance(made, Operation)
        if isinstance(made, TransposeOp):
            rewriter.replace(op, (), (made.tile,))
            return
        views = [TransposeOp(one) if is_matrix(one) else None for one in made.operands]
        operands = [one if view is None else view.result for one, view in zip(made.operands, views, strict=True)]
        rewriter.replace(op, [*(view for view in views if view is not None), turned(made, operands)])


def _is_multiplied(tile: SSAValue) -> bool:
    """Whether a tile is an operand of an MMA, perhaps clipped."""
    users = [use.operation for use in tile.uses]
    return any(isinstance(op, MmaOp) or (isinstance(op, ClipOp) and _is_multiplied(op.result)) for op in users)


PATTERNS: tuple[RewritePattern, ...] = (
    TransposeOperands(),
    DropIdentityCast(),
    DropClipOfLoad(),
    AccumulateInMma(),
    SubtractInMma(),
)
"""Those of the dialect. Each keeps the meaning of a program, most of them to the bit, none with less accuracy."""


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
