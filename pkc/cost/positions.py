"""Where the blocks of an average task are, and how many there are of a list, for given dimensions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from math import prod

from xdsl.ir import Block, Operation, SSAValue

from pkc.cost.lists import mean_count, window
from pkc.cost.records import UnknownWorkError
from pkc.dialect import blocks
from pkc.dialect.access import READING, AccumulateOp, AllReduceOp, StoreAddOp, StoreOp
from pkc.dialect.by_table import ByTable
from pkc.dialect.coordinates import BlockCountOp, BlockOp
from pkc.dialect.positions import RANK, Sizes
from pkc.dialect.program import TasksOp, kernel_of
from pkc.dialect.tile import block_type
from pkc.dialect.types import RANKS, Dim
from pkc.passes.analysis.dependence import sources
from pkc.semantics.evaluate import Evaluator

_ACCESSES = (*READING, StoreOp, StoreAddOp, AccumulateOp, AllReduceOp)
"""Operations whose indices say where in an array they go; those by tables are looked at by their tables."""

_LOOKED_AT = 64
"""The most blocks of a dimension that are looked at for the shortest one."""


@dataclass(frozen=True)
class Positions:
    """A block of an average task: its valid positions, and those of its box that lie inside of an array that is not
    sharded."""

    dim: Dim
    extent: int
    count: float
    valid: float
    inside: float


class Placed(Evaluator):
    """Evaluates each block once, with the middle task and the first index of each loop on rank 0. It compiles
    nothing."""

    fixed = {RANK: 0}

    def __init__(self, dims: Mapping[str, int], ranks: int) -> None:
        super().__init__(Sizes({**dims, RANKS: ranks}))
        self._extent, self._ranks = self.machine.size, ranks
        self._assumed: dict[str, None] = {}

    def _assume(self, what: str) -> None:
        self._assumed[what] = None

    def unknown(self, op: Operation) -> None:
        """Nothing yet: it may be that nothing depends on it."""

    def _value(self, value: SSAValue) -> float:
        known = self.known(value)
        if known is None:
            raise UnknownWorkError("how much there is to do is known only when it runs")
        return known

    def _list(self, dim: Dim, size: int, op: BlockOp | BlockCountOp) -> tuple[float, float, int]:
        """Blocks of a list, the positions that they cover, and the length of the ranges that no block straddles."""
        extent = self._extent(dim)
        longest = self._window(op)
        if longest is not None:
            return blocks.count(0, longest, size), longest, longest
        if op.start is not None or op.stop is not None:
            first, last = self._bound(op.start, 0), self._bound(op.stop, extent)
            covered = max(0, min(last, extent) - max(first, 0))
            if self._is_unknown(op.stop) and (lists := self._lists(op)) > 1:
                covered = min(covered, extent // lists)  # they lie behind each other
            if self._ranks == 1 and any(map(self._is_unknown, (op.start, op.stop))):
                return mean_count(covered, size), covered / 2, covered
            return blocks.count(0, covered, size), covered, covered
        length = blocks.shard_length(extent, self._ranks)
        if op.shard is not None:
            return blocks.count(0, length, size), length, length
        if op.sharded is not None:
            return blocks.sharded_count(extent, self._ranks, size), extent, length
        return blocks.count(0, extent, size), extent, extent

    def _window(self, op: BlockOp | BlockCountOp) -> int | None:
        """How long a list is of whose ends memory has both, one so many positions behind the other."""
        if op.start is None or op.stop is None or not self._is_unknown(op.stop):
            return None
        most = window(op.start, op.stop, self.known)
        if most is None:
            return None
        self._assume("lists of blocks that are as long as they may be")
        return max(0, min(most, self._extent(_of(op))))

    def _lists(self, op: BlockOp | BlockCountOp) -> int:
        """How many lists of a dimension lie behind each other, if each task around begins another one, in the same part
        of what it addresses."""
        found = sources((op.start,) if op.start is not None else ()) - _other_places(op)
        tasks = {value.owner.parent_op(): value.owner for value in found if isinstance(value.owner, Block)}
        counts = [
            count
            for around, body in tasks.items()
            if isinstance(around, TasksOp)
            for index, count in zip(body.args, around.counts, strict=True)
            if index in found
        ]
        return int(prod(self._value(count) for count in counts))

    def _bound(self, value: SSAValue | None, otherwise: int) -> int:
        """The bound of a list; that of the dimension if the list has none, or only the running kernel knows it."""
        known = None if value is None else self.known(value)
        if self._is_unknown(value):
            half = "half as long as they may be" if self._ranks == 1 else "as long as they may be"
            self._assume(f"lists of blocks that are {half}")
        return otherwise if known is None else int(known)

    def _assumed_block(self, op: BlockOp) -> blocks.Block | None:
        """A block of a list of which memory has a bound, as if the list went on to the end of the dimension: masks
        leave out blocks by where they are. Nothing if it is known, or its number is not."""
        number = self.known(op.index)
        if number is None or not any(map(self._is_unknown, (op.start, op.stop))):
            return None
        extent = self._extent(block_type(op.result).of)
        first, last = self._bound(op.start, 0), self._bound(op.stop, extent)
        return blocks.block(first, last, block_type(op.result).extent, int(number))

    def _is_unknown(self, bound: SSAValue | None) -> bool:
        return bound is not None and self.known(bound) is None

    def _positions(self, op: BlockOp) -> Positions:
        kind = block_type(op.result)
        count, covered, piece = self._list(kind.of, kind.extent, op)
        valid = covered / count if count else 0.0
        # In arrays that are not sharded, the box of a shorter block reaches into the next range. The last block has the
        # fewest positions, and where tasks are few, the SMs that run its tasks run no others.
        extent = self._extent(kind.of)
        starts = range(0, extent, min(piece, kind.extent) or 1)[:_LOOKED_AT]
        worst = min((min(kind.extent, extent - start) for start in starts), default=0)
        return Positions(kind.of, kind.extent, count, valid, worst if piece < kind.extent else valid)


def _of(op: BlockOp | BlockCountOp) -> Dim:
    return (op.block if isinstance(op, BlockCountOp) else block_type(op.result)).of


def _other_places(op: BlockOp | BlockCountOp) -> set[SSAValue]:
    """What all accesses by blocks of a list, or by tables of its positions, are addressed by beside these: lists of
    other sequences begin at other places, but each in a row of an array that is the sequence's own."""
    start, kernel = op.start, kernel_of(op)
    made = (use.operation for use in (start.uses if start is not None else ()))
    listed = {block.result for block in made if isinstance(block, BlockOp)}
    users = {use.operation: None for block in listed for use in block.uses if isinstance(use.operation, _ACCESSES)}
    tables = [inner for inner in kernel.walk() if isinstance(inner, ByTable)] if kernel is not None else []
    users |= {user: None for user in tables if not listed.isdisjoint(sources(user.tables))}
    found = [sources(user.operands, listed) for user in users]
    return reduce(set[SSAValue].intersection, found) if found else set()
