"""The pass `pk-plan-barriers`: which named barriers the warps of each role meet at."""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr, i64

from pkc.dialect.engines import is_engine
from pkc.dialect.program import KernelOp
from pkc.passes.kernel_pass import KernelPass
from pkc.passes.roles.budgets import barriers_of, group_of
from pkc.targets.target import target_of

FIRST_BARRIER = "first_barrier"
"""On a role: the number of the first of its named barriers."""


class PlanBarriers(KernelPass):
    """Number the named barriers of each role, those of one CTA one behind the other; number 0 is for all its threads.

    A role of several warps has one for all of them, then one for each of its warpgroups, then those by which warpgroups
    whose MMAs come in pieces get out of step. CTAs that compute and CTAs that communicate are numbered separately.

    Before:

        pk.role consumer warps 8 ... { ... }
        pk.role communicator warps 2 ... { ... }

    After:

        pk.role consumer warps 8 attributes {first_barrier = 1, ...} { ... }
        pk.role communicator warps 2 attributes {first_barrier = 4, ...} { ... }
    """

    name = "pk-plan-barriers"

    def run(self, kernel: KernelOp) -> None:
        size, taken = target_of(kernel).arch.warpgroup, dict[str, int]()
        for role in kernel.roles:
            if is_engine(role):
                continue
            group = group_of(role)
            first = taken.get(group, 1)
            role.attributes[FIRST_BARRIER] = IntegerAttr(first, i64)
            taken[group] = first + barriers_of(role, size)
