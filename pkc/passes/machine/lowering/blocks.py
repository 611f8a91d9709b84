"""Blocks at the machine level: which shard of their dimension they lie in, and where they begin in it."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import SSAValue

from pkc.dialect.blocks import PITCH
from pkc.dialect.coordinates import BlockCountOp, BlockOp, DimOp
from pkc.dialect.types import RANKS, BlockType, Dim, PGLType, PrivateType, dtype_bytes, ends_with_shards
from pkc.passes.machine.emit import Emitter


@dataclass(frozen=True)
class Placed:
    """A block, or a single position: it begins at `local` within shard `shard`, or, where `shard` is None,
    within the whole dimension.

    `stop` is where the list of blocks ends, if that is not the end of the dimension. What is `outside` may begin in
    front of it.
    """

    dim: Dim
    extent: int
    local: SSAValue
    shard: SSAValue | None = None
    stop: SSAValue | None = None
    outside: bool = False


class Dimensions:
    """Extents of dimensions and of their shards, each of ceil(extent / ranks) positions.

    The last shards may be shorter or empty: `whole_shards` of them have the full length.
    """

    def __init__(self, emit: Emitter) -> None:
        self._emit = emit

    def extent(self, dim: Dim) -> SSAValue:
        if isinstance(dim, int):
            return self._emit.const(dim)
        op = DimOp(dim)
        self._emit.add(op)
        return op.result

    def shard_length(self, dim: Dim) -> SSAValue:
        """The length of a whole shard, at least 1."""
        return self._emit.most(self._emit.round_up_over(self.extent(dim), self.extent(RANKS)), 1)

    def row_length(self, array: PrivateType | PGLType) -> SSAValue:
        """How many elements lie from one row of an array to the next, on each rank."""
        last = array.dimensions[-1]
        if isinstance(array, PrivateType) and array.padded:
            each = PITCH // dtype_bytes(array.element_type)
            return self._emit.times(self._emit.round_up_over(self.extent(last), each), each)
        return self.shard_length(last) if ends_with_shards(array) else self.extent(last)

    def whole_shards(self, dim: Dim) -> SSAValue:
        """How many shards have the full length."""
        return self._emit.over(self.extent(dim), self.shard_length(dim))

    def length(self, dim: Dim, shard: SSAValue) -> SSAValue:
        """The length of one shard, which may be short or empty."""
        emit, size = self._emit, self.shard_length(dim)
        left = emit.minus(self.extent(dim), emit.times(shard, size))
        return emit.most(emit.least(left, size), 0)

    def count(self, block: BlockType, op: BlockCountOp, known: dict[SSAValue, SSAValue]) -> SSAValue:
        """How many blocks a list has."""
        emit = self._emit
        if op.shard is not None:
            return emit.round_up_over(self.length(block.of, known[op.shard]), block.extent)
        if op.sharded is not None:
            whole, size = self.whole_shards(block.of), self.shard_length(block.of)
            rest = emit.minus(self.extent(block.of), emit.times(whole, size))
            full = emit.times(whole, emit.round_up_over(size, block.extent))
            return emit.plus(full, emit.round_up_over(rest, block.extent))
        start, stop = self._bound(block.of, op.start, known), self._bound(block.of, op.stop, known)
        length = emit.minus(self.extent(block.of) if stop is None else stop, emit.const(0) if start is None else start)
        return emit.round_up_over(emit.most(length, 0), block.extent)

    def place(self, op: BlockOp, known: dict[SSAValue, SSAValue]) -> Placed:
        """Where block number `index` of a list is."""
        emit, block, index = self._emit, op.result.type, known[op.index]
        assert isinstance(block, BlockType)
        if op.shard is not None:
            return Placed(block.of, block.extent, emit.times(index, block.extent), known[op.shard])
        if op.sharded is not None:
            each = emit.round_up_over(self.shard_length(block.of), block.extent)
            local = emit.times(emit.modulo(index, each), block.extent)
            return Placed(block.of, block.extent, local, emit.over(index, each))
        start, stop = self._bound(block.of, op.start, known), self._bound(block.of, op.stop, known)
        inside = emit.times(index, block.extent)
        if op.outside is not None and op.start is not None:
            begin = emit.plus(emit.least(known[op.start], self.extent(block.of)), inside)
            return Placed(block.of, block.extent, begin, stop=stop, outside=True)
        return Placed(block.of, block.extent, inside if start is None else emit.plus(start, inside), stop=stop)

    def _bound(self, dim: Dim, bound: SSAValue | None, known: dict[SSAValue, SSAValue]) -> SSAValue | None:
        """A bound of a list, clamped to the dimension; None if the list has none."""
        emit = self._emit
        return None if bound is None else emit.most(emit.least(known[bound], self.extent(dim)), 0)

    def interleave(self, block: BlockType, index: SSAValue, first: SSAValue) -> SSAValue:
        """What `pk.interleave` gives (`pkc/dialect/blocks.py`: interleaved)."""
        emit, size, whole = self._emit, self.shard_length(block.of), self.whole_shards(block.of)
        each = emit.round_up_over(size, block.extent)
        rest = emit.minus(self.extent(block.of), emit.times(whole, size))
        extra = emit.round_up_over(rest, block.extent)
        common = emit.times(extra, emit.plus(whole, 1))
        early = emit.compare("slt", index, common)
        shards = emit.select(early, emit.plus(whole, 1), emit.most(whole, 1))
        begun = emit.select(early, index, emit.minus(index, common))
        place = emit.plus(emit.over(begun, shards), emit.select(early, emit.const(0), extra))
        shard = emit.modulo(emit.plus(emit.modulo(begun, shards), first), shards)
        return emit.plus(emit.times(shard, each), place)

    def at(self, dim: Dim, position: SSAValue, *, split: bool) -> Placed:
        """A single position, within its shard if the array is split there."""
        if not split:
            return Placed(dim, 1, position)
        size = self.shard_length(dim)
        return Placed(dim, 1, self._emit.modulo(position, size), self._emit.over(position, size))

    def position(self, block: Placed) -> SSAValue:
        """The first position along the whole dimension."""
        if block.shard is None:
            return block.local
        return self._emit.plus(self._emit.times(block.shard, self.shard_length(block.dim)), block.local)

    def zigzag_position(self, block: Placed, inside: int) -> SSAValue:
        """The position of the element `inside` a block (`pkc/dialect/blocks.py`: zigzag)."""
        emit, shard, half = self._emit, self.owner(block), self._half(block.dim)
        within = emit.plus(self._within(block), inside)
        begun = emit.plus(emit.times(shard, half), within)
        gap = self._zigzag_gap(block.dim, shard)
        return emit.select(emit.compare("sge", within, half), emit.plus(begun, gap), begun)

    def zigzag_count(self, block: BlockType, shard: SSAValue, inside: int, limit: SSAValue) -> SSAValue:
        """What `pk.zigzag_count` gives (`pkc/dialect/blocks.py`: zigzag_count)."""
        emit, half = self._emit, self._half(block.of)
        left = emit.minus(limit, emit.plus(emit.times(shard, half), inside))
        behind = emit.minus(left, self._zigzag_gap(block.of, shard))
        early = emit.round_up_over(emit.most(emit.minus(half, inside), 0), block.extent)
        first, second = (emit.round_up_over(emit.most(number, 0), block.extent) for number in (left, behind))
        return emit.most(emit.least(first, early), second)

    def sharded_before(self, block: BlockType, limit: SSAValue) -> SSAValue:
        """What `pk.sharded_count` gives (`pkc/dialect/blocks.py`: sharded_before)."""
        emit, length, before = self._emit, self.shard_length(block.of), self._emit.most(limit, 0)
        whole = emit.times(emit.over(before, length), emit.round_up_over(length, block.extent))
        return emit.plus(whole, emit.round_up_over(emit.modulo(before, length), block.extent))

    def zigzag_gap(self, block: Placed) -> SSAValue:
        """What `pk.zigzag_gap` gives."""
        return self._emit.minus(self._half(block.dim), self._within(block))

    def _zigzag_gap(self, dim: Dim, shard: SSAValue) -> SSAValue:
        """How many positions come between the halves of a shard: all of later shards."""
        emit = self._emit
        behind = emit.times(emit.plus(shard, 1), self.shard_length(dim))
        return emit.most(emit.minus(self.extent(dim), behind), 0)

    def _half(self, dim: Dim) -> SSAValue:
        return self._emit.round_up_over(self.shard_length(dim), 2)

    def _within(self, block: Placed) -> SSAValue:
        """Where a block begins in its shard."""
        return block.local if block.shard is not None else self._emit.modulo(block.local, self.shard_length(block.dim))

    def number(self, block: Placed) -> SSAValue:
        """What `pk.block_number` gives."""
        owner = self.owner(block)
        return self._emit.plus(self._emit.over(self.position(block), block.extent), owner)

    def owner(self, block: Placed, *, last: bool = False) -> SSAValue:
        """The rank whose shard has the first position of a block, or its last one."""
        if block.shard is not None:
            return block.shard
        return self._emit.over(self._last(block) if last else block.local, self.shard_length(block.dim))

    def index(self, block: Placed, of: BlockType, *, sharded: bool, last: bool) -> SSAValue:
        """What `pk.block_index` gives (`pkc/dialect/blocks.py`: index_of)."""
        emit = self._emit
        if not sharded:
            return emit.over(self._last(block) if last else self.position(block), of.extent)
        length = self.shard_length(of.of)
        each = emit.round_up_over(length, of.extent)
        if block.shard is not None:  # no block of a shard reaches into the next one
            owner, inside = block.shard, emit.plus(block.local, self._reach(block)) if last else block.local
        else:
            position = self._last(block) if last else self.position(block)
            owner, inside = emit.over(position, length), emit.modulo(position, length)
        return emit.plus(emit.times(owner, each), emit.over(inside, of.extent))

    def _last(self, block: Placed) -> SSAValue:
        """The last position of a block that is not empty, along the whole dimension."""
        return self._emit.plus(self.position(block), self._reach(block))

    def _reach(self, block: Placed) -> SSAValue:
        """How far the last position of a block that is not empty lies behind its first one."""
        emit = self._emit
        return emit.minus(emit.least(self.valid(block), block.extent), 1)

    def is_whole(self, block: Placed) -> SSAValue:
        """What `pk.is_whole` gives."""
        return self._emit.compare("sge", self.valid(block), block.extent)

    def valid(self, block: Placed) -> SSAValue:
        """How many positions of the block exist; may be more than its extent."""
        if block.stop is not None:
            return self._emit.minus(block.stop, block.local)
        end = self.extent(block.dim) if block.shard is None else self.length(block.dim, block.shard)
        return self._emit.minus(end, block.local)
