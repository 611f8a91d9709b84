"""Values that one role makes and another uses: which of them share a channel, and where its operations stand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import scf
from xdsl.ir import Block, Operation, SSAValue, Use

from pkc.dialect.attributes import Role
from pkc.dialect.by_table import GatherOp
from pkc.dialect.interleaved import PickOp
from pkc.dialect.program import RoleOp
from pkc.dialect.roles import ChannelType
from pkc.dialect.tile import AnyMmaOp, BroadcastOp, CastOp, ClipOp, EnlargeOp, TransposeOp, tile_type
from pkc.dialect.types import TileType
from pkc.dialect.windows import WindowOp
from pkc.passes.analysis.tables import is_table
from pkc.passes.roles.assign_roles import role_of


@dataclass
class RoleValue:
    """Values made in one block by `producer` and first used together there by `consumer`, in `used`; other views of
    them, the first of which is `first`, use nothing.

    The producer acquires before `made[0]` and commits after `made[-1]`; the consumer consumes before `first` and
    releases after `last`. All are operations of `block`.
    """

    block: Block
    producer: Role
    consumer: Role
    values: list[SSAValue]
    made: list[Operation]
    first: Operation
    used: Operation
    last: Operation

    @property
    def type(self) -> ChannelType:
        return ChannelType([tile_type(value) for value in self.values])


class KeptBeyondStageError(Exception):
    """A value that lives in a stage leaves the loop or branch in which it is made."""

    def __init__(self, op: Operation) -> None:
        super().__init__()
        self.op = op


def role_values_of(role_op: RoleOp) -> list[RoleValue]:
    """The values across the roles of a role that is to be split, in program order."""
    found: list[RoleValue] = []
    for op in role_op.body.walk():
        producer = role_of(op)
        for value in op.results:
            if producer is None or not isinstance(value.type, TileType):
                continue
            users = {role_of(use.operation) for use in value.uses} - {producer, None}
            for consumer in sorted(role for role in users if role is not None):
                _add(found, op, value, producer, consumer)
    _keep_until_passed_on(found)
    return found


def _add(found: list[RoleValue], op: Operation, value: SSAValue, producer: Role, consumer: Role) -> None:
    block = op.parent
    assert block is not None
    uses = [use.operation for name in names_in(block, value, consumer) for use in name.uses]
    places = [_within(block, use) for use in uses if role_of(use) is consumer]
    places.sort(key=block.get_operation_index)
    first, last = places[0], places[-1]
    used = next((place for place in places if not isinstance(place, VIEWS)), first)
    if isinstance(last, scf.YieldOp):
        raise KeptBeyondStageError(op)
    for role_value in found:
        same = (role_value.block, role_value.producer, role_value.consumer, role_value.used)
        if same == (block, producer, consumer, used) and not _is_apart(op, role_value):
            role_value.values.append(value)
            role_value.made.append(op)
            role_value.first = min(role_value.first, first, key=block.get_operation_index)
            role_value.last = max(role_value.last, last, key=block.get_operation_index)
            return
    found.append(RoleValue(block, producer, consumer, [value], [op], first, used, last))


def _is_apart(op: Operation, role_value: RoleValue) -> bool:
    """Whether two values have stages of their own: a task's tiles that a loop uses all the time, as results may leave
    in these (`pk-share-stages`); and where one is of rows that a table names, which arrive late: what is combined with
    them outside of MMAs is there long before."""
    if isinstance(role_value.used, scf.ForOp):
        return True
    gathered = any(isinstance(made, GatherOp) for made in role_value.made)
    return isinstance(op, GatherOp) != gathered and not isinstance(role_value.used, AnyMmaOp)


def _keep_until_passed_on(found: list[RoleValue]) -> None:
    """Keep a stage until its values that the next channel takes, under whatever name, are committed there."""
    for role_value in found:
        block = role_value.block
        names = {name for value in role_value.values for name in names_in(block, value, role_value.consumer)}
        for other in found:
            if other.producer is role_value.consumer and not names.isdisjoint(other.values):
                role_value.last = max(role_value.last, _within(block, other.made[-1]), key=block.get_operation_index)


VIEWS = (TransposeOp, BroadcastOp, EnlargeOp, PickOp, WindowOp, ClipOp, CastOp)
"""Operations whose result may be the operand's memory, seen in another way."""


def names_in(block: Block, value: SSAValue, consumer: Role | None = None) -> list[SSAValue]:
    """The values by which a role, or whoever uses it, knows the memory of one, inside the block that makes it."""
    found = [value]
    for name in found:
        for use in name.uses:
            if consumer is None or role_of(use.operation) is consumer:
                found += [other for other in _other_names(block, use) if other not in found]
    return found


def _other_names(block: Block, use: Use) -> Sequence[SSAValue]:
    """The values of a block that may be the memory of a used one."""
    op, around = use.operation, use.operation.parent_op()
    if isinstance(op, VIEWS) or is_table(op):  # accesses evaluate tables where they need an element
        return op.results
    if isinstance(op, scf.ForOp):
        carried = use.index - _CARRIED
        return op.body.block.args[carried + 1], op.results[carried]
    if op.parent is block:
        return ()
    if isinstance(op, scf.YieldOp) and isinstance(around, scf.ForOp):
        return around.body.block.args[use.index + 1], around.results[use.index]
    if isinstance(op, scf.YieldOp) and isinstance(around, scf.IfOp):
        return (around.results[use.index],)
    return ()


_CARRIED = 3
"""The first operand of `scf.for` that is carried, behind its bounds and step."""


def _within(block: Block, op: Operation) -> Operation:
    """The operation of `block` in which `op` stands."""
    inner = block.find_ancestor_op_in_block(op)
    assert inner is not None
    return inner
