"""The pass `pk-part-axes`: a tile of one axis that lies along rows and along columns becomes two."""

from __future__ import annotations

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation, SSAValue

from pkc.dialect.access import LoadOp
from pkc.dialect.declaration import OPERATIONS
from pkc.dialect.elementwise import CompareOp
from pkc.dialect.program import KernelOp
from pkc.dialect.reductions import RowReduction
from pkc.dialect.tile import BroadcastOp, CastOp, ClipOp, FullOp, PositionsOp, SplatOp
from pkc.dialect.types import TileType
from pkc.passes.analysis.dependence import sources
from pkc.passes.analysis.register_axes import lying_both_ways
from pkc.passes.kernel_pass import KernelPass
from pkc.remarks import missed

ALONG = "along"
_MAKES = (LoadOp, PositionsOp, FullOp, SplatOp, BroadcastOp, CastOp, ClipOp, CompareOp, *OPERATIONS)


class PartAxes(KernelPass):
    """Make a tile of one axis again for its uses along columns, if it is used along rows too: threads have other
    elements of a row than of a column.

    It is computed again, from loads and positions of its own, which have the attribute `along`, so that nothing merges
    them with the others. A tile that follows from a reduction of rows, or that a loop carries, stays one, and goes
    through shared memory (`pk-stage-axes`).

    Before:

        %p = pk.positions %s : !pk.block<S by 64> -> !pk.tile<64xi32>
        %r = pk.broadcast %p axes [0] : !pk.tile<64xi32> -> !pk.tile<64x64xi32>
        %c = pk.broadcast %p axes [1] : !pk.tile<64xi32> -> !pk.tile<64x64xi32>

    After:

        %p = pk.positions %s : !pk.block<S by 64> -> !pk.tile<64xi32>
        %r = pk.broadcast %p axes [0] : !pk.tile<64xi32> -> !pk.tile<64x64xi32>
        %q = pk.positions %s {along = "columns"} : !pk.block<S by 64> -> !pk.tile<64xi32>
        %c = pk.broadcast %q axes [1] : !pk.tile<64xi32> -> !pk.tile<64x64xi32>
    """

    name = "pk-part-axes"

    def run(self, kernel: KernelOp) -> None:
        for op in lying_both_ways(kernel.body):
            _part(op)


def _part(op: BroadcastOp) -> None:
    """Give a broadcast a tile of its own."""
    if not _repeats(op.tile):
        reason = "it follows from a reduction of rows, or a loop carries it"
        missed(PartAxes.name, op, f"a tile that lies along rows and along columns goes through shared memory: {reason}")
        return
    op.operands[0] = _again(op.tile, {})


def _repeats(tile: SSAValue) -> bool:
    """Whether a tile of one axis can be made again."""
    rows = [value for value in sources([tile]) if _is_row(value)]
    return all(isinstance(row.owner, _MAKES) and not isinstance(row.owner, RowReduction) for row in rows)


def _again(tile: SSAValue, made: dict[SSAValue, SSAValue]) -> SSAValue:
    """The same tile, made again behind each operation that makes it."""
    op = tile.owner
    assert isinstance(op, Operation) and op.parent is not None
    if tile not in made:
        for one in op.operands:
            if _is_row(one):
                _again(one, made)
        copy = op.clone(made)
        copy.location, copy.attributes[ALONG] = op.location, StringAttr("columns")
        op.parent.insert_op_after(copy, op)
        copy.results[0].name_hint = tile.name_hint
        made[tile] = copy.results[0]
    return made[tile]


def _is_row(value: SSAValue) -> bool:
    return isinstance(value.type, TileType) and value.type.rank == 1
