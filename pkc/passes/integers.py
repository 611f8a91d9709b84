"""Integers that passes compute in front of an operation."""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.dialects import arith
from xdsl.ir import Block, Operation, SSAValue

from pkc.dialect.coordinates import DimOp
from pkc.dialect.types import Dim
from pkc.passes.build import before, constant, product_ops
from pkc.passes.program_slices import Known, copy_value


class Integers:
    """Makes integers in front of an operation, at its line."""

    def __init__(self, anchor: Operation) -> None:
        self._anchor = anchor

    def made(self, op: Operation) -> SSAValue:
        before(self._anchor, [op])
        return op.results[0]

    def copied(self, value: SSAValue, known: Known) -> SSAValue:
        """The same value, computed anew from what is known there. Raises `CannotCopyError`."""
        scratch = Block()
        copy = copy_value(scratch, value, known)
        for op in list(scratch.ops):
            op.detach()
            before(self._anchor, [op])
        return copy

    def number(self, value: int) -> SSAValue:
        return self.made(constant(value))

    def length(self, dim: Dim) -> SSAValue:
        return self.number(dim) if isinstance(dim, int) else self.made(DimOp(dim))

    def plus(self, left: SSAValue, right: SSAValue) -> SSAValue:
        return self.made(arith.AddiOp(left, right))

    def minus(self, left: SSAValue, right: SSAValue) -> SSAValue:
        return self.made(arith.SubiOp(left, right))

    def times(self, left: SSAValue, right: SSAValue) -> SSAValue:
        return self.made(arith.MuliOp(left, right))

    def product(self, factors: Iterable[SSAValue]) -> SSAValue:
        """1 without factors."""
        ops, product = product_ops([*factors])
        before(self._anchor, ops)
        return product

    def over(self, left: SSAValue, right: SSAValue) -> SSAValue:
        return self.made(arith.DivSIOp(left, right))

    def least(self, left: SSAValue, right: SSAValue) -> SSAValue:
        return self.made(arith.MinSIOp(left, right))

    def most(self, left: SSAValue, right: SSAValue) -> SSAValue:
        return self.made(arith.MaxSIOp(left, right))

    def compare(self, how: str, left: SSAValue, right: SSAValue) -> SSAValue:
        return self.made(arith.CmpiOp(left, right, how))

    def both(self, left: SSAValue, right: SSAValue) -> SSAValue:
        return self.made(arith.AndIOp(left, right))

    def chosen(self, condition: SSAValue, left: SSAValue, right: SSAValue) -> SSAValue:
        return self.made(arith.SelectOp(condition, left, right))
