"""The pass `pk-dce`."""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, Region
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriterListener

from pkc.passes.analysis.effects import Kinds, is_needless


class Dce(ModulePass):
    """Drop operations that write nothing and whose results nobody uses: loads and whole loops among them.

    Before:

        %x = pk.load %A[%m : !pk.block<M by 128>] : !pk.private<[M], f32> -> !pk.tile<128xf32>
        %y = pk.exp %x : !pk.tile<128xf32>
        pk.store %z, %C[%m : !pk.block<M by 128>] : !pk.tile<128xf32>, !pk.private<[M], f32>

    After:

        pk.store %z, %C[%m : !pk.block<M by 128>] : !pk.tile<128xf32>, !pk.private<[M], f32>

    One walk from the end, which meets what uses a value before what defines it.
    """

    name = "pk-dce"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        drop_dead(op.body)


def drop_dead(region: Region, listener: PatternRewriterListener | None = None) -> bool:
    """Drop what is dead in a region, and in those inside of it. Returns whether anything was."""
    return _drop(region, listener, {})


def _drop(region: Region, listener: PatternRewriterListener | None, known: dict[Operation, Kinds | None]) -> bool:
    changed = False
    for block in reversed(region.blocks):
        for op in reversed(block.ops):
            if all(result.first_use is None for result in op.results) and is_needless(op, known):
                if listener is not None:
                    listener.handle_operation_removal(op)
                block.erase_op(op, safe_erase=False)
                changed = True
                continue
            for inner in op.regions:
                changed |= _drop(inner, listener, known)
    return changed
