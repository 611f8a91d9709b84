"""The interface of a kernel: its parameters, and which of them it reads, writes and sums."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import BlockArgument

from pkc.diagnostics import PkcError
from pkc.dialect import access, by_table, copies, counters, deferred, inverse, program, roles
from pkc.dialect.arrays import array_type, given_type
from pkc.dialect.attributes import Role, number_on
from pkc.dialect.scalars import constant_of
from pkc.dialect.types import ArrayType, PGLType, PrivateType, SignalType
from pkc.location import NOWHERE, Span, span_of
from pkc.sim import errors
from pkc.targets.target import target_of

_ADDS = (access.AddToArrayOp, by_table.AddByTableOp)
_READS = (*access.READING, access.StoreAddOp, by_table.ScatterStoreAddOp, access.AllReduceOp)
_STORES = (access.StoreOp, by_table.ScatterStoreOp)
_SUMS = (access.AccumulateOp, by_table.ScatterAccumulateOp)
_WRITES = (*_STORES, access.AllReduceOp, *_SUMS, *_ADDS)
_SOURCE, _TARGET = 0, 1
"""The places of the arrays among the operands of `pk.copy`."""

_ORDERS = (*roles.CHANNEL_OPS, *counters.COUNTER_OPS, deferred.SendDeferredOp, program.RoleOp)


def find_kernel(module: ModuleOp, name: str | None) -> program.KernelOp:
    """The kernel of this name; without a name, the only one."""
    kernels = [op for op in module.body.block.ops if isinstance(op, program.KernelOp)]
    known = ", ".join(f"`{kernel.sym_name.data}`" for kernel in kernels) or "no kernels"
    if name is None and len(kernels) == 1:
        return kernels[0]
    if name is None:
        raise PkcError(errors.NoSuchKernel(NOWHERE, "no kernel is named, and the program has not exactly one", known))
    for kernel in kernels:
        if kernel.sym_name.data == name:
            return kernel
    raise PkcError(errors.NoSuchKernel(NOWHERE, f"there is no kernel `{name}`", known))


@dataclass(frozen=True)
class Program:
    """A kernel, seen from outside."""

    kernel: program.KernelOp

    @property
    def name(self) -> str:
        return self.kernel.sym_name.data

    @property
    def span(self) -> Span:
        return span_of(self.kernel.location)

    def span_of(self, name: str) -> Span:
        """Where a parameter is declared; for any other name, and in IR without places, the kernel's."""
        arg = self.kernel.arguments.get(name)
        span = NOWHERE if arg is None else span_of(arg.location)
        return span if span is not NOWHERE else self.span

    def span_of_dim(self, dim: str) -> Span:
        """Where the first parameter is declared that has a dimension."""
        having = (name for name, kind in (*self.arrays.items(), *self.signals.items()) if dim in kind.dimensions)
        return self.span_of(next(having, ""))

    @cached_property
    def arrays(self) -> dict[str, PrivateType | PGLType]:
        """The arrays as callers have them."""
        found = self.kernel.arguments.items()
        arrays = ((name, arg) for name, arg in found if isinstance(arg.type, PrivateType | PGLType))
        return {name: given_type(self.kernel, arg) for name, arg in arrays}

    def in_memory(self, name: str) -> PrivateType | PGLType:
        """The type by which the kernel accesses an array."""
        return array_type(self.kernel.arguments[name])

    @cached_property
    def signals(self) -> dict[str, SignalType]:
        found = {name: arg.type for name, arg in self.kernel.arguments.items()}
        return {name: kind for name, kind in found.items() if isinstance(kind, SignalType)}

    @cached_property
    def scalars(self) -> dict[str, str]:
        """The scalar parameters, with `f32` or `i32`."""
        found = self.kernel.arguments.items()
        return {name: str(arg.type) for name, arg in found if not isinstance(arg.type, ArrayType)}

    @cached_property
    def scratch(self) -> frozenset[str]:
        return frozenset(name for name, arg in self.kernel.arguments.items() if self.kernel.is_scratch(arg))

    @cached_property
    def kept(self) -> frozenset[str]:
        """Scratch arrays that keep what they hold from launch to launch."""
        return frozenset(name for name, arg in self.kernel.arguments.items() if self.kernel.is_kept(arg))

    @cached_property
    def written(self) -> frozenset[str]:
        return self._used_by(_WRITES) | self._copied(_TARGET) | self._in_order

    @cached_property
    def stored(self) -> frozenset[str]:
        """The arrays that are written with `=`."""
        return self._used_by(_STORES) | self._in_order

    @cached_property
    def _in_order(self) -> frozenset[str]:
        """What sums of rows in their order are stored to, and the lists of these rows."""
        ops = [op for op in self.kernel.walk() if isinstance(op, inverse.InvertOp | inverse.SumRowsOp)]
        arrays = {array for op in ops for array in op.written}
        return frozenset(name for name, arg in self.kernel.arguments.items() if arg in arrays)

    @cached_property
    def summed(self) -> frozenset[str]:
        """The arrays that are summed over ranks: they are zero at entry."""
        return self._used_by(_SUMS)

    @cached_property
    def inputs(self) -> tuple[str, ...]:
        """The arrays whose content at entry the kernel may see."""
        seen = (self._used_by(_READS) | self._copied(_SOURCE)) - self.scratch - self.summed
        seen -= {name for name, arg in self.kernel.arguments.items() if self.kernel.is_fresh(arg)}
        return tuple(name for name in self.arrays if name in seen)

    @cached_property
    def outputs(self) -> tuple[str, ...]:
        """The arrays that callers get back."""
        return tuple(name for name in self.arrays if name in self.written and name not in self.scratch)

    @cached_property
    def orders_itself(self) -> bool:
        """Whether roles or ranks wait for each other, so that ranks cannot run one after the other."""
        return any(isinstance(op, _ORDERS) for op in self.kernel.walk())

    @cached_property
    def has_roles(self) -> bool:
        """Whether the kernel has roles, whose accesses are not checked for two writers."""
        return bool(self.kernel.roles)

    @property
    def counts_in_epochs(self) -> bool:
        """Whether counters grow from launch to launch: pkc has derived the signals, and no author wrote them."""
        return program.DERIVED in self.kernel.attributes and not self.has_written_roles

    @cached_property
    def per_cta(self) -> bool:
        """Whether each role runs on several CTAs, which share its tasks."""
        return any(program.PER_CTA in op.attributes for op in self.kernel.walk())

    @cached_property
    def comm_sms(self) -> int:
        """How many SMs only communicate."""
        return number_on(self.kernel, program.COMM_SMS) or 0

    @cached_property
    def resident(self) -> tuple[int, int]:
        """How many CTAs fit the target: of those that compute, and of those that only communicate."""
        sms = target_of(self.kernel).arch.sms
        return sms - self.comm_sms, self.comm_sms

    @cached_property
    def needed(self) -> tuple[int, int]:
        """The CTAs that compute, and that only communicate, which a kernel needs: as many as an author has written
        tasks that may wait for each other, if so many fit the target."""
        least = [1, 1]
        for role in self.kernel.body.block.ops if self.has_written_roles else ():
            apart = isinstance(role, program.RoleOp) and role.role.data is Role.Communicator and self.comm_sms > 0
            for tasks in role.walk():
                if isinstance(tasks, program.TasksOp) and any(isinstance(op, counters.WaitOp) for op in tasks.walk()):
                    total = math.prod(constant_of(count) or self.resident[apart] + 1 for count in tasks.counts)
                    least[apart] = max(least[apart], total if total <= self.resident[apart] else 1)
        return least[0], least[1]

    @property
    def has_written_roles(self) -> bool:
        """Whether an author wrote the roles that pkc has shared out and split."""
        return program.WRITTEN in self.kernel.attributes

    @cached_property
    def dims(self) -> tuple[str, ...]:
        """The run-time dimensions, in the order of their first use by a parameter."""
        named = (dim for kind in (*self.arrays.values(), *self.signals.values()) for dim in kind.dimensions)
        return tuple(dict.fromkeys(dim for dim in named if isinstance(dim, str) and dim != "ranks"))

    def _used_by(self, kinds: tuple[type, ...]) -> frozenset[str]:
        arguments = self.kernel.arguments.items()
        return frozenset(name for name, arg in arguments if _array_used_by(arg, kinds))

    def _copied(self, operand: int) -> frozenset[str]:
        """The arrays that copies read from, or write to."""
        used = ((name, use) for name, arg in self.kernel.arguments.items() for use in arg.uses)
        return frozenset(
            name for name, use in used if isinstance(use.operation, copies.CopyOp) and use.index == operand
        )


def _array_used_by(arg: BlockArgument, kinds: tuple[type, ...]) -> bool:
    return isinstance(arg.type, PrivateType | PGLType) and any(isinstance(use.operation, kinds) for use in arg.uses)
