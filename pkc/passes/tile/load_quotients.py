"""The pass `pk-load-quotients`: positions of a block, divided by a constant, are those of a shorter block."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.ir import Operation, SSAValue

from pkc.dialect.access import LoadOp
from pkc.dialect.arrays import array_type, is_pgl
from pkc.dialect.by_table import GatherOp, tables_of
from pkc.dialect.coordinates import SHIFTED, BlockOp, BlockPositionOp, written_type
from pkc.dialect.elementwise import FloorDivOp
from pkc.dialect.program import KernelOp
from pkc.dialect.tile import (
    AnyMmaOp,
    BroadcastOp,
    ClipOp,
    EnlargeOp,
    FullOp,
    PositionsOp,
    TransposeOp,
    block_type,
    tile_type,
)
from pkc.dialect.types import BlockType, Dim, Layout
from pkc.passes.analysis.dependence import role_around
from pkc.passes.analysis.multiples import ends_with_whole_block, position_multiple
from pkc.passes.analysis.named_positions import named
from pkc.passes.dce import drop_dead
from pkc.passes.integers import Integers
from pkc.passes.kernel_pass import KernelPass
from pkc.remarks import missed


class LoadQuotients(KernelPass):
    """Load `A[m, n // 32]` as a block of A, each element of which is there 32 times.

    The blocks of n begin at multiples of 32, and have a multiple of 32 positions: so the positions that they name are a
    block of A, which moves as other tiles do, and each element once. Where 32 is a multiple of what the blocks have,
    all positions of one name the same place. Past the end of the block of n the table names nothing: there a clip is
    zero, unless all blocks are whole.

    Before:

        %p = pk.positions %n : !pk.block<4096 by 1024> -> !pk.tile<1024xi32>
        %q = pk.floordiv %p, %32 : !pk.tile<1024xi32>
        %rows = ...                                      // %q, and -1 past the ends
        %w = pk.gather %A rows %rows dim 1 axes [0, 1][%m : ...] : ... -> !pk.tile<8x1024xi32>

    After:

        %few = pk.block[%j] : !pk.block<128 by 32>
        %a = pk.load %A[%m, %few : ...] : ... -> !pk.tile<8x32xi32>
        %w = pk.enlarge %a : !pk.tile<8x32xi32> -> !pk.tile<8x1024xi32>
    """

    name = "pk-load-quotients"

    def run(self, kernel: KernelOp) -> None:
        replaced = [_replace(op) for op in list(kernel.walk()) if isinstance(op, GatherOp)]
        if any(replaced):
            drop_dead(kernel.body)  # the tables: estimates count what threads compute


@dataclass(frozen=True)
class _Quotient:
    """Positions of a block, divided by a number."""

    block: BlockOp
    by: int

    @property
    def extent(self) -> int:
        """How many places they name; 1 if all name the same one."""
        return max(1, block_type(self.block.result).extent // self.by)

    @property
    def is_one(self) -> bool:
        return block_type(self.block.result).extent <= self.by


def _replace(op: GatherOp) -> bool:
    """Make a load of it, if all its tables are quotients. Whether it did."""
    dims = array_type(op.array).dimensions
    found = [_quotient(place, dim) if place in op.tables else place for place, dim in zip(op.places, dims, strict=True)]
    if not any(isinstance(one, _Quotient | str) for one in found):
        return False
    if reason := _why_not(op, found):
        missed(LoadQuotients.name, op, f"positions divided by a number go by a table, not as a block does: {reason}")
        return False
    numbers, kept, axis = Integers(op), list[int](), 0
    places = list[SSAValue]()
    for one, dim in zip(found, dims, strict=True):
        assert one is not None and not isinstance(one, str)
        along = isinstance(one, _Quotient) or isinstance(one.type, BlockType)
        if along and not (isinstance(one, _Quotient) and one.is_one):
            kept.append(axis)
        axis += along
        places.append(_place(numbers, one, dim) if isinstance(one, _Quotient) else one)
    kind = tile_type(op.result)
    load = LoadOp(op.array, places)
    made: list[Operation] = [load]
    shape = [kind.shape[axis] for axis in kept]
    if list(tile_type(load.result).shape) != shape:
        made.append(EnlargeOp(made[-1], shape))
    if len(kept) < kind.rank:
        made.append(BroadcastOp(made[-1], kept, kind))
    blocks = [one.block for one in found if isinstance(one, _Quotient)]
    axes = [axes[0] for place, axes in zip(op.places, op.axes_of_places, strict=True) if place in op.tables]
    for block, axis in zip(blocks, axes, strict=True):
        if not _is_whole(block):
            made.append(ClipOp(made[-1], block.result, axis, 0))
    for one in made:
        numbers.made(one)
    made[-1].results[0].name_hint = op.result.name_hint
    op.result.replace_all_uses_with(made[-1].results[0])
    op.detach()
    op.erase()
    return True


def _quotient(table: SSAValue, dim: Dim) -> _Quotient | str | None:
    """The positions that a table has divided, if they name a block of the dimension, or one place of it; if they go by
    a table, why; None of other tables."""
    found = named(table, dim)
    division = found.numbers.owner
    if not isinstance(division, FloorDivOp) or not isinstance(division.rhs.owner, FullOp):
        return None
    positions, by = division.lhs.owner, int(division.rhs.owner.constant)
    if not isinstance(positions, PositionsOp) or by < 1:
        return None
    block = positions.block.owner
    if not isinstance(block, BlockOp) or block.in_shard or positions.zigzag:
        return "they are those of a shard"
    if found.block is not positions.block and not _is_whole(block):
        return "they go on past the end of the block"
    known = block_type(block.result)
    divided, begins = known.extent % by == 0, position_multiple(block)
    if not (divided and begins % by == 0) and not (by % known.extent == 0 and begins % known.extent == 0):
        return f"the blocks of {known.extent} do not begin and end at multiples of {by}"
    inside = isinstance(known.of, int) and isinstance(dim, int) and (known.of - 1) // by < dim
    if known.extent <= by and not inside:
        return "what they name may lie past the end"
    return _Quotient(block, by)


def _is_whole(block: BlockOp) -> bool:
    """Whether each block of a list has as many positions as its type says."""
    known = block_type(block.result)
    if not isinstance(known.of, int) or known.of % known.extent != 0 or position_multiple(block) % known.extent != 0:
        return False
    return ends_with_whole_block(block)


def _why_not(op: GatherOp, found: list[_Quotient | SSAValue | str | None]) -> str:
    """Why an access with quotients goes by tables; empty if it need not."""
    if op.local is not None or is_pgl(op.array, Layout.Shard) or op.names_ranks:
        return "its rows may lie on several ranks"
    if role_around(op) is not None:
        return "roles that are written out load what they say"
    if None in found:
        return "another index is a table"
    if reason := next((one for one in found if isinstance(one, str)), ""):
        return reason
    axes = [] if op.axes is None else list(op.axes.get_values())
    if op.axes is not None and axes != list(range(len(axes))):
        return "another index goes along its axis"
    if _makes_table(op.result):
        return "another table is computed of it"
    return "a matmul reads it where it is loaded" if _is_operand(op.result) else ""


def _makes_table(tile: SSAValue) -> bool:
    """Whether something is found by what is computed of a tile: threads evaluate that where they need it."""
    seen, todo = set[SSAValue](), [tile]
    while todo:
        value = todo.pop()
        for op in {use.operation for use in value.uses} if value not in seen else ():
            if value in tables_of(op):
                return True
            todo += op.results
        seen.add(value)
    return False


def _is_operand(tile: SSAValue) -> bool:
    """Whether an MMA reads a tile as it is."""
    users = [use.operation for use in tile.uses]
    views = [op.results[0] for op in users if isinstance(op, ClipOp | TransposeOp)]
    return any(isinstance(op, AnyMmaOp) for op in users) or any(map(_is_operand, views))


def _place(numbers: Integers, one: _Quotient, dim: Dim) -> SSAValue:
    """What positions name, divided: a block, or one place."""
    block, by = one.block, numbers.number(one.by)
    if one.is_one:
        return numbers.made(arith.FloorDivSIOp(numbers.made(BlockPositionOp(block.result)), by))
    start = None if block.start is None else numbers.over(block.start, by)
    made = BlockOp(block.index, BlockType(dim, one.extent), start=start)
    made.attributes[SHIFTED] = written_type(block.result) or block_type(block.result)
    return numbers.made(made)
