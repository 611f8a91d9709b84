"""The pass `pk-cse`."""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.transforms.common_subexpression_elimination import cse


class Cse(ModulePass):
    """Merge equal operations; loads of one block only when nothing is written or awaited between them.

    Before:

        %m1 = pk.block[%i] : !pk.block<M by 128>
        %x = pk.load %A[%m1 : !pk.block<M by 128>] : !pk.private<[M], f32> -> !pk.tile<128xf32>
        %m2 = pk.block[%i] : !pk.block<M by 128>
        %y = pk.load %A[%m2 : !pk.block<M by 128>] : !pk.private<[M], f32> -> !pk.tile<128xf32>
        %s = pk.add %x, %y : !pk.tile<128xf32>

    After:

        %m1 = pk.block[%i] : !pk.block<M by 128>
        %x = pk.load %A[%m1 : !pk.block<M by 128>] : !pk.private<[M], f32> -> !pk.tile<128xf32>
        %s = pk.add %x, %x : !pk.tile<128xf32>
    """

    name = "pk-cse"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        cse(op)
