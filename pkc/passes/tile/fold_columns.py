"""The pass `pk-fold-columns`: threads keep parts of the sums of a tile's columns until the loop is over."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects import scf
from xdsl.ir import Block, BlockArgument, Operation, SSAValue, Use
from xdsl.rewriter import Rewriter

from pkc.dialect.access import AccumulateOp, AddToArrayOp, LoadOp, StoreOp
from pkc.dialect.by_table import GatherOp
from pkc.dialect.program import KernelOp, TasksOp
from pkc.dialect.reductions import FoldOp, RowReduction
from pkc.dialect.tile import AnyMmaOp, BroadcastOp, ClipOp, FullOp, SplatOp, TransposeOp, tile_type
from pkc.dialect.types import TileType
from pkc.passes.analysis.folded_columns import FEWEST, SIDE, folds_of
from pkc.passes.analysis.pointwise import is_spread
from pkc.passes.kernel_pass import KernelPass
from pkc.passes.turned import is_elementwise, is_loaded
from pkc.remarks import missed


class FoldColumns(KernelPass):
    """Let a loop keep some elements of each column that it reduces, and reduce these behind it.

    A gradient of weights is a matmul that sums over tokens, and that of the bias is the sum of the same tokens' rows:
    `b += rowsum(dy.T)`. Its tile lies in a stage row by row. Threads that share a row of it, 8 neighbours each, read 16
    bytes at a time, and each needs registers for 8 columns alone (`pkc/passes/analysis/folded_columns.py`). So they do
    where a loop does nothing with such a reduction but combine it with what it carries, and where neither what is
    reduced nor the result meets tiles that lie as MMAs have them.

    A reduction of rows has no defined order. What the loop began with is combined with the result behind it.

    Before:

        %none = pk.full 0.0 : f32 : !pk.tile<256xf32>
        %sum = scf.for %t = ... iter_args(%b = %none) -> (!pk.tile<256xf32>) {
          %y = pk.transpose %dy : !pk.tile<64x256xf32> -> !pk.tile<256x64xf32>
          %s = pk.row_sum %y : !pk.tile<256x64xf32> -> !pk.tile<256xf32>
          %next = pk.add %b, %s : !pk.tile<256xf32>
          scf.yield %next : !pk.tile<256xf32>
        }

    After:

        %none = pk.full 0.0 : f32 : !pk.tile<256x8xf32>
        %sums = scf.for %t = ... iter_args(%b = %none) -> (!pk.tile<256x8xf32>) {
          %y = pk.transpose %dy : !pk.tile<64x256xf32> -> !pk.tile<256x64xf32>
          %s = pk.fold "pk.row_sum" %y across : !pk.tile<256x64xf32> -> !pk.tile<256x8xf32>
          %next = pk.add %b, %s : !pk.tile<256x8xf32>
          scf.yield %next : !pk.tile<256x8xf32>
        }
        %sum = pk.row_sum %sums : !pk.tile<256x8xf32> -> !pk.tile<256xf32>
    """

    name = "pk-fold-columns"

    def run(self, kernel: KernelOp) -> None:
        for tasks in kernel.walk():
            if isinstance(tasks, TasksOp):
                self._of_tasks(tasks)

    def _of_tasks(self, tasks: TasksOp) -> None:
        found = [op for op in tasks.walk() if isinstance(op, RowReduction) and _reads_across(op)]
        how = "reduces columns over all threads" if is_spread(tasks) else "reads columns of the tile element by element"
        while obstacles := {op: why for op in found if (why := _obstacle(op, found))}:
            for op, why in obstacles.items():
                missed(self.name, op, f"each iteration {how}: {why}")
            found = [op for op in found if op not in obstacles]
        for op in found:
            _fold(op)


def _reads_across(op: RowReduction) -> bool:
    """Whether rows are reduced that are columns of a tile as it is loaded, in a loop or in a branch of one."""
    around = op.parent_op()
    while isinstance(around, scf.IfOp):
        around = around.parent_op()
    return isinstance(around, scf.ForOp) and any(isinstance(made, TransposeOp) for made in _chain(op))


def _obstacle(op: RowReduction, others: list[RowReduction]) -> str:
    """Why a reduction cannot be folded beside `others`; empty if it can."""
    rows, length = tile_type(op.tile).shape
    if isinstance(op.parent_op(), scf.IfOp):
        return "it stands in a branch of the loop; put the branch around what uses the result behind the loop"
    if rows % SIDE or not folds_of(rows, length):
        return f"{length} x {rows} is not a multiple of {FEWEST} x {SIDE}"
    number = _carried(op)
    if number is None:
        return "the result is used in the iteration that computes it"
    together = {made for other in others for made in (other, *_chain(other))}
    for made in _chain(op):
        if isinstance(made, TransposeOp) and not _is_loaded(made.tile):
            return "it is computed before it is transposed"
        if not isinstance(made, TransposeOp) and not _goes_by_element(made):
            return "it is computed with what has one number for each row or column"
        if any(not _may_use(use.operation, made) and use.operation not in together for use in _uses(made)):
            return "something else is computed of it too"
        if any(isinstance(value.owner, Block) for value in made.operands if isinstance(value.type, TileType)):
            return "a loop or branch carries what it is computed of"
    loop = op.parent_op()
    assert isinstance(loop, scf.ForOp)
    apart = _is_apart(loop.results[number]) and _is_start(loop.iter_args[number])
    return "" if apart else "the result is used beside other tiles"


def _chain(op: RowReduction) -> list[Operation]:
    """What makes the tile that is reduced, up to what is transposed, but for constants: each use has its own."""
    found, todo = dict[Operation, None](), [op.tile]
    while todo:
        made = todo.pop().owner
        if isinstance(made, Block | FullOp | SplatOp) or made in found:
            continue
        found[made] = None
        if not isinstance(made, TransposeOp) and _goes_by_element(made):
            todo += [value for value in made.operands if isinstance(value.type, TileType) and value.type.rank]
    return list(found)


def _may_use(op: Operation, made: Operation) -> bool:
    """Whether an operation may use what is folded: MMAs read what is loaded in its stage, not in registers."""
    return isinstance(op, AnyMmaOp) and is_loaded(made.results[0])


def _goes_by_element(op: Operation) -> bool:
    """Whether each element of a result follows from those at its place, and from numbers for the whole tile."""
    if isinstance(op, BroadcastOp):
        return not tile_type(op.tile).rank
    return is_elementwise(op)


def _is_loaded(tile: SSAValue) -> bool:
    while isinstance(tile.owner, ClipOp):
        tile = tile.owner.tile
    return isinstance(tile.owner, LoadOp | GatherOp)


def _carried(op: RowReduction) -> int | None:
    """Which of the values that its loop carries a reduction is combined with, if that is all that is done to both."""
    loop, uses = op.parent_op(), list(op.result.uses)
    assert isinstance(loop, scf.ForOp)
    body = loop.body.block
    if len(uses) != 1 or not isinstance(combine := uses[0].operation, op.COMBINE) or combine.parent is not body:
        return None
    before = combine.operands[1 - uses[0].index]
    last = list(combine.results[0].uses)
    if not isinstance(before, BlockArgument) or before.owner is not body or len(list(before.uses)) != 1:
        return None
    if len(last) != 1 or last[0].operation is not body.last_op or last[0].index != before.index - 1:
        return None
    return before.index - 1


def _is_start(value: SSAValue) -> bool:
    """Whether what a loop begins with may lie as what it gives does."""
    loaded = isinstance(value.owner, LoadOp) and len(list(value.uses)) == 1
    return loaded or isinstance(value.owner, FullOp | SplatOp)


def _is_apart(value: SSAValue) -> bool:
    """Whether a tile of one axis is stored, itself or what is made of it by element, and meets no other tiles but
    constants, and what is loaded for it alone."""
    met, todo = set[SSAValue](), [value]
    while todo:
        tile = todo.pop()
        if tile in met:
            continue
        met.add(tile)
        for use in tile.uses:
            op = use.operation
            if isinstance(op, StoreOp | AddToArrayOp | AccumulateOp) and use.index == 0:
                continue
            if isinstance(op, scf.YieldOp) and isinstance(branch := op.parent_op(), scf.IfOp):
                todo += [branch.results[use.index], *_given(branch, use.index)]
                continue
            if isinstance(op, BroadcastOp) or not _goes_by_element(op):
                return False
            todo += op.results
            todo += [other for other in op.operands if _is_of_rows(other) and not _is_constant(other)]
        if tile is not value and not _is_made_here(tile, met | set(todo)):
            return False
    return True


def _given(branch: scf.IfOp, number: int) -> list[SSAValue]:
    """What the sides of a branch give as one of its results, but for constants."""
    ends = [region.block.last_op for region in branch.regions]
    given = [end.operands[number] for end in ends if end is not None]
    return [value for value in given if not _is_constant(value)]


def _is_made_here(tile: SSAValue, met: set[SSAValue]) -> bool:
    made = tile.owner
    if isinstance(made, LoadOp | scf.IfOp):
        return True
    return isinstance(made, Operation) and _goes_by_element(made) and not met.isdisjoint(made.operands)


def _is_of_rows(value: SSAValue) -> bool:
    return isinstance(value.type, TileType) and value.type.rank > 0


def _is_constant(value: SSAValue) -> bool:
    made = value.owner
    scalar = isinstance(made, BroadcastOp) and not tile_type(made.tile).rank
    return scalar or isinstance(made, FullOp | SplatOp)


def _uses(op: Operation) -> Iterator[Use]:
    return (use for result in op.results for use in result.uses)


def _fold(op: RowReduction) -> None:
    """Keep parts of a reduction in its loop, and reduce them behind it."""
    loop, number, block = op.parent_op(), _carried(op), op.parent
    assert isinstance(loop, scf.ForOp) and number is not None and block is not None and loop.parent is not None
    fold = FoldOp(type(op), op.tile, folds_of(*tile_type(op.tile).shape), across=True)
    kind, start = tile_type(fold.result), loop.iter_args[number]
    combine = next(iter(op.result.uses)).operation
    fold.location, fold.result.name_hint = op.location, op.result.name_hint
    block.insert_op_before(fold, op)
    op.result.replace_all_uses_with(fold.result)
    op.detach()
    op.erase()
    for value in (block.args[1 + number], combine.results[0], loop.results[number]):
        Rewriter.replace_value_with_new_type(value, kind)
    neutral = FullOp(op.NEUTRAL[kind.element_type], kind)
    loop.parent.insert_op_before(neutral, loop)
    loop.operands[3 + number] = neutral.result
    folded = loop.results[number]
    total = type(op)(folded)
    made: list[Operation] = [total]
    if not (isinstance(start.owner, FullOp) and start.owner.constant == op.NEUTRAL[kind.element_type]):
        made.append(op.COMBINE(start, total.result))
    for one in (neutral, *made):
        one.location = loop.location
    made[-1].results[0].name_hint = folded.name_hint
    loop.parent.insert_ops_after(made, loop)
    folded.replace_uses_with_if(made[-1].results[0], lambda use: use.operation is not total)
