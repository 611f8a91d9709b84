"""The pass `pk-check-indices`: marks the accesses whose indices memory decides, so that these are looked at."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import DenseArrayBase, IndexType, i64
from xdsl.ir import Operation, SSAValue

from pkc.dialect.access import AddToArrayOp, LoadOp, ReadOp, StoreOp
from pkc.dialect.by_table import ByTable
from pkc.dialect.coordinates import BlockCountOp
from pkc.dialect.engines import is_engine
from pkc.dialect.inverse import InvertOp
from pkc.dialect.positions import bounds_in_memory
from pkc.dialect.program import KernelOp
from pkc.dialect.types import TileType
from pkc.passes.analysis.dependence import sources
from pkc.passes.kernel_pass import KernelPass

CHECKED = "checked"
"""On an access: the dimensions of its array whose index memory decides, 0 for the rows of a table. On a list of blocks:
the operands that are in memory."""

OUT_OF_RANGE = "out_of_range"
"""The instruction that stands where an index is found to be no position."""


class CheckIndices(KernelPass):
    """Write on each access of a role of SMs which of its indices come from memory (`checked`): rows that a table names,
    and integers that are computed from elements of arrays; and on each list of blocks which of its bounds do.

    `pk-lower-tiles` compares those with the dimension before it uses them; `pk-bound-waits` makes a report of one that
    is no position. A row of a table that is not one counts as no row, a list of blocks is clamped, and their role goes
    on; a role with another such index ends.

    Before:

        %x = pk.gather %X rows %rows[%k : ...] : ...

    After:

        %x = pk.gather %X rows %rows[%k : ...] {checked = array<i64: 0>} : ...
    """

    name = "pk-check-indices"

    def run(self, kernel: KernelOp) -> None:
        for role in kernel.roles:
            for op in () if is_engine(role) else role.walk():
                axes = _from_memory(op)
                if axes:
                    op.attributes[CHECKED] = DenseArrayBase.from_list(i64, axes)


def _from_memory(op: Operation) -> Sequence[int]:
    if isinstance(op, InvertOp):
        return [0]
    if isinstance(op, BlockCountOp):
        return [op.operands.index(bound) for bound in bounds_in_memory(op)]
    if isinstance(op, ByTable):
        named = (dim for dim, place in enumerate(op.places) if isinstance(place.type, TileType))
        return sorted({*named, *_of_indices(op.places)})
    return _of_indices(op.indices) if isinstance(op, ReadOp | LoadOp | StoreOp | AddToArrayOp) else []


def _of_indices(indices: Sequence[SSAValue]) -> list[int]:
    return [
        axis
        for axis, index in enumerate(indices)
        if isinstance(index.type, IndexType) and any(isinstance(value.owner, ReadOp) for value in sources([index]))
    ]
