"""The pass `pk-plan-layouts`: whether tiles lie in their stages with a swizzle."""

from __future__ import annotations

from xdsl.dialects.builtin import UnitAttr

from pkc.dialect.program import FLAT, KernelOp
from pkc.dialect.tile import TransposeOp
from pkc.dialect.types import PGLType
from pkc.passes.analysis.pointwise import is_spread
from pkc.passes.kernel_pass import KernelPass


class PlanLayouts(KernelPass):
    """Let tiles lie flat in their stages, in boxes of TMA as wide as can be, where threads go through them row by row.

    An MMA reads panels of 128 bytes with a swizzle, and so does a transposition, to find columns in different banks of
    shared memory. Each panel is a box of TMA, and a box of 128 bytes of each row takes memory longer than one of 512.
    Kernels that reach other ranks stay as they are.

    Before:

        pk.kernel @softmax(%X: !pk.private<[M, 1024], bf16>, ...) { ... }

    After:

        pk.kernel @softmax(%X: !pk.private<[M, 1024], bf16>, ...) attributes {flat} { ... }
    """

    name = "pk-plan-layouts"

    def run(self, kernel: KernelOp) -> None:
        remote = any(isinstance(value.type, PGLType) for value in kernel.body.block.args)
        if remote or not is_spread(kernel) or any(isinstance(op, TransposeOp) for op in kernel.walk()):
            return
        kernel.attributes[FLAT] = UnitAttr()
