"""Tiles of other ranks that are fetched ahead of their use: one operation, until it becomes roles and signals."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IntegerAttr, UnitAttr, i64
from xdsl.ir import BlockArgument, SSAValue
from xdsl.irdl import (
    AnyOf,
    BaseAttr,
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import NoMemoryEffect
from xdsl.utils.exceptions import VerifyException

from pkc.dialect.access import INDEX, LoadOp
from pkc.dialect.arrays import array_type
from pkc.dialect.by_table import GatherOp
from pkc.dialect.program import index_shape, verify_indices, verify_tile
from pkc.dialect.types import PGLType, PrivateType, SignalType, TileType


@irdl_op_definition
class FetchOp(IRDLOperation):
    """A tile of other ranks, fetched into a receive buffer ahead of its use, and read from there.

    The tile is the result of a load or gather of a sharded array. Another role fetches the tiles of all iterations,
    each once, to `places` of `buffer`, and signals `ready`. Fetches with one counter are one transfer: of several
    arrays, if their buffers differ, or of one array that is read at several places. They have the same decisions:

    - `local`: this rank's shard is read in place, neither fetched nor waited for;
    - `spread`: the number of loops over the tiles, outermost first, that are distributed over CTAs;
    - `group`: the tiles of the innermost loop in one tile group; without it, a group is all that one counter is for;
    - `visited`: only tiles are fetched that a task of this rank visits.

    %1 = pk.fetch %0 into %A_fetched[%m, %k : ...] ready %A_ready local spread 1 group 8 : <buffer>, <signal>, <tile>
    """

    name = "pk.fetch"
    tile = operand_def(TileType)
    buffer = operand_def(AnyOf((BaseAttr(PrivateType), BaseAttr(PGLType))))
    ready = operand_def(SignalType)
    places = var_operand_def(INDEX)
    local = opt_prop_def(UnitAttr)
    spread = opt_prop_def(IntegerAttr.constr(i64))
    group = opt_prop_def(IntegerAttr.constr(i64))
    visited = opt_prop_def(UnitAttr)
    result = result_def(TileType)
    traits = traits_def(NoMemoryEffect())
    assembly_format = (
        "$tile `into` $buffer `[` $places `:` type($places) `]` `ready` $ready (`local` $local^)? (`spread` $spread^)?"
        " (`group` $group^)? (`visited` $visited^)? attr-dict"
        " `:` type($buffer) `,` type($ready) `,` type($tile) `->` type($result)"
    )

    def __init__(self, tile: SSAValue, buffer: SSAValue, places: Sequence[SSAValue], ready: SSAValue) -> None:
        super().__init__(operands=[tile, buffer, ready, places], result_types=[tile.type])

    def decide(self, *, local: bool, spread: int, group: int) -> None:
        """Write these decisions; 0 leaves one out."""
        self.local = UnitAttr() if local else None
        self.spread = IntegerAttr(spread, i64) if spread else None
        self.group = IntegerAttr(group, i64) if group else None

    def verify_(self) -> None:
        if not isinstance(self.buffer, BlockArgument) or not isinstance(self.ready, BlockArgument):
            raise VerifyException("a receive buffer and its counters are arguments of the kernel")
        if not isinstance(self.tile.owner, LoadOp | GatherOp):
            raise VerifyException("the tile of a fetch is the result of a load or gather")
        buffer = array_type(self.buffer)
        verify_indices(buffer, self.places)
        verify_tile(self.tile.type, index_shape([i.type for i in self.places]), buffer.element_type, "a tile")
        if self.result.type != self.tile.type:
            raise VerifyException("a fetch does not change the type of its tile")
        if any(number is not None and number.value.data < 1 for number in (self.spread, self.group)):
            raise VerifyException("`spread` and `group` are positive, or left out")
        others = [use.operation for use in self.ready.uses if isinstance(use.operation, FetchOp)]
        decided = (self.local, self.spread, self.group, self.visited)
        if any((op.local, op.spread, op.group, op.visited) != decided for op in others):
            raise VerifyException("fetches with one counter have the same `local`, `spread`, `group` and `visited`")
