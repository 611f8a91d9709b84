"""Contributions to sums over ranks that stand in branches, as contributions of zeros elsewhere."""

from __future__ import annotations

from xdsl.dialects import scf
from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import i1
from xdsl.ir import Block, Operation, Region, SSAValue

from pkc.dialect.access import AccumulateOp, LoadOp
from pkc.dialect.arrays import array_type
from pkc.dialect.by_table import GatherOp
from pkc.dialect.elementwise import SelectOp
from pkc.dialect.scalars import constant_of
from pkc.dialect.tile import CastOp, FullOp, SplatOp, tile_type
from pkc.dialect.types import Dim, TileType
from pkc.passes.analysis.covering import covers
from pkc.passes.analysis.dependence import writes
from pkc.passes.build import before, defined_in


def contribute_behind(op: AccumulateOp, branch: scf.IfOp, value: SSAValue) -> bool:
    """Contribute behind a branch what one side of it does, and zeros for the other; `value` is what is contributed, as
    it was before it was rounded. False if that is left as it is.

    Sums begin at zero, so that zeros change nothing. Each task has a tile for it, whatever the branch says: a row that
    may not exist is left where it is. What is loaded, and not computed, is loaded in front of the branch.
    """
    dims = array_type(op.array).dimensions
    _constants_in_front(op, branch)
    if any(defined_in(index, branch) for index in op.indices) or not all(map(_is_there, op.indices, dims)):
        return False
    in_true, loads = op.parent is branch.true_region.block, _loads(value)
    if not loads:
        _move(op, branch, _given(op, branch, value, in_true))
        return True
    inside = [load for load in loads if branch.is_ancestor(load)]
    if loads[0] in inside and not _can_move(loads[0], branch):
        return False
    for load in inside:
        load.detach()
    before(branch, inside)
    kind = tile_type(value)
    zero, mask = FullOp(0, kind), SplatOp(branch.cond, TileType(kind.shape, i1))
    chosen = SelectOp(mask, *((value, zero) if in_true else (zero, value)))
    before(branch, [zero, mask, chosen])
    _move(op, branch, chosen.results[0])
    return True


def _constants_in_front(op: AccumulateOp, branch: scf.IfOp) -> None:
    """Place the constants that index a contribution in front of the branch that it stands in."""
    for index in op.indices:
        if isinstance(index.owner, ConstantOp) and defined_in(index, branch):
            index.owner.detach()
            before(branch, [index.owner])


def _is_there(index: SSAValue, dim: Dim) -> bool:
    """Whether each task has the place that an index names: one of its own, or a constant one."""
    number = constant_of(index)
    return covers(index, dim) or (number is not None and isinstance(dim, int) and 0 <= number < dim)


def _can_move(load: Operation, branch: scf.IfOp) -> bool:
    """Whether a tile may be loaded in front of a branch, one side of which does not use it."""
    if not isinstance(load, LoadOp) or any(defined_in(operand, branch) for operand in load.operands):
        return False
    return not any(writes(use) and branch.is_ancestor(use.operation) for use in load.array.uses)


def _loads(value: SSAValue) -> list[Operation]:
    """The load of a tile, and its conversions; none if it is computed."""
    found: list[Operation] = []
    while isinstance(value.owner, CastOp):
        found.insert(0, value.owner)
        value = value.owner.tile
    return [value.owner, *found] if isinstance(value.owner, LoadOp | GatherOp) else []


def _given(op: AccumulateOp, branch: scf.IfOp, value: SSAValue, in_true: bool) -> SSAValue:
    """A tile that a branch gives: zeros on the side that does not contribute."""
    regions: list[Region] = []
    for side, region in ((True, branch.true_region), (False, branch.false_region)):
        block = region.detach_block(0) if region.blocks else Block()
        last = block.last_op
        given: list[SSAValue] = []
        if isinstance(last, scf.YieldOp):
            given += last.operands
            last.detach()
            last.erase()
        zero = FullOp(0, tile_type(value))
        ended = scf.YieldOp(*given, value if side is in_true else zero.result)
        for made in (ended,) if side is in_true else (zero, ended):
            made.location = op.location
            block.add_op(made)
        regions.append(Region(block))
    then, orelse = regions
    new = scf.IfOp(branch.cond, [*(result.type for result in branch.results), value.type], then, orelse)
    before(branch, [new])
    for old, result in zip(branch.results, new.results, strict=False):
        result.name_hint = old.name_hint
        old.replace_all_uses_with(result)
    return new.results[-1]


def _move(op: AccumulateOp, branch: scf.IfOp, total: SSAValue) -> None:
    """Contribute a tile where a branch ends, which has no sides any more if another one gives the tile."""
    stored, around = tile_type(op.tile), branch.parent
    assert around is not None
    op.detach()
    op.operands[0] = total
    around.insert_op_after(op, branch)
    if total.type != stored:
        rounded = CastOp(total, stored.element_type)
        before(op, [rounded])
        op.operands[0] = rounded.result
    if not any(region.blocks for region in branch.regions):
        branch.detach()
        branch.erase()
