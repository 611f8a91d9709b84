"""Operations on counters, by which roles and ranks wait for each other: signals, waits, barriers."""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from enum import auto

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, StringAttr
from xdsl.ir import Operation, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    traits_def,
    var_operand_def,
)
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.str_enum import StrEnum

from pkc.dialect.effects import OrdersMemory
from pkc.dialect.program import verify_indices
from pkc.dialect.scalars import constant_of
from pkc.dialect.types import BlockType, SignalType, TileType

ORDER = "order"
"""On a signal of a kernel whose memory order is explicit (`FENCED`): one of `Order`."""


class Order(StrEnum):
    """What a signal releases: all earlier writes of its warp role, to this GPU or to all; or nothing (PTX: red). One
    that travels in packets tells of these alone."""

    Release_Gpu = auto()
    Release_Sys = auto()
    Relaxed_Sys = auto()
    In_Packets = auto()


def order_of(op: Operation) -> Order | None:
    """The `order` of a signal, if it has one."""
    attr = op.attributes.get(ORDER)
    return Order(attr.data) if isinstance(attr, StringAttr) else None


class CounterOp(IRDLOperation, ABC):
    """An operation on one counter of a signal array."""

    signal = operand_def(SignalType)
    indices = var_operand_def(IndexType())
    traits = traits_def(OrdersMemory())

    def verify_(self) -> None:
        assert isinstance(self.signal.type, SignalType)
        verify_indices(self.signal.type, self.indices)


class _Sent(CounterOp):
    """Changes a counter that others wait for."""

    def verify_(self) -> None:
        super().verify_()
        attr = self.attributes.get(ORDER)
        known = [str(order) for order in Order]
        if attr is not None and (not isinstance(attr, StringAttr) or attr.data not in known):
            raise VerifyException(f"{ORDER} is one of {', '.join(known)}, not {attr}")


@irdl_op_definition
class SignalOp(_Sent):
    """Adds to one counter of one rank, after all earlier writes of this warp role are visible there."""

    name = "pk.signal"
    rank = operand_def(IndexType())
    amount = operand_def(IndexType())
    assembly_format = "$signal `at` $rank `[` $indices `]` `by` $amount attr-dict `:` type($signal)"

    def __init__(
        self, signal: SSAValue, indices: Sequence[SSAValue], rank: SSAValue | Operation, amount: SSAValue | Operation
    ) -> None:
        super().__init__(operands=[rank, amount, signal, indices])


@irdl_op_definition
class SignalAllOp(_Sent):
    """Adds to the same counter of every rank, or of those from `first` to `last`."""

    name = "pk.signal_all"
    amount = operand_def(IndexType())
    first = opt_operand_def(IndexType())
    last = opt_operand_def(IndexType())
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    assembly_format = (
        "$signal (`from` $first^)? (`to` $last^)? `[` $indices `]` `by` $amount attr-dict `:` type($signal)"
    )

    def __init__(
        self,
        signal: SSAValue,
        indices: Sequence[SSAValue],
        amount: SSAValue | Operation,
        *,
        first: SSAValue | None = None,
        last: SSAValue | None = None,
    ) -> None:
        super().__init__(operands=[amount, first, last, signal, indices])


def takes_down(op: SignalOp | SignalAllOp) -> bool:
    """Whether a signal takes something off: its amount is a constant below zero, or written as what is left of zero."""
    known, made_by = constant_of(op.amount), op.amount.owner
    if known is not None:
        return known < 0
    return isinstance(made_by, arith.SubiOp) and constant_of(made_by.lhs) == 0


def is_taken_down(signal: SSAValue) -> bool:
    """Whether something takes a counter of this array down, so that a wait may come too late for what it waits for."""
    users = (use.operation for use in signal.uses)
    return any(isinstance(user, SignalOp | SignalAllOp) and takes_down(user) for user in users)


@irdl_op_definition
class RaiseOp(_Sent):
    """Sets one counter of one rank to `value` if it is less, after all earlier writes of this warp role are visible.

    For a counter with one writer, which may signal more often in one launch than in another: the counter is the epoch.
    """

    name = "pk.raise"
    rank = operand_def(IndexType())
    value = operand_def(IndexType())
    assembly_format = "$signal `at` $rank `[` $indices `]` `to` $value attr-dict `:` type($signal)"

    def __init__(
        self, signal: SSAValue, indices: Sequence[SSAValue], rank: SSAValue | Operation, value: SSAValue | Operation
    ) -> None:
        super().__init__(operands=[rank, value, signal, indices])


EARLIER = "earlier"
"""On a wait: it is for the signals of the launches before this one."""


@irdl_op_definition
class WaitOp(CounterOp):
    """Waits until this rank's counter is at least `count`; later reads see what was written before the signals.

    With `rows`, a table of positions of a sharded dimension, that of the blocks `of`, it waits only if one of them is
    another rank's.
    """

    name = "pk.wait"
    count = operand_def(IndexType())
    rows = opt_operand_def(TileType)
    of = opt_prop_def(BlockType)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    assembly_format = (
        "$signal `[` $indices `]` (`rows` $rows^ `:` type($rows) `of` $of)? `for` $count attr-dict `:` type($signal)"
    )

    def __init__(
        self,
        signal: SSAValue,
        indices: Sequence[SSAValue],
        count: SSAValue | Operation,
        rows: SSAValue | None = None,
        of: BlockType | None = None,
    ) -> None:
        super().__init__(operands=[count, rows, signal, indices], properties={"of": of})

    def verify_(self) -> None:
        super().verify_()
        if self.rows is not None and (not isinstance(self.rows.type, TileType) or self.rows.type.rank != 1):
            raise VerifyException("`rows` have one axis")


@irdl_op_definition
class ResetOp(IRDLOperation):
    """Sets all counters of this rank to zero. Nothing may signal them or wait for them meanwhile."""

    name = "pk.reset"
    signal = operand_def(SignalType)
    traits = traits_def(OrdersMemory())
    assembly_format = "$signal attr-dict `:` type($signal)"

    def __init__(self, signal: SSAValue) -> None:
        super().__init__(operands=[signal])


@irdl_op_definition
class BarrierOp(CounterOp):
    """`pk.signal_all` by one, then a wait until this rank's counter is the next multiple of the number of ranks."""

    name = "pk.barrier"
    assembly_format = "$signal `[` $indices `]` attr-dict `:` type($signal)"

    def __init__(self, signal: SSAValue, indices: Sequence[SSAValue]) -> None:
        super().__init__(operands=[signal, indices])


COUNTER_OPS = (SignalOp, SignalAllOp, RaiseOp, WaitOp, BarrierOp, ResetOp)
