"""The pass `pk-give-registers`: roles that move tiles leave registers to consumers that do not fit."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IntegerAttr, i64

from pkc.dialect.attributes import Role, number_on
from pkc.dialect.program import GROUP, REGISTERS, KernelOp, RoleOp
from pkc.passes.kernel_pass import KernelPass
from pkc.passes.roles.budgets import group_of, tiles, warps_of
from pkc.remarks import missed
from pkc.targets.target import Target, target_of


class GiveRegisters(KernelPass):
    """Give consumers whose tiles do not fit as many registers as they need, if those that move tiles can spare them.

    `pk-plan-warps` leaves movers what ptxas needs without spills. A loader that spills some addresses is a little
    slower; a consumer that has no room for its tiles would be refused (PK468). What is needed is known only now, when
    tiles are computed in pieces and chains are fused. Warpgroups have registers in eights, and movers keep what copies
    within a GPU take.

    Before, with tiles of 209 registers a thread and 20 for all else:

        pk.role loader warps 1 attributes {first_warp = 8, group = "compute", registers = 56} { ... }
        pk.role consumer warps 8 attributes {first_warp = 0, group = "compute", registers = 224} { ... }

    After:

        pk.role loader warps 1 attributes {first_warp = 8, group = "compute", registers = 40} { ... }
        pk.role consumer warps 8 attributes {first_warp = 0, group = "compute", registers = 232} { ... }
    """

    name = "pk-give-registers"

    def run(self, kernel: KernelOp) -> None:
        target = target_of(kernel)
        groups: dict[str, list[RoleOp]] = {}
        for role in kernel.roles:
            if GROUP in role.attributes:
                groups.setdefault(group_of(role), []).append(role)
        threads = max((_threads(roles, target) for roles in groups.values()), default=0)
        for roles in groups.values():
            _share(roles, threads, target)


def _share(roles: Sequence[RoleOp], threads: int, target: Target) -> None:
    """Registers of the roles of a CTA, whose warpgroups change theirs together."""
    computing = [role for role in roles if warps_of(role) % target.arch.warpgroup == 0]
    moving = [role for role in roles if role not in computing]
    short = [found for role in computing if role.role.data is Role.Consumer for found in tiles(role, target)]
    if not short or not moving or not target.arch.most_registers:
        return
    needed = max(-(-(found.each + target.registers.reserve) // 8) * 8 for found in short)
    many = sum(map(warps_of, computing)) * target.arch.warp
    few = (target.launched_registers(threads) - many * needed) // (threads - many) // 8 * 8
    if needed > target.arch.most_registers or few < target.registers.moving:
        return
    now = max(number_on(role, REGISTERS) or 0 for role in moving)
    reason = f"it has {few} registers instead of {now}, and would spill others: the consumer's tiles need {needed}"
    missed(GiveRegisters.name, moving[0], reason)
    for some, registers in ((computing, needed), (moving, few)):
        for role in some:
            role.attributes[REGISTERS] = IntegerAttr(registers, i64)


def _threads(roles: Sequence[RoleOp], target: Target) -> int:
    """Threads of the warpgroups that roles occupy."""
    warps = sum(map(warps_of, roles))
    return -(-warps // target.arch.warpgroup) * target.arch.warpgroup * target.arch.warp
