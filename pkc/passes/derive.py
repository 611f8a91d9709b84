"""What the passes that derive a protocol share: new parameters, roles, operations with a location."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, FunctionType, LocationAttr, StringAttr, UnitAttr
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue

from pkc.dialect.access import AccumulateOp, ScatterAccumulateOp, StoreOp
from pkc.dialect.attributes import Role, RoleAttr
from pkc.dialect.program import DERIVED, NAME, SCRATCH, KernelOp, RoleOp, TasksOp
from pkc.dialect.types import SignalType

_WRITES = (StoreOp, AccumulateOp, ScatterAccumulateOp)

AFTER_ALL = "after_all"
"""On a part: whatever it does follows signals of the same launch from every rank."""

_Op = TypeVar("_Op", bound=Operation)


def add_parameter(kernel: KernelOp, name: str, kind: Attribute, location: LocationAttr) -> BlockArgument:
    """A parameter that pkc adds and allocates: scratch memory, or signals."""
    taken = set(kernel.arguments)
    unique = next(n for n in (name, *(f"{name}{i}" for i in range(2, len(taken) + 3))) if n not in taken)
    argument = kernel.body.block.insert_arg(kind, len(kernel.body.block.args))
    argument.location = location
    argument.name_hint = unique.replace(".", "_")
    entries: dict[str, Attribute] = {NAME: StringAttr(unique)}
    entries |= {} if isinstance(kind, SignalType) else {SCRATCH: UnitAttr()}
    kernel.arg_attrs = ArrayAttr([*kernel.arg_attrs, DictionaryAttr(entries)])
    kernel.function_type = FunctionType.from_lists([arg.type for arg in kernel.body.block.args], [])
    return argument


def add_role(kernel: KernelOp, role: Role, location: LocationAttr) -> Block:
    """A new part, behind those that are there and before what is in none; its body."""
    body = Region(Block())
    op = RoleOp(RoleAttr(role), body)
    op.location = location
    kernel.body.block.add_op(op)
    return body.block


def only_tasks(kernel: KernelOp) -> TasksOp | None:
    """The one task set of a kernel without roles; nothing if it has several phases, or writes outside of tasks."""
    top = [op for op in kernel.body.block.ops if op.regions or isinstance(op, _WRITES)]
    return top[0] if len(top) == 1 and isinstance(top[0], TasksOp) else None


def wrap_in_role(kernel: KernelOp, role: Role) -> None:
    """Move everything that stands directly in the kernel into one part."""
    ops = [op for op in kernel.body.block.ops if not isinstance(op, RoleOp)]
    if not ops:
        return
    body = Block()
    for op in ops:
        op.detach()
        body.add_op(op)
    part = RoleOp(RoleAttr(role), Region(body))
    part.location = ops[-1].location
    part.attributes[DERIVED] = kernel.attributes[DERIVED] = UnitAttr()
    kernel.body.block.add_op(part)


def append(block: Block, op: _Op, location: LocationAttr) -> _Op:
    """Add an operation at the end of a block."""
    op.location = location
    block.add_op(op)
    return op


def before(anchor: Operation, ops: Sequence[Operation]) -> None:
    """Insert operations in front of another one, at its line."""
    block = anchor.parent
    assert block is not None
    for op in ops:
        op.location = anchor.location
        block.insert_op_before(op, anchor)


def defined_in(value: SSAValue, op: Operation) -> bool:
    """Whether a value is made by an operation inside `op`, or is a variable of it."""
    owner = value.owner
    parent = owner.parent_op() if isinstance(owner, Block) else owner
    while parent is not None:
        if parent is op:
            return True
        parent = parent.parent_op()
    return False
