"""The pass `pk-plan-layouts`: whether tiles lie in their stages with a swizzle."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import UnitAttr

from pkc.dialect.access import LoadOp, StoreOp
from pkc.dialect.arrays import array_type
from pkc.dialect.program import AROUND, FLAT, KernelOp
from pkc.dialect.tile import TransposeOp, tile_type
from pkc.dialect.types import PGLType
from pkc.passes.analysis.pointwise import is_spread
from pkc.passes.kernel_pass import KernelPass
from pkc.passes.roles.around import rows_begin_anywhere
from pkc.targets.target import Target, target_of


class PlanLayouts(KernelPass):
    """Let tiles lie flat in their stages, in boxes of TMA as wide as can be, where threads go through them row by row.

    An MMA reads panels of 128 bytes with a swizzle, and so does a transposition, to find columns in different banks of
    shared memory. Each panel is a box of TMA, and a box of 128 bytes of each row takes memory longer than one of 512.
    Kernels that reach other ranks stay as they are, and those of rows so long that one box has all of their panels.

    Where rows begin at no multiple of what TMA moves, tiles lie in one piece for each row, with room for what lies
    around it (`around`): so each is one copy (`pk-plan-transfers`).

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
        target = target_of(kernel)
        accesses = [op for op in kernel.walk() if isinstance(op, LoadOp | StoreOp)]
        if any(map(rows_begin_anywhere, accesses)):
            kernel.attributes[AROUND] = UnitAttr()
            return
        if _boxes(accesses, target.flat) < _boxes(accesses, target):
            kernel.attributes[FLAT] = UnitAttr()


def _boxes(accesses: Sequence[LoadOp | StoreOp], target: Target) -> int:
    """So many boxes of TMA that tiles of accesses take: one for each panel, or for all of many."""
    found = 0
    for op in accesses:
        layout = target.shared_layout(tile_type(op.result if isinstance(op, LoadOp) else op.tile))
        many = target.tuning.row_panels if layout.rows == 1 else target.tuning.panels
        whole = layout.panels >= many and isinstance(array_type(op.array).dimensions[-1], int)
        found += 1 if whole else layout.panels
    return found
