"""Blocks at the machine level: where they begin within a part of their dimension, and which part that is."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import SSAValue

from pkc.dialect.coordinates import BlockCountOp, BlockOp, DimOp
from pkc.dialect.types import RANKS, BlockType, Dim
from pkc.passes.machine.emit import Emitter


@dataclass(frozen=True)
class Placed:
    """A block, or a single position: it begins at `local` within part `part`; without parts `part` is None.

    `stop` is where the list of the block ends, if that is not the end of the dimension.
    """

    dim: Dim
    extent: int
    local: SSAValue
    part: SSAValue | None = None
    stop: SSAValue | None = None


class Dimensions:
    """Extents of dimensions, and the parts they are split into: each of ceil(extent / ranks) positions.

    The last parts may be shorter or empty: `whole` parts have the full length.
    """

    def __init__(self, emit: Emitter) -> None:
        self._emit = emit

    def extent(self, dim: Dim) -> SSAValue:
        if isinstance(dim, int):
            return self._emit.const(dim)
        op = DimOp(dim)
        self._emit.add(op)
        return op.result

    def part(self, dim: Dim) -> SSAValue:
        """The length of a whole part, at least 1."""
        return self._emit.most(self._emit.round_up_over(self.extent(dim), self.extent(RANKS)), 1)

    def whole(self, dim: Dim) -> SSAValue:
        """How many parts have the full length."""
        return self._emit.over(self.extent(dim), self.part(dim))

    def length(self, dim: Dim, part: SSAValue) -> SSAValue:
        """The length of one part."""
        emit, size = self._emit, self.part(dim)
        left = emit.minus(self.extent(dim), emit.times(part, size))
        return emit.most(emit.least(left, size), 0)

    def count(self, block: BlockType, op: BlockCountOp, known: dict[SSAValue, SSAValue]) -> SSAValue:
        """How many blocks a list has."""
        emit = self._emit
        if op.part is not None:
            return emit.round_up_over(self.length(block.of, known[op.part]), block.extent)
        if op.sharded is not None:
            whole, size = self.whole(block.of), self.part(block.of)
            rest = emit.minus(self.extent(block.of), emit.times(whole, size))
            full = emit.times(whole, emit.round_up_over(size, block.extent))
            return emit.plus(full, emit.round_up_over(rest, block.extent))
        start = emit.const(0) if op.start is None else known[op.start]
        stop = self.extent(block.of) if op.stop is None else known[op.stop]
        return emit.round_up_over(emit.most(emit.minus(stop, start), 0), block.extent)

    def place(self, op: BlockOp, known: dict[SSAValue, SSAValue]) -> Placed:
        """Where block number `index` of a list is."""
        emit, block, index = self._emit, op.result.type, known[op.index]
        assert isinstance(block, BlockType)
        if op.part is not None:
            return Placed(block.of, block.extent, emit.times(index, block.extent), known[op.part])
        if op.sharded is not None:
            each = emit.round_up_over(self.part(block.of), block.extent)
            local = emit.times(emit.modulo(index, each), block.extent)
            return Placed(block.of, block.extent, local, emit.over(index, each))
        start = emit.const(0) if op.start is None else known[op.start]
        stop = None if op.stop is None else known[op.stop]
        return Placed(block.of, block.extent, emit.plus(start, emit.times(index, block.extent)), stop=stop)

    def interleave(self, block: BlockType, index: SSAValue, first: SSAValue) -> SSAValue:
        """What `pk.interleave` gives (`pkc/dialect/blocks.py`: interleaved)."""
        emit, size, whole = self._emit, self.part(block.of), self.whole(block.of)
        each = emit.round_up_over(size, block.extent)
        rest = emit.minus(self.extent(block.of), emit.times(whole, size))
        turns = emit.round_up_over(rest, block.extent)
        common = emit.times(turns, emit.plus(whole, 1))
        early = emit.compare("slt", index, common)
        parts = emit.select(early, emit.plus(whole, 1), emit.most(whole, 1))
        begun = emit.select(early, index, emit.minus(index, common))
        turn = emit.plus(emit.over(begun, parts), emit.select(early, emit.const(0), turns))
        part = emit.modulo(emit.plus(emit.modulo(begun, parts), first), parts)
        return emit.plus(emit.times(part, each), turn)

    def at(self, dim: Dim, position: SSAValue, *, split: bool) -> Placed:
        """A single position, within its part if the array is split there."""
        if not split:
            return Placed(dim, 1, position)
        size = self.part(dim)
        return Placed(dim, 1, self._emit.modulo(position, size), self._emit.over(position, size))

    def position(self, block: Placed) -> SSAValue:
        """The first position along the whole dimension."""
        if block.part is None:
            return block.local
        return self._emit.plus(self._emit.times(block.part, self.part(block.dim)), block.local)

    def number(self, block: Placed) -> SSAValue:
        """What `pk.block_number` gives."""
        owner = self.owner(block)
        return self._emit.plus(self._emit.over(self.position(block), block.extent), owner)

    def owner(self, block: Placed, *, last: bool = False) -> SSAValue:
        """The rank in whose part the first position of a block lies, or its last one."""
        if block.part is not None:
            return block.part
        return self._emit.over(self._last(block) if last else block.local, self.part(block.dim))

    def index(self, block: Placed, of: BlockType, *, sharded: bool, last: bool) -> SSAValue:
        """What `pk.block_index` gives (`pkc/dialect/blocks.py`: index_of)."""
        emit, position = self._emit, self._last(block) if last else self.position(block)
        if not sharded:
            return emit.over(position, of.extent)
        part = self.part(of.of)
        each = emit.round_up_over(part, of.extent)
        within = emit.over(emit.modulo(position, part), of.extent)
        return emit.plus(emit.times(emit.over(position, part), each), within)

    def _last(self, block: Placed) -> SSAValue:
        """The last position of a block that is not empty, along the whole dimension."""
        emit = self._emit
        inside = emit.minus(emit.least(self.valid(block), block.extent), 1)
        return emit.plus(self.position(block), inside)

    def valid(self, block: Placed) -> SSAValue:
        """How many positions of the block exist; may be more than its extent."""
        if block.stop is not None:
            return self._emit.minus(block.stop, block.local)
        end = self.extent(block.dim) if block.part is None else self.length(block.dim, block.part)
        return self._emit.minus(end, block.local)
