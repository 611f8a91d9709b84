"""Signals between the writer of a buffer and its reader: which counters there are, and how to find them.

A buffer is written tile by tile. Its reader waits for a *tile group*: the tiles that agree in some of their indices.
Each tile group has one counter, found by the numbers of its blocks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import Operation, SSAValue

from pkc.dialect.coordinates import BlockNumberOp
from pkc.dialect.types import BlockType, Dim, SignalType
from pkc.passes.analysis.dependence import sources
from pkc.passes.build import constant


@dataclass(frozen=True)
class TileGroups:
    """Which dimensions of a buffer distinguish its tile groups: for each, its place among the indices."""

    places: tuple[int, ...]
    extents: tuple[Dim | BlockType, ...]

    @property
    def type(self) -> SignalType:
        return SignalType(self.extents or (1,))


def groups_along(dims: Sequence[Dim], indices: Sequence[SSAValue], places: Sequence[int]) -> TileGroups:
    """The tile groups of a buffer of these dimensions, distinguished by the indices at `places`."""
    types = {place: indices[place].type for place in places}
    extents = (kind if isinstance(kind, BlockType) else dims[place] for place, kind in types.items())
    return TileGroups(tuple(places), tuple(extents))


def counter_ops(group: Sequence[SSAValue]) -> tuple[list[Operation], list[SSAValue]]:
    """Operations that find the counter of a tile group, given the indices that distinguish it; its indices."""
    ops: list[Operation] = []
    values: list[SSAValue] = []
    for index in group:
        if not isinstance(index.type, BlockType):
            values.append(index)
            continue
        ops.append(BlockNumberOp(index))
        values.append(ops[-1].results[0])
    if not group:
        ops.append(constant(0))
        values.append(ops[-1].results[0])
    return ops, values


def repeats(groups: TileGroups, indices: Sequence[SSAValue], loops: Sequence[SSAValue]) -> list[SSAValue]:
    """The loop variables over which a writer comes back to one tile group."""
    known = sources([indices[place] for place in groups.places])
    return [variable for variable in loops if variable not in known]
