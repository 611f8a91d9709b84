"""One piece of rows that are too long for a CTA: what a loop of `pk-split-rows` computes of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.ir import Attribute, Operation, SSAValue

from pkc.dialect.attributes import Predicate
from pkc.dialect.coordinates import BlockOp
from pkc.dialect.elementwise import AddOp, CompareOp, MulOp, SelectOp, SubOp
from pkc.dialect.reductions import FoldOp, RowMaxOp, RowReduction, RowSumOp
from pkc.dialect.scans import CumSumOp
from pkc.dialect.tile import BroadcastOp, FullOp, RepeatOp, tile_type
from pkc.dialect.types import BlockType, TileType, f32
from pkc.passes.analysis.online import Online

Before = dict[RowReduction | CumSumOp, SSAValue]
"""The reductions of the pieces so far, and their sums where sums so far go on."""


@dataclass
class Piece:
    """What is computed of one piece of the rows; `before` has the reductions of the pieces before it.

    With `folds`, `before` and the results, but for sums that go on, have so many elements of each row. If `folded`,
    `before` alone has them, and there may be no block.
    """

    length: int
    """Of whole rows."""
    online: Callable[[RowReduction], Online | None]
    """How a reduction goes on beside the maximum that it needs."""
    block: BlockOp | None
    inside: Sequence[Operation]
    before: Mapping[RowReduction | CumSumOp, SSAValue]
    folds: int = 0
    folded: bool = False
    results: Before = field(default_factory=Before)
    made: list[Operation] = field(default_factory=list[Operation])

    def ops(self) -> list[Operation]:
        """Operations on the piece, in their order; the reductions are in `results` then."""
        if self.block is None:
            for op in self.before:
                self.results[op] = self._before(op) if isinstance(op, RowReduction) else self.before[op]
            return self.made
        self._place(self.block, self.inside[0])
        now: dict[SSAValue, SSAValue] = {}
        for op in self.inside:
            if isinstance(op, RowReduction) and op in self.before:
                now[op.result] = self._reduced(op, now)
            elif isinstance(op, CumSumOp):
                now[op.result] = self._gone_on(op, now)
            elif self.folds and isinstance(op, BroadcastOp) and self._is_reduced(op.tile):
                now[op.result] = self._add(RepeatOp(now[op.tile], self.block.result.type.extent), op)
            else:
                now |= zip(op.results, self._copy(op, now), strict=True)
        return self.made

    def _is_reduced(self, value: SSAValue) -> bool:
        return isinstance(value.owner, RowReduction) and value.owner in self.before

    def _copy(self, op: Operation, now: dict[SSAValue, SSAValue]) -> Sequence[SSAValue]:
        """The operation on what there is of its operands."""
        operands = [self._operand(value, now) for value in op.operands]
        results = [self._shorter(value.type) for value in op.results]
        copy = type(op).create(
            operands=operands, result_types=results, properties=dict(op.properties), attributes=dict(op.attributes)
        )
        self._place(copy, op)
        for old, new in zip(op.results, copy.results, strict=True):
            new.name_hint = old.name_hint
        return copy.results

    def _reduced(self, op: RowReduction, now: dict[SSAValue, SSAValue]) -> SSAValue:
        """Combine a reduction with that of the pieces before; gives what operations of this piece see of it."""
        if not self.folds:
            (of_piece,) = self._copy(op, now)
            self.results[op] = self._add(op.COMBINE(self._before(op), of_piece), op)
            return self.results[op]
        of_piece = self._add(FoldOp(type(op), self._operand(op.tile, now), self.folds), op)
        self.results[op] = self._add(op.COMBINE(self._before(op), of_piece), op)
        return self._finite(op, self.results[op])

    def _gone_on(self, op: CumSumOp, now: dict[SSAValue, SSAValue]) -> SSAValue:
        """The sums so far of a piece, with what is in front of it."""
        (of_piece,) = self._copy(op, now)
        kind, before = tile_type(of_piece), self.before[op]
        self.results[op] = self._add(AddOp(before, self._add(RowSumOp(self._operand(op.tile, now)), op)), op)
        return self._add(AddOp(self._add(BroadcastOp(before, range(kind.rank - 1), kind), op), of_piece), op)

    def _finite(self, op: RowReduction, value: SSAValue) -> SSAValue:
        """A greatest element so far, or zero where that is -inf: all exponentials are zero then."""
        if not isinstance(op, RowMaxOp) or tile_type(value).element_type != f32:
            return value
        lowest = self._add(FullOp(op.NEUTRAL[f32], tile_type(value)), op)
        nothing = self._add(CompareOp(Predicate.Eq, value, lowest), op)
        return self._add(SelectOp(nothing, self._add(FullOp(0.0, tile_type(value)), op), value), op)

    def _place(self, op: Operation, origin: Operation) -> None:
        op.location = origin.location
        self.made.append(op)

    def _add(self, op: Operation, origin: Operation) -> SSAValue:
        self._place(op, origin)
        return op.results[0]

    def _operand(self, value: SSAValue, now: dict[SSAValue, SSAValue]) -> SSAValue:
        assert self.block is not None
        whole = isinstance(value.type, BlockType) and value.type == BlockType(self.length, self.length)
        return self.block.result if whole else now.get(value, value)

    def _shorter(self, kind: Attribute) -> Attribute:
        if self.block is None or not isinstance(kind, TileType) or self.length not in kind.shape:
            return kind
        size = self.block.result.type.extent
        return TileType([size if extent == self.length else extent for extent in kind.shape], kind.element_type)

    def _before(self, op: RowReduction) -> SSAValue:
        """The reduction of the pieces before, as it is for the maximum that is known now."""
        total, found = self.before[op], self.online(op)
        if found is not None and found.greatest in self.before:
            total = self._rescaled(op, found, total)
        return self._add(type(op)(total), op) if self.folded else total

    def _rescaled(self, op: RowReduction, found: Online, total: SSAValue) -> SSAValue:
        """A sum so far for the maximum that is known now; nothing of -inf alone has a part in it."""
        old, new, kind = self.before[found.greatest], self.results[found.greatest], tile_type(total)
        if self.folds:
            new = self._finite(found.greatest, new)
        if self.folded:
            new = self._add(BroadcastOp(new, range(kind.rank - 1), kind), op)
        grown = self._add(SubOp(old, new), op)
        if found.scale is not None:
            grown = self._add(MulOp(grown, self._add(FullOp(found.scale, kind), op)), op)
        shared = self._add(MulOp(total, self._add(found.function(grown), op)), op)
        if self.folds or self.folded:
            return shared
        lowest = self._add(FullOp(found.greatest.NEUTRAL[kind.element_type], kind), op)
        nothing = self._add(CompareOp(Predicate.Eq, old, lowest), op)
        return self._add(SelectOp(nothing, self._add(FullOp(0.0, kind), op), shared), op)
