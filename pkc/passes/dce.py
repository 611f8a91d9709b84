"""The pass `pk-dce`."""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.transforms.dead_code_elimination import region_dce


class Dce(ModulePass):
    """Drop operations that write nothing and whose results nobody uses: loads and whole loops among them.

    Before:

        %x = pk.load %A[%m : !pk.block<M by 128>] : !pk.private<[M], f32> -> !pk.tile<128xf32>
        %y = pk.exp %x : !pk.tile<128xf32>
        pk.store %z, %C[%m : !pk.block<M by 128>] : !pk.tile<128xf32>, !pk.private<[M], f32>

    After:

        pk.store %z, %C[%m : !pk.block<M by 128>] : !pk.tile<128xf32>, !pk.private<[M], f32>
    """

    name = "pk-dce"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        region_dce(op.body)
