"""Copy engines: the parts of a kernel that no SM runs. What they do is enqueued by the host."""

from __future__ import annotations

from collections.abc import Iterator
from io import StringIO
from typing import TypeGuard

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import BlockArgument, Operation
from xdsl.parser import Parser
from xdsl.printer import Printer

from pkc.dialect import context
from pkc.dialect.attributes import Role
from pkc.dialect.program import AFTER_ALL, KernelOp, RoleOp

LANES = 4
"""Streams on which a copy engine carries out its tasks. A copy of 2 MB to a peer takes 6 us, and with its write and the
start of the next copy on the same stream 15: three fill a link, four leave something over. With the kernel's stream
they stay below the 8 hardware queues that a GPU has by default."""

JOINED = 4
"""Tasks whose copies are made one, where these lie side by side. It saves the host calls: on 2 GPUs `ag_gemm`
took 0.115 ms with it and 0.139 without (4096 x 2048 x 4096); where the link is the limit, 5 per cent more with it."""

RESTARTS = "pk.restarts"
"""Argument attribute of counters: they count from zero in each launch, and are zero when it begins on their rank."""


def engines(kernel: KernelOp) -> list[RoleOp]:
    """The parts of copy engines, those that follow sums last: none waits for what a later one does."""
    return sorted(filter(is_engine, kernel.body.block.ops), key=lambda part: AFTER_ALL in part.attributes)


def is_engine(op: Operation) -> TypeGuard[RoleOp]:
    return isinstance(op, RoleOp) and op.role.data is Role.CopyEngine


def on_sms(kernel: KernelOp) -> Iterator[Operation]:
    """Every operation inside a kernel that SMs run."""
    for op in kernel.body.block.ops:
        if not is_engine(op):
            yield from op.walk()


def restarts(kernel: KernelOp, signal: BlockArgument) -> bool:
    """Whether counters count from zero in each launch."""
    return RESTARTS in kernel.arg_attrs.data[signal.index].data


def engines_text(kernel: KernelOp) -> str:
    """The parts of copy engines as IR, with what they need of the kernel around them; empty if there are none."""
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
