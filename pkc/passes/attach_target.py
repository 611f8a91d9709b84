"""The pass `pk-attach-target`: which target a kernel is compiled for."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import StringAttr

from pkc.diagnostics import PkcError
from pkc.dialect.program import TARGET, KernelOp
from pkc.location import span_of
from pkc.passes.analysis.budget_errors import NoSuchWarp
from pkc.passes.kernel_pass import KernelPass
from pkc.passes.roles.budgets import warps_of
from pkc.targets import DEFAULT
from pkc.targets.target import target_of


@dataclass(frozen=True)
class AttachTarget(KernelPass):
    """Write on each kernel the name of its target, by which later passes find all that they know of the GPU.

    A kernel that has a target keeps it. One without is for the default target, whichever passes it goes through. Roles
    for which their author asks for more warps than a CTA of the target has are refused.

    Before:

        pk.kernel @gemm(...) { ... }

    After:

        pk.kernel @gemm(...) attributes {target = "..."} { ... }
    """

    name = "pk-attach-target"

    target: str = DEFAULT

    def run(self, kernel: KernelOp) -> None:
        kernel.attributes.setdefault(TARGET, StringAttr(self.target))
        arch = target_of(kernel).arch  # the target must exist
        most = arch.threads // arch.warp
        for role in kernel.roles:
            if warps_of(role) > most:
                problem = f"a CTA has {most} warps"
                raise PkcError(NoSuchWarp(span_of(role.location), str(role.role.data), most, problem))
