"""The pass `pk-split-copies`: a communicator that copies tiles fetches some while it passes others on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Operation

from pkc.dialect.access import LoadOp, StoreOp
from pkc.dialect.attributes import Role, RoleAttr
from pkc.dialect.by_table import GatherOp
from pkc.dialect.counters import WaitOp
from pkc.dialect.program import PER_CTA, WRITTEN, KernelOp, RoleOp, TasksOp, packed
from pkc.dialect.types import TileType
from pkc.passes.kernel_pass import KernelPass
from pkc.passes.roles.assign_roles import ROLE
from pkc.passes.roles.plan_warps import comm_sms
from pkc.passes.roles.program_order import (
    DividedWaitError,
    ReadBackError,
    UnorderedSignalError,
    check_read_back,
    check_read_elements,
    keep_order,
)
from pkc.passes.roles.role_values import KeptBeyondStageError, RoleValue, role_values_of
from pkc.passes.roles.split_roles import add_channels, add_role_op
from pkc.remarks import missed
from pkc.targets.target import target_of


class SplitCopies(KernelPass):
    """Split a communicator whose loads and gathers are only stored into two roles, one that loads and one that stores,
    joined by a channel.

    A tile cannot go from memory to memory but through shared memory. If the communicator has separate SMs, the
    channel has as many stages as the target says (twelve), or as there is room for. Beside roles that compute, which
    need the room, it has one, or as many as a few KB (16) hold: there every SM copies a little.

    Before:

        pk.role communicator { pk.tasks ... {
          %a = pk.load %A[%m, %k : ...] : ...
          pk.store %a, %A_fetched[%m, %k : ...] : ...
          pk.raise %A_ready ...

    After:

        %1 = pk.channel "A" stages 12 : !pk.channel<!pk.tile<128x64xbf16>>
        pk.role communicator { pk.tasks ... {
          pk.acquire %1 : ...
          %a = pk.load %A[%m, %k : ...] : ...
          pk.commit %1, %a : ...
        pk.role communicator { pk.tasks ... {
          %a = pk.consume %1 : ...
          pk.store %a, %A_fetched[%m, %k : ...] : ...
          pk.release %1 : ...
          pk.raise %A_ready ...
    """

    name = "pk-split-copies"
    ONLY_DERIVED = True

    def run(self, kernel: KernelOp) -> None:
        roles = kernel.roles
        copying = [op for op in roles if op.role.data is Role.Communicator and _only_copies(op)]
        passed = {op: found for op in copying if (found := _passed_on(op)) is not None}
        stages = _stages(kernel, passed.values())
        if passed and stages == 1 and not comm_sms(kernel):
            _remark(passed)
        for role_op, found in passed.items():
            _split(kernel, role_op, found, stages)


def _only_copies(role_op: RoleOp) -> bool:
    """Whether a role loads every tile that it has, and only stores it, but for tables, which name rows to load; packets
    its threads unpack."""
    makers = [op for op in role_op.walk() if any(isinstance(result.type, TileType) for result in op.results)]
    users = [use.operation for op in makers for result in op.results for use in result.uses]
    passed_on = all(isinstance(user, StoreOp | GatherOp) for user in users)
    return bool(makers) and passed_on and all(isinstance(op, LoadOp | GatherOp) and not packed(op) for op in makers)


def _passed_on(role_op: RoleOp) -> list[RoleValue] | None:
    """What goes from the loading to the storing role; None if a tile is kept beyond its stage."""
    for op in role_op.body.walk():
        role = _side(op)
        if role is not None:
            op.attributes[ROLE] = RoleAttr(role)
    try:
        kernel = role_op.parent_op()
        if kernel is not None and WRITTEN in kernel.attributes:
            check_read_back(role_op)
            check_read_elements(role_op)
            keep_order(role_op)
        return role_values_of(role_op)
    except KeptBeyondStageError as error:
        op, reason = error.op, "a tile leaves the loop or branch that loads it"
    except ReadBackError as error:
        op, reason = error.load, "it may read what the same role stores before it, without a signal and a wait between"
    except UnorderedSignalError as error:
        op, reason = error.signal, "this signal follows a load, and no store that depends on it"
    except DividedWaitError as error:
        op, reason = error.wait, "loads and other statements are behind this wait, whose counter is taken down again"
    missed(SplitCopies.name, op, f"its communicator fetches a tile when the last one is stored: {reason}")
    return None


def _stages(kernel: KernelOp, found: Iterable[list[RoleValue]]) -> int:
    """Stages of each channel of all communicators, which share the memory of one CTA."""
    kinds = [value.type for of_role in found for value in of_role]
    if not kinds:
        return 1
    target = target_of(kernel)
    fitting = target.tuning.copied_bytes // sum(target.stage_bytes(kind) for kind in kinds)
    if comm_sms(kernel):
        fitting = target.stage_memory // sum(target.footprint(kind) for kind in kinds)
    return max(1, min(target.tuning.copies, fitting))


def _remark(passed: Mapping[RoleOp, Sequence[RoleValue]]) -> None:
    """Say of communicators beside roles that compute that only one of their tiles is in flight at a time; of pieces of
    a tile several are."""
    for found in passed.values():
        for one in found:
            target = target_of(one.made[0])
            if target.stage_bytes(one.type) <= target.tuning.copied_piece:
                continue
            beside = f"copies beside tasks have {target.tuning.copied_bytes}; `comm_sms` leaves room for more"
            reason = f"it has {target.stage_bytes(one.type)} bytes, and {beside}"
            missed(SplitCopies.name, one.made[0], f"one tile at a time is in flight in each SM: {reason}")


def _split(kernel: KernelOp, role_op: RoleOp, found: list[RoleValue], stages: int) -> None:
    if role_op.warps is not None:
        reason = "pkc splits the communicator into one that loads and one that stores, and plans the warps of both"
        missed(SplitCopies.name, role_op, f"`warps={role_op.warps.value.data}` changes nothing: {reason}")
    channels = add_channels(kernel, found, stages)
    for role in (Role.Loader, Role.Storer):
        made = add_role_op(role, found, channels, kernel, role_op)
        made.role = RoleAttr(Role.Communicator)
        made.attributes |= role_op.attributes
        made.sms = role_op.sms if role is Role.Loader else None  # the SMs of both together
        for op in made.walk():
            if isinstance(op, TasksOp):
                op.attributes[PER_CTA] = UnitAttr()
    role_op.detach()
    role_op.erase(safe_erase=False)


def _side(op: Operation) -> Role | None:
    """Loads and the waits before them on one side, stores and signals on the other."""
    if isinstance(op, LoadOp | GatherOp | WaitOp):
        return Role.Loader
    return None if not op.operands or op.results or op.regions else Role.Storer
