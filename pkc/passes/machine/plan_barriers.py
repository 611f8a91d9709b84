"""The pass `pk-plan-barriers`: which named barriers the warps of each role meet at."""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr, i64

from pkc.dialect.engines import is_engine
from pkc.dialect.program import KernelOp
from pkc.passes.kernel_pass import KernelPass
from pkc.passes.roles.budgets import barriers_of
from pkc.targets.target import target_of

FIRST_BARRIER = "first_barrier"
"""On a role: the number of the first of its named barriers."""


class PlanBarriers(KernelPass):
    """Number the named barriers of all roles, one behind the other; number 0 is for all threads of a CTA.

    A role of several warps has one for all of them, then one for each of its warpgroups. A number is for one set of
    warps, in CTAs that communicate, too.

    Before:

        pk.role consumer warps 8 ... { ... }
        pk.role communicator warps 2 ... { ... }

    After:

        pk.role consumer warps 8 attributes {first_barrier = 1, ...} { ... }
        pk.role communicator warps 2 attributes {first_barrier = 4, ...} { ... }
    """

    name = "pk-plan-barriers"

    def run(self, kernel: KernelOp) -> None:
        size, free = target_of(kernel).arch.warpgroup, 1
        for role in kernel.roles:
            if not is_engine(role):
                role.attributes[FIRST_BARRIER] = IntegerAttr(free, i64)
                free += barriers_of(role, size)
