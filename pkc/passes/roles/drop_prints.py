"""The pass `pk-drop-prints`."""

from __future__ import annotations

from pkc.dialect.prints import PrintOp
from pkc.dialect.program import KernelOp
from pkc.passes.kernel_pass import KernelPass
from pkc.remarks import missed


class DropPrints(KernelPass):
    """Drop what is printed: the simulator prints at the tile level, where values are those of the program.

    Before:

        pk.print "x" %x axes [0] to %m : !pk.block<M by 128> : !pk.tile<128xf32>
        pk.store %x, %C[%m : !pk.block<M by 128>] : !pk.tile<128xf32>, !pk.private<[M], f32>

    After:

        pk.store %x, %C[%m : !pk.block<M by 128>] : !pk.tile<128xf32>, !pk.private<[M], f32>
    """

    name = "pk-drop-prints"

    def run(self, kernel: KernelOp) -> None:
        for op in [op for op in kernel.walk() if isinstance(op, PrintOp)]:
            missed(self.name, op, f"`print({op.text.data})` is dropped: values are printed at the tile level")
            op.detach()
            op.erase()
