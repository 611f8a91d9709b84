"""The pass `pk-canonicalize`, and the wrapper that keeps locations through a rewrite."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import UNKNOWN_LOC, LocationAttr, ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import (
    GreedyRewritePatternApplier,
    PatternRewriter,
    PatternRewriterListener,
    PatternRewriteWalker,
    RewritePattern,
)
from xdsl.transforms.canonicalize import CanonicalizationRewritePattern
from xdsl.transforms.dead_code_elimination import region_dce


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


@dataclass(frozen=True)
class Canonicalize(ModulePass):
    """Fold constants, apply every operation's canonicalization patterns, drop what is unused.

    Before:

        %zero = pk.full 0.0 : f32 : !pk.tile<128x256xf32>
        %p = pk.mma %a, %b, %zero : !pk.tile<128x64xbf16>, !pk.tile<64x256xbf16> -> !pk.tile<128x256xf32>
        %s = pk.add %acc, %p : !pk.tile<128x256xf32>

    After, with the location of the sum:

        %s = pk.mma %a, %b, %acc : !pk.tile<128x64xbf16>, !pk.tile<64x256xbf16> -> !pk.tile<128x256xf32>
    """

    name = "pk-canonicalize"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        patterns = GreedyRewritePatternApplier([CanonicalizationRewritePattern()], ctx=ctx, folding_enabled=True)
        located_walker(patterns, clean=True).rewrite_module(op)
