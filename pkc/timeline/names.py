"""The roles of a kernel at the roles level by name, as time lines of GPUs have them (`pkc/passes/machine/trace.py`)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from xdsl.ir import Operation

from pkc.dialect import access, copies
from pkc.dialect.elementwise import AddOp
from pkc.dialect.program import RoleOp
from pkc.dialect.tile import AnyMmaOp
from pkc.dialect.transfers import moves_by_tma


def names_of(roles: Sequence[RoleOp]) -> list[str]:
    """The name of each role; where several have one, with what they do."""
    kinds = [str(role.role.data) for role in roles]
    names: list[str] = []
    for kind, role in zip(kinds, roles, strict=True):
        name = kind if kinds.count(kind) == 1 else f"{kind}, {task_work(role)}"
        names.append(name if name not in names else f"{name} {len(names)}")
    return names


@cache
def task_work(op: Operation) -> str:
    """What a role does, or its tasks, in a word."""
    ops = list(op.walk())
    if any(isinstance(op, AnyMmaOp) for op in ops):
        return "MMAs"
    if any(isinstance(op, access.LoadOp) and moves_by_tma(op) for op in ops):
        return "loads"
    if any(isinstance(op, access.StoreOp) and moves_by_tma(op) for op in ops):
        return "stores"
    if any(isinstance(op, AddOp) for op in ops) and not any(isinstance(op, copies.CopyOp) for op in ops):
        return "sums"
    return "copies"
