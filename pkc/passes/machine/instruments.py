"""What the passes share that add probes to a kernel at the machine level."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Block, Operation, SSAValue

from pkc.dialect.machine import ROLE, TASKS, InstructionOp
from pkc.dialect.program import KernelOp
from pkc.dialect.types import ArrayType
from pkc.passes.analysis.dependence import ancestors
from pkc.passes.machine.emit import Emitter
from pkc.targets.target import target_of

_WORK = (("wgmma_n", "MMAs"), ("mma_n", "MMAs"), ("tma_load", "loads"), ("tma_", "stores"))
"""Names of tasks in traces, by the first of these instructions that they have."""

_T = TypeVar("_T")


def role_branches(kernel: KernelOp) -> list[scf.IfOp]:
    """The branches that the roles of a kernel at the machine level have become."""
    return [op for op in kernel.walk() if isinstance(op, scf.IfOp) and ROLE in op.attributes]


def role_names(branches: Sequence[scf.IfOp]) -> list[str]:
    """The name of each branch's role; where several branches have one, with what they do."""
    roles = [text_of(branch, ROLE) for branch in branches]
    names: list[str] = []
    for role, branch in zip(roles, branches, strict=True):
        name = role if roles.count(role) == 1 else f"{role}, {work_of(branch)}"
        names.append(name if name not in names else f"{name} {len(names)}")
    return names


def work_of(op: Operation) -> str:
    """What the instructions inside an operation amount to, in a word."""
    names = [inner.instruction_name.data for inner in op.walk() if isinstance(inner, InstructionOp)]
    for start, work in _WORK:
        if any(name.startswith(start) for name in names):
            return work
    return "sums" if any(isinstance(inner, arith.AddfOp) for inner in op.walk()) else "copies"


def task_of(op: Operation) -> SSAValue | None:
    """The number of the task that an operation belongs to."""
    loop = next((outer for outer in ancestors(op) if TASKS in outer.attributes), None)
    return None if loop is None else body_of(loop).args[0]


def body_of(loop: Operation) -> Block:
    """What a loop repeats."""
    return loop.regions[-1].block


def new_dimension(kernel: KernelOp, name: str) -> str:
    """A name for a dimension that no array of the kernel has."""
    arrays = [arg.type for arg in kernel.body.block.args if isinstance(arg.type, ArrayType)]
    used = {dim for array in arrays for dim in array.dimensions}
    while name in used:
        name = f"{name}_"
    return name


def text_of(op: Operation, name: str) -> str:
    """An attribute that is a text."""
    value = op.attributes[name]
    assert isinstance(value, StringAttr)
    return value.data


def insert_before(anchor: Operation, build: Callable[[Emitter], _T], line: Operation | None = None) -> _T:
    """Put what `build` emits in front of an operation, at its line or that of `line`."""
    block, into = Block(), anchor.parent
    assert into is not None
    result = build(Emitter(block, (line or anchor).location, target_of(anchor)))
    for op in list(block.ops):
        op.detach()
        into.insert_op_before(op, anchor)
    return result


def insert_after(anchor: Operation, build: Callable[[Emitter], None]) -> None:
    """Put what `build` emits behind an operation, at its line."""
    following = anchor.next_op
    assert following is not None
    insert_before(following, build, anchor)
