"""Deferred signals: they are sent some stores later, when the stores that they announce have completed.

A warp role whose stores are asynchronous does not wait for each of them. It goes on, and signals once a store has
completed. Signals that are `deferred` queue up in their order, and `pk.send_deferred` sends the oldest.

    pk.store %t, %A_fetched[%m, %k : ...] : ...
    pk.signal %A_ready at %rank[%i] by %one {deferred} : ...
    pk.drain full left 3
    pk.send_deferred left 3 batch 4
"""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.ir import Operation
from xdsl.irdl import IRDLOperation, irdl_op_definition, prop_def, traits_def
from xdsl.utils.exceptions import VerifyException

from pkc.dialect.effects import OrdersMemory

DEFERRED = "deferred"
"""On a `pk.signal` or `pk.raise`: a later `pk.send_deferred` of the same warp role sends it."""


def is_deferred(op: Operation) -> bool:
    """Whether a signal is deferred."""
    return DEFERRED in op.attributes


@irdl_op_definition
class SendDeferredOp(IRDLOperation):
    """If at least `left + batch` signals are deferred: sends all but the youngest `left`, oldest first.

    With `batch`, several signals share the release that orders them after the stores. `left 0 batch 1` sends all.
    """

    name = "pk.send_deferred"
    left = prop_def(IntegerAttr.constr(i64))
    batch = prop_def(IntegerAttr.constr(i64))
    traits = traits_def(OrdersMemory())
    assembly_format = "`left` $left `batch` $batch attr-dict"

    def __init__(self, left: int, batch: int) -> None:
        super().__init__(properties={"left": IntegerAttr(left, i64), "batch": IntegerAttr(batch, i64)})

    @property
    def most(self) -> int:
        """How many signals are deferred at most, if one of these follows each."""
        return self.left.value.data + self.batch.value.data

    def verify_(self) -> None:
        if self.left.value.data < 0 or self.batch.value.data < 1:
            raise VerifyException("`batch` is positive and `left` is not negative")
