"""The pass `pk-split-rows`: rows too long for a CTA go through it in pieces."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.traits import MemoryEffectKind, only_has_effect

from pkc.dialect.access import READING, AccumulateOp, LoadOp, StoreOp
from pkc.dialect.by_table import GatherOp
from pkc.dialect.coordinates import BlockOp
from pkc.dialect.program import CONSUMERS, KernelOp, TasksOp
from pkc.dialect.reductions import RowReduction
from pkc.dialect.scans import CumSumOp
from pkc.dialect.tile import (
    FullOp,
    tile_type,
)
from pkc.dialect.types import BlockType, PGLType, PrivateType, TileType
from pkc.passes.analysis.online import Online, online
from pkc.passes.analysis.pointwise import BY_ELEMENT, is_spread
from pkc.passes.build import constant, copy_of
from pkc.passes.kernel_pass import KernelPass
from pkc.passes.tile.row_pieces import Before, Piece
from pkc.remarks import missed

ROW = "row"
"""Key of the schedule: the most elements of a row that a tile has, where the program says `:`."""

_WRITES = (StoreOp, AccumulateOp)
_DIVIDED = (*BY_ELEMENT, LoadOp, GatherOp, CumSumOp, *_WRITES)
"""Operations on long rows of which every piece can be computed by itself, but for reductions, which are added up, and
for sums so far, which go on."""


_FOLDS, _FEWEST, _USUAL = 1024, 256, 2
"""Of how many elements a loop keeps reductions: for each warpgroup, of which a row has so many if the schedule says
nothing, and at least of each row. The order of additions follows from them, so they are the same for every target."""


class SplitRows(KernelPass):
    """Divide rows of a whole dimension that have more elements than the schedule's `row` says into pieces.

    Loops take the place of the operations on whole rows: each loads the pieces of a row once, and reduces as much as
    it can; what needs the result of a reduction stands in the next loop, and loads the pieces again. A sum of
    exponentials of what is less than its maximum needs no loop of its own: it is multiplied whenever the maximum grows
    (Milakov, Gimelshein: Online normalizer calculation for softmax, 2018). Behind each loop comes the rest of the row,
    so that no piece has to be clipped. Every second loop goes through the pieces from the last one to the first: what
    was loaded last is still in the L2 cache; but not where sums so far go on, to which a loop adds those of the pieces
    before. A loop or branch of the program that uses such a row has loops of its own.

    Before, with `row = 1024` in the schedule:

        %d = pk.block[%zero] : !pk.block<8192 by 8192>
        %x = pk.load %X[%m, %d : ...] : ... -> !pk.tile<4x8192xf32>
        %s = pk.row_sum %x : !pk.tile<4x8192xf32> -> !pk.tile<4xf32>
        %b = pk.broadcast %s axes [0] : ...
        %y = pk.div %x, %b : !pk.tile<4x8192xf32>
        pk.store %y, %Y[%m, %d : ...] : ...

    After:

        %s = scf.for %i = %zero to %eight step %one iter_args(%sum = %zeros) -> (!pk.tile<4xf32>) {
          %d = pk.block[%i] : !pk.block<8192 by 1024>
          %x = pk.load %X[%m, %d : ...] : ... -> !pk.tile<4x1024xf32>
          %t = pk.row_sum %x : !pk.tile<4x1024xf32> -> !pk.tile<4xf32>
          %u = pk.add %sum, %t : !pk.tile<4xf32>
          scf.yield %u : !pk.tile<4xf32>
        }
        scf.for %i = %zero to %eight step %one {
          %d = pk.block[%i] : !pk.block<8192 by 1024>
          %x = pk.load %X[%m, %d : ...] : ... -> !pk.tile<4x1024xf32>
          %b = pk.broadcast %s axes [0] : ...
          %y = pk.div %x, %b : !pk.tile<4x1024xf32>
          pk.store %y, %Y[%m, %d : ...] : ...
        }
    """

    name = "pk-split-rows"

    def run(self, kernel: KernelOp) -> None:
        most = kernel.scheduled_number(ROW)
        if most is None:
            return
        blocks = [region.block for op in kernel.walk() for region in op.regions if region.blocks]
        consumers = kernel.scheduled_number(CONSUMERS)
        for length in sorted(lengths(kernel.walk(), most)):
            _compute_again(kernel, {around: _Rows(around, length, most, consumers) for around in blocks})
        for around in blocks:
            for length in sorted(lengths(around.ops, most)):
                rows = _Rows(around, length, most, consumers)
                reason = rows.obstacle()
                if reason:
                    missed(SplitRows.name, rows.ops[0], f"rows of {length} elements are not divided: {reason}")
                else:
                    rows.divide()


def lengths(ops: Iterable[Operation], most: int) -> set[int]:
    """How many elements those rows of whole dimensions have that have more than `most`."""
    kinds = {index.type for op in ops for index in op.operands if isinstance(index.type, BlockType)}
    return {kind.extent for kind in kinds if kind.of == kind.extent > most}


def _compute_again(kernel: KernelOp, rows: Mapping[Block, _Rows]) -> None:
    """Let loops and branches compute for themselves what they use of long rows from in front of them, if all of these
    can be divided then."""
    again: dict[Block, set[Operation]] = {}
    for block, inner in rows.items():
        slices = [_slice(value, inner.length) for value in inner.given()]
        if not all(slices):
            return
        if slices:
            again[block] = set().union(*slices)
    divided = {*again, *(op.parent for ops in again.values() for op in ops)}
    if not any(block is not None and rows[block].obstacle_inside() for block in divided):
        for block, ops in again.items():
            rows[block].compute([op for op in kernel.walk() if op in ops])


def _slice(value: SSAValue, length: int) -> set[Operation]:
    """What computes long rows of arrays that the kernel only reads; nothing if something else does."""
    found: set[Operation] = set()
    todo = [value.owner]
    while todo:
        op = todo.pop()
        if isinstance(op, Block) or not isinstance(op, _DIVIDED) or isinstance(op, RowReduction):
            return set()
        arrays = [array for array in op.operands if isinstance(array.type, PrivateType | PGLType)]
        if not all(isinstance(use.operation, READING) for array in arrays for use in array.uses):
            return set()
        found.add(op)
        todo += [of.owner for of in op.operands if _axis(of.type, length) is not None and of.owner not in found]
    return found


def _axis(kind: Attribute, length: int) -> int | None:
    """The first axis of a tile that is as long."""
    shape = tuple(kind.shape) if isinstance(kind, TileType) else ()
    return shape.index(length) if length in shape else None


def _block_of(value: SSAValue) -> Block | None:
    return value.owner if isinstance(value.owner, Block) else value.owner.parent


@dataclass
class _Rows:
    """The operations of a block on rows of `length` elements; `ops` are in their order."""

    around: Block
    length: int
    most: int
    consumers: int | None
    ops: list[Operation] = field(init=False)
    passed: dict[Operation, int] = field(default_factory=dict[Operation, int])
    """The loop that an operation stands in first."""
    known: dict[SSAValue, int] = field(default_factory=dict[SSAValue, int])
    """How many loops stand in front of the first use of a value that is no long row, if it follows from some."""

    def __post_init__(self) -> None:
        self.ops = [op for op in self.around.ops if self._is_long(op)]

    def _is_long(self, op: Operation) -> bool:
        return any(self._axis(value.type) is not None for value in (*op.operands, *op.results))

    def _axis(self, kind: Attribute) -> int | None:
        return _axis(kind, self.length)

    def _is_reduced(self, op: Operation) -> bool:
        return isinstance(op, RowReduction) and self._axis(op.tile.type) == tile_type(op.tile).rank - 1

    # What comes from in front of a loop or branch

    def given(self) -> list[SSAValue]:
        """The long rows from outside of the block."""
        used = dict.fromkeys(value for op in self.ops for value in op.operands if self._axis(value.type) is not None)
        return [value for value in used if _block_of(value) is not self.around]

    def compute(self, ops: Sequence[Operation]) -> None:
        """Compute what some operations in front of the block do in it, too."""
        known: dict[SSAValue, SSAValue] = {}
        copies: list[Operation] = []
        for op in ops:
            copies.append(copy_of(op, known))
            known.update(zip(op.results, copies[-1].results, strict=True))
        self.around.insert_ops_before(copies, self.ops[0])
        for op in self.ops:
            op.operands = [known.get(value, value) for value in op.operands]

    # Whether it can be done

    def obstacle(self) -> str:
        """Why the rows stay whole; empty if they need not."""
        made = [value for op in self.ops for value in op.results if self._axis(value.type) is not None]
        if self.given() or any(use.operation.parent is not self.around for value in made for use in value.uses):
            return "a loop or branch needs them, and cannot compute them again"
        return self.obstacle_inside()

    def obstacle_inside(self) -> str:
        """The same, but for rows from outside of the block, and for what uses its own inside of loops and branches."""
        for op in self.ops:
            kinds = [value.type for value in (*op.operands, *op.results)]
            across = isinstance(op, CumSumOp) and self._axis(op.tile.type) != tile_type(op.tile).rank - 1
            if op.regions or across or not isinstance(op, _DIVIDED):
                return f"`{op.name}` needs them whole"
            if any(list(kind.shape).count(self.length) > 1 for kind in kinds if isinstance(kind, TileType)):
                return "another axis of a tile is as long"
            blocks = [kind for kind in kinds if isinstance(kind, BlockType)]
            if any(kind.extent == self.length and kind.of != self.length for kind in blocks):
                return "blocks of another dimension are as long"
        between = [inner for op in self._between() if op not in self.ops for inner in op.walk() if not inner.regions]
        stores = [op for op in between if isinstance(op, StoreOp)]
        if not all(op in stores or only_has_effect(op, MemoryEffectKind.READ) for op in between):
            return "something else is written, or awaited, in between"
        self._order()
        read = {op.array for op in self.ops if isinstance(op, LoadOp | GatherOp)}
        early = [op for op in self.ops if isinstance(op, _WRITES) and self.passed[op] < self._loops() - 1]
        again = any(op.array in read for op in (*early, *stores))
        return "what is written before the last loop is read again" if again else ""

    def _between(self) -> list[Operation]:
        """All operations of the block from the first to the last on long rows."""
        found = list(self.around.ops)
        return found[found.index(self.ops[0]) : found.index(self.ops[-1]) + 1] if self.ops else []

    def _order(self) -> None:
        """Which loop each operation comes in first, and behind which one values are known."""
        for op in self._between():
            needed = max((self.known.get(value, 0) for inner in op.walk() for value in inner.operands), default=0)
            if op not in self.ops:
                self.known |= dict.fromkeys(op.results, needed)
                continue
            made = [value.owner for value in op.operands if isinstance(value.owner, Operation)]
            self.passed[op] = max([needed, *(self.passed[by] for by in made if by in self.passed)])
            if isinstance(op, RowReduction) and self._is_reduced(op):
                kept = self.online_in(op)
                if kept is not None:
                    self.passed[op] = self.passed[kept.greatest]
                self.known[op.results[0]] = self.passed[op] + 1

    def online_in(self, op: RowReduction) -> Online | None:
        """How a reduction goes on beside the maximum that it needs, if that is one of these rows."""
        found = online(op)
        return found if found is not None and self._is_reduced(found.greatest) else None

    def _loops(self) -> int:
        return max((self.passed[op] for op in self._ends()), default=-1) + 1

    def _ends(self) -> list[Operation]:
        """What loops are there for."""
        return [op for op in self.ops if self._is_reduced(op) or isinstance(op, _WRITES)]

    # Doing it

    def divide(self) -> None:
        between, behind = self._between(), self.ops[-1].next_op
        waiting = {op: self._needed(op) for op in between if op not in self.ops and self._needed(op)}
        for op in waiting:
            op.detach()
        for number in range(self._loops()):
            self._loop(number, behind)
            for op in [op for op, loops in waiting.items() if loops == number + 1]:
                self._insert(op, behind)
        for op in reversed(self.ops):
            op.detach()
            op.erase()

    def _needed(self, op: Operation) -> int:
        used = (value for inner in op.walk() for value in (*inner.operands, *inner.results))
        return max((self.known.get(value, 0) for value in used), default=0)

    def _insert(self, op: Operation, behind: Operation | None) -> None:
        if behind is None:
            self.around.add_op(op)
        else:
            self.around.insert_op_before(op, behind)

    def _loop(self, number: int, behind: Operation | None) -> None:
        """One loop over the pieces, and the rest of the rows; its reductions take the place of those of whole rows."""
        ends = [op for op in self._ends() if self.passed[op] == number]
        if not ends:
            return
        reductions = [op for op in ends if isinstance(op, RowReduction)]
        inside = self._inside(ends)
        scans = [op for op in inside if isinstance(op, CumSumOp)]
        size, place = self.most, ends[-1]
        folds = self._folds(reductions)
        begin = [*(_neutral(op, folds) for op in reductions), *map(_nothing, scans)]
        bounds = zero, pieces, one = constant(0), constant(self.length // size), constant(1)
        body = Block(arg_types=[IndexType(), *(op.result.type for op in begin)])
        loop = scf.ForOp(zero.result, pieces.result, one.result, [op.result for op in begin], body)
        for op in (*bounds, *begin, loop):
            op.location = place.location
            self._insert(op, behind)
        index, turn = body.args[0], list[Operation]()
        if number % 2 and not scans:
            last = constant(self.length // size - 1)
            turn = [last, arith.SubiOp(last.result, index)]
            index = turn[-1].results[0]
        block = BlockOp(index, BlockType(self.length, size))
        before: Before = dict(zip((*reductions, *scans), body.args[1:], strict=True))
        piece = Piece(self.length, self.online_in, block, inside, before, folds)
        made = (*turn, *piece.ops())
        end = scf.YieldOp(*(piece.results[op] for op in (*reductions, *scans)))
        end.location = place.location
        for op in turn:
            op.location = place.location
        for op in (*made, end):
            body.add_op(op)
        sums: Before = dict(zip((*reductions, *scans), loop.results, strict=True))
        rest = self.length % size
        if rest or folds:
            first = constant(self.length - rest)
            last = BlockOp(zero.result, BlockType(self.length, rest), start=first.result) if rest else None
            piece = Piece(self.length, self.online_in, last, inside, sums, folded=bool(folds))
            for op in (*([first] if rest else []), *piece.ops()):
                op.location = op.location if op is not first else place.location
                self._insert(op, behind)
            sums = piece.results
        for op in reductions:
            sums[op].name_hint = op.result.name_hint
            op.result.replace_all_uses_with(sums[op])

    def _folds(self, reductions: Sequence[RowReduction]) -> int:
        """How many elements of each row a loop keeps of its reductions, so that threads need one another only behind
        it; 0 if one, as threads have tiles that meet MMAs in another way."""
        around = self.around.parent_op()
        while around is not None and not isinstance(around, TasksOp):
            around = around.parent_op()
        if not reductions or around is None or not is_spread(around):
            return 0
        rows = max(prod(tile_type(op.result).shape) for op in reductions)
        groups = self.consumers or _USUAL
        count = max((_FOLDS << (groups - 1).bit_length()) >> (rows - 1).bit_length(), _FEWEST)
        while count > _FEWEST and self.most % count:
            count //= 2
        return 0 if self.most % count else count

    def _inside(self, ends: Sequence[Operation]) -> list[Operation]:
        """What a loop computes for its ends, in the order of the program."""
        found, todo = set(ends), list(ends)
        while todo:
            for value in todo.pop().operands:
                made = value.owner
                if made in self.passed and made not in found and self._axis(value.type) is not None:
                    assert isinstance(made, Operation)
                    found.add(made)
                    todo.append(made)
        return [op for op in self.ops if op in found]


def _nothing(op: CumSumOp) -> FullOp:
    kind = tile_type(op.result)
    return FullOp(0, TileType(kind.shape[:-1], kind.element_type))


def _neutral(op: RowReduction, folds: int) -> FullOp:
    kind = tile_type(op.result)
    return FullOp(op.NEUTRAL[kind.element_type], TileType([*kind.shape, folds], kind.element_type) if folds else kind)
