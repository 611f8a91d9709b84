"""The pass `pk-attach-target`: which target a kernel is compiled for."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import StringAttr

from pkc.dialect.program import TARGET, KernelOp
from pkc.passes.kernel_pass import KernelPass
from pkc.targets import DEFAULT
from pkc.targets.target import target_of


@dataclass(frozen=True)
class AttachTarget(KernelPass):
    """Write on each kernel the name of its target, by which later passes find all that they know of the GPU.

    A kernel that has a target keeps it. One without is for the default target, whichever passes it goes through.

    Before:

        pk.kernel @gemm(...) { ... }

    After:

        pk.kernel @gemm(...) attributes {target = "..."} { ... }
    """

    name = "pk-attach-target"

    target: str = DEFAULT

    def run(self, kernel: KernelOp) -> None:
        kernel.attributes.setdefault(TARGET, StringAttr(self.target))
        target_of(kernel)  # which must exist
