"""The pass `pk-split-blocks`: blocks of long rows that are reduced along their columns go through row by row."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IndexType, IntegerAttr, i64
from xdsl.ir import Block, Operation, SSAValue
from xdsl.traits import MemoryEffectKind, is_side_effect_free, only_has_effect

from pkc.dialect.access import AccumulateOp, LoadOp, StoreOp
from pkc.dialect.coordinates import BlockCountOp, BlockOp, BlockPositionOp
from pkc.dialect.elementwise import Binary, CompareOp, SelectOp, Unary
from pkc.dialect.program import KernelOp, TasksOp
from pkc.dialect.reductions import RowReduction
from pkc.dialect.tile import BroadcastOp, CastOp, ClipOp, FullOp, PositionsOp, SplatOp, TransposeOp, tile_type
from pkc.dialect.types import BlockType, TileType
from pkc.passes.analysis.pointwise import is_spread
from pkc.passes.build import constant
from pkc.passes.kernel_pass import KernelPass
from pkc.remarks import missed

_ALIKE = (Binary, Unary, CompareOp, SelectOp, CastOp)
"""Each element of the result is made of the elements at its place."""

_BY_ROW = (*_ALIKE, ClipOp, BroadcastOp, TransposeOp, FullOp, SplatOp, PositionsOp, LoadOp, StoreOp, RowReduction)

_LEAST = 256
"""The fewest elements of a row that goes through by itself: two for each thread of a warpgroup."""

_ALONE = 1024
"""The fewest elements of a row of which nothing but reductions of columns is made: 16 bytes of 16-bit elements for each
thread of a warpgroup. Shorter ones come as a block, which each thread reads along its columns: a row takes as long to
wait for as a block."""


class SplitBlocks(KernelPass):
    """Let a block of long rows go through row by row, where a tile is reduced along its columns, as for the gradient of
    a norm's weights: a loop over the positions of the block carries what they are reduced to. Where nothing else is
    made of the rows, only long ones do: threads read others along columns.

    All threads of a CTA share a row, so each has the same columns of all rows, and nothing goes from one thread to
    another for a reduction of columns. The rest of a block, such as what is stored for each row, comes in the loop too.

    Before:

        %m = pk.block[%i] : !pk.block<M by 16>
        %x = pk.load %X[%m, %d : ...] : ... -> !pk.tile<16x1024xf32>
        %t = pk.transpose %x : !pk.tile<16x1024xf32> -> !pk.tile<1024x16xf32>
        %u = pk.clip %t axis 1 to %m fill 0.0 : ...
        %s = pk.row_sum %u : !pk.tile<1024x16xf32> -> !pk.tile<1024xf32>

    After:

        %first = arith.muli %i, %sixteen : index
        %all = pk.block_count <M by 1>
        %left = arith.subi %all, %first : index
        %count = arith.minsi %left, %sixteen : index
        %s = scf.for %r = %zero to %count step %one iter_args(%sum = %zeros) -> (!pk.tile<1024xf32>) {
          %n = arith.addi %first, %r : index
          %row = pk.block[%n] : !pk.block<M by 1>
          %p = pk.block_position %row : !pk.block<M by 1>
          %x = pk.load %X[%p, %d : ...] : ... -> !pk.tile<1024xf32>
          %t = pk.add %sum, %x : !pk.tile<1024xf32>
          scf.yield %t : !pk.tile<1024xf32>
        }
    """

    name = "pk-split-blocks"

    def run(self, kernel: KernelOp) -> None:
        tasks = [op for op in kernel.walk() if isinstance(op, TasksOp) and is_spread(op)]
        around = [region.block for one in tasks for op in one.walk() for region in op.regions if region.blocks]
        for block in dict.fromkeys(around):
            for op in [op for op in block.ops if isinstance(op, BlockOp)]:
                rows = _Rows(block, op)
                if not rows.are_long():
                    continue
                reason = rows.obstacle()
                if reason:
                    missed(SplitBlocks.name, rows.sums[0], f"rows do not go through one by one: {reason}")
                else:
                    rows.divide()


@dataclass
class _Rows:
    """The operations of `around` on tiles that go along a block."""

    around: Block
    of: BlockOp
    axis: dict[SSAValue, int] = field(default_factory=dict[SSAValue, int])
    """Along which of their axes tiles go along it."""
    now: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    """What a row has of a tile."""

    def __post_init__(self) -> None:
        if self.kind.extent > 1 and isinstance(self.kind.of, str) and self.of.outside is None:
            self._find_axes()

    @property
    def kind(self) -> BlockType:
        return self.of.result.type

    # Which tiles these are

    def _find_axes(self) -> None:
        """By what operations say of their operands, until nothing new is known: constants have the axes of what they
        meet."""
        before = -1
        while len(self.axis) != before:
            before = len(self.axis)
            for op in self.around.ops:
                self._of_op(op)

    def _of_op(self, op: Operation) -> None:
        if isinstance(op, LoadOp):
            places = [index for index in op.indices if isinstance(index.type, BlockType)]
            if self.of.result in places:
                self.axis[op.result] = places.index(self.of.result)
        elif isinstance(op, PositionsOp):
            if op.block is self.of.result:
                self.axis[op.result] = 0
        elif isinstance(op, BroadcastOp):
            if op.tile in self.axis:
                self.axis[op.result] = op.positions[self.axis[op.tile]]
            elif self.axis.get(op.result) in op.positions:
                self.axis[op.tile] = op.positions.index(self.axis[op.result])
        elif isinstance(op, TransposeOp):
            self._alike(op.tile, op.result, turned=True)
        elif isinstance(op, RowReduction):
            if self.axis.get(op.tile, len(tile_type(op.tile).shape)) < tile_type(op.tile).rank - 1:
                self.axis[op.result] = self.axis[op.tile]
        elif isinstance(op, (*_ALIKE, ClipOp)):
            tiles = [value for value in (*op.operands, *op.results) if isinstance(value.type, TileType)]
            known = next((self.axis[value] for value in tiles if value in self.axis), None)
            if known is not None:
                self.axis |= dict.fromkeys((value for value in tiles if tile_type(value).rank), known)

    def _alike(self, a: SSAValue, b: SSAValue, *, turned: bool) -> None:
        for one, other in ((a, b), (b, a)):
            if one in self.axis:
                self.axis[other] = 1 - self.axis[one] if turned else self.axis[one]

    @property
    def inside(self) -> list[Operation]:
        """The operations that each row needs, in their order."""
        return [op for op in self.around.ops if any(value in self.axis for value in (*op.operands, *op.results))]

    @property
    def sums(self) -> list[RowReduction]:
        """The reductions along the block."""
        return [op for op in self.inside if isinstance(op, RowReduction) and op.result not in self.axis]

    def are_long(self) -> bool:
        """Whether the block is reduced along columns of long rows."""
        sizes = (prod(tile_type(op.tile).shape[:-1]) for op in self.sums if tile_type(op.tile).rank > 1)
        return max(sizes, default=0) >= (_ALONE if self._are_only_loaded() else _LEAST)

    def _are_only_loaded(self) -> bool:
        """Whether nothing but the reductions of columns is made of what is loaded, transposed."""
        loads = [op for op in self.inside if isinstance(op, LoadOp) and tile_type(op.result).rank > 1]
        users = [use.operation for op in loads for use in op.result.uses]
        others = [op for op in self.inside if isinstance(op, StoreOp | RowReduction) and op not in self.sums]
        return bool(users) and not others and all(isinstance(op, TransposeOp) for op in users)

    # Whether it can be done

    def obstacle(self) -> str:
        """Why the block stays whole; empty if it need not."""
        inside = self.inside
        for op in inside:
            if op.regions or not isinstance(op, _BY_ROW):
                return f"`{op.name}` needs them together"
            if isinstance(op, StoreOp) and self.of.result not in op.indices:
                return "they are stored elsewhere"
        if self.of.sharded is not None and self.of.shard is None:
            return "their numbers begin anew in each rank's shard"
        if any(isinstance(op, PositionsOp) and op.zigzag for op in inside):
            return "they lie in zigzag order"
        written = {op.array for op in inside if isinstance(op, StoreOp)}
        for op in inside:
            if isinstance(op, LoadOp) and op.array in written and self.of.result not in op.indices:
                return "what one writes another reads"
        behind = self._behind()
        if not behind.isdisjoint(inside):
            return "what is computed for each needs the reduction of all"
        between = list(self.around.ops)
        between = between[between.index(inside[0]) : between.index(inside[-1]) + 1]
        others = (op for op in between if op not in inside and not isinstance(op, StoreOp | AccumulateOp))
        if not all(is_side_effect_free(op) or only_has_effect(op, MemoryEffectKind.READ) for op in others):
            return "something else is written, or awaited, in between"
        return ""

    def _behind(self) -> set[Operation]:
        """What follows from the reductions."""
        found: set[Operation] = set()
        todo: list[Operation] = list(self.sums)
        while todo:
            for value in todo.pop().results:
                for use in value.uses:
                    user = self.around.find_ancestor_op_in_block(use.operation)
                    if user is not None and user not in found:
                        found.add(user)
                        todo.append(user)
        return found

    # Doing it

    def divide(self) -> None:
        inside, sums, behind = self.inside, self.sums, self._behind()
        place = inside[-1]
        late = [op for op in self.around.ops if op in behind and op.is_before_in_block(place)]
        begin = [FullOp(op.NEUTRAL[tile_type(op.result).element_type], tile_type(op.result)) for op in sums]
        bounds, first, count, (zero, one) = self._bounds()
        body = Block(arg_types=[IndexType(), *(op.result.type for op in begin)])
        loop = scf.ForOp(zero, count, one, [op.result for op in begin], body)
        for op in (*bounds, *begin, loop):
            op.location = place.location
        self.around.insert_ops_after([*bounds, *begin, loop], place)
        for op in reversed(late):
            op.detach()
            self.around.insert_op_after(op, loop)
        self._fill(body, inside, first)
        for op, result in zip(sums, loop.results, strict=True):
            result.name_hint = op.result.name_hint
            op.result.replace_all_uses_with(result)
        for op in reversed(inside):
            op.detach()
            op.erase()

    def _bounds(self) -> tuple[list[Operation], SSAValue, SSAValue, tuple[SSAValue, SSAValue]]:
        """The number of the block's first row among all rows, and how many rows the block has."""
        of, kind = self.of, BlockType(self.kind.of, 1)
        zero, one, extent = constant(0), constant(1), constant(self.kind.extent)
        first = arith.MuliOp(of.index, extent.result)
        rows = BlockCountOp(kind, shard=of.shard, start=of.start, stop=of.stop, sharded=of.sharded is not None)
        left = arith.SubiOp(rows.result, first.result)
        count = arith.MinSIOp(left.result, extent.result)
        made: list[Operation] = [zero, one, extent, first, rows, left, count]
        return made, first.result, count.result, (zero.result, one.result)

    def _fill(self, body: Block, inside: list[Operation], first: SSAValue) -> None:
        of, carried = self.of, iter(body.args[1:])
        number = arith.AddiOp(first, body.args[0])
        row = BlockOp(
            number.result,
            BlockType(self.kind.of, 1),
            shard=of.shard,
            start=of.start,
            stop=of.stop,
            sharded=of.sharded is not None,
        )
        at = BlockPositionOp(row.result)
        for op in (number, row, at):
            op.location = of.location
            body.add_op(op)
        sums: list[SSAValue] = []
        for op in inside:
            if isinstance(op, RowReduction) and op.result not in self.axis:
                made = op.COMBINE(next(carried), self.now[op.tile])
                sums.append(made.result)
            else:
                same = self._same(op)
                if same is not None:
                    self.now[op.results[0]] = same
                    continue
                made = self._of_row(op, at.result)
                self.now |= zip(op.results, made.results, strict=True)
            made.location = op.location
            for old, new in zip(op.results, made.results, strict=True):
                new.name_hint = old.name_hint
            body.add_op(made)
        end = scf.YieldOp(*sums)
        end.location = inside[-1].location
        body.add_op(end)

    def _same(self, op: Operation) -> SSAValue | None:
        """The row of an operand, if that is the row of the result."""
        if isinstance(op, TransposeOp):
            return self.now[op.tile]
        if isinstance(op, ClipOp) and op.axis.value.data == self.axis[op.result]:
            return self.now[op.tile]
        if isinstance(op, BroadcastOp):
            tile = self.now.get(op.tile, op.tile)
            return tile if tile.type == self._shorter(op.result) else None
        return None

    def _of_row(self, op: Operation, position: SSAValue) -> Operation:
        """The operation on a row."""
        if isinstance(op, PositionsOp):
            return SplatOp(position, self._shorter(op.result))
        operands = [position if value is self.of.result else self.now.get(value, value) for value in op.operands]
        properties = dict(op.properties)
        if isinstance(op, BroadcastOp):
            axis = self.axis[op.result]
            positions = [place - (place > axis) for place in op.positions if place != axis]
            return BroadcastOp(operands[0], positions, self._shorter(op.result))
        if isinstance(op, ClipOp):
            axis = op.axis.value.data
            properties["axis"] = IntegerAttr(axis - (axis > self.axis[op.result]), i64)
        return type(op).create(
            operands=operands,
            result_types=[self._shorter(value) for value in op.results],
            properties=properties,
            attributes=dict(op.attributes),
        )

    def _shorter(self, value: SSAValue) -> TileType:
        """The type of what a row has of a tile."""
        kind, axis = tile_type(value), self.axis.get(value)
        return TileType([size for at, size in enumerate(kind.shape) if at != axis], kind.element_type)
