"""The pass `pk-plan-boxes`: rows that tables name of which some in a row lie behind each other."""

from __future__ import annotations

from xdsl.dialects.builtin import DenseArrayBase, i64

from pkc.dialect.by_table import GatherOp
from pkc.dialect.program import KernelOp
from pkc.dialect.transfers import BOXES, TMA
from pkc.passes.analysis.boxed_rows import boxes_of
from pkc.passes.kernel_pass import KernelPass
from pkc.targets.target import target_of


class PlanBoxes(KernelPass):
    """Write on each gather how many of its rows lie behind each other in the array, and along which dimension.

    A cache in pages has its rows wherever a table says, but those of a page lie together: one entry of the table names
    all of them, and a box of TMA brings them. So do `table[b, t // 16]` and `t % 16` of a block of positions t that
    begins at a multiple of 16, and `slot[t // 16] * 16 + t % 16`. How they move is planned later (`pk-plan-transfers`).

    Before:

        %at = pk.positions %t : !pk.block<T by 64> -> !pk.tile<64xi32>
        %number = pk.floordiv %at, %sixteen : !pk.tile<64xi32>
        %page = pk.gather %table rows %number dim 1 axes [0][%b : index] : ...
        %in = pk.mod %at, %sixteen : !pk.tile<64xi32>
        %k = pk.gather %K rows %page dim 0 axes [0, 0, 1][%in, %d : ...] : !pk.private<[P, 16, D], bf16>, ...

    After:

        %k = pk.gather %K rows %page dim 0 axes [0, 0, 1][%in, %d : ...] {boxes = array<i64: 16, 1>} : ...
    """

    name = "pk-plan-boxes"

    def run(self, kernel: KernelOp) -> None:
        if TMA not in target_of(kernel).transfers:
            return
        for op in kernel.walk():
            if isinstance(op, GatherOp) and (found := boxes_of(op)) is not None:
                op.attributes[BOXES] = DenseArrayBase.from_list(i64, [found.rows, found.dim])
