"""What most passes are: something that is done to, or found in, each kernel of a module."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from pkc.diagnostics import Diagnostic, PkcError
from pkc.dialect.program import DERIVED, KernelOp


class KernelPass(ModulePass, ABC):
    """Runs on each kernel of a module, in their order."""

    ONLY_DERIVED: ClassVar[bool] = False
    """Whether it leaves kernels alone whose roles an author wrote, or that have none yet."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel in op.ops:
            if isinstance(kernel, KernelOp) and (DERIVED in kernel.attributes or not self.ONLY_DERIVED):
                self.run(kernel)

    @abstractmethod
    def run(self, kernel: KernelOp) -> None: ...


class CheckPass(ModulePass, ABC):
    """Refuses a module if it finds something wrong with one of its kernels; changes nothing."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        found = self.findings(op)
        if found:
            raise PkcError(*found)

    def findings(self, module: ModuleOp) -> list[Diagnostic]:
        """Everything that is wrong with the kernels of a module."""
        kernels = [op for op in module.ops if isinstance(op, KernelOp)]
        return [finding for kernel in kernels for finding in self.check(kernel)]

    @abstractmethod
    def check(self, kernel: KernelOp) -> Iterator[Diagnostic]: ...
