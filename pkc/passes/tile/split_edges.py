"""The pass `pk-split-edges`: masks that positions decide are evaluated only in blocks that they change."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from xdsl.dialects import arith, scf
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.traits import is_side_effect_free

from pkc.dialect.access import LoadOp
from pkc.dialect.by_table import GatherOp
from pkc.dialect.coordinates import IsWholeOp
from pkc.dialect.elementwise import AndOp, NotOp, OrOp, SelectOp
from pkc.dialect.program import KernelOp
from pkc.dialect.reductions import FoldOp, RowReduction
from pkc.dialect.tile import BroadcastOp, ClipOp, FullOp, MmaOp, SplatOp, TransposeOp, tile_type
from pkc.passes.analysis.dependence import goes_over_blocks
from pkc.passes.analysis.intervals import Condition, condition_of, formula_ops
from pkc.passes.build import append, append_copy, before
from pkc.passes.dce import drop_dead
from pkc.passes.kernel_pass import KernelPass
from pkc.remarks import missed


class SplitEdges(KernelPass):
    """Evaluate masks that positions decide only in the blocks of a loop that they change.

    A mask is a `pk.clip`, or a `pk.select` by comparisons of positions. For a clip the block is asked whether it is
    whole; for a select, interval arithmetic on the first and last positions of blocks says whether the condition holds
    for all elements. Where it does, the tile is used as it is: one branch for all threads, instead of a comparison and
    a choice for each element. Masks of masks are one branch. A reduction of rows that alone needs what is masked stands
    in both branches. The results have the same bits, past edges too.

    Of a condition with other parts, as `positions(q) >= positions(kv) and keep[kv] != 0`, those by positions become a
    mask of their own around that of the others, of which whole blocks keep the inner one. A condition that chooses a
    constant where it holds is turned around first: so `or` is as `and`.

    A branch pays where vector instructions are the limit: in loops that have MMAs, for tiles of several axes in
    registers. Elsewhere memory is, and masks stay as they are; nobody who has a kernel without MMAs is told.

    Before:

        %c = pk.compare ge, %q_positions, %kv_positions : ...
        %m = pk.select %c, %s, %minus_infinity : ...
        %t = pk.clip %m axis 1 to %kv fill 0xff800000 : f32 : ...

    After:

        %first = pk.block_position %q : ...
        %last = ...                                      // that of %kv, and 127
        %below = arith.cmpi sge, %first, %last : index
        %whole = pk.is_whole %kv : !pk.block<T by 128>
        %as_it_is = arith.andi %below, %whole : i1
        %t = scf.if %as_it_is -> (!pk.tile<128x128xf32>) {
          scf.yield %s : !pk.tile<128x128xf32>
        } else {
          %c = pk.compare ge, %q_positions, %kv_positions : ...
          %m = pk.select %c, %s, %minus_infinity : ...
          %t = pk.clip %m axis 1 to %kv fill 0xff800000 : f32 : ...
          scf.yield %t : !pk.tile<128x128xf32>
        }
    """

    name = "pk-split-edges"

    def run(self, kernel: KernelOp) -> None:
        if not any(isinstance(op, MmaOp) for op in kernel.walk()):
            return
        for op in list(kernel.walk()):
            if isinstance(op, SelectOp) and tile_type(op.result).rank > 1:
                _nest(op)
        drop_dead(kernel.body)  # conditions that were taken apart: they hold what else only masks use
        for masks in list(_chains(kernel)):
            _split(masks)


def _mask_of(op: Operation) -> Condition | None:
    """When the condition of a `pk.select` holds, if positions and scalars decide it."""
    found = condition_of(op.condition) if isinstance(op, SelectOp) else None
    return found if found is not None and found.always else None


class _Part(NamedTuple):
    """A tile of booleans, of which all that hold make a condition hold: as it is, or its negation."""

    tile: SSAValue
    holds: bool
    broadcasts: tuple[BroadcastOp, ...]
    """From the tile to the shape of the condition."""

    @property
    def by_positions(self) -> bool:
        found = condition_of(self.tile)
        return found is not None and bool(found.always if self.holds else found.never)

    def made(self) -> tuple[list[Operation], SSAValue]:
        """Operations that make it, in the shape of the condition, and the tile that they give."""
        made: list[Operation] = [] if self.holds else [NotOp(self.tile)]
        value = self.tile if self.holds else made[-1].results[0]
        for op in self.broadcasts:
            made.append(op.clone({op.tile: value}))
            value = made[-1].results[0]
        return made, value


def _parts(tile: SSAValue, holds: bool, broadcasts: tuple[BroadcastOp, ...] = ()) -> list[_Part]:
    """What must hold so that a condition does, or does not."""
    op = tile.owner
    if isinstance(op, BroadcastOp):
        return _parts(op.tile, holds, (op, *broadcasts))
    if isinstance(op, NotOp):
        return _parts(op.tile, not holds, broadcasts)
    if isinstance(op, AndOp if holds else OrOp):
        return [part for side in op.operands for part in _parts(side, holds, broadcasts)]
    return [_Part(tile, holds, broadcasts)]


def _nest(op: SelectOp) -> None:
    """Make a mask by positions of its own out of a part of a condition, or of what holds where it does not."""
    holds = not _is_constant(op.lhs) or _is_constant(op.rhs)
    kept, other = (op.lhs, op.rhs) if holds else (op.rhs, op.lhs)
    parts = _parts(op.condition, holds)
    outer = [part for part in parts if part.by_positions]
    inner = [part for part in parts if not part.by_positions]
    if not outer or (holds and not inner) or _no_gain(op, kept) is not None:
        return
    for group in (inner, outer):
        if group:
            made, condition = _all_of(group)
            before(op, [*made, SelectOp(condition, kept, other)])
            masked = op.prev_op
            assert masked is not None
            kept = masked.results[0]
    kept.name_hint = op.result.name_hint
    op.result.replace_all_uses_with(kept)
    op.detach()
    op.erase()


def _all_of(parts: list[_Part]) -> tuple[list[Operation], SSAValue]:
    """Operations that find out where all parts hold, and the tile that they give."""
    made: list[Operation] = []
    condition: SSAValue | None = None
    for part in parts:
        ops, value = part.made()
        made += ops
        if condition is not None:
            made.append(AndOp(condition, value))
            value = made[-1].results[0]
        condition = value
    assert condition is not None
    return made, condition


def _is_constant(tile: SSAValue) -> bool:
    """Whether a tile is one number."""
    op = tile.owner
    return isinstance(op, FullOp | SplatOp) or (isinstance(op, BroadcastOp) and _is_constant(op.tile))


def _chains(kernel: KernelOp) -> Iterator[list[Operation]]:
    """Masks, those of masks that have no other use together; the first one first."""
    found = (op for op in kernel.walk() if isinstance(op, ClipOp) or _mask_of(op) is not None)
    masks = [op for op in found if tile_type(op.results[0]).rank > 1]
    following = {op: _masked(op).owner for op in masks}
    inner = {
        before
        for op, before in following.items()
        if before in following and before.parent is op.parent and _masked(op).has_one_use()
    }
    for op in masks:
        if op in inner:
            continue
        chain = [op]
        while (before := following[chain[0]]) in inner:
            assert isinstance(before, Operation)
            chain.insert(0, before)
        yield chain


def _masked(op: Operation) -> SSAValue:
    """What a mask leaves as it is in whole blocks."""
    assert isinstance(op, ClipOp | SelectOp)
    return op.tile if isinstance(op, ClipOp) else op.lhs


def _split(masks: list[Operation]) -> None:
    last, tile = masks[-1], _masked(masks[0])
    if (reason := _no_gain(last, tile)) is not None:
        missed(SplitEdges.name, last, f"whole blocks are masked element by element like others: {reason}")
        return
    ops, whole = _unmasked(masks)
    before(last, ops)
    reduction = _only_reduction(last)
    masked, used = (last, tile) if reduction is None else (reduction, tile)
    then, orelse = Block(), Block()
    branch = scf.IfOp(whole, [masked.results[0].type], Region(then), Region(orelse))
    before(last, [branch])
    branch.results[0].name_hint = masked.results[0].name_hint
    masked.results[0].replace_all_uses_with(branch.results[0])
    if reduction is not None:
        used = append_copy(then, reduction, {last.results[0]: tile}).results[0]
    for op in masks if reduction is None else (*masks, reduction):
        op.detach()
        orelse.add_op(op)
    append(then, scf.YieldOp(used), last.location)
    append(orelse, scf.YieldOp(masked.results[0]), last.location)
    _sink(branch)


def _only_reduction(mask: Operation) -> RowReduction | FoldOp | None:
    """The reduction or fold of rows that alone needs a masked tile. It stands in the branches: what they give would
    have as many registers as the tile, which something else may need as it is."""
    uses = list(mask.results[0].uses)
    op = uses[0].operation if len(uses) == 1 else None
    return op if isinstance(op, RowReduction | FoldOp) and op.parent is mask.parent else None


def _no_gain(mask: Operation, tile: SSAValue) -> str | None:
    """Why a branch would not pay."""
    loop = mask.parent_op()
    with_mma = isinstance(loop, scf.ForOp) and any(isinstance(op, MmaOp) for op in loop.body.block.ops)
    if not isinstance(loop, scf.ForOp) or not (with_mma or goes_over_blocks(loop)):
        return "the mask is not in a loop over blocks"
    if not with_mma:
        inside = any(isinstance(op, MmaOp) for op in loop.walk())
        there = "the MMAs of its loop are in another loop inside of it, beside which it takes little"
        return there if inside else "no MMA is in its loop, whose limit is memory"
    if isinstance(tile.owner, LoadOp | GatherOp | TransposeOp):
        return "the tile is not in registers"
    return None


def _unmasked(masks: list[Operation]) -> tuple[list[Operation], SSAValue]:
    """Operations that find out whether all masks leave all elements as they are, and the `i1` that they give."""
    made: list[Operation] = []
    whole: SSAValue | None = None
    for op in masks:
        if isinstance(op, ClipOp):
            made.append(IsWholeOp(op.block))
            found = made[-1].results[0]
        else:
            condition = _mask_of(op)
            assert condition is not None
            ops, found = formula_ops(condition.always)
            made += ops
        if whole is not None:
            made.append(arith.AndIOp(whole, found))
            found = made[-1].results[0]
        whole = found
    assert whole is not None
    return made, whole


def _sink(branch: scf.IfOp) -> None:
    """Move what only the masks use into their branch."""
    around, inside = branch.parent, branch.false_region.block
    assert around is not None
    for op in reversed(list(around.ops)):
        if not op.is_before_in_block(branch) or not op.results or op.regions or not is_side_effect_free(op):
            continue
        uses = [use.operation for result in op.results for use in result.uses]
        if uses and all(inside.find_ancestor_op_in_block(user) is not None for user in uses):
            op.detach()
            first = inside.first_op
            assert first is not None
            inside.insert_op_before(op, first)
