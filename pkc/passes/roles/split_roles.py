"""The pass `pk-split-roles`: tasks become roles that are joined by channels."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TypeVar

from xdsl.dialects import scf
from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Block, BlockArgument, Operation, OpResult, Region, SSAValue

from pkc.diagnostics import Label, PkcError
from pkc.dialect.access import LoadOp, ReadOp
from pkc.dialect.attributes import Role, RoleAttr
from pkc.dialect.by_table import GatherOp
from pkc.dialect.coordinates import CtasOp
from pkc.dialect.counters import WaitOp
from pkc.dialect.program import DERIVED, PER_CTA, WRITTEN, KernelOp, RoleOp, TasksOp
from pkc.dialect.roles import AcquireOp, ChannelOp, CommitOp, ConsumeOp, ReleaseOp
from pkc.location import span_of
from pkc.passes import plan_errors as errors
from pkc.passes.analysis.dependence import ancestors, writes
from pkc.passes.kernel_pass import KernelPass
from pkc.passes.roles.assign_roles import ROLE, derived_roles, role_of
from pkc.passes.roles.program_order import DividedWaitError, UnorderedSignalError, keep_order, taken_down
from pkc.passes.roles.remote_accesses import array_name
from pkc.passes.roles.role_values import RoleValue, role_values_of

_Op = TypeVar("_Op", bound=Operation)

_Passed = tuple[RoleValue, ChannelOp]

_ORDER = (Role.Loader, Role.Consumer, Role.Storer)


class SplitRoles(KernelPass):
    """Split the tasks of a kernel into the roles that `pk-assign-roles` wrote on their operations.

    Each role keeps the loops around its operations and the integers they need. Values across roles go through channels:
    those made and first used together share the stages of one, of which there is one as yet. Tiles of a task that a
    loop uses all the time have one each: results may leave there (`pk-share-stages`).

    Before:

        pk.role consumer { pk.tasks (%i, %j) in (...) { scf.for %s = ... {
          %a = pk.load %A[%m, %k : ...] {role = #pk<role_name loader>} : ...
          %acc = pk.mma %a, ... {role = #pk<role_name consumer>} : ...

    After:

        %0 = pk.channel "a" stages 1 : !pk.channel<!pk.tile<128x64xbf16>>
        pk.role loader { pk.tasks (%i, %j) in (...) attributes {per_cta} { scf.for %s = ... {
          pk.acquire %0 : ...
          %a = pk.load %A[%m, %k : ...] : ...
          pk.commit %0, %a : ...
        pk.role consumer { pk.tasks (%i, %j) in (...) attributes {per_cta} { scf.for %s = ... {
          %a = pk.consume %0 : ...
          %acc = pk.mma %a, ... : ...
          pk.release %0 : ...
    """

    name = "pk-split-roles"

    def run(self, kernel: KernelOp) -> None:
        for role_op in derived_roles(kernel):
            _split(kernel, role_op)
        for op in kernel.walk() if DERIVED in kernel.attributes else ():
            if isinstance(op, TasksOp):
                op.attributes[PER_CTA] = UnitAttr()


def _split(kernel: KernelOp, role_op: RoleOp) -> None:
    try:
        if WRITTEN in kernel.attributes:
            keep_order(role_op)
        found = role_values_of(role_op)
        channels = add_channels(kernel, found)
        parts = [
            add_role_op(role, found, channels, kernel, role_op)
            for role in _ORDER
            if any(role_of(op) is role for op in role_op.body.walk())
        ]
    except UnorderedSignalError as error:
        reason = "it tells that a tile was read, and what is stored before it does not depend on the tile"
        also = (Label(span_of(error.load.location), "the tile"),)
        hint = "store what is computed from the tile first"
        unordered = errors.UnorderedRole(span_of(error.signal.location), "signal", reason, hint, also=also)
        raise PkcError(unordered) from None
    except DividedWaitError as error:
        reason = (
            "loads or elements, and other statements, are behind it: several roles wait, and one takes down the counter"
        )
        also = (Label(span_of(error.signal.location), "here"),)
        hint = "take nothing off: wait for more each time"
        unordered = errors.UnorderedRole(span_of(error.wait.location), "wait", reason, hint, also=also)
        raise PkcError(unordered) from None
    if parts and all(part.role != role_op.role for part in parts):
        _rename(kernel, role_op.role, parts[0].role)
    role_op.detach()
    role_op.erase(safe_erase=False)


def _rename(kernel: KernelOp, gone: RoleAttr, left: RoleAttr) -> None:
    """Count the CTAs of a role of which nothing is left by another one of them."""
    for op in kernel.walk():
        if isinstance(op, CtasOp) and op.role == gone:
            op.role = left


def add_role_op(
    role: Role, found: list[RoleValue], channels: list[ChannelOp], kernel: KernelOp, role_op: RoleOp
) -> RoleOp:
    """Add a role before the one that is split, with the operations to which this role is assigned."""
    return _RoleCopy(role, found, channels).build(kernel, role_op)


def add_channels(kernel: KernelOp, found: list[RoleValue], stages: int = 1) -> list[ChannelOp]:
    """A channel for each value across roles, with that many stages."""
    made: list[ChannelOp] = []
    first_role = kernel.roles[0]
    for role_value in found:
        label = ", ".join(map(channel_label, role_value.made))
        channel = ChannelOp(label, stages, role_value.type)
        channel.location = role_value.made[0].location
        kernel.body.block.insert_op_before(channel, first_role)
        made.append(channel)
    return made


def channel_label(op: Operation) -> str:
    """The name of a channel in messages: the array that is loaded, or the variable."""
    if isinstance(op, LoadOp | GatherOp):
        return array_name(op.array)
    return op.results[0].name_hint or op.name.removeprefix("pk.")


def _is_made_inside(value: RoleValue) -> bool:
    """Whether a loop or a branch gives a value: its stage is needed behind that, and may be in use meanwhile."""
    return isinstance(value.made[0], scf.ForOp | scf.IfOp)


class _RoleCopy:
    """The copy of the tasks that one role runs."""

    def __init__(self, role: Role, found: list[RoleValue], channels: list[ChannelOp]) -> None:
        self._role = role
        self._before: defaultdict[Operation, list[_Passed]] = defaultdict(list)
        self._made: defaultdict[Operation, list[_Passed]] = defaultdict(list)
        self._behind: defaultdict[Operation, list[_Passed]] = defaultdict(list)
        for passed in zip(found, channels, strict=True):
            self._note(*passed)
        self._arriving = {value for c in found if c.consumer is role for value in c.values}
        self._leaving = [value for c in found if c.producer is role for value in c.values]
        self._needed: set[Operation] = set()
        self._carried: set[tuple[Operation, int]] = set()
        self._known: dict[SSAValue, SSAValue] = {}
        self._order: list[Operation] = []
        """What an author's role does, in its order."""

    def _note(self, value: RoleValue, channel: ChannelOp) -> None:
        """Where the role does something with a channel."""
        if value.consumer is self._role:
            self._before[value.first].append((value, channel))
            self._behind[value.last].append((value, channel))
        if value.producer is self._role:
            self._before[value.made[0]].append((value, channel))
            self._made[value.made[-1]].append((value, channel))

    def build(self, kernel: KernelOp, role_op: RoleOp) -> RoleOp:
        """Add the role before the one that is split."""
        if WRITTEN in kernel.attributes:
            self._order = list(role_op.body.walk())
        for op in role_op.body.walk():
            if role_of(op) is self._role and not isinstance(op, scf.ForOp | scf.IfOp | scf.YieldOp):
                self._need(op)
        for value in self._leaving:
            self._need_value(value)
        body = Block()
        self._copy_block(role_op.body.block, body)
        made = RoleOp(RoleAttr(self._role), Region(body))
        made.location = role_op.location
        kernel.body.block.insert_op_before(made, role_op)
        return made

    # What the role needs

    def _need(self, op: Operation) -> None:
        if op in self._needed or isinstance(op, RoleOp):
            return
        self._needed.add(op)
        if isinstance(op, ReadOp | LoadOp | GatherOp) and role_of(op) is not self._role:
            self._need_waits(op)
        around = op.parent_op()
        if around is not None:
            self._need(around)
        if isinstance(op, TasksOp) and isinstance(around, TasksOp):
            self._need_lists(around)
        structure = isinstance(op, scf.ForOp)
        for operand in op.operands[:3] if structure else op.operands:
            self._need_value(operand)

    def _need_waits(self, read: ReadOp | LoadOp | GatherOp) -> None:
        """All waits that an author wrote before a read, or in a loop around it: each role that reads what the kernel
        writes awaits it, and these were given to the role that reads for the others, if to any. Raises
        `DividedWaitError`."""
        if not self._order or not any(map(writes, read.array.uses)):
            return
        loops = [around for around in ancestors(read) if isinstance(around, scf.ForOp)]
        place = self._order.index(read)
        for number, op in enumerate(self._order):
            if isinstance(op, WaitOp) and (number < place or any(loop.is_ancestor(op) for loop in loops)):
                lowered = taken_down(op)
                if lowered is not None and role_of(op) is not self._role:
                    raise DividedWaitError(op, lowered)
                self._need(op)

    def _need_lists(self, around: TasksOp) -> None:
        """All lists of tasks inside of others: the numbers of one go on from those before it, in every role."""
        for tasks in around.body.block.ops:
            if isinstance(tasks, TasksOp):
                self._need(tasks)

    def _need_value(self, value: SSAValue) -> None:
        if value in self._arriving:
            return
        if isinstance(value, OpResult):
            if isinstance(value.op, scf.ForOp | scf.IfOp):
                self._carry(value.op, value.index)
            self._need(value.op)
            return
        loop = value.owner.parent_op() if isinstance(value.owner, Block) else None
        if isinstance(loop, scf.ForOp) and isinstance(value, BlockArgument) and value.index > 0:
            self._carry(loop, value.index - 1)

    def _carry(self, op: scf.ForOp | scf.IfOp, index: int) -> None:
        if (op, index) in self._carried:
            return
        self._carried.add((op, index))
        self._need(op)
        if isinstance(op, scf.ForOp):
            self._need_value(op.iter_args[index])
        for region in op.regions:
            last = region.block.last_op if region.blocks else None
            if isinstance(last, scf.YieldOp):
                self._need_value(last.operands[index])

    # The copy

    def _copy_block(self, source: Block, target: Block) -> None:
        for op in source.ops:
            for role_value, channel in self._before.get(op, ()):
                if role_value.consumer is self._role:
                    self._consume(target, role_value, channel)
                elif not _is_made_inside(role_value):
                    self._add(target, AcquireOp(channel.result), op)
            if op in self._needed:
                self._copy(op, target)
            for role_value, channel in self._made.get(op, ()):
                tiles = [self._known[value] for value in role_value.values]
                if _is_made_inside(role_value):
                    self._add(target, AcquireOp(channel.result), op)
                self._add(target, CommitOp(channel.result, tiles), op)
            # After the commits: what is committed may be a view of the stage that is released.
            for _, channel in self._behind.get(op, ()):
                self._add(target, ReleaseOp(channel.result), op)

    def _consume(self, target: Block, role_value: RoleValue, channel: ChannelOp) -> None:
        op = self._add(target, ConsumeOp(channel.result), role_value.made[0])
        for value, tile in zip(role_value.values, op.results, strict=True):
            tile.name_hint = value.name_hint
            self._known[value] = tile

    def _copy(self, op: Operation, target: Block) -> None:
        if isinstance(op, scf.ForOp):
            self._copy_for(op, target)
        elif isinstance(op, scf.IfOp):
            self._copy_if(op, target)
        elif isinstance(op, TasksOp):
            self._copy_tasks(op, target)
        else:
            copy = op.clone(value_mapper=self._known)
            copy.attributes.pop(ROLE, None)
            self._add(target, copy, op)

    def _copy_tasks(self, op: TasksOp, target: Block) -> None:
        body = Block(arg_types=[argument.type for argument in op.body.block.args])
        self._rename(op.body.block.args, body.args)
        self._copy_block(op.body.block, body)
        copy = TasksOp([self._known.get(count, count) for count in op.counts], Region(body))
        copy.attributes |= op.attributes
        self._add(target, copy, op)

    def _copy_for(self, op: scf.ForOp, target: Block) -> None:
        kept = [index for index in range(len(op.iter_args)) if (op, index) in self._carried]
        variable, *carried = op.body.block.args
        body = Block(arg_types=[variable.type, *(carried[index].type for index in kept)])
        self._rename([variable, *(carried[index] for index in kept)], body.args)
        starts = [self._get(op.iter_args[index]) for index in kept]
        first, last, step = (self._get(value) for value in (op.lb, op.ub, op.step))
        self._copy_block(op.body.block, body)
        self._yield(op.body.block, body, kept)
        copy = self._add(target, scf.ForOp(first, last, step, starts, body), op)
        self._rename([op.results[index] for index in kept], copy.results)

    def _copy_if(self, op: scf.IfOp, target: Block) -> None:
        kept = [index for index in range(len(op.results)) if (op, index) in self._carried]
        regions: list[Region] = []
        for region in (op.true_region, op.false_region):
            body = Block()
            if region.blocks:
                self._copy_block(region.block, body)
                self._yield(region.block, body, kept)
            regions.append(Region(body) if region.blocks else Region())
        then, orelse = regions
        types = [op.results[index].type for index in kept]
        copy = self._add(target, scf.IfOp(self._get(op.cond), types, then, orelse), op)
        self._rename([op.results[index] for index in kept], copy.results)

    def _yield(self, source: Block, target: Block, kept: list[int]) -> None:
        last = source.last_op
        assert isinstance(last, scf.YieldOp)
        self._add(target, scf.YieldOp(*(self._get(last.operands[index]) for index in kept)), last)

    def _get(self, value: SSAValue) -> SSAValue:
        return self._known.get(value, value)

    def _rename(self, old: Sequence[SSAValue], new: Sequence[SSAValue]) -> None:
        for before, after in zip(old, new, strict=True):
            after.name_hint = before.name_hint
            self._known[before] = after

    def _add(self, target: Block, op: _Op, origin: Operation) -> _Op:
        op.location = origin.location
        target.add_op(op)
        return op
