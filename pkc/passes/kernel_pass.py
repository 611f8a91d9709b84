"""What most passes are: something that is done to each kernel of a module."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

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
