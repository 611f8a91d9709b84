"""What the passes that derive a protocol share: new parameters, roles, operations with a location."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import dropwhile
from typing import TypeVar

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    FunctionType,
    IndexType,
    IntegerAttr,
    LocationAttr,
    StringAttr,
    UnitAttr,
    i64,
)
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue
from xdsl.traits import is_side_effect_free

from pkc.dialect.access import LOADS
from pkc.dialect.attributes import Role, RoleAttr
from pkc.dialect.coordinates import EpochOp
from pkc.dialect.program import DERIVED, FRESH, NAME, PHASE, SCRATCH, KernelOp, RoleOp, TasksOp
from pkc.dialect.scalars import constant_of
from pkc.dialect.types import SignalType

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


def drop_parameter(kernel: KernelOp, argument: BlockArgument) -> None:
    """Take a parameter away that nothing uses: scratch memory, which its caller does not give."""
    entries = list(kernel.arg_attrs)
    del entries[argument.index]
    kernel.arg_attrs = ArrayAttr(entries)
    kernel.body.block.erase_arg(argument)
    kernel.function_type = FunctionType.from_lists([arg.type for arg in kernel.body.block.args], [])


def mark_fresh(kernel: KernelOp, array: SSAValue) -> None:
    """Say of an array that sums begin at zero in it, if the kernel reads it too."""
    assert isinstance(array, BlockArgument)
    if not any(isinstance(use.operation, LOADS) for use in array.uses):
        return
    mark(kernel, array, FRESH)


def mark(kernel: KernelOp, array: BlockArgument, name: str) -> None:
    """Give an array an attribute without a value."""
    entries = list(kernel.arg_attrs)
    entries[array.index] = DictionaryAttr({**entries[array.index].data, name: UnitAttr()})
    kernel.arg_attrs = ArrayAttr(entries)


def turn_ops() -> list[Operation]:
    """Which of two halves of scratch memory this launch uses, the last of the operations: launches take turns."""
    epoch, two = EpochOp(), constant(2)
    return [epoch, two, arith.RemSIOp(epoch, two)]


def add_role(kernel: KernelOp, role: Role, origin: Operation) -> Block:
    """A new role, behind those that exist and before what is in none; its body. It has the phase and the line of
    `origin`."""
    body = Region(Block())
    op = RoleOp(RoleAttr(role), body)
    op.location = origin.location
    phase = phase_of(origin)
    if phase is not None:
        op.attributes[PHASE] = IntegerAttr(phase, i64)
    kernel.body.block.add_op(op)
    return body.block


def phases(kernel: KernelOp) -> list[TasksOp]:
    """The task sets of a kernel without roles, in their order; none if it does something else beside them.

    What it reads before the first of them is no phase.
    """
    top = [op for op in kernel.body.block.ops if not is_side_effect_free(op)]
    sets = list(dropwhile(lambda op: isinstance(op, LOADS), top))
    found = [op for op in sets if isinstance(op, TasksOp)]
    return found if len(found) == len(sets) else []


def phase_of(op: Operation) -> int | None:
    """The phase that an operation belongs to, in a kernel of several."""
    inner: Operation | None = op
    while inner is not None:
        phase = inner.attributes.get(PHASE)
        if isinstance(phase, IntegerAttr):
            return phase.value.data
        inner = inner.parent_op()
    return None


def computes(tasks: TasksOp, kernel: KernelOp) -> bool:
    """Whether tasks are those of the program, and not of a role that only communicates."""
    around = tasks.parent_op()
    while isinstance(around, scf.ForOp):
        around = around.parent_op()
    return around is kernel or (isinstance(around, RoleOp) and DERIVED in around.attributes)


def wrap_in_role(kernel: KernelOp, role: Role) -> None:
    """Move everything that stands directly in the kernel into one role."""
    ops = [op for op in kernel.body.block.ops if not isinstance(op, RoleOp)]
    if not ops:
        return
    body = Block()
    for op in ops:
        op.detach()
        body.add_op(op)
    role_op = RoleOp(RoleAttr(role), Region(body))
    role_op.location = ops[-1].location
    role_op.attributes[DERIVED] = kernel.attributes[DERIVED] = UnitAttr()
    kernel.body.block.add_op(role_op)


def append(block: Block, op: _Op, location: LocationAttr) -> _Op:
    """Add an operation at the end of a block."""
    op.location = location
    block.add_op(op)
    return op


def copy_of(op: _Op, known: dict[SSAValue, SSAValue] | None = None) -> _Op:
    """A copy of an operation, on what `known` has in place of its operands; lines stay."""
    copy = op.clone(value_mapper=known)
    for inner, old in zip(copy.walk(), op.walk(), strict=True):
        inner.location = old.location
    return copy


def append_copy(block: Block, op: _Op, known: dict[SSAValue, SSAValue]) -> _Op:
    """Add a copy of an operation at the end of a block, on what `known` has in place of its operands; lines stay."""
    copy = copy_of(op, known)
    block.add_op(copy)
    return copy


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


# Integers


def product_ops(factors: Sequence[SSAValue]) -> tuple[list[Operation], SSAValue]:
    """Operations that multiply run-time integers, and the product; 1 without factors."""
    if not factors:
        one = constant(1)
        return [one], one.result
    ops: list[Operation] = []
    total = factors[0]
    for factor in factors[1:]:
        ops.append(arith.MuliOp(total, factor))
        total = ops[-1].results[0]
    return ops, total


def constant(value: int) -> arith.ConstantOp:
    return arith.ConstantOp.from_int_and_width(value, IndexType())


def is_constant(value: SSAValue, number: int) -> bool:
    """Whether a value is this constant."""
    return constant_of(value) == number
