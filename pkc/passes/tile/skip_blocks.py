"""The pass `pk-skip-blocks`: loops over blocks leave out those that are masked as a whole and so change nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from xdsl.dialects import arith, scf
from xdsl.ir import Operation, OpResult, SSAValue
from xdsl.traits import is_side_effect_free

from pkc.dialect.coordinates import (
    BlockOp,
    BlockPositionOp,
    FirstVisitedOp,
    ShardedCountOp,
    VisitedOp,
    ZigzagCountOp,
    ZigzagPositionOp,
)
from pkc.dialect.elementwise import SelectOp
from pkc.dialect.program import KernelOp
from pkc.dialect.tile import block_type
from pkc.passes.analysis.dependence import first_iteration, goes_over_blocks, sources
from pkc.passes.analysis.intervals import Formula, Linear, condition_of, formula_ops
from pkc.passes.analysis.unchanged import is_unchanged
from pkc.passes.build import before, constant, defined_in, is_constant
from pkc.passes.kernel_pass import KernelPass
from pkc.remarks import missed


@dataclass(frozen=True)
class SkipBlocks(KernelPass):
    """Leave out the iterations of a loop in which positions mask a whole tile, and which then change nothing.

    The condition of a `pk.select` is false for all elements where an integer that is affine in the loop's variable is
    not negative: from an iteration on, or up to one. Both are found by interval arithmetic on the first and last
    positions of blocks. Of an `and` one such part is enough, whatever decides the others. From these iterations follow
    the loop's bounds; of a shard in zigzag order `pk.zigzag_count` says how many blocks begin before a position, of a
    list that follows the shards `pk.sharded_count`, as each shard may end within a block. All roles that are derived
    from the loop have these bounds: what is not visited is not loaded. What all tasks alike may need is fetched
    (`pk.visited`), unless none of a rank does (`pk-plan-fetch`).

    An iteration may be left out if, with that tile a constant, each element of what the loop carries stays as it is or
    becomes NaN, whatever it was, and whatever arrays have. This is found out by evaluating the body on what is known of
    each tile, for finite elements, infinities and NaN alike. So in attention: with all scores -inf and a finite maximum
    so far the exponentials are 0, the factor is exp2(0) = 1, and sums stay; with a maximum that is -inf the program
    makes NaN. So all that changes is that some NaN do not arise (docs/language.md, section 5).

    Before:

        scf.for %i = %zero to %n step %one ... {
          %kv = pk.block[%i] : !pk.block<T by 128>
          %b = pk.compare ge, %q_positions, %kv_positions : ...
          %m = pk.select %b, %s, %minus_infinity : ...

    After:

        %first = pk.block_position %kv0 : !pk.block<T by 128>
        %last = pk.block_position %q : ...               // and 127
        %needed = ...                                    // iterations that begin at or before the last position
        %bound = pk.visited %needed of %n
        scf.for %i = %zero to %bound step %one ... {
    """

    name = "pk-skip-blocks"

    def run(self, kernel: KernelOp) -> None:
        for op in list(kernel.walk()):
            if isinstance(op, scf.ForOp):
                _narrow(op)


def _narrow(loop: scf.ForOp) -> None:
    for op in list(loop.body.block.ops):
        condition = condition_of(op.condition) if isinstance(op, SelectOp) else None
        if not isinstance(op, SelectOp) or condition is None:
            continue
        for formula, masked in ((condition.never, op.rhs), (condition.always, op.lhs)):
            ranges = [found for numbers in formula if (found := _range(loop, numbers)) is not None]
            if not ranges or not is_unchanged(loop, {op.result: masked}):
                continue
            for found in ranges:
                found.leave_out(op)
            break
        else:
            formulas = condition.never, condition.always
            if not goes_over_blocks(loop):
                continue
            if any(_varies(loop, formula) for formula in formulas):
                reason = "it is not sure that they change nothing"
            elif any(_goes_astray(loop, formula) for formula in formulas):
                reason = "the mask does not go from block to block in equal steps"
            else:
                continue
            missed(SkipBlocks.name, op, f"blocks that are masked as a whole are visited: {reason}")


class _Form(NamedTuple):
    """The integer `factor` * i + `rest` for iteration i of a loop; `rest` is known in front of the loop.

    With `of` the position of block i of a list takes the place of i: that of a shard in zigzag order, or of a list that
    follows the shards.
    """

    factor: int
    rest: Linear
    of: ZigzagPositionOp | BlockOp | None


@dataclass(frozen=True)
class _Range:
    """Iterations i of a loop in which a form is not negative, if none of `given` is."""

    loop: scf.ForOp
    form: _Form
    given: tuple[Linear, ...]

    def leave_out(self, mask: Operation) -> None:
        loop, factor = self.loop, self.form.factor
        if not is_constant(loop.step, 1) or not (factor < 0 or is_constant(first_iteration(loop), 0)):
            missed(SkipBlocks.name, mask, "blocks that are masked as a whole are visited: the loop begins elsewhere")
            return
        ops, rest = self.form.rest.ops()
        by, zero, one = constant(abs(factor)), constant(0), constant(1)
        over = arith.FloorDivSIOp(rest, by.result)
        # From the first one on, -rest / factor rounded up; or up to the last one, rest / -factor rounded down.
        upper = factor > 0
        bound = arith.SubiOp(zero.result, over.result) if upper else arith.AddiOp(over.result, one.result)
        ops += [by, zero, one, over, bound]
        limit: SSAValue = bound.result
        if self.form.of is not None:
            ops.append(_blocks_before(loop, self.form.of, limit))
            limit = ops[-1].results[0]
        if self.given:
            holds, value = formula_ops((self.given,))
            chosen = arith.SelectOp(value, limit, loop.ub if upper else loop.lb)
            ops += [*holds, chosen]
            limit = chosen.result
        if not upper and isinstance(loop.lb.owner, FirstVisitedOp):
            most = arith.MaxSIOp(limit, loop.lb.owner.needed)
            ops += [most, FirstVisitedOp(most.result, loop.lb.owner.first)]
        elif not upper:
            ops.append(FirstVisitedOp(limit, loop.lb))
        elif isinstance(loop.ub.owner, VisitedOp):
            least = arith.MinSIOp(limit, loop.ub.owner.needed)
            ops += [least, VisitedOp(least.result, loop.ub.owner.count)]
        else:
            ops.append(VisitedOp(limit, loop.ub))
        before(loop, ops)
        loop.operands[1 if upper else 0] = ops[-1].results[0]


def _blocks_before(loop: scf.ForOp, end: ZigzagPositionOp | BlockOp, limit: SSAValue) -> Operation:
    """How many blocks of a loop have their first or last position before a limit."""
    if isinstance(end, BlockOp):
        return ShardedCountOp(block_type(end.result), limit)
    block = end.block.owner
    assert isinstance(block, BlockOp) and block.shard is not None
    shard = _in_front(loop, block.shard)
    assert shard is not None
    return ZigzagCountOp(block_type(block.result), shard, limit, last=end.last is not None)


def _range(loop: scf.ForOp, numbers: tuple[Linear, ...]) -> _Range | None:
    """The iterations in which none of these is negative, if one of them follows the loop's variable."""
    forms = [_affine(loop, number) for number in numbers]
    varying = [form for form in forms if form is not None and form.factor]
    if None in forms or len(varying) != 1:
        return None
    return _Range(loop, varying[0], tuple(form.rest for form in forms if form is not None and not form.factor))


def _varies(loop: scf.ForOp, formula: Formula) -> bool:
    return any(form.factor for numbers in formula for number in numbers if (form := _affine(loop, number)) is not None)


def _goes_astray(loop: scf.ForOp, formula: Formula) -> bool:
    """Whether a number follows the loop's variable in a way that nothing is known of."""
    unknown = [number for numbers in formula for number in numbers if _affine(loop, number) is None]
    return any(loop.body.block.args[0] in sources(number.terms) for number in unknown)


def _affine(loop: scf.ForOp, number: Linear) -> _Form | None:
    """An integer as a multiple of the loop's variable, or of a position that ascends with it, and a rest."""
    variable, total, rest = loop.body.block.args[0], 0, Linear({}, number.number)
    found: list[tuple[ZigzagPositionOp | BlockOp, int]] = []
    for term, factor in number.terms.items():
        if term is variable:
            total += factor
            continue
        value = term.owner.block if isinstance(term.owner, BlockPositionOp) else term
        end = value.owner
        block = end.block.owner if isinstance(end, ZigzagPositionOp) else end
        numbered = block if isinstance(block, BlockOp) and block.index is variable else None
        if numbered is not None and isinstance(end, ZigzagPositionOp):
            if numbered.shard is None or _in_front(loop, numbered.shard) is None:
                return None
            found.append((end, factor))
            continue
        if numbered is not None and numbered.sharded is not None and numbered.shard is None:
            found.append((numbered, factor))  # from one shard to the next there may be less than a block
            continue
        if numbered is not None:
            total += factor * block_type(value).extent
        known = _in_front(loop, value)
        if known is None:
            return None
        rest += Linear({known: factor})
    if not found:
        return _Form(total, rest, None)
    (of, factor), *more = found
    return None if total or more else _Form(factor, rest, of)


def _in_front(loop: scf.ForOp, value: SSAValue, *, numbered: bool = True) -> SSAValue | None:
    """A value as it is in front of a loop, the first one of a block that the loop numbers; None if it is not known."""
    if not defined_in(value, loop):
        return value
    if not isinstance(value, OpResult) or value.op.regions or not is_side_effect_free(value.op):
        return None
    known: dict[SSAValue, SSAValue] = {}
    for operand in value.op.operands:
        if operand is loop.body.block.args[0] and isinstance(value.op, BlockOp) and numbered:
            zero = constant(0)
            before(loop, [zero])
            known[operand] = zero.result
        elif (found := _in_front(loop, operand, numbered=False)) is not None:
            known[operand] = found
        else:
            return None
    copy = value.op.clone(value_mapper=known)
    before(loop, [copy])
    return copy.results[value.index]
