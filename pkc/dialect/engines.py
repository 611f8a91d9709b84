"""Copy engines: the role of a kernel that no SM runs. The host enqueues its copies."""

from __future__ import annotations

from collections.abc import Iterator
from io import StringIO
from typing import TypeGuard

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import BlockArgument, Operation
from xdsl.parser import Parser
from xdsl.printer import Printer

from pkc.dialect.attributes import Role
from pkc.dialect.pk import context
from pkc.dialect.program import AFTER_ALL, KernelOp, RoleOp
from pkc.dialect.walks import walk

RESTARTS = "pk.restarts"
"""Argument attribute of counters: they count from zero in each launch, and are zero when it begins on their rank."""


def engines(kernel: KernelOp) -> list[RoleOp]:
    """The roles of copy engines, those that follow sums last: none waits for what a later one does."""
    return sorted(filter(is_engine, kernel.body.block.ops), key=lambda role: AFTER_ALL in role.attributes)


def is_engine(op: Operation) -> TypeGuard[RoleOp]:
    return isinstance(op, RoleOp) and op.role.data is Role.CopyEngine


def on_sms(kernel: KernelOp) -> Iterator[Operation]:
    """Every operation inside a kernel that SMs run."""
    for op in kernel.body.block.ops:
        if not is_engine(op):
            yield from walk(op)


def restarts(kernel: KernelOp, signal: BlockArgument) -> bool:
    """Whether counters count from zero in each launch."""
    return RESTARTS in kernel.arg_attrs.data[signal.index].data


def engines_text(kernel: KernelOp) -> str:
    """The roles of copy engines as IR, with what they need of the kernel around them; empty if there are none."""
    if not engines(kernel):
        return ""
    copy = kernel.clone()
    for op in reversed(list(copy.body.block.ops)):
        if not is_engine(op) and not any(result.uses for result in op.results):
            op.detach()
            op.erase()
    copy.attributes = {}
    stream = StringIO()
    Printer(stream=stream).print_op(ModuleOp([copy]))
    return stream.getvalue()


def parse_engines(text: str) -> KernelOp:
    """The kernel that `engines_text` printed."""
    module = Parser(context(), text, "copy engines").parse_module()
    return next(op for op in module.ops if isinstance(op, KernelOp))
